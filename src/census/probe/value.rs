//! What a value is: nothing, a secret, or a pointer to one.

use super::jwt;

/// What a value holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing.
    Empty,
    /// A pointer to something that holds it, in words.
    Reference(&'static str),
    /// A secret that needs another one first.
    Encrypted,
    /// A token that was good until then (Unix seconds).
    Ended(i64),
    /// The secret itself, as far as can be told.
    Literal,
}

/// Judges a value. Whatever is not known to be something else is a secret.
pub(super) fn held(value: &str, now: i64) -> Held {
    let value = bare(value);
    if value.is_empty() {
        return Held::Empty;
    }
    if let Some(to) = reference(value) {
        return Held::Reference(to);
    }
    if encrypted(value) {
        return Held::Encrypted;
    }
    match jwt::expiry(value.as_bytes()) {
        Some(Some(at)) if at <= now => Held::Ended(at),
        _ => Held::Literal,
    }
}

/// The value without quotes and the scheme of an `Authorization` header.
fn bare(value: &str) -> &str {
    let mut value = value.trim();
    for quote in ['"', '\''] {
        value = value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote)).unwrap_or(value);
    }
    if value.get(..14).is_some_and(|head| head.eq_ignore_ascii_case("authorization:")) {
        value = value.get(14..).unwrap_or("").trim();
    }
    for scheme in ["bearer ", "basic ", "token ", "bot "] {
        if value.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)) {
            value = value.get(scheme.len()..).unwrap_or("").trim();
        }
    }
    value
}

const SCHEMES: [(&str, &str); 11] = [
    ("op://", "1Password"),
    ("vault:", "Vault"),
    ("vault://", "Vault"),
    ("bws:", "Bitwarden"),
    ("keyring:", "the keyring"),
    ("keychain:", "the keychain"),
    ("env:", "an environment variable"),
    ("file:", "another file"),
    ("ssm:", "a parameter store"),
    ("arn:aws:secretsmanager:", "a secret store"),
    ("gcpsm://", "a secret store"),
];

/// What a value points to, if all of it is a pointer. A default inside (`${A:-x}`) is a value.
fn reference(value: &str) -> Option<&'static str> {
    const VARIABLE: &str = "an environment variable";
    if value.starts_with("${{") && value.ends_with("}}") && value.matches("{{").count() == 1 {
        return Some("a template's value");
    }
    if value.starts_with("$__") && value.ends_with('}') && value.matches('{').count() == 1 {
        return Some("another file or a variable");
    }
    let name = |text: &str| {
        !text.is_empty()
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:".contains(c))
    };
    let asked = value.strip_prefix("${input:").and_then(|rest| rest.strip_suffix('}'));
    if asked.is_some_and(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))) {
        return Some("a question of the editor");
    }
    if let Some(inner) = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        return name(inner.trim_end_matches(['-', '?', ':'])).then_some(VARIABLE);
    }
    let variable = |text: &str| {
        // Passwords may begin with a dollar; names of variables have no small letters.
        !text.bytes().any(|b| b.is_ascii_lowercase()) && name(text)
    };
    if value.strip_prefix('$').is_some_and(variable) {
        return Some(VARIABLE);
    }
    if value.strip_prefix('%').and_then(|v| v.strip_suffix('%')).is_some_and(name) {
        return Some(VARIABLE);
    }
    let command = value.starts_with("$(") && value.ends_with(')');
    if command || (value.len() > 2 && value.starts_with('`') && value.ends_with('`')) {
        return Some("a command");
    }
    if value.starts_with("{{") && value.ends_with("}}") && value.matches("{{").count() == 1 {
        return Some("a template's value");
    }
    SCHEMES.iter().find(|(scheme, _)| value.starts_with(scheme)).map(|(_, to)| *to)
}

/// Whether a value says itself that it is encrypted.
fn encrypted(value: &str) -> bool {
    let sops = value.starts_with("ENC[") && value.ends_with(']');
    let maven = value.strip_prefix('{').and_then(|v| v.strip_suffix('}'));
    let base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    sops || value.starts_with("$ANSIBLE_VAULT;")
        || maven.is_some_and(|inner| inner.len() >= 8 && inner.chars().all(base64))
}

/// The secret part of a URL with user information: the password, or a user name that is a token.
pub(super) fn userinfo(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    match user.split_once(':') {
        Some((name, "" | "x-oauth-basic")) => Some(name).filter(|name| token(name)),
        Some((_, password)) => Some(password),
        None => Some(user).filter(|name| token(name)),
    }
}

fn token(name: &str) -> bool {
    name.len() >= 20 || super::label::looks_random(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wholly_a_pointer_is_one() {
        let variable = Held::Reference("an environment variable");
        for text in ["${NAME}", "$NAME", "%NAME%", "Bearer ${NAME}", "\"${NAME}\"", "${env.NAME}", "${NAME:-}"] {
            assert_eq!(held(text, 0), variable, "{text}");
        }
        for text in
            ["$(op read x)", "op://a/b/c", "${{ secrets.A }}", "{{ env_var('A') }}", "${input:a-b}", "$__file{/a}"]
        {
            assert!(matches!(held(text, 0), Held::Reference(_)), "{text}");
        }
        // A default, a mixture, and passwords that only begin like a variable.
        for text in ["${NAME:-hunter2}", "a${NAME}", "${NAME}a", "$ecretWord", "%", "{{", "{{a}}b{{c}}", "$(a", "${}"] {
            assert_eq!(held(text, 0), Held::Literal, "{text}");
        }
        for text in ["", "  ", "\"\"", "''"] {
            assert_eq!(held(text, 0), Held::Empty, "{text:?}");
        }
        assert_eq!(held("ENC[AES256_GCM,data:a]", 0), Held::Encrypted);
    }

    #[test]
    fn user_information_is_a_password_or_a_token() {
        assert_eq!(userinfo("https://u:p@h/x"), Some("p"));
        assert_eq!(userinfo("https://u:p@q@h/x"), Some("p@q"));
        for nothing in ["https://h/x", "ssh://git@h/x", "https://h/a@b", "u:p@h"] {
            assert_eq!(userinfo(nothing), None, "{nothing}");
        }
    }
}
