//! `sudoers(5)` → the sudo surface.
//!
//! What the source means, by its manual (<https://www.sudo.ws/docs/man/sudoers.man/>; grammar in
//! `plugins/sudoers/gram.y` and `toke.l` of <https://github.com/sudo-project/sudo>):
//!
//! - Of all entries that match user, machine, run-as user and command the **last** decides. `!` before a command
//!   denies it. What no entry matches is denied.
//! - `NOPASSWD:` lets it run at once; without it a person gives a password, which is the tier that asks.
//!   Tags and the run-as list go on to the commands behind them.
//! - A command without arguments may have any; `""` says none; else the arguments, joined by blanks,
//!   match a pattern in which `*` crosses words and slashes. In the path `*` does not cross `/`.
//!   A path that ends in `/` is every command of that directory.
//! - `sha256:…` before a command demands that digest. Without a run-as list the user is root (or `runas_default`).
//! - `@include`, `@includedir` and the same with `#` read other files in place.
//!
//! [`read`] owns the text, [`flatten`] the order.

mod flatten;
mod read;

use super::{Files, Imported, Options, Problem};

pub(super) fn import(files: &mut Files<'_>, options: &Options) -> Result<Imported, Vec<Problem>> {
    let policy = read::read(files)?;
    Ok(flatten::flatten(&policy, options))
}
