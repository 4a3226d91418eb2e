//! `.ppk` files of `PuTTY`, versions 1 to 3.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::Sign;
use super::{Judged, fingerprint};

/// A key file, by its header lines.
pub(super) fn read(bytes: &[u8]) -> Option<Judged> {
    if !bytes.starts_with(b"PuTTY-User-Key-File-") {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim);
    let sign = match header("Encryption") {
        Some("none") => Sign::Live,
        Some(_) => Sign::Encrypted,
        None => Sign::unreadable("the key file does not say whether it is encrypted"),
    };
    let count = header("Public-Lines").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    let public: String =
        text.lines().skip_while(|line| !line.starts_with("Public-Lines:")).skip(1).take(count).collect();
    let public = STANDARD.decode(public.as_bytes()).ok().filter(|public| !public.is_empty());
    Some(Judged { sign, fingerprint: public.map(|public| fingerprint(&public)) })
}
