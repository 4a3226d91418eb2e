//! CPU time of `polctl retention` on 2,000 migrations, against reading the same files.
//!
//! Fails when a release build takes more than a second, or when twice as many files take more
//! than 2.6 times as long. The ratio to reading is shown, so that machines can be compared.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark that cannot go on fails, and its output is its purpose"
)]

use std::path::Path;

use polctl::retention::load;
use polctl::source::{DirTree, SourceMap};
use rustix::time::{ClockId, clock_gettime};

/// Files of the measurement.
const FILES: usize = 2_000;
/// Most seconds of a release build.
const MOST: f64 = 1.0;

/// Seconds of CPU time that this process has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn least(runs: usize, mut run: impl FnMut()) -> f64 {
    let measured = (0..runs).map(|_| {
        let before = cpu();
        run();
        cpu() - before
    });
    measured.fold(f64::INFINITY, f64::min)
}

/// Migrations as projects have them: some make a table, most change one, some hold rows.
fn project(dir: &Path, files: usize) {
    std::fs::create_dir_all(dir.join("migrations")).unwrap();
    let config = "polctl: v1\nclasses:\n  rows-1y: { period: 1y, prune: expire }\nhealth_floor: [expire]\n";
    std::fs::write(dir.join("retention.yaml"), config).unwrap();
    for at in 0..files {
        std::fs::write(dir.join(format!("migrations/{at:05}_change.sql")), migration(at)).unwrap();
    }
}

fn migration(at: usize) -> String {
    let table = format!("app.table_{}", at - at % 4);
    let body = match at % 4 {
        0 => format!(
            "-- retention: rows-1y\nCREATE TABLE {table} (\n    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n    owner uuid NOT NULL,\n    title varchar(200) NOT NULL DEFAULT '',\n    price numeric(12, 2) CHECK (price >= 0),\n    tags text[] NOT NULL DEFAULT '{{}}',\n    created_at timestamptz NOT NULL DEFAULT now()\n);\nCREATE INDEX table_{at}_owner ON {table} (owner, created_at DESC) WHERE price IS NOT NULL;\n"
        ),
        1 => format!(
            "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS state text NOT NULL DEFAULT 'new', ADD CONSTRAINT c{at} CHECK (state IN ('new', 'done'));\nCOMMENT ON COLUMN {table}.state IS 'where it stands';\n"
        ),
        2 => format!(
            "CREATE OR REPLACE FUNCTION app.touch_{at}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n    NEW.created_at := now();\n    IF NEW.price > 10 THEN\n        NEW.state := 'done';\n    END IF;\n    RETURN NEW;\nEND $$;\nCREATE TRIGGER touch BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION app.touch_{at}();\n"
        ),
        _ => (0..12)
            .map(|row| format!("INSERT INTO {table} (owner, title) VALUES (gen_random_uuid(), 'row {row}; it''s');\n"))
            .collect(),
    };
    let schema = if at == 0 { "CREATE SCHEMA app;\n" } else { "" };
    format!("-- Change {at}: what the ticket asked for.\n{schema}{body}")
}

fn fold(dir: &Path, files: usize) {
    let (mut map, mut findings) = (SourceMap::new(), Vec::new());
    let version = load(&DirTree::new(dir, None), "retention.yaml", &mut map, &mut findings).unwrap();
    let version = version.unwrap_or_else(|| panic!("{findings:?}"));
    assert!(version.problems.is_empty(), "{:?}", version.problems.first());
    assert_eq!(version.tables.len(), files.div_ceil(4));
}

fn read(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir.join("migrations")).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap().len()).sum()
}

fn main() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    project(one.path(), FILES);
    project(two.path(), 2 * FILES);
    let bytes = read(one.path());
    let reading = least(5, || assert_eq!(read(one.path()), bytes));
    let ours = least(5, || fold(one.path(), FILES));
    let twice = least(3, || fold(two.path(), 2 * FILES));
    println!(
        "{FILES} migrations ({} KB): retention {ours:.3} s of CPU (at most {MOST}), reading them {reading:.3} s, ratio {:.1}",
        bytes / 1024,
        ours / reading
    );
    println!("{} migrations: {twice:.3} s, {:.2} times as long (at most 2.6)", 2 * FILES, twice / ours);
    assert!(twice / ours < 2.6, "the time grows faster than the number of files");
    assert!(cfg!(debug_assertions) || ours < MOST, "too slow");
}
