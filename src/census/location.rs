//! How paths of a host are written: one line, nothing unseen, and back again.
//!
//! File names are bytes; a hostile one holds line breaks or terminal commands. What a report or
//! an inventory shows is plain text, and different paths never look alike.

use crate::source::is_unseen;

/// The path as reports and the inventory write it: characters that cannot be seen, bytes that
/// are no text, the backslash and the signs of globs as `\xNN`.
pub fn shown(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unseen(c) || "\\*?[".contains(c) {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| escape(byte, &mut out));
            } else {
                out.push(c);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut out));
    }
    out
}

fn escape(byte: u8, out: &mut String) {
    out.push_str(&format!("\\x{byte:02x}"));
}

/// The bytes of a path that was written by [`shown`]; `None` when it was not.
pub fn bytes(shown: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(shown.len());
    let mut left = shown;
    while let Some(at) = left.find('\\') {
        let (before, rest) = left.split_at_checked(at)?;
        out.extend(before.as_bytes());
        let (hex, rest) = rest.strip_prefix("\\x")?.split_at_checked(2)?;
        out.push(u8::from_str_radix(hex, 16).ok()?);
        left = rest;
    }
    out.extend(left.as_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_plain_line_and_comes_back() {
        for (path, expected) in [
            (&b"/home/dev/.netrc"[..], "/home/dev/.netrc"),
            (b"/a\nb\x1b[2J", "/a\\x0ab\\x1b\\x5b2J"),
            (b"/\xff\\*", "/\\xff\\x5c\\x2a"),
            ("/ü\u{202e}x".as_bytes(), "/ü\\xe2\\x80\\xaex"),
            (b"/\\x41", "/\\x5cx41"),
        ] {
            assert_eq!(shown(path), expected);
            assert_eq!(bytes(expected).as_deref(), Some(path));
        }
        assert_eq!(bytes("/a\\n"), None);
    }
}
