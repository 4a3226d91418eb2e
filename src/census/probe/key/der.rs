//! Keys in DER: PKCS#8 (RFC 5958), PKCS#1 (RFC 8017), SEC 1 (RFC 5915).

use super::super::Sign;
use super::super::cursor::Cursor;
use super::{Judged, fingerprint};

const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]` and `[1]`, constructed.
const FIRST: u8 = 0xa0;
const SECOND: u8 = 0xa1;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const CURVES: [(&[u8], &str); 3] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "nistp256"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], "nistp384"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], "nistp521"),
];

/// A private key, encrypted or not. `None` for anything else.
pub(super) fn private_key(data: &[u8]) -> Option<Judged> {
    if encrypted(data).is_some() {
        return Some(Judged::bare(Sign::Encrypted));
    }
    pkcs8(data).or_else(|| pkcs1(data)).or_else(|| sec1(data, None))
}

/// Whether this is a certificate or request: a sequence that begins with one.
pub(super) fn certificate(data: &[u8]) -> bool {
    let body = Cursor(data).expect(SEQUENCE);
    body.and_then(|body| Cursor(body).expect(SEQUENCE)).is_some()
}

/// `EncryptedPrivateKeyInfo`: an algorithm, and octets.
fn encrypted(data: &[u8]) -> Option<()> {
    let mut body = Cursor(Cursor(data).expect(SEQUENCE)?);
    Cursor(body.expect(SEQUENCE)?).expect(OID)?;
    body.expect(OCTETS)?;
    body.0.is_empty().then_some(())
}

fn pkcs8(data: &[u8]) -> Option<Judged> {
    let mut body = Cursor(Cursor(data).expect(SEQUENCE)?);
    body.expect(INTEGER)?;
    let mut algorithm = Cursor(body.expect(SEQUENCE)?);
    let name = algorithm.expect(OID)?;
    let key = body.expect(OCTETS)?;
    let inner = if name == RSA { pkcs1(key) } else { sec1(key, algorithm.expect(OID)) };
    Some(inner.unwrap_or_else(|| Judged::bare(Sign::Live)))
}

fn pkcs1(data: &[u8]) -> Option<Judged> {
    let mut body = Cursor(Cursor(data).expect(SEQUENCE)?);
    body.expect(INTEGER)?;
    let (modulus, exponent) = (body.expect(INTEGER)?, body.expect(INTEGER)?);
    // A DSA key has as many numbers in another order; its second one is no small exponent.
    let public = (exponent.len() <= 8).then(|| fingerprint(&ssh(&[b"ssh-rsa", exponent, modulus])));
    Some(Judged { sign: Sign::Live, fingerprint: public })
}

fn sec1(data: &[u8], curve: Option<&[u8]>) -> Option<Judged> {
    let mut body = Cursor(Cursor(data).expect(SEQUENCE)?);
    body.expect(INTEGER)?;
    body.expect(OCTETS)?;
    let (mut curve, mut point) = (curve, None);
    while let Some((tag, contents)) = body.element() {
        match tag {
            FIRST => curve = Cursor(contents).expect(OID).or(curve),
            SECOND => point = Cursor(contents).expect(BITS).and_then(|bits| bits.strip_prefix(&[0])),
            _ => return None,
        }
    }
    let name = curve.and_then(|oid| CURVES.iter().find(|(own, _)| *own == oid)).map(|(_, name)| *name);
    let public = name
        .zip(point)
        .map(|(name, point)| fingerprint(&ssh(&[format!("ecdsa-sha2-{name}").as_bytes(), name.as_bytes(), point])));
    Some(Judged { sign: Sign::Live, fingerprint: public })
}

/// Strings of the SSH protocol, one behind the other.
fn ssh(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend(u32::try_from(part.len()).unwrap_or(0).to_be_bytes());
        out.extend(*part);
    }
    out
}
