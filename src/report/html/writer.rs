//! Markup that cannot be left: tags are literals of this crate, everything else is text.
//!
//! The one place where text is escaped. What cannot be seen (control characters, marks that
//! change the direction of text) is shown as an escape in a frame of its own, so that it neither
//! acts nor passes for the same letters typed out. Each piece of code stands in its own isolate
//! of direction (the style sheet says so), and so does each sentence from outside.

use crate::source::is_unseen;

/// Most characters of one text.
const MAX_TEXT: usize = 2_000;

/// A page in the making.
pub(super) struct Html {
    out: String,
}

impl Html {
    pub(super) const fn new() -> Self {
        Html { out: String::new() }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Markup of this crate.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// An element with what `inside` writes.
    pub(super) fn el(
        &mut self,
        tag: &'static str,
        attributes: &[(&'static str, &str)],
        inside: impl FnOnce(&mut Html),
    ) {
        self.void(tag, attributes);
        inside(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
        if matches!(tag, "section" | "li" | "p" | "header" | "footer" | "main" | "tr" | "details" | "article" | "h2") {
            self.out.push('\n');
        }
    }

    /// An element without an end.
    pub(super) fn void(&mut self, tag: &'static str, attributes: &[(&'static str, &str)]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            // No tag stands in an attribute, so what cannot be seen has no frame there.
            value
                .chars()
                .for_each(|c| if is_unseen(c) { escape_unseen(&mut self.out, c) } else { escape(&mut self.out, c) });
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// Text, whatever it holds.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars().take(MAX_TEXT) {
            if is_unseen(c) {
                self.out.push_str("<b class=\"unseen\">");
                escape_unseen(&mut self.out, c);
                self.out.push_str("</b>");
            } else {
                escape(&mut self.out, c);
            }
        }
        if text.chars().nth(MAX_TEXT).is_some() {
            self.out.push_str(" …");
        }
    }

    /// Text as code.
    pub(super) fn code(&mut self, text: &str) {
        self.el("code", &[], |h| h.text(text));
    }

    /// A sentence of a finding: what stands in backticks becomes code.
    pub(super) fn sentence(&mut self, text: &str) {
        self.el("bdi", &[], |h| {
            for (at, part) in text.split('`').enumerate() {
                if at % 2 == 0 {
                    h.text(part);
                } else {
                    h.code(part);
                }
            }
        });
    }

    /// A short text with a class.
    pub(super) fn badge(&mut self, class: &'static str, text: &str) {
        self.el("span", &[("class", class)], |h| h.text(text));
    }
}

fn escape(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        other => out.push(other),
    }
}

fn escape_unseen(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        other => out.extend(other.escape_unicode()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Html)) -> String {
        let mut h = Html::new();
        write(&mut h);
        h.finish()
    }

    #[test]
    fn text_stays_text() {
        for (text, shown) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("\" onclick='x' &amp;", "&quot; onclick=&#39;x&#39; &amp;amp;"),
            ("a\u{202e}b", "a<b class=\"unseen\">\\u{202e}</b>b"),
            ("\u{1b}[31m\0", "<b class=\"unseen\">\\u{1b}</b>[31m<b class=\"unseen\">\\u{0}</b>"),
            ("a\nb", "a<b class=\"unseen\">\\n</b>b"),
        ] {
            assert_eq!(written(|h| h.text(text)), shown, "{text:?}");
        }
        assert_eq!(
            written(|h| h.void("a", &[("title", "\"><b>\u{202e}\n")])),
            "<a title=\"&quot;&gt;&lt;b&gt;\\u{202e}\\n\">"
        );
        assert_eq!(written(|h| h.sentence("x `<i>` y")), "<bdi>x <code>&lt;i&gt;</code> y</bdi>");
        let long = "<".repeat(MAX_TEXT + 1);
        assert_eq!(written(|h| h.text(&long)), "&lt;".repeat(MAX_TEXT) + " …");
    }
}
