//! A stream of text taken apart into commands: `( … )`, with strings, quoted symbols and
//! comments in which parentheses do not count.

/// What the text so far ends in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Plain,
    /// `"…"`; a doubled quote ends and starts one, which is the same here.
    Text,
    /// `|…|`.
    Symbol,
    /// `; …` to the end of the line.
    Comment,
}

/// Text that is waiting for its command's end.
#[derive(Debug, Default)]
pub struct Splitter {
    command: Vec<u8>,
    depth: usize,
    within: Within,
}

impl Splitter {
    /// Takes more text and gives the commands that it completes.
    ///
    /// # Errors
    ///
    /// What stands outside of a command and is no comment.
    pub fn push(&mut self, text: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
        let mut complete = Vec::new();
        for byte in text {
            if self.step(*byte)? {
                complete.push(std::mem::take(&mut self.command));
            }
        }
        Ok(complete)
    }

    /// How many bytes wait for their command's end.
    pub fn waiting(&self) -> usize {
        self.command.len()
    }

    /// Whether this byte ends a command.
    fn step(&mut self, byte: u8) -> Result<bool, &'static str> {
        let outside = self.depth == 0;
        match (self.within, byte) {
            (Within::Comment, b'\n') => self.within = Within::Plain,
            (Within::Comment, _) => return Ok(false),
            (Within::Text, b'"') | (Within::Symbol, b'|') => self.within = Within::Plain,
            (Within::Text | Within::Symbol, _) => {}
            (Within::Plain, b';') => {
                self.within = Within::Comment;
                return Ok(false);
            }
            (Within::Plain, b'(') => self.depth += 1,
            (Within::Plain, byte) if outside => {
                return if byte.is_ascii_whitespace() {
                    Ok(false)
                } else {
                    Err("something stands outside of parentheses")
                };
            }
            (Within::Plain, b')') => self.depth -= 1,
            (Within::Plain, b'"') => self.within = Within::Text,
            (Within::Plain, b'|') => self.within = Within::Symbol,
            (Within::Plain, _) => {}
        }
        // The line end of a comment outside is nothing; inside, it parts words.
        if outside && self.depth == 0 {
            return Ok(false);
        }
        self.command.push(byte);
        Ok(self.depth == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Splitter;

    fn split(text: &str) -> Result<Vec<String>, &'static str> {
        let mut splitter = Splitter::default();
        let mut all = Vec::new();
        for line in text.split_inclusive('\n') {
            all.extend(splitter.push(line.as_bytes())?.into_iter().map(|c| String::from_utf8_lossy(&c).into_owned()));
        }
        if splitter.waiting() > 0 { Err("unfinished") } else { Ok(all) }
    }

    #[test]
    fn commands_end_where_they_end() {
        assert_eq!(
            split("(a)(b (c))\n(d\n e)\n").as_deref(),
            Ok(&["(a)".into(), "(b (c))".into(), "(d\n e)".into()][..])
        );
        assert_eq!(split("(a \") \"\" (\")").as_deref(), Ok(&["(a \") \"\" (\")".into()][..]));
        assert_eq!(split("(a |) ( \" ;|)").as_deref(), Ok(&["(a |) ( \" ;|)".into()][..]));
        assert_eq!(split("; (x\n(a ; )\n b)\n").as_deref(), Ok(&["(a \n b)".into()][..]));
        assert_eq!(split(" \n\t").as_deref(), Ok(&[][..]));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in ["a", ")", "(a))", "\"(a)\"", "(a", "(a \")"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
