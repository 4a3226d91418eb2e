//! The tables that polctl folds out of migrations are those that a `PostgreSQL` server has when
//! the same files are applied, with the same comments.
//!
//! The server is its own: a cluster in a temporary directory, on a socket there and nowhere
//! else, run by a user without rights. `scripts/postgres` finds or fetches its programs.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod retention_common;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use polctl::source::DirTree;
use retention_common::{cases, durable, expected, judge, root, sets, with_comment};

/// Who runs the server where the tests run as root: `nobody`.
const NOBODY: u32 = 65_534;

struct Server {
    dir: tempfile::TempDir,
    bin: PathBuf,
    child: Child,
}

/// Runs a program; as root without any rights.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program).env("HOME", "/nonexistent");
    command
}

fn done(mut command: Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: install util-linux (setpriv)"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    output
}

/// Where the programs are; copied where a user without rights could not reach them.
fn programs(dir: &Path) -> PathBuf {
    let found = done(Command::new(root().join("scripts/postgres")));
    let bin = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let mut reach = unprivileged(&bin.join("postgres"));
    let reaches = reach.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if reaches.is_ok_and(|status| status.success()) {
        return bin;
    }
    let mut copy = Command::new("cp");
    copy.arg("-rL").arg(bin.parent().unwrap().parent().unwrap()).arg(dir.join("programs"));
    done(copy);
    let inside = bin.strip_prefix(bin.parent().unwrap().parent().unwrap()).unwrap().to_owned();
    dir.join("programs").join(inside)
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::Builder::new().prefix("polctl-pg-").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let bin = programs(dir.path());
        let mut init = unprivileged(&bin.join("initdb"));
        init.current_dir(dir.path()).args(["-D", "data", "-U", "polctl", "-A", "trust", "-E", "UTF8"]);
        done({
            init.args(["--locale=C", "--no-sync"]);
            init
        });
        let mut run = unprivileged(&bin.join("postgres"));
        run.current_dir(dir.path()).args(["-D", "data", "-k"]).arg(dir.path());
        run.args([
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            "-c",
            "max_wal_senders=0",
        ]);
        run.args(["-c", "wal_level=minimal", "-c", "autovacuum=off"]);
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let server = Server { dir, bin, child };
        server.wait();
        server
    }

    fn wait(&self) {
        let start = Instant::now();
        while !self.psql("postgres", "SELECT 1;").status.success() {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap();
            assert!(start.elapsed() < Duration::from_mins(1), "the server does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn psql(&self, database: &str, script: &str) -> Output {
        let file = self.dir.path().join("script.sql");
        std::fs::write(&file, script).unwrap();
        let mut psql = unprivileged(&self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "polctl", "-d", database, "-h"]);
        psql.arg(self.dir.path())
            .arg("-f")
            .arg(&file)
            .env("PGCLIENTENCODING", "UTF8")
            .env("PGOPTIONS", "-c client_min_messages=warning");
        psql.output().unwrap()
    }

    /// The durable tables of each database after its files, in one run of psql: `files` are the
    /// texts to apply, each in a session of its own.
    fn apply(&self, databases: &[(String, Vec<String>)]) -> Vec<Vec<String>> {
        let mut script = String::new();
        for (at, (name, files)) in databases.iter().enumerate() {
            script.push_str(&format!("\\c postgres\n{EMPTY}\n"));
            for (number, text) in files.iter().enumerate() {
                let file = self.dir.path().join(format!("{at}-{number}.sql"));
                std::fs::write(&file, text).unwrap();
                script.push_str(&format!("\\c postgres\n\\o /dev/null\n\\i {}\n\\o\n", file.display()));
            }
            script.push_str(&format!("\\c postgres\n\\echo '=== {name}'\n{CATALOGUE}\n"));
        }
        let output = self.psql("postgres", &script);
        let (text, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the server refuses a fixture: {error}\n{text}");
        let answers = text.lines().filter(|line| line.starts_with('['));
        answers.map(|line| tables(&serde_json::from_str(line).unwrap())).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // An immediate shutdown, with all its processes.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.child.wait();
    }
}

/// Takes everything out of the database; a new one each time would take longer.
const EMPTY: &str = "DO $$ DECLARE s name; BEGIN FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' \
    AND nspname <> 'information_schema' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', s); END LOOP; END $$; \
    CREATE SCHEMA public; DROP FOREIGN DATA WRAPPER IF EXISTS w CASCADE;";

/// Tables, partitioned ones and materialised views that stay, with their comments; what belongs
/// to an extension is not the project's.
const CATALOGUE: &str = "SELECT coalesce(jsonb_agg(jsonb_build_array(n.nspname || '.' || c.relname, \
    coalesce(obj_description(c.oid, 'pg_class'), ''))), '[]')::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'm') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e');";

fn tables(json: &serde_json::Value) -> Vec<String> {
    let pairs = json.as_array().unwrap().iter();
    let mut all: Vec<String> =
        pairs.map(|pair| with_comment(pair[0].as_str().unwrap(), pair[1].as_str().unwrap())).collect();
    all.sort();
    all
}

/// What the tools apply, by plain means: up to the mark of the part that undoes.
fn applied(text: &str) -> String {
    let marks = ["-- +goose Down", "-- migrate:down"];
    let end = marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    // Commands of newer clients.
    let lines = text[..end].lines().filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_server_has_the_tables_that_are_folded() {
    let mut databases = Vec::new();
    let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
    for case in cases().into_iter().filter(|case| !case.unknown) {
        let dir = tempfile::tempdir().unwrap();
        case.write(dir.path());
        let version = judge(&DirTree::new(dir.path(), None)).version.unwrap();
        databases.push((case.name.clone(), vec![case.sql.clone()]));
        wanted.push((case.name, durable(&version)));
    }
    for (name, dir) in sets() {
        let expected = expected(&name);
        let judged = judge(&DirTree::new(&dir, None));
        let version = judged.version.unwrap();
        let put_in =
            |text: &str| expected.stands_for.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        for world in &version.loaded.worlds {
            let places =
                version.loaded.config.sources.iter().filter(|s| s.database == world.prefix.trim_end_matches('/'));
            let places: Vec<&str> = places.map(|source| source.path.as_str()).collect();
            let files = judged.map.files().filter(|file| places.iter().any(|place| file.name.starts_with(place)));
            let files: Vec<String> =
                files.filter(|f| f.name.ends_with(".sql")).map(|file| put_in(&applied(&file.text))).collect();
            assert!(!files.is_empty(), "{name}");
            databases.push((name.clone(), files));
            let mut tables: Vec<String> = world
                .durable()
                .values()
                .filter(|(_, relation)| !relation.at_run_time)
                .map(|(_, r)| with_comment(&put_in(&r.full_name()), r.comment.as_ref().map_or("", |(text, _)| text)))
                .chain(expected.hidden.iter().cloned())
                .collect();
            tables.sort();
            wanted.push((name.clone(), tables));
            let at_run_time = world.durable().values().filter(|(_, r)| r.at_run_time).count();
            assert_eq!(at_run_time, expected.run_time.len(), "{name}");
        }
    }
    let server = Server::start();
    let found = server.apply(&databases);
    assert_eq!(found.len(), wanted.len());
    let differing: BTreeMap<&str, (&Vec<String>, &Vec<String>)> = wanted
        .iter()
        .zip(&found)
        .filter(|((_, wanted), found)| wanted != *found)
        .map(|((name, wanted), found)| (name.as_str(), (wanted, found)))
        .collect();
    assert!(differing.is_empty(), "polctl, server: {differing:#?}");
}
