//! File names in a payload: which are allowed, and when two are the same file.
//!
//! A name that leaves the policy directory, or two names that one file system keeps apart
//! and another does not, would let a signature cover other bytes than those that are used.

use unicode_normalization::UnicodeNormalization as _;

use super::error::NameError;

/// Longest file name, in bytes, directories included.
pub const MAX_NAME_BYTES: usize = 1024;
/// Deepest nesting of directories in a file name.
pub const MAX_NAME_DEPTH: usize = 16;

/// Checks one file name: relative, of plain segments, in NFC, without characters that
/// cannot be seen.
///
/// # Errors
///
/// [`NameError`] says what is wrong with it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let name_of = || super::error::shown(name);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.split('/').count() > MAX_NAME_DEPTH {
        return Err(NameError::Length { name: name_of() });
    }
    if name.starts_with('/') || has_drive(name) {
        return Err(NameError::Absolute { name: name_of() });
    }
    if name.split(['/', '\\']).any(|segment| segment == "..") {
        return Err(NameError::Escapes { name: name_of() });
    }
    if name.chars().any(is_refused) {
        return Err(NameError::Characters { name: name_of() });
    }
    if name.split('/').any(|segment| segment.is_empty() || segment == "." || segment.ends_with(['.', ' '])) {
        return Err(NameError::Segment { name: name_of() });
    }
    if !unicode_normalization::is_nfc(name) {
        return Err(NameError::NotNfc { name: name_of() });
    }
    Ok(())
}

/// `C:` at the start is a place of its own on some systems.
fn has_drive(name: &str) -> bool {
    matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Characters that no policy file name needs: separators of other systems, and what cannot
/// be seen or changes what is seen around it (UAX 9).
const fn is_refused(c: char) -> bool {
    matches!(c,
        '\\' | ':' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffd}' | '\u{e0000}'..='\u{e007f}')
}

/// What two names have in common that a file system which ignores case, or normalises,
/// takes for one.
pub(super) fn fold(name: &str) -> String {
    // Upper case first: it unites what lower case alone keeps apart (ß and ẞ, ſ and s).
    let upper: String = name.nfkd().collect::<String>().to_uppercase();
    upper.to_lowercase().nfkc().collect()
}

/// Whether `name` is one that `polctl.yaml` takes for a policy set.
pub(super) fn is_set_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_relative() {
        for good in ["a", "a/b.md", "capabilities/desktop.yaml", "...a", "é.md", ".hidden"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for (bad, code) in [
            ("", "file-name-length"),
            ("/etc/passwd", "file-name-absolute"),
            ("C:/x", "file-name-absolute"),
            ("../x", "file-name-escapes"),
            ("a/../../x", "file-name-escapes"),
            ("a\\..\\x", "file-name-escapes"),
            ("a\\b", "file-name-characters"),
            ("a\u{202e}b", "file-name-characters"),
            ("a\nb", "file-name-characters"),
            ("a//b", "file-name-segment"),
            ("./a", "file-name-segment"),
            ("a/", "file-name-segment"),
            ("a./b", "file-name-segment"),
            ("e\u{301}.md", "file-name-not-nfc"),
        ] {
            let error = crate::sign::SignError::from(check_name(bad).unwrap_err());
            assert_eq!(error.code_name(), code, "{bad}");
        }
        assert!(check_name(&"a/".repeat(17)).is_err());
    }

    #[test]
    fn names_that_some_file_system_unites_fold_alike() {
        for (a, b) in [("SUDO.md", "sudo.MD"), ("é", "e\u{301}"), ("straße", "STRASSE"), ("ﬁ", "fi"), ("K", "k")] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("a"), fold("b"));
    }
}
