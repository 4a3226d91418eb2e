//! `/etc/shadow` and `/etc/gshadow`: hashes that can be guessed at, or that let somebody in.

use super::{Kind, Material, Sign, label};

/// One credential for each account with a password. A locked account has none.
pub(super) fn read(bytes: &[u8]) -> Vec<Material> {
    let mut out = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.split(':');
        let (Some(name), Some(hash)) = (fields.next(), fields.next()) else { continue };
        let sign = match hash {
            // No password at all lets everybody in.
            "" => Sign::Live,
            _ if hash.starts_with(['!', '*']) => continue,
            "x" => continue,
            // A hash must be guessed first.
            _ if hash.starts_with('$') || hash.starts_with('_') => Sign::Encrypted,
            // The old hash of 13 characters is found by trying in hours.
            _ => Sign::Live,
        };
        out.push(Material { line: Some(at + 1), label: label::name(name), ..Material::new(Kind::HostAccount, sign) });
    }
    out
}
