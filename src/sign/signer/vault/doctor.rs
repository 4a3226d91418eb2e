//! Whether a token can do what it must, and nothing more.

use rustify::Endpoint;
use rustify::enums::{RequestMethod, RequestType, ResponseType};
use std::collections::BTreeMap;
use zeroize::Zeroize as _;

use super::errors::Asked;
use super::session::Vault;
use crate::sign::envelope::pae;
use crate::sign::error::VaultError;
use crate::sign::produce::Signer as _;
use crate::sign::trust::Trust;

/// How one check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Good,
    /// Works, with more power than needed or less care than possible.
    Loose,
    /// Does not work.
    Bad,
}

/// One check of the doctor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// How it ended.
    pub standing: Standing,
    /// What was found, one sentence.
    pub message: String,
    /// What to do; empty when it is good.
    pub help: String,
}

impl Check {
    fn good(message: impl Into<String>) -> Self {
        Check { standing: Standing::Good, message: message.into(), help: String::new() }
    }

    fn loose(message: impl Into<String>, help: &str) -> Self {
        Check { standing: Standing::Loose, message: message.into(), help: help.into() }
    }

    fn bad(message: impl Into<String>, help: impl Into<String>) -> Self {
        Check { standing: Standing::Bad, message: message.into(), help: help.into() }
    }
}

/// `sys/capabilities-self`, which the client crate does not have.
struct CapabilitiesSelf {
    paths: Vec<String>,
}

impl Endpoint for CapabilitiesSelf {
    type Response = BTreeMap<String, serde_json::Value>;
    const REQUEST_BODY_TYPE: RequestType = RequestType::JSON;
    const RESPONSE_BODY_TYPE: ResponseType = ResponseType::JSON;

    fn path(&self) -> String {
        "sys/capabilities-self".into()
    }

    fn method(&self) -> RequestMethod {
        RequestMethod::POST
    }

    fn body(&self) -> Result<Option<Vec<u8>>, rustify::errors::ClientError> {
        Ok(serde_json::to_vec(&serde_json::json!({ "paths": self.paths })).ok())
    }
}

/// A message that is no pre-authentication encoding of polctl's documents, so that a trial
/// signature is good for nothing else.
const TRIAL_TYPE: &str = "application/vnd.polctl.doctor.v1";

impl Vault {
    /// Looks at the token of this session: can it sign with the key, does it hold more power
    /// than that, and does its signature fit a pinned key.
    pub fn doctor(&self, trust: Option<&Trust>) -> Vec<Check> {
        let mut checks = vec![self.trial(trust)];
        match self.capabilities() {
            Ok(found) => checks.extend(self.powers(&found)),
            Err(error) => checks.push(Check::loose(
                format!("the token may not ask for its own capabilities: {error}"),
                "allow `update` on `sys/capabilities-self` (the policy `default` does), or check the policy by hand",
            )),
        }
        checks.extend(self.look_up());
        checks
    }

    fn trial(&self, trust: Option<&Trust>) -> Check {
        let message = pae(TRIAL_TYPE, b"trial");
        let key = &self.settings().key;
        match self.sign(&message) {
            Err(error) => Check::bad(
                format!("the token cannot sign with the key `{key}`: {error}"),
                error.help_text().unwrap_or_default(),
            ),
            Ok(made) => match trust {
                None => Check::good(format!("the token can sign with the key `{key}`")),
                Some(trust) if trust.keys().iter().any(|k| k.public.verifies(&message, &made.signature)) => {
                    Check::good(format!("the token can sign with the key `{key}`, and its current version is pinned"))
                }
                Some(_) => Check::bad(
                    format!("{} can sign, and the trust file does not pin it", made.by),
                    "pin its public key (`polctl keys show`, `polctl keys pin`)",
                ),
            },
        }
    }

    /// Paths that a signer must not reach, and why.
    fn forbidden(&self) -> Vec<(String, &'static str)> {
        let (mount, key) = (&self.settings().mount, &self.settings().key);
        vec![
            (format!("{mount}/sign/{key}-polctl-doctor"), "sign with other keys"),
            (format!("{mount}/keys/{key}/rotate"), "rotate the key"),
            (format!("{mount}/keys/{key}/config"), "change the key's settings"),
            (format!("{mount}/keys/{key}/trim"), "remove versions of the key"),
            (format!("{mount}/export/signing-key/{key}"), "export the private key"),
            (format!("{mount}/backup/{key}"), "back up the private key"),
            (format!("{mount}/restore/{key}"), "replace the key by a backup"),
            ("sys/policies/acl/polctl-doctor".to_owned(), "change policies"),
            ("auth/token/create".to_owned(), "make tokens"),
        ]
    }

    fn capabilities(&self) -> Result<BTreeMap<String, Vec<String>>, VaultError> {
        let (mount, key) = (&self.settings().mount, &self.settings().key);
        let mut paths: Vec<String> = self.forbidden().into_iter().map(|(path, _)| path).collect();
        paths.extend([format!("{mount}/sign/{key}"), format!("{mount}/keys/{key}")]);
        let answer = self.ask(Asked::Capabilities, |client| {
            Box::pin(async move { vaultrs::api::exec_with_result(client, CapabilitiesSelf { paths }).await })
        })?;
        let words = |value: &serde_json::Value| {
            let list = value.as_array()?;
            Some(list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
        };
        Ok(answer.iter().filter_map(|(path, value)| Some((path.clone(), words(value)?))).collect())
    }

    fn powers(&self, found: &BTreeMap<String, Vec<String>>) -> Vec<Check> {
        let (mount, key) = (&self.settings().mount, &self.settings().key);
        let of = |path: &str| found.get(path).map_or(&[][..], Vec::as_slice);
        let none = |words: &[String]| words.iter().all(|word| word == "deny");
        if found.values().flatten().any(|word| word == "root") {
            return vec![Check::bad(
                "the token is a root token",
                "use a token that can do nothing but sign: docs/signing.md has the policy",
            )];
        }
        let mut checks = Vec::new();
        let sign = of(&format!("{mount}/sign/{key}"));
        if sign.iter().any(|word| word != "update") {
            checks.push(Check::loose(
                format!("the token has {} on `{mount}/sign/{key}`", sign.join(", ")),
                "`update` is enough",
            ));
        }
        for (path, power) in self.forbidden() {
            if !none(of(&path)) {
                checks.push(Check::loose(
                    format!("the token can also {power} (`{path}`: {})", of(&path).join(", ")),
                    "take it out of the token's policy: docs/signing.md has one that suffices",
                ));
            }
        }
        let read = of(&format!("{mount}/keys/{key}"));
        if read.iter().any(|word| !matches!(word.as_str(), "deny" | "read")) {
            checks.push(Check::loose(
                format!("the token can also change the key itself (`{mount}/keys/{key}`: {})", read.join(", ")),
                "`read` is enough, and needed only for `polctl keys show`",
            ));
        }
        if checks.is_empty() {
            checks.push(Check::good("the token has no other power that was looked for"));
        }
        checks
    }

    fn look_up(&self) -> Option<Check> {
        let found =
            self.ask(Asked::LookUp, |client| Box::pin(async move { vaultrs::token::lookup_self(client).await }));
        let mut found = found.ok()?;
        found.id.zeroize();
        if found.ttl == 0 {
            return Some(Check::loose("the token never expires", "use `AppRole`, or a token with a short life"));
        }
        Some(Check::good(format!("the token lives for another {} s", found.ttl)))
    }
}
