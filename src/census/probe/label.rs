//! Names for people: profiles, hosts, variables, key paths. Whatever might be secret is left out.

/// Longest component that is shown.
const LONGEST: usize = 64;

/// A key path as a label. Components that are not plainly names are left out.
pub(super) fn of(path: &[String]) -> Option<String> {
    let shown: Vec<String> = path.iter().filter_map(|part| name(part)).collect();
    (!shown.is_empty()).then(|| shown.join("/"))
}

/// A text as a label, if it is plainly a name. Of a URL, only the host.
pub(super) fn name(text: &str) -> Option<String> {
    let text = host_of(text.trim());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:+ $".contains(c);
    let fits = !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain);
    (fits && !looks_random(text)).then(|| text.to_owned())
}

/// The host of a URL or of `user@host`; other text as it is.
pub(super) fn host_of(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest).trim_start_matches('/');
    let text = text.split(['/', '?', '#']).next().unwrap_or("");
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// Whether some stretch of letters and digits is too long and too mixed for a name.
pub(super) fn looks_random(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        let upper = run.bytes().filter(u8::is_ascii_uppercase).count();
        let lower = run.bytes().filter(u8::is_ascii_lowercase).count();
        let mixed = usize::from(digits > 1) + usize::from(upper > 1) + usize::from(lower > 1);
        run.len() >= 32 || (run.len() >= 12 && mixed >= 2 && digits > 0)
    })
}
