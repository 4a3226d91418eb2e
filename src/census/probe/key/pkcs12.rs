//! PKCS#12 (RFC 7292): encrypted, unless it opens with the empty password or was never closed.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::super::Sign;
use super::super::cursor::Cursor;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const FIRST: u8 = 0xa0;

/// Bag types and content types below these; the last byte tells which.
const BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01];
const ENCRYPTED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x06];

/// More rounds than this are not tried: the file is then encrypted well enough.
const MOST_ROUNDS: u64 = 100_000;

/// Nothing if this is no PKCS#12; else the sign of the keys inside, if there may be any.
#[expect(clippy::option_option, reason = "no store, and a store without keys, are two answers")]
pub(super) fn read(bytes: &[u8]) -> Option<Option<Sign>> {
    let mut body = Cursor(Cursor(bytes).expect(SEQUENCE)?);
    body.expect(INTEGER).filter(|version| *version == [3])?;
    let mut content = Cursor(body.expect(SEQUENCE)?);
    content.expect(OID)?;
    let safe = Cursor(content.expect(FIRST)?).expect(OCTETS)?;
    let holds = |oid: &[u8]| memchr::memmem::find(safe, oid).is_some();
    let bag = |last: u8| holds(&[BAG, &[last]].concat());
    if body.expect(SEQUENCE).is_some_and(|mac| opens(mac, safe).unwrap_or(false)) || bag(1) {
        return Some(Some(Sign::Live));
    }
    Some((bag(2) || holds(ENCRYPTED_DATA)).then_some(Sign::Encrypted))
}

/// Computes an integrity code from password, salt, rounds and data.
type Check = fn(&[u8], &[u8], u64, &[u8]) -> Vec<u8>;

/// Whether the integrity check holds for the empty password.
fn opens(mac: &[u8], safe: &[u8]) -> Option<bool> {
    let mut mac = Cursor(mac);
    let mut info = Cursor(mac.expect(SEQUENCE)?);
    let algorithm = Cursor(info.expect(SEQUENCE)?).expect(OID)?;
    let digest = info.expect(OCTETS)?;
    let salt = mac.expect(OCTETS)?;
    let rounds = mac.expect(INTEGER).map_or(Some(1), |rounds| Cursor(rounds).number(rounds.len().min(8)))?;
    if rounds > MOST_ROUNDS || salt.len() > 1024 {
        return Some(false);
    }
    // Some write the empty password with its terminator, some write nothing.
    let any =
        |check: Check| [&[0_u8, 0][..], &[]].into_iter().any(|password| check(password, salt, rounds, safe) == digest);
    Some(match algorithm {
        [0x2b, 0x0e, 0x03, 0x02, 0x1a] => any(|p, s, r, d| authenticate::<Sha1>(p, s, r, d, 64)),
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01] => {
            any(|p, s, r, d| authenticate::<Sha256>(p, s, r, d, 64))
        }
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02] => {
            any(|p, s, r, d| authenticate::<Sha384>(p, s, r, d, 128))
        }
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03] => {
            any(|p, s, r, d| authenticate::<Sha512>(p, s, r, d, 128))
        }
        _ => false,
    })
}

/// The code over `data`: the key derivation of RFC 7292 B.2 for use 3, then HMAC. `block` is the
/// digest's block length in bytes. The key is as long as the digest, so one block is enough.
fn authenticate<D: Digest>(password: &[u8], salt: &[u8], rounds: u64, data: &[u8], block: usize) -> Vec<u8> {
    let fill = |text: &[u8]| -> Vec<u8> {
        let length = text.len().div_ceil(block) * block;
        text.iter().copied().cycle().take(length).collect()
    };
    let mut key =
        D::new().chain_update(vec![3; block]).chain_update(fill(salt)).chain_update(fill(password)).finalize();
    for _ in 1..rounds {
        key = D::digest(&key);
    }
    let pad = |with: u8| -> Vec<u8> {
        let key = key.iter().copied().chain(std::iter::repeat(0)).take(block);
        key.map(|byte| byte ^ with).collect()
    };
    let inner = D::new().chain_update(pad(0x36)).chain_update(data).finalize();
    D::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}
