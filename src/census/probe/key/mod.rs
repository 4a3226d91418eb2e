//! Private keys in all their wrappings: which one it is, and whether it can be used as it lies.

mod der;
mod java;
mod openpgp;
mod openssh;
mod pem;
mod pkcs12;
mod putty;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::tree::line_at;
use super::{Kind, Material, Sign};

pub(super) use pem::blocks;

/// A key's judgement: its sign and, where the public key is at hand, its fingerprint.
pub(super) struct Judged {
    pub(super) sign: Sign,
    pub(super) fingerprint: Option<String>,
}

impl Judged {
    fn bare(sign: Sign) -> Self {
        Judged { sign, fingerprint: None }
    }

    fn material(self, kind: Kind, line: Option<usize>) -> Material {
        Material { line, fingerprint: self.fingerprint, ..Material::new(kind, self.sign) }
    }
}

/// The fingerprint of a public key in the encoding of the SSH protocol.
fn fingerprint(public: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(public)))
}

/// A place that should hold private keys, in whatever wrapping.
pub(super) fn read(bytes: &[u8], kind: Kind, now: i64) -> Vec<Material> {
    if let Some(certificate) = openssh::certificate(bytes, now) {
        return vec![certificate.material(kind, Some(1))];
    }
    let mut out = blocks(bytes, true);
    out.extend(putty::read(bytes).map(|key| key.material(Kind::PrivateKey, Some(1))));
    out.extend(openpgp::agent_key(bytes).map(|key| key.material(Kind::PrivateKey, None)));
    out.extend(openssh::version_1(bytes).map(|sign| Material::new(Kind::PrivateKey, sign)));
    out.extend(minisign(bytes).map(|sign| Material::new(Kind::PrivateKey, sign)));
    out.extend(identities(bytes));
    if out.is_empty() {
        out.extend(openpgp::ring(bytes));
    }
    if out.is_empty() && bytes.first() == Some(&0x30) {
        return store(bytes, kind);
    }
    out.iter_mut().for_each(|material| material.kind = kind);
    out
}

/// Binary key stores: PKCS#12, Java's two, and single keys in DER.
pub(super) fn store(bytes: &[u8], kind: Kind) -> Vec<Material> {
    if let Some(found) = java::read(bytes) {
        return found.into_iter().map(|sign| Material::new(kind, sign)).collect();
    }
    if let Some(key) = der::private_key(bytes) {
        return vec![key.material(kind, None)];
    }
    match pkcs12::read(bytes) {
        Some(Some(sign)) => vec![Material::new(kind, sign)],
        Some(None) => Vec::new(),
        None => {
            let mut pem = blocks(bytes, true);
            pem.iter_mut().for_each(|material| material.kind = kind);
            let text = std::str::from_utf8(bytes).is_ok();
            let foreign = || vec![Material::new(kind, Sign::unreadable("it is no key store that polctl knows"))];
            if pem.is_empty() && !text && !der::certificate(bytes) { foreign() } else { pem }
        }
    }
}

/// age identities: native ones, and plugins, whose keys are in devices.
pub(super) fn identities(bytes: &[u8]) -> Vec<Material> {
    let mut out = Vec::new();
    for (needle, sign) in [(&b"AGE-SECRET-KEY-"[..], Sign::Live), (&b"AGE-PLUGIN-"[..], Sign::Hardware)] {
        for at in memchr::memmem::find_iter(bytes, needle) {
            let inside = at.checked_sub(1).and_then(|before| bytes.get(before)).is_some_and(u8::is_ascii_alphanumeric);
            let rest = bytes.get(at + needle.len()..).unwrap_or(&[]);
            let length =
                rest.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'-').count();
            if !inside && length >= 20 {
                let line = Some(line_at(bytes, at));
                out.push(Material { line, ..Material::new(Kind::PrivateKey, sign.clone()) });
            }
        }
    }
    out.sort_by_key(|material| material.line);
    out
}

/// minisign and signify: a comment line, then base64 with `Ed`, and the name of the derivation,
/// which is zero for a key without a password.
fn minisign(bytes: &[u8]) -> Option<Sign> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    let head = lines.next()?;
    if !head.starts_with("untrusted comment:") || !head.contains("secret key") {
        return None;
    }
    let blob = base64::engine::general_purpose::STANDARD.decode(lines.next()?.trim()).ok();
    Some(match blob.as_deref() {
        // signify tells the rounds of its derivation behind the two names; zero is none.
        Some([b'E', b'd', b'B', b'K', rounds @ ..]) if rounds.starts_with(&[0; 4]) => Sign::Live,
        Some([b'E', b'd', b'B', b'K', ..] | [b'E', b'd', b'S', b'c', ..]) => Sign::Encrypted,
        Some([b'E', b'd', 0, 0, ..]) => Sign::Live,
        _ => Sign::unreadable("it begins as a minisign key and does not go on as one"),
    })
}
