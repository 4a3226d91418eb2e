//! Whether a statement that no grammar took apart may create, rename or drop a table.
//!
//! Judges by words, and says yes where it does not know. Used for what the grammar cannot
//! read, for bodies of routines and `DO` blocks, and for SQL in texts.

use super::scan::{Word, chunks};

/// Statements that never touch which tables there are.
const HARMLESS: &[&str] = &[
    "abort",
    "analyze",
    "begin",
    "checkpoint",
    "close",
    "cluster",
    "copy",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "fetch",
    "grant",
    "insert",
    "listen",
    "load",
    "lock",
    "merge",
    "move",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "reset",
    "revoke",
    "savepoint",
    "security",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
    "values",
    "commit",
    "end",
];

/// What `CREATE` makes that holds no rows.
const NO_ROWS: &[&str] = &[
    "access",
    "aggregate",
    "cast",
    "collation",
    "constraint",
    "conversion",
    "database",
    "default",
    "domain",
    "event",
    "extension",
    "foreign",
    "function",
    "group",
    "index",
    "language",
    "operator",
    "policy",
    "procedure",
    "publication",
    "recursive",
    "role",
    "rule",
    "sequence",
    "server",
    "statistics",
    "subscription",
    "tablespace",
    "text",
    "transform",
    "trigger",
    "trusted",
    "type",
    "unique",
    "user",
    "view",
];

/// The words of one statement outside of quotes.
pub(super) fn plain(words: &[Word]) -> Vec<&str> {
    words
        .iter()
        .filter_map(|word| match word {
            Word::Plain(word) => Some(word.as_str()),
            _ => None,
        })
        .collect()
}

/// Whether a statement of these words may change which tables there are; with `whole` the words
/// are all of it, else it goes on with something unknown.
pub(super) fn statement(words: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let skip = |w: &&&str| !matches!(**w, "or" | "replace" | "global" | "local");
    let object = rest.iter().find(skip).copied().unwrap_or("");
    let has = |word: &str| rest.contains(&word);
    match *first {
        "select" | "with" => has("into"),
        // Comments carry classes.
        "comment" => matches!(rest.get(1), None | Some(&"table" | &"materialized")),
        "set" => has("search_path"),
        "explain" => has("analyze") && (has("create") || has("into")),
        "create" => match object {
            "temp" | "temporary" => false,
            object => !NO_ROWS.contains(&object),
        },
        "alter" => match object {
            "table" | "materialized" => ["rename", "schema", "attach", "detach", "inherit"].into_iter().any(has),
            "schema" => has("rename"),
            "database" | "role" | "user" => has("search_path"),
            _ => false,
        },
        "drop" => matches!(object, "table" | "schema" | "materialized" | "owned" | "type" | "") || has("cascade"),
        first => !HARMLESS.contains(&first),
    }
}

/// The words in the body of a routine or `DO` block that may change which tables there are.
/// `None`: none do.
pub(super) fn body(text: &str) -> Option<String> {
    chunks(text).iter().find_map(|chunk| in_body(text, &chunk.words))
}

/// The words in a body, or in a text in it, by which it makes tables or materialised views.
pub(super) fn creates(text: &str) -> Option<String> {
    chunks(text).iter().find_map(|chunk| {
        let direct = chunk.words.iter().enumerate().find_map(|(at, word)| {
            let made = matches!(word, Word::Plain(w) if w == "create");
            let rest = chunk.words.get(at..).unwrap_or(&[]);
            let next = plain(rest.get(..rest.len().min(4)).unwrap_or(&[]));
            (made && makes_rows(&next)).then(|| shown(&next))
        });
        direct.or_else(|| chunk.words.iter().find_map(|word| in_text(text, word)))
    })
}

/// The first two words, for a message.
fn shown(words: &[&str]) -> String {
    words.get(..words.len().min(2)).unwrap_or(&[]).join(" ").to_uppercase()
}

/// Whether words from `CREATE` on make something that holds rows.
fn makes_rows(words: &[&str]) -> bool {
    let rest = words.get(1..).unwrap_or(&[]);
    match rest.first() {
        Some(&("table" | "materialized")) => true,
        Some(&"unlogged") => rest.get(1) == Some(&"table"),
        _ => false,
    }
}

fn in_text(text: &str, word: &Word) -> Option<String> {
    let Word::Text(range) = word else { return None };
    let sql = super::lower::literal(text.get(range.clone())?)?;
    chunks(&sql).iter().find_map(|chunk| {
        let words = plain(&chunk.words);
        makes_rows(&words).then(|| shown(&words))
    })
}

fn in_body(text: &str, words: &[Word]) -> Option<String> {
    for (at, word) in words.iter().enumerate() {
        let Word::Plain(word) = word else { continue };
        let rest = words.get(at + 1..).unwrap_or(&[]);
        let next = plain(rest.get(..rest.len().min(12)).unwrap_or(&[]));
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        match word.as_str() {
            // `ON COMMIT DROP` of a temporary table.
            "drop" if matches!(before, Some(Word::Plain(w)) if w == "commit") => {}
            "create" | "alter" | "drop" => {
                let mut all = vec![word.as_str()];
                all.extend(next);
                if statement(&all) {
                    return Some(shown(&all));
                }
            }
            "execute" => {
                let trigger = matches!(next.first(), Some(&("function" | "procedure" | "on")));
                let granted =
                    matches!(before, Some(Word::Plain(w)) if matches!(w.as_str(), "grant" | "revoke" | "for"));
                if !trigger && !granted && dynamic(text, rest) {
                    return Some("EXECUTE".to_owned());
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether what `EXECUTE` runs may touch tables: a text that is there and says that it does not
/// is the one thing that is believed.
fn dynamic(text: &str, words: &[Word]) -> bool {
    let formatted = matches!(words.first(), Some(Word::Plain(w)) if w == "format");
    let words = words.get(if formatted { 2 } else { 0 }..).unwrap_or(&[]);
    let Some(Word::Text(range)) = words.first() else { return true };
    let Some(sql) = super::lower::literal(text.get(range.clone()).unwrap_or("")) else { return true };
    let alone = match words.get(1) {
        None => true,
        Some(Word::Plain(w)) => matches!(w.as_str(), "into" | "using" | "loop"),
        Some(Word::Sign(b',' | b')')) => formatted,
        _ => false,
    };
    // What `%s` and `||` put in may be another statement; `%I` and `%L` may not.
    let other = formatted && sql.replace("%%", "").contains("%s");
    !alone || other || may_touch(&sql)
}

/// Whether SQL in a text may change which tables there are.
pub(super) fn may_touch(sql: &str) -> bool {
    chunks(sql).iter().any(|chunk| {
        let words = plain(&chunk.words);
        !chunk.meta.is_empty() || statement(&words) || words.first() == Some(&"do") || words.first() == Some(&"call")
    })
}

/// Whether a text that a function is called with is SQL that changes which tables there are.
pub(super) fn is_definition(sql: &str) -> bool {
    chunks(sql).iter().any(|chunk| {
        let words = plain(&chunk.words);
        matches!(words.first(), Some(&("create" | "alter" | "drop"))) && words.len() > 2 && statement(&words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_judged_by_their_words() {
        for (text, touches) in [
            ("BEGIN CREATE TYPE mood AS ENUM ('a'); EXCEPTION WHEN duplicate_object THEN null; END", false),
            ("BEGIN ALTER TABLE a ADD CONSTRAINT b FOREIGN KEY (c) REFERENCES d(e); END", false),
            ("BEGIN CREATE TABLE a (b int); END", true),
            ("BEGIN CREATE TEMP TABLE a (b int) ON COMMIT DROP; END", false),
            ("BEGIN CREATE UNLOGGED TABLE a (b int); END", true),
            ("BEGIN ALTER TABLE a RENAME TO b; END", true),
            ("BEGIN RAISE NOTICE 'CREATE TABLE'; END", false),
            ("BEGIN EXECUTE 'GRANT SELECT ON a TO b'; END", false),
            ("BEGIN EXECUTE format('GRANT SELECT ON %I TO b', x); END", false),
            ("BEGIN EXECUTE format('GRANT SELECT ON %s TO b', x); END", true),
            ("BEGIN EXECUTE format('CREATE TABLE %I (a int)', x); END", true),
            ("BEGIN EXECUTE 'ANALYZE ' || x; END", true),
            ("BEGIN EXECUTE q; END", true),
            ("BEGIN EXECUTE 'UPDATE a SET b = $1' USING c; END", false),
            ("BEGIN GRANT EXECUTE ON FUNCTION f TO g; END", false),
            ("BEGIN CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f(); END", false),
            ("BEGIN DROP INDEX a CASCADE; END", true),
            ("BEGIN SELECT a INTO b FROM c; NEW.x := 1; RETURN NEW; END", false),
        ] {
            assert_eq!(body(text).is_some(), touches, "{text}: {:?}", body(text));
        }
    }

    #[test]
    fn statements_are_judged_by_their_first_words() {
        for (text, touches) in [
            ("CREATE INDEX a ON b (c)", false),
            ("CREATE OR REPLACE VIEW a AS SELECT", false),
            ("CREATE TABLE a", true),
            ("CREATE LOCAL TEMPORARY TABLE a", false),
            ("DROP VIEW a", false),
            ("DROP VIEW a CASCADE", true),
            ("SELECT a FROM b", false),
            ("SELECT a INTO c FROM b", true),
            ("FROBNICATE a", true),
            ("DO something", true),
            ("INSERT INTO a VALUES (1)", false),
        ] {
            assert_eq!(may_touch(text), touches, "{text}");
        }
    }
}
