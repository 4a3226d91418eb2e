//! Credentials by their content, for files that no probe names.
//!
//! One pass over the bytes finds the texts that a token or key begins with; only behind these
//! anything is looked at closer. Token shapes are those that the services publish; where a token
//! carries a checksum, one that does not fit is not a token.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::tree::line_at;
use super::{Kind, Material, Sign, jwt, kerberos, key, moment, store};

/// Most tokens told of one file.
const MOST_TOKENS: usize = super::MAX_MATERIALS;

/// How a service writes its tokens.
struct Shape {
    prefix: &'static str,
    /// Least and most characters behind the prefix.
    length: (usize, usize),
    /// Characters besides letters and digits.
    also: &'static str,
    kind: Kind,
    name: &'static str,
    check: Check,
}

/// What else must hold of a token.
enum Check {
    Nothing,
    /// The last six characters are the CRC-32 of the others in base 62.
    Base62,
    /// No capitals.
    Lower,
    /// All of it is hexadecimal.
    Hex,
    /// It holds this.
    Holds(&'static str),
    /// A secret of this many characters stands near: the token alone is only a name.
    Near(usize),
    /// A JSON Web Token.
    Jwt,
}

const fn shape(
    prefix: &'static str,
    length: (usize, usize),
    also: &'static str,
    kind: Kind,
    name: &'static str,
) -> Shape {
    Shape { prefix, length, also, kind, name, check: Check::Nothing }
}

#[expect(clippy::needless_pass_by_value, reason = "built when polctl is compiled")]
const fn checked(shape: Shape, check: Check) -> Shape {
    Shape { check, ..shape }
}

/// Any length from the first number on.
const fn from(least: usize) -> (usize, usize) {
    (least, 4096)
}

static SHAPES: [Shape; 56] = [
    checked(shape("ghp_", (36, 36), "", Kind::SourceControl, "github-personal-token"), Check::Base62),
    checked(shape("gho_", (36, 36), "", Kind::SourceControl, "github-oauth-token"), Check::Base62),
    checked(shape("ghu_", (36, 36), "", Kind::SourceControl, "github-user-token"), Check::Base62),
    checked(shape("ghs_", (36, 36), "", Kind::SourceControl, "github-server-token"), Check::Base62),
    checked(shape("ghr_", (76, 76), "", Kind::SourceControl, "github-refresh-token"), Check::Nothing),
    shape("github_pat_", (82, 82), "_", Kind::SourceControl, "github-fine-grained-token"),
    shape("glpat-", (20, 128), "_-.", Kind::SourceControl, "gitlab-personal-token"),
    shape("gldt-", (20, 64), "_-.", Kind::SourceControl, "gitlab-deploy-token"),
    shape("glrt-", (20, 128), "_-.", Kind::Automation, "gitlab-runner-token"),
    shape("glptt-", (40, 40), "", Kind::SourceControl, "gitlab-trigger-token"),
    shape("ATATT3xFfGF0", (150, 220), "_-=", Kind::SourceControl, "atlassian-token"),
    shape("ATBB", (32, 32), "", Kind::SourceControl, "bitbucket-password"),
    checked(shape("npm_", (36, 36), "", Kind::Registry, "npm-token"), Check::Base62),
    shape("pypi-AgE", from(70), "_-", Kind::Registry, "pypi-token"),
    shape("rubygems_", (48, 48), "", Kind::Registry, "rubygems-token"),
    shape("dckr_pat_", (27, 27), "_-", Kind::Registry, "docker-hub-token"),
    checked(shape("oy2", (43, 43), "", Kind::Registry, "nuget-key"), Check::Lower),
    shape("CLOJARS_", (60, 60), "", Kind::Registry, "clojars-token"),
    shape("hf_", (34, 34), "", Kind::AiTool, "hugging-face-token"),
    shape("sk-ant-", from(80), "_-", Kind::AiTool, "anthropic-key"),
    shape("sk-proj-", from(40), "_-", Kind::AiTool, "openai-key"),
    shape("sk-svcacct-", from(40), "_-", Kind::AiTool, "openai-key"),
    checked(shape("sk-", (48, 48), "", Kind::AiTool, "openai-key"), Check::Holds("T3BlbkFJ")),
    checked(shape("sk-or-v1-", (64, 64), "", Kind::AiTool, "openrouter-key"), Check::Hex),
    shape("gsk_", (52, 52), "", Kind::AiTool, "groq-key"),
    shape("xai-", (80, 80), "", Kind::AiTool, "xai-key"),
    shape("r8_", (37, 37), "", Kind::AiTool, "replicate-token"),
    shape("nvapi-", (64, 64), "_-", Kind::AiTool, "nvidia-key"),
    shape("AIza", (35, 35), "_-", Kind::Cloud, "google-api-key"),
    shape("ya29.", from(60), "_-", Kind::Cloud, "google-access-token"),
    shape("GOCSPX-", (28, 28), "_-", Kind::Cloud, "google-client-secret"),
    shape("1//0", (60, 150), "_-", Kind::Cloud, "google-refresh-token"),
    checked(shape("AKIA", (16, 16), "", Kind::Cloud, "aws-key"), Check::Near(40)),
    checked(shape("ASIA", (16, 16), "", Kind::Cloud, "aws-session-key"), Check::Near(40)),
    checked(shape("LTAI", (12, 26), "", Kind::Cloud, "alibaba-key"), Check::Near(30)),
    checked(shape("dop_v1_", (64, 64), "", Kind::Cloud, "digitalocean-token"), Check::Hex),
    checked(shape("doo_v1_", (64, 64), "", Kind::Cloud, "digitalocean-oauth-token"), Check::Hex),
    checked(shape("dor_v1_", (64, 64), "", Kind::Cloud, "digitalocean-refresh-token"), Check::Hex),
    checked(shape("pul-", (40, 40), "", Kind::Cloud, "pulumi-token"), Check::Hex),
    shape("fm2_", from(100), "+/=_-", Kind::Cloud, "fly-token"),
    checked(shape("dapi", (32, 32), "", Kind::Database, "databricks-token"), Check::Hex),
    shape("pscale_tkn_", (32, 64), "_-.", Kind::Database, "planetscale-token"),
    shape("hvs.", (90, 120), "_-", Kind::SecretStore, "vault-token"),
    shape("hvb.", (138, 300), "_-", Kind::SecretStore, "vault-batch-token"),
    shape("ops_eyJ", from(250), "_-=", Kind::SecretStore, "1password-service-token"),
    shape("dp.pt.", (40, 44), "", Kind::SecretStore, "doppler-token"),
    shape("tskey-", (30, 64), "-", Kind::Network, "tailscale-key"),
    shape("xoxb-", (40, 80), "-", Kind::Service, "slack-bot-token"),
    shape("xoxp-", (60, 100), "-", Kind::Service, "slack-user-token"),
    shape("xapp-", (60, 120), "-", Kind::Service, "slack-app-token"),
    shape("sk_live_", (24, 247), "", Kind::Service, "stripe-key"),
    shape("rk_live_", (24, 247), "", Kind::Service, "stripe-restricted-key"),
    shape("SG.", (66, 66), "_-.", Kind::Service, "sendgrid-key"),
    shape("sntryu_", (64, 64), "", Kind::Service, "sentry-token"),
    shape("glsa_", (41, 41), "_", Kind::Service, "grafana-token"),
    checked(shape("eyJ", from(30), "_-.", Kind::Service, "json-web-token"), Check::Jwt),
];

/// Beginnings that are not tokens: keys with their own readers.
const OTHERS: [&str; 3] = ["-----BEGIN ", "AGE-SECRET-KEY-", "AGE-PLUGIN-"];

fn searcher() -> Option<&'static AhoCorasick> {
    static SEARCHER: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let build = || {
        let needles = SHAPES.iter().map(|shape| shape.prefix).chain(OTHERS);
        let kind = aho_corasick::MatchKind::LeftmostLongest;
        AhoCorasick::builder().match_kind(kind).kind(Some(AhoCorasickKind::DFA)).build(needles).ok()
    };
    SEARCHER.get_or_init(build).as_ref()
}

/// Credentials in a file of unknown kind. Quick: meant for every file of a tree. `now` is in Unix
/// seconds.
pub fn sniff(bytes: &[u8], now: i64) -> Vec<Material> {
    let mut out = Vec::new();
    let mut keys = (false, false);
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    let mut end = 0;
    for found in searcher().into_iter().flat_map(|searcher| searcher.find_iter(bytes)) {
        let Some(shape) = SHAPES.get(found.pattern().as_usize()) else {
            let begin = found.len() == OTHERS.first().map_or(0, |text| text.len());
            keys = (keys.0 || begin, keys.1 || !begin);
            continue;
        };
        let inside = found
            .start()
            .checked_sub(1)
            .and_then(|at| bytes.get(at))
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        if found.start() < end || inside || out.len() >= MOST_TOKENS {
            continue;
        }
        if let Some((length, sign)) = shape.judge(bytes, found.start(), now) {
            end = found.start() + length;
            if seen.insert(bytes.get(found.start()..end).unwrap_or(&[])) {
                let label = Some(shape.name.to_owned());
                let line = Some(line_at(bytes, found.start()));
                out.push(Material { line, label, ..Material::new(shape.kind, sign) });
            }
        }
    }
    if keys.0 {
        out.extend(key::blocks(bytes, false));
    }
    if keys.1 {
        out.extend(key::identities(bytes));
    }
    out.extend(whole(bytes, now));
    out.sort_by_key(|material| material.line);
    out
}

/// The same for a place that gathers secrets of others.
pub(super) fn gathered(bytes: &[u8], kind: Kind, now: i64) -> Vec<Material> {
    sniff(bytes, now).into_iter().map(|material| Material { kind, ..material }).collect()
}

/// Files that are a credential as a whole.
fn whole(bytes: &[u8], now: i64) -> Vec<Material> {
    if let Some(sign) = store::magic(bytes) {
        return vec![Material::new(Kind::SecretStore, sign)];
    }
    let certain = |found: Vec<Material>| -> Vec<Material> {
        found.into_iter().filter(|material| !matches!(material.sign, Sign::Unreadable { .. })).collect()
    };
    match bytes {
        [0x30, 0x80..=0x84, ..] | [0xfe, 0xed, 0xfe, 0xed, ..] | [0xce, 0xce, 0xce, 0xce, ..] => {
            certain(key::store(bytes, Kind::PrivateKey))
        }
        [b'P', b'u', b'T', b'T', b'Y', b'-', ..] => certain(key::read(bytes, Kind::PrivateKey, now)),
        [0x05, 0x04, 0x00, ..] => certain(kerberos::cache(bytes, now)),
        [0x05, 0x02, 0x00, 0x00, ..] => certain(kerberos::keytab(bytes)),
        _ => Vec::new(),
    }
}

impl Shape {
    /// Length and sign of a token that begins here.
    fn judge(&self, bytes: &[u8], at: usize, now: i64) -> Option<(usize, Sign)> {
        let rest = bytes.get(at..)?;
        let body = rest.get(self.prefix.len()..)?;
        let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || self.also.as_bytes().contains(byte);
        let length = body.iter().take(self.length.1 + 1).take_while(fits).count();
        let body = body.get(..length)?;
        let whole = rest.get(..self.prefix.len() + length)?;
        if length < self.length.0 || length > self.length.1 && self.length.1 < 4096 || placeholder(body) {
            return None;
        }
        let sound = match self.check {
            Check::Nothing => true,
            Check::Base62 => base62(body),
            Check::Hex => body.iter().all(u8::is_ascii_hexdigit),
            Check::Lower => !body.iter().any(u8::is_ascii_uppercase),
            Check::Holds(text) => memchr::memmem::find(body, text.as_bytes()).is_some(),
            Check::Near(secret) => near(bytes, at, whole.len(), secret),
            Check::Jwt => {
                let whole = whole.trim_ascii_end();
                let whole = whole.strip_suffix(b".").unwrap_or(whole);
                return jwt::expiry(whole).map(|end| {
                    let ended = end.filter(|end| *end <= now);
                    (whole.len(), ended.map_or(Sign::Live, |at| Sign::Expired { at: moment::write(at) }))
                });
            }
        };
        sound.then_some((whole.len(), Sign::Live))
    }
}

/// Texts in the shape of tokens that documentation uses.
fn placeholder(body: &[u8]) -> bool {
    let distinct: BTreeSet<u8> = body.iter().take(64).map(u8::to_ascii_lowercase).collect();
    let holds = |text: &[u8]| memchr::memmem::find(body, text).is_some();
    distinct.len() < 6 || holds(b"EXAMPLE") || holds(b"xxxxxxxx") || holds(b"XXXXXXXX")
}

/// The checksum of GitHub's and npm's tokens.
fn base62(body: &[u8]) -> bool {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some((text, sum)) = body.len().checked_sub(6).map(|at| body.split_at(at)) else { return false };
    let mut rest = crc32fast::hash(text);
    sum.iter().rev().all(|digit| {
        let expected = usize::try_from(rest % 62).ok().and_then(|at| DIGITS.get(at));
        rest /= 62;
        expected == Some(digit)
    })
}

/// How far from its name a secret may stand.
const NEAR: usize = 256;

/// Whether a word of exactly this many base64 characters stands near.
fn near(bytes: &[u8], at: usize, length: usize, secret: usize) -> bool {
    let around = bytes.get(at.saturating_sub(NEAR)..(at + length + NEAR).min(bytes.len())).unwrap_or(&[]);
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    around.split(|byte| !word(byte)).any(|run| run.len() == secret && !placeholder(run))
}
