//! OpenSSH's own formats. A key's header tells in plain text whether it is encrypted and whether
//! a device holds it (PROTOCOL.key, PROTOCOL.certkeys and PROTOCOL.u2f of OpenSSH).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::cursor::Cursor;
use super::super::{Sign, moment};
use super::{Judged, fingerprint};

/// Most keys that one file may hold; OpenSSH itself writes one.
const MOST_KEYS: u64 = 16;

/// The body of an `OPENSSH PRIVATE KEY` block.
pub(super) fn private_key(data: &[u8]) -> Option<Judged> {
    let mut at = Cursor(data.strip_prefix(b"openssh-key-v1\0")?);
    let cipher = at.string()?;
    at.string()?;
    at.string()?;
    let count = at.number(4)?;
    if count == 0 || count > MOST_KEYS {
        return None;
    }
    let public = at.string()?;
    let kind = Cursor(public).string()?;
    at.string().filter(|private| !private.is_empty())?;
    let sign = if kind.starts_with(b"sk-") {
        Sign::Hardware
    } else if cipher == b"none" {
        Sign::Live
    } else {
        Sign::Encrypted
    };
    Some(Judged { sign, fingerprint: Some(fingerprint(public)) })
}

/// A key of SSH protocol 1: the byte behind the magic is the cipher, 0 for none.
pub(super) fn version_1(bytes: &[u8]) -> Option<Sign> {
    let rest = bytes.strip_prefix(b"SSH PRIVATE KEY FILE FORMAT 1.1\n\0")?;
    Some(if rest.first() == Some(&0) { Sign::Live } else { Sign::Encrypted })
}

/// A key of ssh.com's product, whose block says `ENCRYPTED` in any case.
pub(super) fn commercial(data: &[u8]) -> Option<Sign> {
    let mut at = Cursor(data);
    at.number(4).filter(|magic| *magic == 0x3f6f_f9eb)?;
    at.number(4)?;
    at.string()?;
    Some(if at.string()? == b"none" { Sign::Live } else { Sign::Encrypted })
}

/// A user certificate in its line: access for as long as it is valid, for who has its key.
pub(super) fn certificate(bytes: &[u8], now: i64) -> Option<Judged> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (kind, rest) = text.trim_start().split_once(' ')?;
    if !kind.ends_with("-cert-v01@openssh.com") {
        return None;
    }
    let blob = STANDARD.decode(rest.split_whitespace().next()?).ok();
    let spoilt = || Judged::bare(Sign::unreadable("the certificate is not whole"));
    Some(blob.and_then(|blob| until(&blob, now)).map_or_else(spoilt, Judged::bare))
}

fn until(blob: &[u8], now: i64) -> Option<Sign> {
    let mut at = Cursor(blob);
    let kind = at.string()?;
    at.string()?;
    let fields = match kind {
        k if k.starts_with(b"ssh-rsa") => 2,
        k if k.starts_with(b"ssh-dss") => 4,
        k if k.starts_with(b"ecdsa-") => 2,
        k if k.starts_with(b"sk-ecdsa-") => 3,
        k if k.starts_with(b"sk-ssh-ed25519") => 2,
        _ => 1,
    };
    for _ in 0..fields {
        at.string()?;
    }
    at.number(8)?;
    at.number(4)?;
    at.string()?;
    at.string()?;
    at.number(8)?;
    // All ones is "for ever", and beyond what a signed number holds.
    let end = i64::try_from(at.number(8)?).unwrap_or(i64::MAX);
    Some(if end <= now { Sign::Expired { at: moment::write(end) } } else { Sign::Live })
}
