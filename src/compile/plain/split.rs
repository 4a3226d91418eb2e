//! A file of Cedar policies → its statements, without parsing them.
//!
//! Two versions of a file share most of their statements letter for letter; those need to be
//! parsed once only. What is no statement here is none for Cedar either: it is handed on as it
//! is, and Cedar says what is wrong with it.

use std::ops::Range;

/// The ranges of the statements of a text, each up to and with its `;`, and of what is left
/// behind the last one, if that is more than white space and comments.
pub fn statements(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    // Where the statement begins; white space and comments before it are not of it.
    let mut start = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        match (byte, next) {
            (b'/', Some(b'/')) => {
                at += bytes.iter().skip(at).position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(bytes.len() - at);
                continue;
            }
            (b'"', _) => {
                start.get_or_insert(at);
                at = string_end(bytes, at);
                continue;
            }
            (b';', _) => {
                out.push(start.take().unwrap_or(at)..at + 1);
            }
            (byte, _) if !byte.is_ascii_whitespace() => {
                start.get_or_insert(at);
            }
            _ => {}
        }
        at += 1;
    }
    out.extend(start.map(|start| start..text.len()));
    out
}

/// One past the end of the string literal that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_strings_and_comments() {
        let text = "// a;\npermit(a) when { x == \"a;\\\";b\" }; // c;\n\nforbid(\n// ; \"\nb);\n rest // ;\n";
        let found: Vec<&str> = statements(text).into_iter().map(|r| text.get(r).unwrap()).collect();
        assert_eq!(found, ["permit(a) when { x == \"a;\\\";b\" };", "forbid(\n// ; \"\nb);", "rest // ;\n"]);
        assert!(statements(" // nothing;\n").is_empty());
        assert_eq!(statements("x \"open").len(), 1);
        assert_eq!(statements("a;;").len(), 2);
    }
}
