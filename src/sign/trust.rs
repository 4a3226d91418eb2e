//! The trust file: whom a host believes, for which role, how long, and what no longer.
//!
//! It is pinned by whoever runs the host and lies outside the policy directory, so that what
//! is deployed cannot bring its own judges. JSON, because the strict reader of payloads then
//! reads it too: no second grammar decides whom to trust.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::digest::Digest;
use super::envelope::to_json;
use super::error::{Document, EnvelopeError, KeyError, Malformed, SignError, TrustError};
use super::json::{self, At, Fields};
use super::key::PublicKey;
use super::payload::{set_name, time};
use super::time::Timestamp;

/// Largest trust file that is read, in bytes.
pub const MAX_TRUST_BYTES: usize = 256 * 1024;
/// Most keys, and most revoked entries of a kind.
const MAX_KEYS: usize = 256;
const MAX_REVOKED: usize = 4096;
/// Seconds by which clocks may differ when the trust file says nothing.
pub const DEFAULT_SKEW_SECONDS: u64 = 300;
const MAX_SKEW_SECONDS: u64 = 86_400;

/// What a key may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Policy sets.
    Release,
    /// Approvals of widenings.
    Approve,
}

impl Role {
    /// The word in trust files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Release => "release",
            Role::Approve => "approve",
        }
    }

    fn parse(text: &str) -> Option<Role> {
        [Role::Release, Role::Approve].into_iter().find(|role| role.as_str() == text)
    }
}

/// One pinned key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedKey {
    /// Who holds it. Two keys of one signer count once towards a threshold.
    pub signer: String,
    /// The key.
    pub public: PublicKey,
    /// What it may sign.
    pub roles: BTreeSet<Role>,
    /// Start of its validity; `None`: always was.
    pub not_before: Option<Timestamp>,
    /// End of its validity (from then on it is refused); `None`: none.
    pub not_after: Option<Timestamp>,
}

/// A trust file that was read and found consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    set: String,
    thresholds: BTreeMap<Role, usize>,
    keys: Vec<PinnedKey>,
    revoked_keys: BTreeSet<Digest>,
    revoked_digests: BTreeSet<Digest>,
    floor: u64,
    clock_floor: Option<Timestamp>,
    skew: i64,
}

impl Trust {
    /// Reads a trust file.
    ///
    /// # Errors
    ///
    /// [`SignError`] with a code `trust-…`: not the format, a key that is none or weak or
    /// stands twice, a window that ends before it begins, a threshold that cannot be met.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignError> {
        let document = Document::Trust;
        let json = json::parse(document, bytes, MAX_TRUST_BYTES)?;
        let known = &["polctl_trust", "set", "threshold", "keys", "revoked", "floor", "clock"];
        let fields = At::root(document, &json).fields("", known)?;
        fields.parsed("polctl_trust", "`v1`", |text| (text == "v1").then_some(()))?;
        let (clock_floor, skew) = clock(&fields)?;
        let mut trust = Trust {
            set: set_name(&fields)?,
            thresholds: BTreeMap::new(),
            keys: keys(&fields)?,
            revoked_keys: revoked(&fields, "keys")?,
            revoked_digests: revoked(&fields, "digests")?,
            floor: floor(&fields)?,
            clock_floor,
            skew,
        };
        for (role, threshold) in thresholds(&fields)? {
            let signers = trust.signers(role);
            let needed = usize::try_from(threshold).ok().filter(|n| *n >= 1 && *n <= signers);
            let needed = needed.ok_or(TrustError::Threshold { role: role.as_str(), threshold, signers })?;
            trust.thresholds.insert(role, needed);
        }
        Ok(trust)
    }

    /// A trust file for a new set, with its first key and thresholds of one.
    ///
    /// # Errors
    ///
    /// As [`Trust::parse`].
    pub fn first(set: &str, key: PinnedKey) -> Result<Self, SignError> {
        let trust = Trust {
            set: set.to_owned(),
            thresholds: key.roles.iter().map(|role| (*role, 1)).collect(),
            keys: vec![key],
            revoked_keys: BTreeSet::new(),
            revoked_digests: BTreeSet::new(),
            floor: 0,
            clock_floor: None,
            skew: i64::try_from(DEFAULT_SKEW_SECONDS).unwrap_or(0),
        };
        Trust::parse(&trust.to_bytes())
    }

    /// This trust file with one more key; a role that had no threshold gets one of 1.
    ///
    /// # Errors
    ///
    /// As [`Trust::parse`]: the key is pinned already, say.
    pub fn with_key(mut self, key: PinnedKey) -> Result<Self, SignError> {
        for role in &key.roles {
            self.thresholds.entry(*role).or_insert(1);
        }
        self.keys.push(key);
        Trust::parse(&self.to_bytes())
    }

    /// This trust file without the key of this id.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError::UnknownKey`] when it is not pinned, and as [`Trust::parse`]: too few
    /// signers are left, say.
    pub fn without_key(mut self, key: Digest) -> Result<Self, SignError> {
        let before = self.keys.len();
        self.keys.retain(|pinned| pinned.public.id() != key);
        if self.keys.len() == before {
            return Err(EnvelopeError::UnknownKey { key }.into());
        }
        Trust::parse(&self.to_bytes())
    }

    /// The trust file as it is written: everything in it, indented.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(&Written {
            polctl_trust: "v1",
            set: &self.set,
            threshold: self.thresholds.iter().map(|(role, needed)| (role.as_str(), *needed)).collect(),
            keys: self.keys.iter().map(WrittenKey::of).collect(),
            revoked: WrittenRevoked { keys: &self.revoked_keys, digests: &self.revoked_digests },
            floor: WrittenFloor { sequence: self.floor },
            clock: WrittenClock { floor: self.clock_floor, skew_seconds: self.skew },
        })
    }

    /// The policy set for which these keys count.
    pub fn set(&self) -> &str {
        &self.set
    }

    /// Every pinned key, in the order of the file.
    pub fn keys(&self) -> &[PinnedKey] {
        &self.keys
    }

    /// How many distinct signers a document of this role needs; `None`: no document of this
    /// role is accepted.
    pub fn threshold(&self, role: Role) -> Option<usize> {
        self.thresholds.get(&role).copied()
    }

    /// Lowest sequence that is accepted.
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// A time that has surely passed.
    pub const fn clock_floor(&self) -> Option<Timestamp> {
        self.clock_floor
    }

    /// Seconds by which the clocks of signer and verifier may differ.
    pub const fn skew_seconds(&self) -> i64 {
        self.skew
    }

    /// Whether this payload, policy or file was revoked.
    pub fn is_revoked(&self, digest: Digest) -> bool {
        self.revoked_digests.contains(&digest)
    }

    /// The pinned key with this id, if it may sign for `role` at `now`.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`]: the key is revoked, not pinned, of another role or outside its
    /// window.
    pub fn usable(&self, key: Digest, role: Role, now: Timestamp) -> Result<&PinnedKey, EnvelopeError> {
        if self.revoked_keys.contains(&key) {
            return Err(EnvelopeError::Revoked { key });
        }
        let pinned = self.keys.iter().find(|p| p.public.id() == key).ok_or(EnvelopeError::UnknownKey { key })?;
        let signer = pinned.signer.clone();
        if !pinned.roles.contains(&role) {
            return Err(EnvelopeError::Role { signer, key, role: role.as_str() });
        }
        if let Some(from) = pinned.not_before.filter(|from| now < *from) {
            return Err(EnvelopeError::KeyNotYetValid { signer, key, from });
        }
        if let Some(until) = pinned.not_after.filter(|until| now >= *until) {
            return Err(EnvelopeError::KeyExpired { signer, key, until });
        }
        Ok(pinned)
    }

    /// Distinct signers with a key of this role. Revoked keys count: a signature by one is
    /// refused as such, which says more than a threshold that cannot be met.
    fn signers(&self, role: Role) -> usize {
        let keys = self.keys.iter().filter(|k| k.roles.contains(&role));
        keys.map(|k| &k.signer).collect::<BTreeSet<_>>().len()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    polctl_trust: &'static str,
    set: &'a str,
    threshold: BTreeMap<&'static str, usize>,
    keys: Vec<WrittenKey<'a>>,
    revoked: WrittenRevoked<'a>,
    floor: WrittenFloor,
    clock: WrittenClock,
}

#[derive(Serialize)]
struct WrittenKey<'a> {
    signer: &'a str,
    algorithm: &'static str,
    public: String,
    roles: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<Timestamp>,
}

impl<'a> WrittenKey<'a> {
    fn of(key: &'a PinnedKey) -> Self {
        WrittenKey {
            signer: &key.signer,
            algorithm: "ed25519",
            public: key.public.to_base64(),
            roles: key.roles.iter().map(|role| role.as_str()).collect(),
            not_before: key.not_before,
            not_after: key.not_after,
        }
    }
}

#[derive(Serialize)]
struct WrittenRevoked<'a> {
    keys: &'a BTreeSet<Digest>,
    digests: &'a BTreeSet<Digest>,
}

#[derive(Serialize)]
struct WrittenFloor {
    sequence: u64,
}

#[derive(Serialize)]
struct WrittenClock {
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<Timestamp>,
    skew_seconds: i64,
}

fn thresholds(fields: &Fields<'_>) -> Result<Vec<(Role, u64)>, Malformed> {
    let thresholds = fields.object("threshold", &["release", "approve"])?;
    let roles = [Role::Release, Role::Approve].into_iter().filter(|role| thresholds.has(role.as_str()));
    roles.map(|role| Ok((role, thresholds.number(role.as_str())?))).collect()
}

fn keys(fields: &Fields<'_>) -> Result<Vec<PinnedKey>, SignError> {
    let known = &["signer", "algorithm", "public", "roles", "not_before", "not_after"];
    let mut keys: Vec<PinnedKey> = Vec::new();
    for (path, item) in fields.list("keys", MAX_KEYS)? {
        let key = pinned(&path, &item.fields(&path, known)?)?;
        if keys.iter().any(|other| other.public == key.public) {
            return Err(TrustError::KeyDuplicate { key: key.public.id() }.into());
        }
        keys.push(key);
    }
    Ok(keys)
}

fn pinned(path: &str, item: &Fields<'_>) -> Result<PinnedKey, SignError> {
    item.parsed("algorithm", "`ed25519`", |text| (text == "ed25519").then_some(()))?;
    let signer = item.parsed("signer", "a name of 1 to 64 letters, digits, `.`, `_`, `-`, `@`", |text| {
        let good = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
        (!text.is_empty() && text.len() <= 64 && text.bytes().all(good)).then(|| text.to_owned())
    })?;
    let public = PublicKey::from_base64(item.text("public")?).map_err(|error| match error {
        KeyError::Weak => TrustError::KeyWeak { path: path.to_owned() },
        KeyError::NoKey => TrustError::KeyInvalid { path: path.to_owned() },
    })?;
    let mut roles = BTreeSet::new();
    for (path, role) in item.list("roles", 2)? {
        roles.insert(
            Role::parse(role.text(&path)?).ok_or_else(|| item.bad("roles", "a list of `release` and `approve`"))?,
        );
    }
    if roles.is_empty() {
        return Err(item.bad("roles", "a list with at least one role").into());
    }
    let limit = |name: &str| item.has(name).then(|| time(item, name)).transpose();
    let (not_before, not_after) = (limit("not_before")?, limit("not_after")?);
    if not_before.zip(not_after).is_some_and(|(from, until)| from >= until) {
        return Err(TrustError::Window { path: path.to_owned() }.into());
    }
    Ok(PinnedKey { signer, public, roles, not_before, not_after })
}

fn revoked(fields: &Fields<'_>, kind: &str) -> Result<BTreeSet<Digest>, Malformed> {
    if !fields.has("revoked") {
        return Ok(BTreeSet::new());
    }
    let revoked = fields.object("revoked", &["keys", "digests"])?;
    if !revoked.has(kind) {
        return Ok(BTreeSet::new());
    }
    let expected = "a list of SHA-256 values in lower-case hexadecimal digits";
    revoked
        .list(kind, MAX_REVOKED)?
        .into_iter()
        .map(|(path, item)| Digest::parse(item.text(&path)?).ok_or_else(|| revoked.bad(kind, expected)))
        .collect()
}

fn floor(fields: &Fields<'_>) -> Result<u64, Malformed> {
    if fields.has("floor") { fields.object("floor", &["sequence"])?.number("sequence") } else { Ok(0) }
}

fn clock(fields: &Fields<'_>) -> Result<(Option<Timestamp>, i64), Malformed> {
    let default = i64::try_from(DEFAULT_SKEW_SECONDS).unwrap_or(0);
    if !fields.has("clock") {
        return Ok((None, default));
    }
    let clock = fields.object("clock", &["floor", "skew_seconds"])?;
    let floor = clock.has("floor").then(|| time(&clock, "floor")).transpose()?;
    let skew = if clock.has("skew_seconds") {
        let seconds = clock.number("skew_seconds")?;
        let seconds = i64::try_from(seconds).ok().filter(|_| seconds <= MAX_SKEW_SECONDS);
        seconds.ok_or_else(|| clock.bad("skew_seconds", "at most 86400 (a day)"))?
    } else {
        default
    };
    Ok((floor, skew))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn parse(threshold: &str, keys: &str, rest: &str) -> Result<Trust, String> {
        let text = format!(r#"{{"polctl_trust":"v1","set":"s","threshold":{threshold},"keys":[{keys}]{rest}}}"#);
        Trust::parse(text.as_bytes()).map_err(|error| error.code_name())
    }

    fn key(rest: &str) -> String {
        format!(r#"{{"signer":"a","algorithm":"ed25519","public":"{KEY}","roles":["release"]{rest}}}"#)
    }

    #[test]
    fn a_threshold_counts_signers_of_its_role() {
        assert!(parse(r#"{"release":1}"#, &key(""), "").is_ok());
        assert_eq!(parse(r#"{"release":0}"#, &key(""), "").unwrap_err(), "trust-threshold");
        assert_eq!(parse(r#"{"release":2}"#, &key(""), "").unwrap_err(), "trust-threshold");
        assert_eq!(parse(r#"{"release":1,"approve":1}"#, &key(""), "").unwrap_err(), "trust-threshold");
    }

    #[test]
    fn keys_are_added_and_dropped() {
        let window = r#","not_after":"2026-02-01T00:00:00Z""#;
        let rest = r#","floor":{"sequence":3},"clock":{"floor":"2026-01-01T00:00:00Z","skew_seconds":5}"#;
        let trust = parse(r#"{"release":1}"#, &key(window), rest).unwrap();
        assert_eq!(Trust::parse(&trust.to_bytes()).unwrap(), trust);
        let own = trust.keys()[0].clone();
        assert_eq!(trust.clone().with_key(own.clone()).unwrap_err().code_name(), "trust-key-duplicate");
        assert_eq!(trust.clone().without_key(own.public.id()).unwrap_err().code_name(), "trust-threshold");
        assert_eq!(trust.without_key(Digest::of(b"")).unwrap_err().code_name(), "signature-unknown-key");
        let first = Trust::first("s", own).unwrap();
        assert_eq!((first.set(), first.threshold(Role::Release)), ("s", Some(1)));
    }

    #[test]
    fn a_role_without_threshold_is_never_met() {
        assert_eq!(parse(r#"{"release":1}"#, &key(""), "").unwrap().threshold(Role::Approve), None);
    }

    #[test]
    fn inconsistent_keys_are_refused() {
        let release = r#"{"release":1}"#;
        assert_eq!(parse(release, &format!("{0},{0}", key("")), "").unwrap_err(), "trust-key-duplicate");
        let window = r#","not_before":"2026-02-01T00:00:00Z","not_after":"2026-01-01T00:00:00Z""#;
        assert_eq!(parse(release, &key(window), "").unwrap_err(), "trust-window");
        assert_eq!(parse(release, &key("").replace(KEY, "AQ=="), "").unwrap_err(), "trust-key-invalid");
        let weak = format!("AQ{}=", "A".repeat(41));
        assert_eq!(parse(release, &key("").replace(KEY, &weak), "").unwrap_err(), "trust-key-weak");
        assert_eq!(parse(release, &key(r#","role":"x""#), "").unwrap_err(), "trust-unknown-field");
        assert_eq!(parse(release, &key("").replace(r#"["release"]"#, "[]"), "").unwrap_err(), "trust-value");
        assert_eq!(parse(release, &key(""), r#","clock":{"skew_seconds":86401}"#).unwrap_err(), "trust-value");
    }
}
