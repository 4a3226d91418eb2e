//! Scripts of small languages in arguments: does one of their clauses write or execute?
//!
//! Not interpreters: each function says yes only for scripts that it has read to the end and
//! found to do no more than read input and print. Whatever it does not know is not plain.

/// Whether a script of this language only reads and prints.
pub(super) fn is_plain(language: &str, script: &str) -> bool {
    match language {
        "sed" => sed(script),
        "awk" => awk(script),
        "jq" => jq(script),
        _ => false,
    }
}

/// A position in a text.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or("");
        Some(c)
    }

    fn skip(&mut self, while_: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !while_(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Up to and with the delimiter; a backslash takes the next character with it.
    fn delimited(&mut self, delimiter: char, brackets: bool) -> Option<()> {
        let mut inside = false;
        while let Some(c) = self.next() {
            match c {
                // In a bracket expression it is itself.
                '\\' if !inside => {
                    self.next()?;
                }
                '\n' => return None,
                '[' if brackets && !inside => {
                    inside = true;
                    // `[]…]` and `[^]…]` hold the bracket itself.
                    self.skip(|c| c == '^');
                    if self.peek() == Some(']') {
                        self.next();
                    }
                }
                ']' if inside => inside = false,
                c if c == delimiter && !inside => return Some(()),
                _ => {}
            }
        }
        None
    }
}

/// `sed`: everything but `w`, `W`, `e`, `r`, `R`, `F` clauses and the flags `w` and `e` of `s`
/// (GNU sed 4.8, "Commands"; POSIX `sed`).
fn sed(script: &str) -> bool {
    let mut scan = Scan { rest: script };
    let mut depth = 0_usize;
    loop {
        scan.skip(|c| c.is_whitespace() || c == ';');
        let Some(c) = scan.peek() else { return depth == 0 };
        if c == '}' {
            scan.next();
            let Some(less) = depth.checked_sub(1) else { return false };
            depth = less;
            continue;
        }
        if address(&mut scan).is_none() {
            return false;
        }
        scan.skip(|c| c == ' ' || c == '\t' || c == '!');
        let Some(command) = scan.next() else { return false };
        let read = match command {
            '{' => {
                depth += 1;
                Some(())
            }
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => end_of_command(&mut scan),
            'q' | 'Q' | 'l' | 'L' => {
                scan.skip(|c| c == ' ' || c.is_ascii_digit());
                end_of_command(&mut scan)
            }
            'b' | 't' | 'T' | ':' => {
                // Newer versions end a label at a blank, and read on.
                scan.skip(|c| c == ' ' || c == '\t');
                scan.skip(|c| c != ';' && c != '}' && !c.is_whitespace());
                Some(())
            }
            '#' => {
                scan.skip(|c| c != '\n');
                Some(())
            }
            'a' | 'i' | 'c' => {
                // Text runs to the end of the line, a backslash takes the next line with it.
                while let Some(c) = scan.next() {
                    match c {
                        '\\' => {
                            scan.next();
                        }
                        '\n' => break,
                        _ => {}
                    }
                }
                Some(())
            }
            's' => substitute(&mut scan),
            'y' => two_parts(&mut scan, false).and_then(|()| end_of_command(&mut scan)),
            _ => None,
        };
        if read.is_none() {
            return false;
        }
    }
}

fn end_of_command(scan: &mut Scan<'_>) -> Option<()> {
    scan.skip(|c| c == ' ' || c == '\t');
    matches!(scan.peek(), None | Some(';' | '\n' | '}' | '#')).then_some(())
}

/// No, one or two addresses.
fn address(scan: &mut Scan<'_>) -> Option<()> {
    for second in [false, true] {
        scan.skip(|c| c == ' ' || c == '\t');
        match scan.peek() {
            Some(c) if c.is_ascii_digit() || c == '$' || second && matches!(c, '+' | '~') => {
                scan.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '~' | '+'));
            }
            Some('/') => {
                scan.next();
                scan.delimited('/', true)?;
                scan.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                scan.next();
                let delimiter = scan.next().filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
                scan.delimited(delimiter, true)?;
                scan.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ if second => return None,
            _ => return Some(()),
        }
        scan.skip(|c| c == ' ' || c == '\t');
        if scan.peek() != Some(',') || second {
            break;
        }
        scan.next();
    }
    Some(())
}

fn two_parts(scan: &mut Scan<'_>, brackets: bool) -> Option<()> {
    let delimiter = scan.next().filter(|c| *c != '\\' && *c != '\n')?;
    scan.delimited(delimiter, brackets)?;
    scan.delimited(delimiter, false)
}

fn substitute(scan: &mut Scan<'_>) -> Option<()> {
    two_parts(scan, true)?;
    scan.skip(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
    end_of_command(scan)
}

/// Most slashes of an `awk` script that may be a division or begin a regular expression.
const MAX_DOUBTFUL: usize = 6;

/// `awk`: no `system`, no pipe, no output into a file, no `getline` from one, no loading, nothing
/// about arguments or the environment.
fn awk(script: &str) -> bool {
    let begin = Awk { prints: false, parens: 0, before: Before::Operator };
    awk_from(Scan { rest: script }, begin, MAX_DOUBTFUL) == Some(true)
}

/// What stands before a slash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// It begins a regular expression.
    Operator,
    /// It divides.
    Operand,
    /// One or the other: the versions of `awk` differ, or the whole grammar decides.
    Either,
}

#[derive(Clone, Copy)]
struct Awk {
    /// Whether a `>` now would redirect: behind `print` or `printf`, outside of parentheses.
    prints: bool,
    parens: usize,
    before: Before,
}

/// A regular expression up to its slash; `Some(false)` where versions end it in different places.
fn awk_regex(scan: &mut Scan<'_>) -> Option<bool> {
    let mut class = false;
    while let Some(c) = scan.next() {
        match c {
            '\n' => return None,
            '\\' => {
                scan.next()?;
            }
            '[' => class = true,
            ']' => class = false,
            '/' => return Some(!class),
            _ => {}
        }
    }
    None
}

/// What follows a regular expression that begins here.
fn awk_behind_regex(mut scan: Scan<'_>, at: Awk, doubtful: usize) -> Option<bool> {
    if !awk_regex(&mut scan)? {
        return Some(false);
    }
    awk_from(scan, Awk { before: Before::Operand, ..at }, doubtful)
}

/// Whether what follows is plain; `None` where it is no `awk`, so that nothing of it runs.
fn awk_from(mut scan: Scan<'_>, mut at: Awk, doubtful: usize) -> Option<bool> {
    while let Some(c) = scan.next() {
        match c {
            '#' => {
                scan.skip(|c| c != '\n');
            }
            '"' => {
                scan.delimited('"', false)?;
                at.before = Before::Operand;
            }
            '/' if at.before == Before::Operand => at.before = Before::Operator,
            '/' if at.before == Before::Either => {
                let fewer = doubtful.checked_sub(1);
                let Some(fewer) = fewer else { return Some(false) };
                let divided = awk_from(Scan { rest: scan.rest }, Awk { before: Before::Operator, ..at }, fewer);
                let matched = awk_behind_regex(scan, at, fewer);
                // What is no `awk` at all in one reading is meant in the other.
                return match (divided, matched) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (None, None) => None,
                    _ => Some(true),
                };
            }
            '/' => return awk_behind_regex(scan, at, doubtful),
            '|' if scan.peek() == Some('|') => {
                scan.next();
                at.before = Before::Operator;
            }
            '|' | '@' | '\\' => return Some(false),
            '>' if at.prints && at.parens == 0 => return Some(false),
            '(' => {
                at.parens += 1;
                at.before = Before::Operator;
            }
            ')' => {
                at.parens = at.parens.saturating_sub(1);
                at.before = Before::Either;
            }
            '+' | '-' if scan.peek() == Some(c) => {
                scan.next();
                at.before = Before::Either;
            }
            // Behind a comma or an operator the statement goes on.
            '\n' if at.before == Before::Operator => {}
            ';' | '\n' | '{' | '}' => at = Awk { prints: false, parens: 0, before: Before::Operator },
            c if c.is_alphabetic() || c == '_' => {
                let tail = scan.skip(|c| c.is_alphanumeric() || c == '_');
                match format!("{c}{tail}").as_str() {
                    "system" | "getline" | "close" | "fflush" | "include" | "load" | "ARGV" | "ARGC" | "ENVIRON"
                    | "PROCINFO" | "SYMTAB" | "FUNCTAB" => return Some(false),
                    "print" | "printf" => at = Awk { prints: true, before: Before::Operator, ..at },
                    "return" | "in" | "else" | "do" | "case" | "exit" => at.before = Before::Operator,
                    "length" => at.before = Before::Either,
                    _ => at.before = Before::Operand,
                }
            }
            c if c.is_ascii_digit() || c == '.' => {
                scan.skip(|c| c.is_ascii_digit() || c == '.');
                at.before = Before::Operand;
            }
            ']' => at.before = Before::Operand,
            c if c.is_whitespace() => {}
            // `$` takes what follows, a regular expression too.
            _ => at.before = Before::Operator,
        }
    }
    Some(true)
}

/// `jq`: nothing that reads other files or the environment.
fn jq(script: &str) -> bool {
    let mut scan = Scan { rest: script };
    while let Some(c) = scan.next() {
        match c {
            '#' => {
                scan.skip(|c| c != '\n');
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let tail = scan.skip(|c| c.is_alphanumeric() || c == '_');
                let word = format!("{c}{tail}");
                if matches!(word.as_str(), "include" | "import" | "input_filename" | "env" | "$ENV" | "getpath_file") {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_clauses_that_write_or_execute_are_seen() {
        for plain in [
            "1,9p",
            "/x/p",
            "$p",
            "s/a/b/g",
            "s|a/w|b|2p",
            "/a/,/b/d",
            "1!G;h;$!d",
            "y/abc/xyz/",
            "/[/]w/p",
            "2q",
            "5,+3p",
            "/x/I p",
            "s/a\\/w/b/",
            "/a/{s/x/y/;p}",
            "s/\\(a\\)/[\\1]/",
            "a hello",
            "1i\\\nfoo",
            "",
            "# w x",
            ":a;N;$!ba;s/\\n/ /g",
            "/^#/d;/^$/d",
            "\\,x,p",
            "0~3p",
            "=",
            "/a/!d",
        ] {
            assert!(sed(plain), "{plain}");
        }
        for unsafe_ in [
            "w out",
            "/x/w out",
            "/x/Iw out",
            "/x/M w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e",
            "1e rm x",
            "s/a/b/gw f",
            "r /etc/passwd",
            "R f",
            "W f",
            "p;w f",
            "/[/]/w f",
            "s/a/b",
            "{p",
            "p}",
            "F",
            "\\,x,w f",
            "1,w f",
            "s/a/b/;e id",
            "y/a/b/w f",
            "px",
            "s/x/y/\nw f",
            "}",
            "v4.2;e",
            "y/[/x/;w pwned\ns/]/q/",
            "y/[/x/;1e pwn\ns/]/q/",
            ":a w pwned",
            "s/[\\]/x/;w q\n#]/y/",
            "/[\\]/!p;w q\n#]/p",
            "a\\\ns/a/\nw q\n#/",
            "b a w pwned",
            "# foo\\\nw pwned",
        ] {
            assert!(!sed(unsafe_), "{unsafe_}");
        }
    }

    #[test]
    fn awk_statements_that_write_or_execute_are_seen() {
        for plain in [
            "{print $1}",
            "$3 > 10",
            "$1 > 5 {print $2}",
            "NR==1",
            "/a|b/ {print}",
            "{s += $1} END {print s/NR}",
            "a || b",
            "BEGIN{FS=\":\"} {print $1 \"|\" $2}",
            "{print ($1 > 2)}",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "length > 72",
            "{print $1 / 2 / 3}",
            "{print ($1 + $2) / 2}",
            "{n++} END {print n / 2}",
            "{if ($1 ~ /x/) print; else if (/y/) print $2}",
        ] {
            assert!(awk(plain), "{plain}");
        }
        for unsafe_ in [
            "{system(\"id\")}",
            "{print > \"f\"}",
            "{print $1 >> \"f\"}",
            "{print | \"sh\"}",
            "BEGIN{\"id\"|getline x}",
            "{getline < \"/etc/passwd\"}",
            "@load \"x\"",
            "{print $1 > $2}",
            "{printf(\"a\") > \"f\"}",
            "{x |& y}",
            "BEGIN{if(0);else /\"/;system(\"pwn\");if(0);else /\"/}",
            "BEGIN{do /\"/;while(0);system(\"pwn\");do /\"/;while(0)}",
            "BEGIN{x++ / 1; system(\"pwn\"); y = 2 / 3}",
            "BEGIN{if (1) /a#/; system(\"pwn\")\n}",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}{print}",
            "BEGIN{for(k in ENVIRON) print ENVIRON[k]}",
            "/[/]/; print > \"x\" #/",
            "BEGIN{print 1,\n2 > \"q\"}",
            "BEGIN{print 1 &&\n2 > \"q\"}",
            "BEGIN{x=1./1;system(\"q\");y=1/1}",
            "BEGIN { x = 1./2\nsystem(\"q\") }",
            "BEGIN{x=$/\"/; system(\"q\"); y=$/\"/}",
            "{\"",
        ] {
            assert!(!awk(unsafe_), "{unsafe_}");
        }
        assert!(jq(".a[] | select(.b > 1)") && !jq("env.HOME") && !jq("$ENV.X") && !jq("include \"x\"; ."));
    }
}
