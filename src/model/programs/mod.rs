//! What polctl knows about well-known programs (DESIGN 3.4).
//!
//! The knowledge stands in `programs.table`, a plain list that a reviewer can read: options
//! before the sub-command, other names of options and sub-commands, options that execute or
//! write, programs that run other programs, and ways out of restrictions under elevated rights.
//! A change there changes what rules mean; the table is part of `policy_id`.

mod changes;
mod table;

pub use changes::{TableChange, changes};
pub use table::{Entry, Escape, Global, Program, ProgramTable, TableError, Wrapper};

use std::sync::OnceLock;

const TABLE_TEXT: &str = include_str!("../programs.table");

/// A number that differs when the table does (FNV-1a, 64 bit), for noticing by what a bundle was
/// compiled; it keeps nobody from anything.
#[allow(long_running_const_eval, reason = "each byte of the table, once, when polctl is built")]
pub const TABLE_STAMP: u64 = {
    let bytes = TABLE_TEXT.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        #[expect(clippy::indexing_slicing, reason = "below the length")]
        let byte = bytes[at];
        hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
};

/// The table that this polctl was built with.
pub fn program_table() -> &'static ProgramTable<'static> {
    static TABLE: OnceLock<ProgramTable<'static>> = OnceLock::new();
    TABLE.get_or_init(|| ProgramTable::new(TABLE_TEXT))
}

/// What the table says of a program.
pub fn program(name: &str) -> Option<&'static Program<'static>> {
    program_table().program(name)
}

impl<'a> Program<'a> {
    /// What is said of the sub-command at this path; the program itself for an empty one.
    pub fn sub(&self, path: &[&str]) -> Option<&Entry<'a>> {
        if path.is_empty() {
            return Some(&self.entry);
        }
        self.subs.iter().find(|(own, _)| own.as_slice() == path).map(|(_, entry)| entry)
    }

    /// Whether anything of it executes, writes, deletes or sends, so that a rule must name it.
    pub fn has_hazards(&self) -> bool {
        let mut entries = std::iter::once(&self.entry).chain(self.subs.iter().map(|(_, entry)| entry));
        !self.hazardous.is_empty() || !self.known.is_empty() || entries.any(|entry| !entry.hazards.is_empty())
    }

    /// The usual name of a sub-command.
    pub fn canonical_sub<'b>(&self, name: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.sub_aliases.iter().find(|(_, aliases)| aliases.contains(&name)).map_or(name, |(canonical, _)| canonical)
    }

    /// The entries that hold for these words: the program's own, then each sub-command's. And
    /// how many words it takes to name them, options before the sub-commands included.
    pub fn located(&self, words: &[Option<&str>]) -> (Vec<&Entry<'a>>, usize) {
        let mut out = vec![&self.entry];
        let mut path: Vec<&str> = Vec::new();
        let (mut named, mut at) = (0, 0);
        loop {
            if let Some(entry) = self.sub(&path) {
                while let Some((option, glued)) =
                    words.get(at).copied().flatten().and_then(|w| entry.global(w, self.dashed))
                {
                    at += if option.takes_value && !glued { 2 } else { 1 };
                }
            }
            let Some(Some(word)) = words.get(at) else { break };
            path.push(if path.is_empty() { self.canonical_sub(word) } else { word });
            if self.abbreviates && !self.subs.iter().any(|(own, _)| own.starts_with(&path)) {
                // A shortened name: what stands in its block is looked for.
                let long = self.subs.iter().find(|(own, _)| {
                    own.len() >= path.len() && own.iter().zip(&path).all(|(own, word)| own.starts_with(word))
                });
                if let Some((own, _)) = long.filter(|_| !word.is_empty()) {
                    path = own.get(..path.len()).unwrap_or_default().to_vec();
                }
            }
            match self.subs.iter().find(|(own, _)| *own == path) {
                Some((_, entry)) => {
                    out.push(entry);
                    named = at + 1;
                }
                None if self.subs.iter().any(|(own, _)| own.starts_with(&path)) => {}
                None => break,
            }
            at += 1;
        }
        (out, named)
    }

    /// The entries that hold for these words.
    pub fn entries(&self, words: &[Option<&str>]) -> Vec<&Entry<'a>> {
        self.located(words).0
    }
}

impl<'a> Entry<'a> {
    /// The entry for `word` as an option before a sub-command, and whether the value is part of
    /// the word already.
    pub fn global(&self, word: &str, dashed: bool) -> Option<(Global<'a>, bool)> {
        for option in &self.globals {
            if word == option.option || option.option.strip_suffix('*').is_some_and(|head| word.starts_with(head)) {
                return Some((*option, false));
            }
            if let Some(tail) = word.strip_prefix(option.option) {
                let long = option.option.starts_with("--") || dashed;
                if tail.starts_with('=') || (!long && option.takes_value) {
                    return Some((*option, true));
                }
            }
        }
        None
    }
}

/// Whether polctl knows options that may stand before the sub-command of this program.
pub fn has_globals(name: &str) -> bool {
    program(name).is_some_and(|p| !p.entry.globals.is_empty() || p.subs.iter().any(|(_, e)| !e.globals.is_empty()))
}

/// Whether this program's long options have one dash.
pub fn single_dash_long(name: &str) -> bool {
    program(name).is_some_and(|p| p.dashed)
}

/// Whether a program gives a shell by itself, whatever its arguments.
pub fn is_interactive(name: &str) -> bool {
    program(name).is_some_and(|p| p.interactive)
}

/// The escapes of a program under elevated rights.
pub fn escapes(name: &str) -> impl Iterator<Item = &'static Escape<'static>> {
    program(name).into_iter().flat_map(|p| &p.escapes)
}

/// Whether the program may run a command that its words hold.
pub fn carries_commands(name: &str) -> bool {
    program(name)
        .is_some_and(|p| p.shell || std::iter::once(&p.entry).chain(p.subs.iter().map(|(_, e)| e)).any(Entry::carries))
}

impl Entry<'_> {
    /// Whether it lists this option as one of its own, in full.
    pub fn lists(&self, option: &str) -> bool {
        let lists = [&self.flags, &self.values, &self.optional, &self.shell_options, &self.script_options];
        lists.iter().any(|list| list.contains(&option)) || self.globals.iter().any(|g| g.option == option)
    }

    /// Whether words of it are a command in full, so that the entry's program only carries it.
    pub fn carries(&self) -> bool {
        self.wrapper.is_some() || !self.shell_options.is_empty() || self.shell_words.is_some()
    }
}

/// Programs with options before the sub-command, and those options; an option of
/// `docker compose` is one of `docker`.
pub(crate) fn globals_of_programs() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    program_table().names().filter_map(|name| Some((name, program(name)?))).map(|(name, program)| {
        let entries = std::iter::once(&program.entry).chain(program.subs.iter().map(|(_, entry)| entry));
        (name, entries.flat_map(|entry| entry.globals.iter().map(|g| g.option)))
    })
}

/// The single-dash programs, for the analysis.
pub(crate) fn single_dash_programs() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| program_table().names().filter(|name| single_dash_long(name)).collect())
}

/// Programs that may carry a command, for the analysis.
pub(crate) fn carriers() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| program_table().names().filter(|name| carries_commands(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        assert_eq!(program_table().check(), Ok(()));
        assert!(program_table().names().count() >= 80);
    }

    #[test]
    fn global_options_are_found_in_each_spelling() {
        let global = |name: &str, word: &str| program(name).and_then(|p| p.entry.global(word, p.dashed));
        assert!(global("git", "-C").is_some_and(|(g, glued)| g.takes_value && !glued && g.harmless));
        assert!(global("kubectl", "--context=c").is_some_and(|(_, glued)| glued));
        assert!(global("kubectl", "-nfoo").is_some_and(|(g, glued)| glued && g.anywhere));
        assert!(global("git", "--exec-path=/e").is_some_and(|(g, _)| !g.harmless));
        assert!(global("git", "--unknown").is_none());
        assert!(global("terraform", "-chdir=x").is_some());
    }

    #[test]
    fn versions_are_no_other_program() {
        for name in ["python", "python3", "python3.11", "python-3"] {
            assert!(program(name).is_some_and(|p| p.interpreter), "{name}");
        }
        assert!(program("pythonx").is_none());
        assert!(program("3").is_none());
    }
}
