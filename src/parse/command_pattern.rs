//! Command patterns, and the items of `with`, `only` and `unless` (DESIGN 3.3).

use super::words::{Char, RawWord, Unclosed, split};
use crate::model::{CommandPattern, Glob, Item, MAX_WORDS, Piece};

/// Most alternatives that braces of one word may make.
const MAX_ALTERNATIVES: usize = 64;

/// What is wrong, with offsets into the pattern's text.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) message: String,
    pub(super) help: String,
}

fn problem(word: &RawWord, message: impl Into<String>, help: impl Into<String>) -> Problem {
    Problem { start: word.start, end: word.end, message: message.into(), help: help.into() }
}

/// Splits, or says where the quote is open.
pub(super) fn split_or_problem(text: &str) -> Result<Vec<RawWord>, Problem> {
    split(text).map_err(|Unclosed(at)| Problem {
        start: at,
        end: text.len(),
        message: "a quote or backslash without its end".into(),
        help: "close the quote; write `\\'` for a literal quote".into(),
    })
}

/// Reads a command pattern; all problems, if there are any.
pub(super) fn parse_command(text: &str) -> Result<CommandPattern, Vec<Problem>> {
    let words = split_or_problem(text).map_err(|p| vec![p])?;
    let mut problems = Vec::new();
    let Some((program, mut words)) = words.split_first() else {
        return Err(vec![Problem {
            start: 0,
            end: text.len(),
            message: "an empty pattern".into(),
            help: "write a program and its arguments: `git status **`".into(),
        }]);
    };
    foreign(program, &mut problems);
    let programs = alternatives(program, &mut problems);
    check_program(program, &programs, &mut problems);
    let rest = words.last().is_some_and(|w| w.plain().as_deref() == Some("**"));
    if rest && let Some((_, front)) = words.split_last() {
        words = front;
    }
    let name = program.text();
    let mut parsed = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if word.plain().as_deref() == Some("/") && words.get(index + 1).is_some_and(|next| next.text() == name) {
            problems.push(problem(
                word,
                "` / ` between two commands is read as the argument `/`",
                "write one rule for each command",
            ));
        }
        foreign(word, &mut problems);
        double_star(word, &mut problems);
        parsed.push(alternatives(word, &mut problems));
    }
    if let Some(extra) = words.get(MAX_WORDS) {
        problems.push(problem(
            extra,
            format!("more than {MAX_WORDS} words behind the program"),
            "a longer command cannot be matched word by word; use `**` and `with`",
        ));
    }
    if problems.is_empty() { Ok(CommandPattern { programs, words: parsed, rest }) } else { Err(problems) }
}

fn check_program(word: &RawWord, programs: &[Glob], problems: &mut Vec<Problem>) {
    let text = word.text();
    if text.contains('/') {
        let base = text.rsplit('/').next().unwrap_or("");
        problems.push(problem(
            word,
            format!("`{text}` names a program by its path"),
            format!("write the base name, `{base}`; `trusted_dirs` says which paths are meant"),
        ));
    } else if text.contains('=') {
        problems.push(problem(
            word,
            format!("`{text}` is an assignment, not a program"),
            "write the rule for the program, and `when: env=NAME` for the assignment",
        ));
    } else if text.starts_with('-') || programs.iter().any(|p| p.as_literal() == Some("")) {
        problems.push(problem(word, format!("`{text}` cannot be a program"), "begin with the program's name"));
    } else if !text.is_ascii() {
        problems.push(problem(
            word,
            format!("the program name `{text}` holds characters outside ASCII"),
            "look-alike letters are hard to see; programs are named in ASCII",
        ));
    } else if word.plain().as_deref() == Some("**") {
        problems.push(problem(word, "`**` cannot be a program", "write `*` for any program"));
    } else if text == "sudo" || text == "doas" {
        problems.push(problem(
            word,
            format!("`{text}` is a wrapper, not a program"),
            "commands with elevated rights belong into a map with `surface: sudo`, without the wrapper",
        ));
    }
}

/// Things of other notations that mean nothing here.
fn foreign(word: &RawWord, problems: &mut Vec<Problem>) {
    let text = word.text();
    let bare: String = word.chars.iter().map(|c| if c.literal { '\u{fffd}' } else { c.c }).collect();
    let mut say = |message: String, help: &str| problems.push(problem(word, message, help));
    if bare.starts_with('<') && bare.ends_with('>') && bare.len() > 2 {
        return say(
            format!("`{text}` is a placeholder"),
            "write `*` for one argument, `**` at the end for any number of them",
        );
    }
    if bare.starts_with('[') && bare.ends_with(']') {
        return say(
            format!("`{text}` is a placeholder for something optional"),
            "write `**` at the end for further arguments, and `with`, `only` or `unless` for options",
        );
    }
    if matches!(bare.as_str(), "..." | "…") {
        return say(format!("`{text}` means nothing in a pattern"), "write `**` for further arguments");
    }
    if bare.contains(['←', '→', '⇒', '–', '—']) || bare.starts_with('#') {
        return say(
            format!("`{text}` starts a remark inside the pattern"),
            "write the remark behind the code span, or as `why:`",
        );
    }
    if let Some(c) = bare.chars().find(|c| "|&;<>()".contains(*c)) {
        return say(
            format!("`{text}` holds the shell operator `{c}`"),
            "a rule is about one simple command; lines are taken apart before rules are matched. Quote it if it is meant literally",
        );
    }
    if let Some(c) = bare.chars().find(|c| "$`".contains(*c)) {
        return say(
            format!("`{text}` holds `{c}`, which the shell expands"),
            "write `*` where the text varies, or quote it if it is meant literally",
        );
    }
    if let Some(c) = bare.chars().find(|c| "?[]!".contains(*c)) {
        // `!` alone and inside words is harmless, a bracket or `?` looks like a wildcard.
        if c != '!' {
            say(
                format!("`{c}` is no wildcard in `{text}`"),
                "only `*`, `**` and `{a,b}` are; quote it if it is meant literally",
            );
        }
    }
}

fn double_star(word: &RawWord, problems: &mut Vec<Problem>) {
    let doubled = word.chars.windows(2).any(|pair| pair.iter().all(|c| *c == Char { c: '*', literal: false }));
    if doubled {
        let whole = word.plain().as_deref() == Some("**");
        problems.push(problem(
            word,
            if whole { "`**` stands before the last word".to_owned() } else { format!("`**` inside the word `{}`", word.text()) },
            "`**` is the last word of a pattern and stands for any further arguments; `*` stands for any characters of one argument",
        ));
    }
}

/// A word's alternatives, sorted, braces expanded.
fn alternatives(word: &RawWord, problems: &mut Vec<Problem>) -> Vec<Glob> {
    let mut variants: Vec<Vec<Char>> = vec![Vec::new()];
    let mut chars = word.chars.iter().copied();
    let bare = |c: Char, what: char| c.c == what && !c.literal;
    while let Some(c) = chars.next() {
        if bare(c, '}') {
            problems.push(problem(word, "a `}` without `{`", "quote it if it is meant literally"));
            break;
        }
        if !bare(c, '{') {
            variants.iter_mut().for_each(|v| v.push(c));
            continue;
        }
        let mut options: Vec<Vec<Char>> = vec![Vec::new()];
        let mut closed = false;
        for c in chars.by_ref() {
            if bare(c, '}') {
                closed = true;
                break;
            }
            if bare(c, '{') {
                problems.push(problem(word, "braces inside braces", "write all alternatives in one pair: `{a,b,c}`"));
                return Vec::new();
            }
            if bare(c, ',') {
                options.push(Vec::new());
            } else if let Some(last) = options.last_mut() {
                last.push(c);
            }
        }
        if !closed {
            problems.push(problem(
                word,
                "a `{` without `}`",
                "write alternatives as `{a,b}`; quote it if it is meant literally",
            ));
            break;
        }
        if options.len() < 2 || options.iter().any(Vec::is_empty) {
            problems.push(problem(
                word,
                format!("`{}` does not list two or more alternatives", word.text()),
                "write `{a,b}`, without empty alternatives; for something optional write two rules",
            ));
            break;
        }
        variants = variants
            .iter()
            .flat_map(|head| options.iter().map(move |tail| head.iter().chain(tail).copied().collect()))
            .collect();
        if variants.len() > MAX_ALTERNATIVES {
            problems.push(problem(
                word,
                format!("more than {MAX_ALTERNATIVES} alternatives in one word"),
                "split the rule",
            ));
            return Vec::new();
        }
    }
    let mut globs: Vec<Glob> = variants
        .into_iter()
        .map(|chars| {
            Glob::new(chars.into_iter().map(|c| if bare(c, '*') { Piece::Any } else { Piece::Text(c.c.to_string()) }))
        })
        .collect();
    globs.sort();
    globs.dedup();
    globs
}

/// Reads one word of a `with`, `only` or `unless` list; braces make several items.
pub(super) fn parse_items(word: &RawWord, only: bool) -> Result<Vec<Item>, Vec<Problem>> {
    let mut problems = Vec::new();
    foreign(word, &mut problems);
    double_star(word, &mut problems);
    let globs = alternatives(word, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut items = Vec::new();
    for glob in globs {
        match item(glob, word, only) {
            Ok(item) => items.push(item),
            Err(p) => problems.push(p),
        }
    }
    if problems.is_empty() { Ok(items) } else { Err(problems) }
}

fn item(glob: Glob, word: &RawWord, only: bool) -> Result<Item, Problem> {
    if glob.is_any() || glob.as_literal() == Some("") {
        return Err(problem(word, "this item matches any argument, or none", "name an option or an argument"));
    }
    if let Some(text) = glob.as_literal().filter(|text| !text.contains('=')) {
        if text == "--" {
            return Err(problem(word, "`--` ends the options and is none itself", "name an option or an argument"));
        }
        if let Some(name) = text.strip_prefix("--") {
            return Ok(Item::Long(name.to_owned()));
        }
        if let Some(letters) = text.strip_prefix('-').filter(|l| !l.is_empty()) {
            let mut chars = letters.chars();
            return Ok(match (chars.next(), chars.next()) {
                (Some(letter), None) => Item::Short(letter),
                _ => Item::Dashed(letters.to_owned()),
            });
        }
    }
    if only {
        return Err(problem(
            word,
            format!("`{}` is no option", word.text()),
            "`only` lists options (`-x`, `--name`); arguments are limited by the pattern's words",
        ));
    }
    if !glob.wildcards_only_at_ends() {
        return Err(problem(
            word,
            format!("a wildcard inside `{}`", word.text()),
            "here `*` may stand at the start and at the end only: an argument is looked for anywhere on the line, and a `*` inside could reach into the next one",
        ));
    }
    Ok(Item::Argument(glob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_print_as_they_mean() {
        for (text, want) in [
            ("git status **", "git status **"),
            ("git  {log,diff} *", "git {diff,log} *"),
            ("echo 'a b' \\*", "echo a\\ b \\*"),
            ("cat /var/log/*", "cat /var/log/*"),
            ("x {-a,-b}c", "x {-ac,-bc}"),
            ("rm -rf /", "rm -rf /"),
            ("find / -name x", "find / -name x"),
        ] {
            assert_eq!(parse_command(text).unwrap().to_string(), want);
        }
    }

    #[test]
    fn foreign_notations_say_what_to_write() {
        for bad in [
            "",
            "cat <file>",
            "ls [flags]",
            "ls ...",
            "a | b",
            "a && b",
            "a; b",
            "cat > x",
            "echo $HOME",
            "echo `x`",
            "ls a?",
            "ls [ab]",
            "a ** b",
            "a b**",
            "/bin/ls",
            "-x",
            "X=1 ls",
            "sudo ls",
            "ls # x",
            "ls ← x",
            "git status / git log",
            "{a} b",
            "{a,} b",
            "{a,b",
            "a}",
            "{a,{b,c}}",
            "gіt status",
            "ls 'a",
        ] {
            let problems = parse_command(bad).expect_err(bad);
            assert!(problems.iter().all(|p| !p.help.is_empty()), "{bad}");
        }
    }

    #[test]
    fn items_are_told_apart() {
        let items = |text: &str| {
            split(text)
                .unwrap()
                .iter()
                .map(|w| parse_items(w, false))
                .collect::<Result<Vec<_>, _>>()
                .map(|v| v.concat())
        };
        assert_eq!(
            items("--force -f -rf -5 --output=/etc/* /etc +* of=/dev/*").unwrap(),
            [
                Item::Long("force".into()),
                Item::Short('f'),
                Item::Dashed("rf".into()),
                Item::Short('5'),
                Item::Argument(Glob::new([Piece::Text("--output=/etc/".into()), Piece::Any])),
                Item::Argument(Glob::literal("/etc")),
                Item::Argument(Glob::new([Piece::Text("+".into()), Piece::Any])),
                Item::Argument(Glob::new([Piece::Text("of=/dev/".into()), Piece::Any])),
            ]
        );
        for bad in ["*", "''", "--", "a*b", "$X", "**"] {
            assert!(items(bad).is_err(), "{bad}");
        }
        assert!(parse_items(&split("/etc").unwrap()[0], true).is_err());
    }
}
