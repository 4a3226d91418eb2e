//! Bytes → text that a person can see: UTF-8, no control or invisible characters.

use super::Sink;
use crate::diag::{Code, Finding};
use crate::source::{FileId, SourceMap, Span, is_unseen};

/// Decodes a file, adds it to the source map and reports what people could not see in it.
/// Returns the file's id, and whether its text may be parsed.
pub(super) fn decode(
    map: &mut SourceMap,
    sink: &mut Sink,
    name: &str,
    origin: Option<&str>,
    bytes: &[u8],
) -> (FileId, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let id = map.add(name, origin, text);
            let before = sink.len();
            check(id, map.text(id), sink);
            (id, sink.len() == before)
        }
        Err(error) => {
            let id = map.add(name, origin, &String::from_utf8_lossy(bytes));
            let bom = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let at = error.valid_up_to().saturating_sub(bom);
            let help = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
                "this looks like UTF-16; save the file as UTF-8"
            } else {
                "save the file as UTF-8"
            };
            sink.push(
                Finding::new(Code::FILE_ENCODING, Span::new(id, at, at + 1), format!("`{name}` is not UTF-8"))
                    .help(help),
            );
            (id, false)
        }
    }
}

fn check(id: FileId, text: &str, sink: &mut Sink) {
    /// Findings of this kind per file; the rest of a binary file says nothing new.
    const MOST: usize = 20;
    let mut count = 0;
    for (at, c) in text.char_indices() {
        let alone_cr = c == '\r' && text.as_bytes().get(at + 1) != Some(&b'\n');
        let control = c.is_control();
        if c == '\n' || c == '\t' || c == '\r' && !alone_cr || !is_unseen(c) {
            continue;
        }
        count += 1;
        if count > MOST {
            break;
        }
        let message = if alone_cr {
            "a carriage return that ends no line".to_owned()
        } else if control {
            format!("a control character (U+{:04X})", u32::from(c))
        } else {
            format!("an invisible or direction-changing character (U+{:04X})", u32::from(c))
        };
        sink.push(
            Finding::new(Code::FILE_ENCODING, Span::new(id, at, at + c.len_utf8()), message)
                .help("remove it: a reviewer would not see what polctl reads"),
        );
    }
}
