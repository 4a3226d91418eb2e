//! Kerberos tickets and key tables, by MIT's description of the two file formats.

use super::cursor::Cursor;
use super::{Kind, Material, Sign, label, moment};

/// Most tickets of one cache, and entries of one table.
const MOST: usize = 1000;

/// A ticket cache. The ticket-granting tickets count; without one, the ticket that lasts longest.
pub(super) fn cache(bytes: &[u8], now: i64) -> Vec<Material> {
    let spoilt = || vec![Material::new(Kind::Ticket, Sign::unreadable("it is no ticket cache that polctl knows"))];
    let Some((realm, ends)) = tickets(bytes) else { return spoilt() };
    let Some(end) = ends.into_iter().max() else { return Vec::new() };
    let sign = if end <= now { Sign::Expired { at: moment::write(end) } } else { Sign::Live };
    vec![Material { label: label::name(&realm), ..Material::new(Kind::Ticket, sign) }]
}

/// The realm, and until when each ticket can be used or renewed. Entries that configure are left out.
fn tickets(bytes: &[u8]) -> Option<(String, Vec<i64>)> {
    let mut at = Cursor(bytes);
    let version = at.number(2).filter(|version| matches!(version, 0x0503 | 0x0504))?;
    if version == 0x0504 {
        at.sized(2)?;
    }
    let (realm, _) = principal(&mut at)?;
    let mut ends = Vec::new();
    for _ in 0..MOST {
        if at.0.is_empty() {
            break;
        }
        let (server_realm, end) = ticket(&mut at)?;
        if server_realm != b"X-CACHECONF:" {
            ends.push(end);
        }
    }
    Some((realm, ends))
}

fn ticket<'a>(at: &mut Cursor<'a>) -> Option<(&'a [u8], i64)> {
    principal(at)?;
    let (_, realm) = principal(at)?;
    at.take(2)?;
    at.string()?;
    at.take(8)?;
    let end = i64::try_from(at.number(4)?).ok()?;
    let renew = i64::try_from(at.number(4)?).ok()?;
    at.take(5)?;
    for _ in 0..2 {
        for _ in 0..at.number(4)?.min(1000) {
            at.take(2)?;
            at.string()?;
        }
    }
    at.string()?;
    at.string()?;
    Some((realm, end.max(renew)))
}

fn principal<'a>(at: &mut Cursor<'a>) -> Option<(String, &'a [u8])> {
    at.take(4)?;
    let count = at.number(4)?.min(1000);
    let realm = at.string()?;
    for _ in 0..count {
        at.string()?;
    }
    Some((String::from_utf8_lossy(realm).into_owned(), realm))
}

/// A key table: one credential for each principal's realm; keys in it need no password.
pub(super) fn keytab(bytes: &[u8]) -> Vec<Material> {
    let spoilt = || vec![Material::new(Kind::Ticket, Sign::unreadable("it is no key table that polctl knows"))];
    let mut at = Cursor(bytes);
    if at.number(2) != Some(0x0502) {
        return spoilt();
    }
    for _ in 0..MOST {
        let Some(size) = at.number(4) else { return Vec::new() };
        let size = i32::from_be_bytes(u32::try_from(size).unwrap_or(0).to_be_bytes());
        let Some(entry) = at.take(usize::try_from(size.unsigned_abs()).unwrap_or(usize::MAX)) else { return spoilt() };
        if size > 0 {
            let realm = Cursor(entry.get(2..).unwrap_or(&[])).sized(2).map(String::from_utf8_lossy);
            let label = realm.and_then(|realm| label::name(&realm));
            return vec![Material { label, ..Material::new(Kind::Ticket, Sign::Live) }];
        }
        if size == 0 {
            return Vec::new();
        }
    }
    Vec::new()
}
