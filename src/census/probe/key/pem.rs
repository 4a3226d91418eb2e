//! PEM and what is written like it: blocks between `-----BEGIN X-----` and `-----END X-----`.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::super::tree::line_at;
use super::super::{Kind, Material, Sign};
use super::{Judged, der, openpgp, openssh};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Longest label between `BEGIN` and the dashes.
const LONGEST_LABEL: usize = 64;

/// Shortest key: less is a placeholder in a text about keys.
const SHORTEST: usize = 16;

/// The private keys in a file. In a `known` place, what begins as a key and cannot be read is
/// told; elsewhere it is text about keys.
pub(in super::super) fn blocks(bytes: &[u8], known: bool) -> Vec<Material> {
    let mut out = Vec::new();
    let mut end = 0;
    for at in memchr::memmem::find_iter(bytes, b"-----BEGIN ") {
        if at < end {
            continue;
        }
        let Some((label, body_at)) = label(bytes, at) else { continue };
        let closing = format!("-----END {label}-----");
        let body = bytes.get(body_at..).unwrap_or(&[]);
        let length = memchr::memmem::find(body, closing.as_bytes());
        let judged = if let Some(length) = length {
            end = body_at + length;
            judge(label, body.get(..length).unwrap_or(&[]))
        } else {
            secret_label(label).then(|| Judged::bare(Sign::unreadable("the private key has no end")))
        };
        let told = judged.filter(|judged| known || !matches!(judged.sign, Sign::Unreadable { .. }));
        out.extend(told.map(|judged| judged.material(Kind::PrivateKey, Some(line_at(bytes, at)))));
    }
    out
}

fn label(bytes: &[u8], at: usize) -> Option<(&str, usize)> {
    let from = at + "-----BEGIN ".len();
    let rest = bytes.get(from..)?;
    let length = memchr::memmem::find(rest.get(..LONGEST_LABEL + 5).unwrap_or(rest), b"-----")?;
    let label = std::str::from_utf8(rest.get(..length)?).ok()?;
    let plain = label.chars().all(|c| c.is_ascii_alphanumeric() || " #-".contains(c));
    plain.then_some((label, from + length + 5))
}

/// Whether a block of this label holds a secret.
fn secret_label(label: &str) -> bool {
    label.contains("PRIVATE KEY") || label.contains("Static key") || label == "ARGO TUNNEL TOKEN"
}

fn judge(label: &str, body: &[u8]) -> Option<Judged> {
    if !secret_label(label) {
        return None;
    }
    let text = String::from_utf8_lossy(body).replace("\\n", "\n").replace("\\r", "").replace("\\/", "/");
    let (headers, data) = split(&text);
    let data = data.filter(|data| data.len() >= SHORTEST);
    let spoilt = || Judged::bare(Sign::unreadable("the private key is not whole"));
    Some(match (label, data) {
        ("OpenVPN Static key V1", _) => {
            let digits = text.chars().filter(char::is_ascii_hexdigit).count();
            if digits >= 64 { Judged::bare(Sign::Live) } else { spoilt() }
        }
        (_, None) => spoilt(),
        ("OPENSSH PRIVATE KEY", Some(data)) => openssh::private_key(&data).unwrap_or_else(spoilt),
        ("SSH2 ENCRYPTED PRIVATE KEY", Some(data)) => openssh::commercial(&data).map_or_else(spoilt, Judged::bare),
        ("TSS2 PRIVATE KEY", Some(_)) => Judged::bare(Sign::Hardware),
        ("PGP PRIVATE KEY BLOCK", Some(data)) => openpgp::first(&data).map_or_else(spoilt, Judged::bare),
        (label, Some(_)) if label.contains("ENCRYPTED") => Judged::bare(Sign::Encrypted),
        (_, Some(_)) if headers.contains("ENCRYPTED") => Judged::bare(Sign::Encrypted),
        (label, Some(data)) if label.ends_with("PRIVATE KEY") => {
            der::private_key(&data).unwrap_or_else(|| Judged::bare(Sign::Live))
        }
        (_, Some(_)) => Judged::bare(Sign::Live),
    })
}

/// The headers, and the decoded data if it is base64. The checksum line of `OpenPGP` is left out.
fn split(text: &str) -> (String, Option<Vec<u8>>) {
    let mut headers = String::new();
    let mut data = String::new();
    let mut continued = false;
    for line in text.lines().map(str::trim) {
        if line.contains(':') || continued {
            continued = line.ends_with('\\');
            headers.push_str(line);
            headers.push('\n');
        } else if !line.starts_with('=') {
            data.extend(line.split_whitespace());
        }
    }
    (headers, LENIENT.decode(data.as_bytes()).ok())
}
