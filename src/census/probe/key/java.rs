//! Java's key stores. Both protect each private key by a password.

use super::super::Sign;
use super::super::cursor::Cursor;

/// Most entries that are counted.
const MOST_ENTRIES: u64 = 10_000;

/// Nothing if this is neither JKS nor JCEKS; else the signs of its private keys.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Sign>> {
    let mut at = Cursor(bytes);
    at.number(4).filter(|magic| matches!(magic, 0xfeed_feed | 0xcece_cece))?;
    Some(entries(&mut at).unwrap_or_else(|| vec![Sign::unreadable("the key store is not whole")]))
}

fn entries(at: &mut Cursor<'_>) -> Option<Vec<Sign>> {
    at.number(4)?;
    let count = at.number(4)?.min(MOST_ENTRIES);
    let mut out = Vec::new();
    for _ in 0..count {
        let tag = at.number(4)?;
        at.sized(2)?;
        at.number(8)?;
        match tag {
            1 => {
                out.push(Sign::Encrypted);
                at.sized(4)?;
                for _ in 0..at.number(4)?.min(MOST_ENTRIES) {
                    certificate(at)?;
                }
            }
            2 => certificate(at)?,
            // A sealed secret key of JCEKS has no length; nothing behind it can be read.
            3 => {
                out.push(Sign::Encrypted);
                return Some(out);
            }
            _ => return None,
        }
    }
    Some(out)
}

fn certificate(at: &mut Cursor<'_>) -> Option<()> {
    at.sized(2)?;
    at.sized(4).map(|_| ())
}
