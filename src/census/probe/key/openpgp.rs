//! Secret keys of `OpenPGP`: packets (RFC 9580) and the files of gpg-agent.

use super::super::cursor::Cursor;
use super::super::{Kind, Material, Sign};
use super::Judged;

/// Most packets that are read of one ring.
const MOST_PACKETS: usize = 2000;

/// A file of `private-keys-v1.d`: an S-expression, or lines of which one begins `Key:`.
pub(super) fn agent_key(bytes: &[u8]) -> Option<Judged> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut keyed = lines.filter_map(|line| line.strip_prefix(b"Key:"));
    let body = if bytes.starts_with(b"(") { bytes } else { keyed.next()? };
    let body = body.trim_ascii_start().strip_prefix(b"(")?;
    // In the binary form a length and a colon stand before each word.
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let word = body.get(digits..)?;
    let word = if digits > 0 { word.strip_prefix(b":")? } else { word };
    let sign = [
        (&b"protected-private-key"[..], Sign::Encrypted),
        (b"shadowed-private-key", Sign::Hardware),
        (b"private-key", Sign::Live),
    ];
    let known = sign.into_iter().find(|(name, _)| word.starts_with(name));
    known.map(|(_, sign)| Judged::bare(sign))
}

/// The secret keys of a ring, one for each primary or sub key.
pub(super) fn ring(bytes: &[u8]) -> Vec<Material> {
    let mut out = Vec::new();
    if bytes.first().is_none_or(|byte| byte & 0x80 == 0) {
        return out;
    }
    let mut at = Cursor(bytes);
    for _ in 0..MOST_PACKETS {
        match packet(&mut at) {
            Some((5 | 7, body)) => out.push(Material::new(Kind::PrivateKey, secret(body))),
            Some(_) => {}
            None => break,
        }
    }
    out
}

/// The sign of the first secret key in armour.
pub(super) fn first(bytes: &[u8]) -> Option<Sign> {
    ring(bytes).into_iter().next().map(|material| material.sign)
}

/// Tag and body of the next packet.
fn packet<'a>(at: &mut Cursor<'a>) -> Option<(u8, &'a [u8])> {
    let head = at.u8().filter(|head| head & 0x80 != 0)?;
    if head & 0x40 == 0 {
        let length = [1, 2, 4].get(usize::from(head & 3)).copied();
        let body = match length {
            Some(length) => at.sized(length)?,
            None => at.take(at.0.len())?,
        };
        return Some(((head >> 2) & 0x0f, body));
    }
    let first = at.u8()?;
    let length = match first {
        0..192 => u64::from(first),
        192..224 => ((u64::from(first) - 192) << 8) + u64::from(at.u8()?) + 192,
        255 => at.number(4)?,
        // Parts of unknown length do not occur around keys.
        _ => return None,
    };
    Some((head & 0x3f, at.take(usize::try_from(length).ok()?)?))
}

/// What protects a secret key packet.
fn secret(body: &[u8]) -> Sign {
    usage(body).unwrap_or_else(|| Sign::unreadable("the secret key packet is of a form that polctl does not know"))
}

fn usage(body: &[u8]) -> Option<Sign> {
    let mut at = Cursor(body);
    match at.u8()? {
        4 => {
            at.number(4)?;
            let algorithm = at.u8()?;
            public(&mut at, algorithm)?;
        }
        6 => {
            at.number(4)?;
            at.u8()?;
            at.sized(4)?;
        }
        _ => return None,
    }
    match at.u8()? {
        0 => Some(Sign::Live),
        // GnuPG's own: no secret at all (1), or a card (2).
        253..=255 => Some(match memchr::memmem::find(at.0.get(..16).unwrap_or(at.0), b"GNU") {
            Some(found) => match at.0.get(found + 3) {
                Some(1) => Sign::delegated("another key ring"),
                _ => Sign::Hardware,
            },
            None => Sign::Encrypted,
        }),
        _ => Some(Sign::Encrypted),
    }
}

/// Skips the public part of a version 4 key.
fn public(at: &mut Cursor<'_>, algorithm: u8) -> Option<()> {
    let (names, numbers, trailing) = match algorithm {
        1..=3 => (0, 2, 0),
        16 => (0, 3, 0),
        17 => (0, 4, 0),
        18 => (1, 1, 1),
        19 | 22 => (1, 1, 0),
        25 | 27 => return at.take(32).map(|_| ()),
        26 => return at.take(56).map(|_| ()),
        28 => return at.take(57).map(|_| ()),
        _ => return None,
    };
    for _ in 0..names {
        at.sized(1)?;
    }
    for _ in 0..numbers {
        let bits = usize::try_from(at.number(2)?).ok()?;
        at.take(bits.div_ceil(8))?;
    }
    for _ in 0..trailing {
        at.sized(1)?;
    }
    Some(())
}
