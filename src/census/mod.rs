//! The census: which credentials lie on a host, and what the inventory says of each.
//!
//! ```text
//! probe (known places, formats) ┐
//! accounts, access, root        ├ scan → judge (with the inventory) → verdicts
//! walk (by content)             ┘
//! ```
//!
//! It reads a host and changes nothing on it. It opens regular files and directories only, never
//! leaves the root that it was given, and bounds what it reads. It hands on no value of a secret
//! and no digest of one: where a credential lies, what it is, who can read it, and for keys the
//! fingerprint of the public half. Time, environment and printing belong to `cli`.

mod access;
mod accounts;
mod adopt;
mod judge;
mod location;
mod moved;
mod places;
pub mod probe;
mod root;
mod scan;
mod walk;

pub use access::{Access, Acl, Identity};
pub use accounts::{Account, Accounts};
pub use adopt::{AdoptError, adopt};
pub use judge::{Rules, Verdict, Verdicts, judge, unknown_kinds};
pub use location::shown;
pub use root::Root;
pub use scan::{Found, Host, MAX_LISTED, Note, Options, Presence, Scan, Told, View, WALKED};
pub use walk::{MAX_DEPTH, MAX_ENTRIES, Progress};
