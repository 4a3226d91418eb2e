//! Files that are sealed as a whole, and stores of secrets, by their first bytes.

use super::rules::Rules;
use super::{Material, Sign};

const SEALED: [&[u8]; 9] = [
    b"$ANSIBLE_VAULT;",
    b"age-encryption.org/v1\n",
    b"-----BEGIN AGE ENCRYPTED FILE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"Salted__",
    b"U2FsdGVkX1",
    b"\0GITCRYPT\0",
    b"# Encrypted rclone configuration File",
    b"RCLONE_ENCRYPT_V0:",
];

/// The sign of a file that is encrypted as a whole, whatever its format would be.
pub(super) fn sealed(bytes: &[u8]) -> Option<Sign> {
    let bytes = bytes.trim_ascii_start();
    SEALED.iter().any(|magic| bytes.starts_with(magic)).then_some(Sign::Encrypted)
}

const STORES: [&[u8]; 6] = [
    b"GnomeKeyring\n\r\0\n",
    b"KWALLET\n\r\0\r\n",
    b"kych",
    // KeePass, both generations.
    &[0x03, 0xd9, 0xa2, 0x9a, 0x67, 0xfb, 0x4b, 0xb5],
    &[0x03, 0xd9, 0xa2, 0x9a, 0x65, 0xfb, 0x4b, 0xb5],
    // libsecret's own file.
    b"GnomeKeyring\n\r\0\n\x01",
];

/// The sign of a store by its first bytes.
pub(super) fn magic(bytes: &[u8]) -> Option<Sign> {
    STORES.iter().any(|magic| bytes.starts_with(magic)).then_some(Sign::Encrypted)
}

/// A store: encrypted by its magic, open if it says so, otherwise as the table says.
pub(super) fn read(bytes: &[u8], rules: &Rules) -> Vec<Material> {
    let one = |sign| vec![Material::new(rules.kind, sign)];
    if let Some(sign) = magic(bytes) {
        return one(sign);
    }
    let marked = rules.marks.iter().find(|(mark, _)| memchr::memmem::find(bytes, mark.as_bytes()).is_some());
    if let Some((_, sign)) = marked {
        return one(sign.clone());
    }
    if openpgp_message(bytes) {
        return one(Sign::Encrypted);
    }
    one(rules.holds.clone().unwrap_or_else(|| Sign::unreadable("it is no store that polctl knows")))
}

/// Whether a file begins with a packet that carries a session key.
fn openpgp_message(bytes: &[u8]) -> bool {
    let tag = bytes.first().map(|head| if head & 0xc0 == 0xc0 { head & 0x3f } else { (head >> 2) & 0x0f });
    bytes.first().is_some_and(|head| head & 0x80 != 0) && matches!(tag, Some(1 | 3))
}
