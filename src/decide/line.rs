//! A line as a person types it → a request, for the lines of `match` and `no match`.
//!
//! This version reads simple commands only. What it cannot read it refuses: a line with an
//! operator, a redirect or an expansion has no request here, rather than a guessed one.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::{
    CommandRequest, Config, EgressRequest, Request, Surface, Word, canonical_host, global_option, has_globals,
};
use crate::parse::parse_url;

/// Why a line has no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// An operator or expansion.
    #[error("`{what}` is not supported in a line yet")]
    Unsupported {
        /// The operator.
        what: String,
    },
    /// A quote without its end.
    #[error("a quote or backslash without its end")]
    Unclosed,
    /// Nothing to run.
    #[error("no command")]
    Empty,
    /// Not a request through the proxy.
    #[error("{message}")]
    Egress {
        /// What is wrong.
        message: String,
    },
}

/// Reads a line for a surface.
///
/// # Errors
///
/// [`LineError`] with what stands in the way.
pub fn request_from_line(surface: Surface, line: &str, config: &Config) -> Result<Request, LineError> {
    match surface {
        Surface::Egress => egress(line).map(Request::Egress),
        Surface::Commands | Surface::Sudo => command(surface, line, config).map(Request::Command),
    }
}

/// Reads a line as POSIX quotes it, for what the splitter does not tell: for each word whether
/// the shell would expand it to file names. An operator, expansion or brace list is an error.
fn scan(line: &str) -> Result<Vec<bool>, String> {
    #[derive(PartialEq)]
    enum In {
        Plain,
        Single,
        Double,
    }
    let mut state = In::Plain;
    let mut words = Vec::new();
    let mut in_word = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if state == In::Plain && c.is_whitespace() && !matches!(c, '\n' | '\r') {
            in_word = false;
            continue;
        }
        let starts_word = !in_word;
        if starts_word {
            words.push(false);
            in_word = true;
        }
        match (&state, c) {
            (In::Single, '\'') | (In::Double, '"') => state = In::Plain,
            (In::Single, _) => {}
            (_, '\\') => {
                chars.next();
            }
            (In::Plain, '\'') => state = In::Single,
            (In::Plain, '"') => state = In::Double,
            (_, '$' | '`') => return Err(c.to_string()),
            (In::Plain, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '\n' | '\r') => {
                return Err(c.escape_default().to_string());
            }
            (In::Plain, '#' | '!') if starts_word => return Err(c.to_string()),
            (In::Plain, '*' | '?' | '[') => {
                if let Some(last) = words.last_mut() {
                    *last = true;
                }
            }
            _ => {}
        }
    }
    Ok(words)
}

fn command(surface: Surface, line: &str, config: &Config) -> Result<CommandRequest, LineError> {
    let expands = scan(line).map_err(|what| LineError::Unsupported { what })?;
    let mut words = shlex::split(line).ok_or(LineError::Unclosed)?;
    for (word, expands) in words.iter_mut().zip(expands) {
        if expands {
            // The shell puts file names here: any number of them, and what they are is not known.
            word.push(CommandRequest::HOLE);
        }
    }
    let mut words = words.into_iter().peekable();
    let mut env = BTreeSet::new();
    while let Some(name) = words.peek().and_then(|w| assignment(w)) {
        env.insert(name);
        words.next();
    }
    let mut run_as = "root".to_owned();
    if surface == Surface::Sudo && words.peek().is_some_and(|w| w == "-u") {
        words.next();
        run_as = words.next().ok_or(LineError::Empty)?;
        if words.peek().is_some_and(|w| w == "--") {
            words.next();
        }
    }
    let path = words.next().filter(|w| !w.is_empty()).ok_or(LineError::Empty)?;
    if path.contains(CommandRequest::HOLE) {
        return Err(LineError::Unsupported { what: "a wildcard in the program's name".into() });
    }
    if ["sudo", "doas", "env", "timeout", "nice", "nohup", "xargs", "setsid", "command", "exec", "eval"]
        .contains(&path.as_str())
    {
        return Err(LineError::Unsupported { what: path });
    }
    let program = path.rsplit('/').next().unwrap_or("").to_owned();
    let trusted = path.rsplit_once('/').is_none_or(|(dir, _)| config.trusted_dirs.iter().any(|d| d == dir));
    let Normal { globals, words, harmless } = normalise(&program, words.collect());
    let mut request = CommandRequest::new(surface, &program, words);
    request.trusted = trusted;
    request.harmless = harmless;
    request.globals = globals;
    request.env = env;
    request.run_as = run_as;
    Ok(request)
}

/// The name of an environment assignment.
fn assignment(word: &str) -> Option<String> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let good = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    good.then(|| name.to_owned())
}

/// The words behind a program, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Normal {
    globals: Vec<String>,
    words: Vec<Word>,
    harmless: bool,
}

/// Takes known options before the sub-command away, so that every spelling reaches the rules.
/// An unknown one leaves open where the sub-command stands.
fn normalise(program: &str, words: Vec<String>) -> Normal {
    let mut normal = Normal { globals: Vec::new(), words: Vec::new(), harmless: true };
    let mut rest = strip(program, words, &mut normal);
    if let Some(first) = rest.first().cloned() {
        let nested = format!("{program} {first}");
        if has_globals(&nested) && normal.words.is_empty() {
            normal.words.push(Word::Known(first));
            rest.remove(0);
            rest = strip(&nested, rest, &mut normal);
        }
    }
    normal.words.extend(rest.into_iter().map(Word::Known));
    normal
}

fn strip(program: &str, mut words: Vec<String>, normal: &mut Normal) -> Vec<String> {
    if !has_globals(program) {
        return words;
    }
    loop {
        let Some(word) = words.first().filter(|w| w.starts_with('-') && w.len() > 1).cloned() else { return words };
        if let Some((option, glued)) = global_option(program, &word) {
            let taken = if option.takes_value && !glued { 2 } else { 1 };
            let taken: Vec<String> = words.drain(..taken.min(words.len())).collect();
            // What `..` leads to is not known here, so such a directory is not overlooked.
            normal.harmless &= option.harmless && !taken.iter().any(|w| w.contains(".."));
            normal.globals.extend(taken);
            continue;
        }
        if words.iter().any(|w| !w.starts_with('-')) {
            // It may take the next word as its value or not: the sub-command is not certain.
            normal.harmless = false;
            normal.words.push(Word::Open);
        }
        return words;
    }
}

fn egress(line: &str) -> Result<EgressRequest, LineError> {
    let fail = |message: String| LineError::Egress { message };
    let mut words = line.split_whitespace();
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        return Err(fail("a request is a method and a URL: `GET https://api.example.com/`".into()));
    };
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return Err(fail(format!("`{method}` is no method; write it in upper case")));
    }
    let mut secrets = BTreeSet::new();
    for word in words {
        match word.strip_prefix("secret=") {
            Some(secret) => secrets.insert(secret.to_owned()),
            None => return Err(fail(format!("`{word}` behind the URL; only `secret=…` may stand there"))),
        };
    }
    // The query is no part of what rules are matched against.
    let url = url.split(['?', '#']).next().unwrap_or("");
    let parts = parse_url(url).map_err(|(message, _)| fail(message))?;
    let address: Option<IpAddr> = parts.host.parse().ok();
    let host = match address {
        Some(address) => address.to_string(),
        None => canonical_host(parts.host).map_err(|why| fail(format!("the host `{}` {why}", parts.host)))?,
    };
    let mut segments: Vec<String> = parts.path.split('/').skip(1).map(str::to_owned).collect();
    if segments == [""] {
        segments.clear();
    }
    if let Some(bad) =
        segments.iter().find(|s| *s == "." || *s == ".." || s.contains(['%', '\\']) || s.contains(char::is_control))
    {
        return Err(fail(format!("the path segment `{bad}` is not in canonical form")));
    }
    Ok(EgressRequest {
        agent: "agent".into(),
        machine: "host".into(),
        method: method.into(),
        scheme: parts.scheme,
        host,
        address,
        peer: None,
        port: parts.port.unwrap_or_else(|| parts.scheme.default_port()),
        segments,
        secrets,
        external: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Word::{Known, Open};

    fn words(line: &str) -> Normal {
        let argv = shlex::split(line).unwrap();
        normalise(&argv[0], argv[1..].to_vec())
    }

    #[test]
    fn global_options_are_taken_away() {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (line, globals, want, harmless) in [
            ("git -C /r push -f", "-C /r", "push -f", true),
            ("git -C ../r push -f", "-C ../r", "push -f", false),
            ("git -c core.pager=x status", "-c core.pager=x", "status", false),
            ("kubectl --context c -nfoo delete pod x", "--context c -nfoo", "delete pod x", true),
            ("aws --profile p s3 rb x", "--profile p", "s3 rb x", true),
            ("docker compose -p x down -v", "-p x", "compose down -v", true),
            ("git --version", "", "--version", true),
            ("ls -C /r", "", "-C /r", true),
        ] {
            let want = Normal { globals: list(globals), words: list(want).into_iter().map(Known).collect(), harmless };
            assert_eq!(words(line), want, "{line}");
        }
        let unknown = words("git --frob push");
        assert_eq!((unknown.words.first(), unknown.harmless), (Some(&Open), false));
    }

    #[test]
    fn operators_are_seen_and_quotes_respected() {
        for (line, want) in [
            ("a b", Ok(vec![false, false])),
            ("a | b", Err("|")),
            ("a 'b|c' \"d;e\" f\\&", Ok(vec![false; 4])),
            ("a \"$x\"", Err("$")),
            ("a '$x'", Ok(vec![false, false])),
            ("a\nb", Err("\\n")),
            ("a #b", Err("#")),
            ("a b#c", Ok(vec![false, false])),
            ("{ a; }", Err("{")),
            ("cat ~/.ss{h,}/id", Err("{")),
            ("cat ~/.ss?/id /* '*'", Ok(vec![false, true, true, false])),
        ] {
            assert_eq!(scan(line), want.map_err(str::to_owned), "{line}");
        }
    }
}
