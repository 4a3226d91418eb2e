//! What changed between two program tables.

use super::table::{Entry, Program, ProgramTable};

/// One difference between two tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableChange {
    /// The program, with its sub-command if it is about one.
    pub program: String,
    /// What was added or taken away, as the table writes it.
    pub what: String,
    /// Whether the new table has it.
    pub added: bool,
    /// Whether policies may permit more than before by it.
    pub permits_more: bool,
}

/// Every difference, in order of program.
pub fn changes(old: &ProgramTable<'_>, new: &ProgramTable<'_>) -> Vec<TableChange> {
    let mut out = Vec::new();
    let mut names: std::collections::BTreeSet<String> = old.names().map(str::to_owned).collect();
    names.extend(new.names().map(str::to_owned));
    for name in &names {
        let (before, after) = (facts(old.program(name)), facts(new.program(name)));
        let mut tell = |facts: &[Fact], others: &[Fact], added: bool| {
            for fact in facts.iter().filter(|fact| !others.contains(fact)) {
                let permits_more = if added { fact.loosens } else { fact.restricts };
                let program = format!("{name}{}{}", if fact.sub.is_empty() { "" } else { " " }, fact.sub);
                out.push(TableChange { program, what: fact.text.clone(), added, permits_more });
            }
        };
        tell(&before, &after, false);
        tell(&after, &before, true);
    }
    out.sort();
    out.dedup();
    out
}

/// One statement of a table.
#[derive(PartialEq, Eq)]
struct Fact {
    sub: String,
    text: String,
    /// With it policies permit more than without.
    loosens: bool,
    /// Without it policies permit more than with it.
    restricts: bool,
}

fn facts(program: Option<&Program<'_>>) -> Vec<Fact> {
    let Some(program) = program else { return Vec::new() };
    let mut out = Vec::new();
    let mut add = |sub: &[&str], text: String, loosens: bool, restricts: bool| {
        out.push(Fact { sub: sub.join(" "), text, loosens, restricts });
    };
    for (on, text) in [
        (program.dashed, "dashed"),
        (program.interactive, "interactive"),
        (program.shell, "shell"),
        (program.interpreter, "interpreter"),
    ] {
        if on {
            // How options are spelled, and what is a command: either way something may get free.
            add(&[], text.to_owned(), true, true);
        }
    }
    if program.stdin {
        add(&[], "stdin".to_owned(), false, true);
    }
    if program.abbreviates {
        add(&[], "abbreviates".to_owned(), false, true);
    }
    // The list restricts, and each of its names loosens.
    if !program.known.is_empty() {
        add(&[], "known …".to_owned(), false, true);
    }
    for name in &program.known {
        add(&[], format!("known {name}"), true, false);
    }
    for (path, reason) in &program.hazardous {
        add(&[], format!("hazardous {} : {reason}", path.join("/")), false, true);
    }
    for (name, aliases) in &program.sub_aliases {
        add(&[], format!("subalias {name} = {}", aliases.join(" ")), true, true);
    }
    for name in &program.env {
        add(&[], format!("env {name}"), false, false);
    }
    for escape in &program.escapes {
        add(&[], format!("escape : {}", escape.how), false, true);
    }
    let entries = std::iter::once((Vec::new(), &program.entry)).chain(program.subs.iter().map(|(p, e)| (p.clone(), e)));
    for (path, entry) in entries {
        for (text, loosens, restricts) in entry_facts(entry) {
            add(&path, text, loosens, restricts);
        }
    }
    out
}

/// The statements of an entry, each with the directions of [`Fact`].
fn entry_facts(entry: &Entry<'_>) -> Vec<(String, bool, bool)> {
    let mut out = Vec::new();
    for global in &entry.globals {
        let mut text = format!("global {}", global.option);
        for (on, word) in
            [(global.takes_value, " VALUE"), (global.harmless, " harmless"), (global.anywhere, " anywhere")]
        {
            if on {
                text.push_str(word);
            }
        }
        out.push((text, global.harmless || global.anywhere, true));
    }
    for (keyword, options) in [
        ("flag", &entry.flags),
        ("value", &entry.values),
        ("optional", &entry.optional),
        ("tells", &entry.tells),
        ("shellopt", &entry.shell_options),
        ("scriptopt", &entry.script_options),
    ] {
        // Where an inner command begins depends on these.
        out.extend(options.iter().map(|option| (format!("{keyword} {option}"), true, true)));
    }
    for names in &entry.aliases {
        out.push((format!("alias {}", names.join(" ")), true, true));
    }
    for (option, others) in &entry.implies {
        out.push((format!("implies {option} = {}", others.join(" ")), false, true));
    }
    for (options, reason) in &entry.hazards {
        out.extend(options.iter().map(|option| (format!("hazard {option} : {reason}"), false, true)));
    }
    for (options, ends) in &entry.exec {
        out.push((format!("exec {} until {}", options.join(" "), ends.join(" ")), true, true));
    }
    if let Some(operand) = entry.output {
        out.push((format!("output operands={operand}"), false, true));
    }
    if entry.bundle {
        out.push(("bundle".into(), false, true));
    }
    if entry.elsewhere {
        out.push(("elsewhere".into(), false, true));
    }
    if let Some(wrapper) = entry.wrapper {
        out.push((format!("{wrapper:?}"), true, true));
    }
    if let Some(operands) = entry.shell_words {
        out.push((format!("shellwords operands={operands}"), true, true));
    }
    if let Some(language) = entry.script {
        out.push((format!("script {language}"), false, true));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_of_a_change_is_told() {
        let old = ProgramTable::new("program x\n  hazard -o : writes\n  global -C DIR\nprogram y\n  alias -a -b\n");
        let new = ProgramTable::new("program x\n  hazard -p : runs\n  global -C DIR harmless\n");
        let told: Vec<(String, bool, bool)> = changes(&old, &new)
            .into_iter()
            .map(|c| (format!("{}: {}", c.program, c.what), c.added, c.permits_more))
            .collect();
        let want = [
            ("x: global -C VALUE", false, true),
            ("x: global -C VALUE harmless", true, true),
            ("x: hazard -o : writes", false, true),
            ("x: hazard -p : runs", true, false),
            ("y: alias -a -b", false, true),
        ];
        assert_eq!(told, want.map(|(text, added, more)| (text.to_owned(), added, more)));
        assert!(changes(&new, &new).is_empty());
    }
}
