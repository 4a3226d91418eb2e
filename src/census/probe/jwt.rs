//! JSON Web Tokens, as far as their expiry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longest token that is looked at.
const LONGEST: usize = 16 * 1024;

/// Nothing if this is no token; else its expiry in Unix seconds, if it has one.
#[expect(clippy::option_option, reason = "no token, and a token without an end, are two answers")]
pub(super) fn expiry(text: &[u8]) -> Option<Option<i64>> {
    if text.len() > LONGEST || !text.starts_with(b"eyJ") {
        return None;
    }
    let mut parts = text.split(|byte| *byte == b'.');
    let (header, payload) = (parts.next()?, parts.next()?);
    parts.next()?;
    let object = |part: &[u8]| {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes).ok()
    };
    object(header)?.get("alg")?;
    let payload = object(payload)?;
    Some(payload.get("exp").and_then(|exp| exp.as_i64().or_else(|| exp.as_str()?.parse().ok())))
}
