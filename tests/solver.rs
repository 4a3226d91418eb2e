//! Solvers that misbehave, and a real one. Whatever happens, the failure has its type, comes
//! quickly, leaves no process behind, and is never followed by an answer.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod solver_common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cedar_policy::{PolicySet, Schema};
use cedar_policy_symcc::solver::{Decision, DecisionWithModel, Solver as _};
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet};
use polctl::analyze::smt::solver::{Limits, Located, Places, Process, SolverError, library_dir, runtime};
use rustix::process::{Pid, test_kill_process};
use solver_common::{in_cache, libraries, solver};

/// Half a second for a question, all in all.
const SHORT: Limits = Limits { question: Duration::from_millis(200), grace: Duration::from_millis(300) };
/// Enough for anything that is not meant to hang, on a busy machine.
const LONG: Limits = Limits { question: Duration::from_secs(20), grace: Duration::from_secs(40) };
/// What "quickly" means on a busy machine.
const QUICKLY: Duration = Duration::from_secs(20);

/// Answers markers, and what `$answer` says to `(check-sat)`.
const TALK: &str = r#"
while read -r line; do
    case "$line" in
        "(check-sat)") check ;;
        "(get-model)") model ;;
        "(echo "*) marker=${line#(echo }; echo "${marker%)}" ;;
    esac
done
"#;

/// A file that is open for writing in one thread cannot be executed by another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A solver of our own, in a directory of its own.
struct Fake {
    dir: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Fake {
    /// A script that says that it is a good version, and then does as `body` says. `$D` is its
    /// directory; the processes that it notes in `$D/pids` must be gone at the end.
    fn new(body: &str) -> Fake {
        Fake::plain(&format!("[ \"$1\" = --version ] && echo 'This is cvc5 version 1.0.8' && exit 0\n{body}"))
    }

    fn plain(body: &str) -> Fake {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let script = format!("#!/bin/sh\nD='{}'\necho $$ >>\"$D/pids\"\n{body}", dir.path().display());
        let fake = Fake { dir, _turn: turn };
        std::fs::write(fake.path(), script).unwrap();
        fake.mode(0o755);
        fake
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("cvc5")
    }

    fn mode(&self, mode: u32) {
        std::fs::set_permissions(self.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn find(&self) -> Result<Located, SolverError> {
        Located::find(&Places { explicit: Some(self.path()), ..Places::default() })
    }

    /// Asks one question; then another one, which must not be answered after a failure.
    fn ask(&self, limits: Limits) -> Result<DecisionWithModel, SolverError> {
        let start = Instant::now();
        let located = self.find().unwrap();
        let answer = runtime().unwrap().block_on(async {
            let mut process = Process::start(&located, limits).unwrap();
            let answer = process.check_sat_with_model().await;
            if answer.is_ok() {
                assert!(process.failure().is_none());
            } else {
                let again = process.check_sat().await.unwrap_err().to_string();
                assert!(again.contains("failed earlier"), "{again}");
            }
            answer.map_err(|said| {
                let failure = taken(&mut process);
                assert_eq!(said.to_string(), format!("solver error: {failure}"));
                failure
            })
        });
        assert!(start.elapsed() < QUICKLY, "{:?}", start.elapsed());
        self.is_deserted();
        answer
    }

    fn fails(&self, limits: Limits) -> SolverError {
        self.ask(limits).unwrap_err()
    }

    /// None of the processes that the script noted lives.
    fn is_deserted(&self) {
        let pids = std::fs::read_to_string(self.dir.path().join("pids")).unwrap_or_default();
        assert!(!pids.is_empty(), "the script did not run");
        for pid in pids.split_whitespace() {
            let gone = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                !lives(pid)
            });
            assert!(gone, "process {pid} still lives");
        }
    }
}

fn taken(process: &mut Process) -> SolverError {
    process.take_failure().unwrap()
}

/// Whether a process runs; one that waits for its parent to notice its end does not.
fn lives(pid: &str) -> bool {
    let number = pid.parse().ok().and_then(Pid::from_raw).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(number).is_ok() && !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

fn talking(check: &str, model: &str) -> Fake {
    Fake::new(&format!("check() {{ :\n {check}\n}}\nmodel() {{ :\n {model}\n}}\n{TALK}"))
}

#[test]
fn a_setting_that_names_nothing_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = dir.path().join("cvc5");
    let real = Fake::new("");
    let path = Some(real.dir.path().into());
    let explicit = Places { explicit: Some(nothing.clone()), path: path.clone(), ..Places::default() };
    assert!(matches!(Located::find(&explicit), Err(SolverError::NoFile { from: "--solver", .. })));
    let own = Places { own_variable: Some(nothing.clone().into()), path: path.clone(), ..Places::default() };
    assert!(matches!(Located::find(&own), Err(SolverError::NoFile { from: "POLCTL_SOLVER", .. })));
    let cvc5 = Places { cvc5_variable: Some(nothing.into()), path: path.clone(), ..Places::default() };
    assert!(matches!(Located::find(&cvc5), Err(SolverError::NoFile { from: "CVC5", .. })));
    // Without the settings, the same PATH has one.
    assert_eq!(Located::find(&Places { path, ..Places::default() }).unwrap().path(), real.path());
}

#[test]
fn the_order_of_places_is_kept() {
    let (first, second) = (tempfile::tempdir().unwrap(), Fake::new(""));
    let other = first.path().join("other");
    std::fs::copy(second.path(), &other).unwrap();
    let all = Places {
        explicit: Some(other.clone()),
        own_variable: Some(second.path().into()),
        cvc5_variable: Some("/nowhere".into()),
        path: Some("/nowhere".into()),
        ..Places::default()
    };
    assert_eq!(Located::find(&all).unwrap().path(), other);
    assert_eq!(Located::find(&Places { explicit: None, ..all }).unwrap().path(), second.path());
}

#[test]
fn the_current_directory_brings_no_solver() {
    // The tests run in the root of the package, which has a directory `target`.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::set_current_dir(root).unwrap();
    let fake = Fake::new("");
    let local = dir.path().join("cvc5");
    std::fs::copy(fake.path(), &local).unwrap();
    let up = root.components().skip(1).map(|_| "..").collect::<PathBuf>();
    let relative = up.join(dir.path().strip_prefix("/").unwrap());
    assert!(relative.join("cvc5").is_file());
    let path = |text: &Path| Places { path: Some(text.into()), ..Places::default() };
    assert!(matches!(Located::find(&path(&relative)), Err(SolverError::Missing)));
    assert!(Located::find(&path(dir.path())).is_ok());
    // An empty entry of PATH means the current directory to a shell.
    assert!(matches!(Located::find(&path(Path::new(":"))), Err(SolverError::Missing)));
    for name in [relative.join("cvc5"), "cvc5".into()] {
        let own = Places { own_variable: Some(name.clone().into()), ..path(dir.path()) };
        assert!(matches!(Located::find(&own), Err(SolverError::Relative { .. })), "{}", name.display());
    }
}

#[test]
fn what_cannot_be_executed_is_said() {
    let fake = Fake::new("");
    fake.mode(0o644);
    assert!(matches!(fake.find(), Err(SolverError::Start { .. })));
    // On PATH it is not even seen.
    let places = Places { path: Some(fake.dir.path().into()), ..Places::default() };
    assert!(matches!(Located::find(&places), Err(SolverError::Missing)));
}

#[test]
fn other_programs_and_old_versions_are_refused() {
    let z3 = Fake::plain("echo 'Z3 version 4.8.12 - 64 bit'").find();
    assert!(matches!(&z3, Err(SolverError::Other { said, .. }) if said.starts_with("Z3 version")), "{z3:?}");
    let silent = Fake::plain("exit 1").find();
    assert!(matches!(silent, Err(SolverError::Other { .. })));
    let old = Fake::plain("echo 'This is cvc5 version 1.0.2'").find();
    assert!(matches!(&old, Err(SolverError::Old { version, .. }) if version == "1.0.2"), "{old:?}");
    let flood = Fake::plain("while :; do echo x; done");
    assert!(matches!(flood.find(), Err(SolverError::Other { .. })));
    flood.is_deserted();
}

#[test]
fn a_version_that_does_not_end_is_no_version() {
    let start = Instant::now();
    let fake = Fake::plain("echo 'This is cvc5 version 1.0.8'\nsleep 300 & echo $! >>\"$D/pids\"\nwait");
    assert!(matches!(fake.find(), Err(SolverError::Hangs { question: "`--version`", .. })));
    assert!(start.elapsed() < QUICKLY);
    fake.is_deserted();
}

#[test]
fn one_that_hangs_is_ended() {
    // Reads its questions and says nothing.
    let error = Fake::new("cat >/dev/null").fails(SHORT);
    assert!(matches!(error, SolverError::Hangs { question: "(check-sat)", .. }), "{error:?}");
    // Does not even read them: more than a pipe holds.
    let fake = Fake::new("sleep 300");
    let located = fake.find().unwrap();
    runtime().unwrap().block_on(async {
        let mut process = Process::start(&located, SHORT).unwrap();
        let question = vec![b' '; 1 << 20];
        tokio::io::AsyncWriteExt::write_all(process.smtlib_input(), &question).await.unwrap();
        process.check_sat().await.unwrap_err();
        assert!(matches!(process.failure(), Some(SolverError::Hangs { .. })));
    });
    fake.is_deserted();
    drop(fake);
    // Says half of the model.
    let error = talking("echo sat", "echo '('; echo '(define-fun x () Bool true)'; sleep 300").fails(SHORT);
    assert!(matches!(error, SolverError::Hangs { question: "(get-model)", .. }), "{error:?}");
}

#[test]
fn garbage_is_no_answer() {
    for said in ["tomato", "SAT", "sat unsat", "", "unsat)", "timeout", "success"] {
        let error = talking(&format!("echo '{said}'"), "").fails(LONG);
        assert!(matches!(&error, SolverError::Garbage { said: s, .. } if s == said), "{error:?}");
    }
    let error = talking("printf '\\377\\033[31m\\n'", "").fails(LONG);
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    let error = talking("echo '(error \"Parse Error: no\")'", "").fails(LONG);
    assert!(matches!(&error, SolverError::Refused { said, .. } if said.contains("Parse Error")), "{error:?}");
}

#[test]
fn an_answer_belongs_to_its_question() {
    // Two answers to one question: the second would be taken for the next question's.
    let error = talking("echo unsat; echo unsat", "").fails(LONG);
    assert!(matches!(error, SolverError::Garbage { .. }), "{error:?}");
    // An answer without our marker.
    let error = Fake::new("while read -r line; do echo unsat; echo polctl-0; done").fails(LONG);
    assert!(matches!(error, SolverError::Garbage { .. }), "{error:?}");
}

#[test]
fn one_that_dies_is_told_with_its_last_words() {
    let error = talking("echo oh no >&2; exit 7", "").fails(LONG);
    let SolverError::Died { status, stderr, .. } = &error else { panic!("{error:?}") };
    assert_eq!((status.as_str(), stderr.as_str()), ("exit code 7", "oh no"));
    // In the middle of an answer that looks like one, and between an answer and its marker.
    for last in ["printf unsat; exit 1", "echo unsat; exit 1"] {
        let error = talking(last, "").fails(LONG);
        assert!(matches!(error, SolverError::Died { .. }), "{error:?}");
    }
    let error = talking("echo sat", "echo '('; echo '(define-fun x () Bool true)'; kill -9 $$").fails(LONG);
    assert!(matches!(&error, SolverError::Died { status, .. } if status == "signal 9"), "{error:?}");
    let error = Fake::new("exit 3").fails(LONG);
    assert!(matches!(&error, SolverError::Died { status, .. } if status == "exit code 3"), "{error:?}");
}

#[test]
fn a_flood_on_standard_error_blocks_nothing() {
    let fake = talking("head -c 100000000 /dev/zero | tr '\\0' e >&2; echo unsat", "");
    assert_eq!(fake.ask(LONG).unwrap(), DecisionWithModel::Unsat);
    drop(fake);
    let error = talking("head -c 100000000 /dev/zero | tr '\\0' e >&2; exit 1", "").fails(LONG);
    let SolverError::Died { stderr, .. } = &error else { panic!("{error:?}") };
    assert_eq!(stderr.len(), 2048);
}

#[test]
fn a_flood_on_standard_output_is_cut_off() {
    let error = Fake::new("head -c 100000000 /dev/zero | tr '\\0' s").fails(LONG);
    assert!(matches!(error, SolverError::TooMuch { what: "the answer", .. }), "{error:?}");
    let error = Fake::new("while :; do echo tomato; done").fails(LONG);
    assert!(matches!(error, SolverError::Garbage { .. }), "{error:?}");
    let error = talking("echo sat", "echo '('; head -c 100000000 /dev/zero | tr '\\0' m").fails(LONG);
    assert!(matches!(error, SolverError::TooMuch { what: "the model", .. }), "{error:?}");
    let error = talking("echo sat", "echo '('; yes '(define-fun x () Bool true)'").fails(LONG);
    assert!(matches!(error, SolverError::TooMuch { what: "the model", .. }), "{error:?}");
}

#[test]
fn sat_without_a_model_is_no_answer() {
    let error = talking("echo sat", "").fails(LONG);
    assert!(matches!(error, SolverError::Garbage { question: "(get-model)", .. }), "{error:?}");
    let error = talking("echo sat", "echo '('").fails(LONG);
    assert!(matches!(error, SolverError::Garbage { question: "(get-model)", .. }), "{error:?}");
    let error = talking("echo sat", "echo '(error \"cannot get model\")'").fails(LONG);
    assert!(matches!(error, SolverError::Refused { .. }), "{error:?}");
    let answer = talking("echo sat", "echo '('; echo ')'").ask(LONG).unwrap();
    assert_eq!(answer, DecisionWithModel::Sat { model: "(\n)\n".into() });
}

#[test]
fn unknown_is_said_and_no_failure() {
    assert_eq!(talking("echo unknown", "").ask(SHORT.max_grace()).unwrap(), DecisionWithModel::Unknown);
}

#[test]
fn nothing_outlives_its_solver() {
    let stubborn = "trap '' TERM HUP INT PIPE\n(trap '' TERM HUP INT; echo $$ >/dev/null; exec sleep 300) & echo $! >>\"$D/pids\"\n";
    let error = Fake::new(&format!("{stubborn}while :; do sleep 1; done")).fails(SHORT);
    assert!(matches!(error, SolverError::Hangs { .. }), "{error:?}");
    // One that ends well but leaves a child, and one that is dropped in the middle.
    let fake = Fake::new(&format!("{stubborn}check() {{ echo unsat\n}}\n{TALK}"));
    assert_eq!(fake.ask(LONG).unwrap(), DecisionWithModel::Unsat);
    let located = fake.find().unwrap();
    let running = runtime().unwrap();
    let process = running.block_on(async { Process::start(&located, LONG) }).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(process);
    fake.is_deserted();
}

#[test]
fn outside_of_a_runtime_there_is_an_error() {
    let fake = Fake::new("");
    assert!(matches!(Process::start(&fake.find().unwrap(), LONG), Err(SolverError::Runtime { .. })));
}

trait Grace {
    fn max_grace(self) -> Limits;
}

impl Grace for Limits {
    /// For fakes that answer at once, however busy the machine is.
    fn max_grace(self) -> Limits {
        Limits { grace: LONG.grace, ..self }
    }
}

const SCHEMA: &str = "
entity User;
entity File { owner: User, public: Bool };
action read appliesTo { principal: User, resource: File, context: { line: String } };
";

fn decides_cedar(located: &Located) {
    const OWNER: &str = "permit(principal, action, resource) when { resource.owner == principal };";
    const NARROW: &str =
        "permit(principal, action, resource) when { resource.owner == principal && context.line like \"git *\" };";
    let schema: Schema = SCHEMA.parse().unwrap();
    let [wide, narrow] = [OWNER, NARROW].map(|text| text.parse::<PolicySet>().unwrap());
    let environments: Vec<_> = schema.request_envs().collect();
    assert_eq!(environments.len(), 1);
    let [wide, narrow] = [wide, narrow].map(|set| CompiledPolicySet::compile(&set, &environments[0], &schema).unwrap());
    runtime().unwrap().block_on(async {
        let process = Process::start(located, LONG).unwrap();
        let mut compiler = CedarSymCompiler::new(process).unwrap();
        // One process, several questions: a question must leave nothing to the next.
        for _ in 0..3 {
            assert!(compiler.check_implies_opt(&narrow, &wide).await.unwrap());
            let found = compiler.check_implies_with_counterexample_opt(&wide, &narrow).await.unwrap().unwrap();
            let line = found.request.context().unwrap().get("line").unwrap().to_string();
            assert!(!line.starts_with("\"git "), "{line}");
            assert!(compiler.check_implies_with_counterexample_opt(&narrow, &wide).await.unwrap().is_none());
        }
        assert!(compiler.solver().failure().is_none());
    });
}

/// A question that takes a solver longer than anybody waits.
const HARD: &str = "(reset)\n(set-logic ALL)\n(declare-const x Int)(declare-const y Int)(declare-const z Int)\n\
    (assert (and (> x 1) (> y 1) (> z 1) (= (+ (* x x x x) (* y y y y)) (* z z z z))))\n";

async fn write(process: &mut Process, script: &str) {
    tokio::io::AsyncWriteExt::write_all(process.smtlib_input(), script.as_bytes()).await.unwrap();
}

fn knows_its_time(located: &Located) {
    let limits = Limits { question: Duration::from_millis(50), ..LONG };
    runtime().unwrap().block_on(async {
        let mut process = Process::start(located, limits).unwrap();
        for _ in 0..2 {
            write(&mut process, HARD).await;
            assert_eq!(process.check_sat().await.unwrap(), Decision::Unknown);
        }
        // The clock is that of a question, not that of the process.
        tokio::time::sleep(Duration::from_millis(200)).await;
        write(&mut process, "(reset)\n(set-logic ALL)\n(assert false)\n").await;
        assert_eq!(process.check_sat().await.unwrap(), Decision::Unsat);
    });
}

fn refuses(located: &Located) {
    runtime().unwrap().block_on(async {
        let mut process = Process::start(located, LONG).unwrap();
        write(&mut process, "(reset)\n(set-logic ALL)\n(assert tomato)\n").await;
        process.check_sat().await.unwrap_err();
        let failure = process.failure();
        assert!(matches!(failure, Some(SolverError::Refused { said, .. }) if said.contains("tomato")), "{failure:?}");
        write(&mut process, "(reset)\n(set-logic ALL)\n(assert false)\n").await;
        process.check_sat().await.unwrap_err();
    });
}

#[test]
fn a_real_solver_decides_cedar() {
    decides_cedar(&solver());
    decides_cedar(&libraries());
}

#[test]
fn a_real_solver_says_unknown_when_its_time_is_up() {
    knows_its_time(&solver());
    knows_its_time(&libraries());
}

#[test]
fn a_real_solver_that_refuses_is_not_asked_again() {
    refuses(&solver());
    refuses(&libraries());
}

#[test]
fn the_libraries_end_with_their_parent() {
    let located = libraries();
    let dir = tempfile::tempdir().unwrap();
    let question = dir.path().join("question");
    std::fs::write(&question, format!("{HARD}(check-sat)\n")).unwrap();
    // The shell stands for a polctl that is killed in the middle of a question.
    let script = r#""$0" solver serve --dir "$1" --tlimit-per 120000 <"$2" & echo $!; wait"#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_polctl")]).arg(located.path()).arg(&question);
    let mut shell = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut pid).unwrap();
    let pid = pid.trim();
    std::thread::sleep(Duration::from_secs(1));
    assert!(lives(pid), "the question was too easy");
    shell.kill().unwrap();
    shell.wait().unwrap();
    let start = Instant::now();
    while lives(pid) {
        assert!(start.elapsed() < QUICKLY, "process {pid} still lives");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn changed_libraries_are_not_opened() {
    let located = libraries();
    for missing in [true, false] {
        let cache = tempfile::tempdir().unwrap();
        let dir = library_dir(cache.path());
        std::fs::create_dir_all(&dir).unwrap();
        for entry in std::fs::read_dir(located.path()).unwrap().map(|entry| entry.unwrap()) {
            let (from, to) = (entry.path(), dir.join(entry.file_name()));
            match (entry.file_name().to_str().unwrap().starts_with("libgmp"), missing) {
                (false, _) => std::os::unix::fs::symlink(from, to).unwrap(),
                (true, true) => {}
                (true, false) => std::fs::write(to, [std::fs::read(from).unwrap(), vec![0]].concat()).unwrap(),
            }
        }
        let error = Located::find(&in_cache(cache.path())).unwrap_err();
        assert!(matches!(&error, SolverError::Library { reason, .. } if reason.contains("libgmp")), "{error:?}");
    }
}

/// `polctl solver install` with a cache of its own.
fn installing(arguments: &[&str], path: &str, cache: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
    command.args(["solver", "install"]).args(arguments).env_clear().env("PATH", path).env("XDG_CACHE_HOME", cache);
    let out = command.output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn an_install_that_fails_changes_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let wheel = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let (code, err) = installing(&["--wheel", wheel], "/nowhere", cache.path());
    assert!(code == 2 && err.contains("is not the pinned package"), "{err}");
    let (code, err) = installing(&["--wheel", "/nowhere/cvc5.whl"], "/nowhere", cache.path());
    assert!(code == 2 && err.contains("/nowhere/cvc5.whl"), "{err}");
    let (code, err) = installing(&[], "/nowhere:.", cache.path());
    assert!(code == 2 && err.contains("python3 is not on PATH"), "{err}");
    let python = Fake::plain("echo no such index >&2; exit 1");
    std::fs::rename(python.path(), python.dir.path().join("python3")).unwrap();
    let (code, err) = installing(&[], python.dir.path().to_str().unwrap(), cache.path());
    assert!(code == 2 && err.contains("no such index"), "{err}");
    let left = std::fs::read_dir(cache.path().join("polctl/solver")).unwrap().count();
    assert_eq!(left, 0);
    let (code, _) = installing(&[], "/nowhere", Path::new("relative"));
    assert_eq!(code, 2);
}

/// `polctl solver status` in an environment of its own.
fn status(arguments: &[&str], path: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
    command.args(["solver", "status"]).args(arguments).env_clear().env("PATH", path).env("HOME", "/nowhere");
    let out = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

#[test]
fn status_says_what_is_there() {
    let fake = Fake::new("");
    let dir = fake.dir.path().to_str().unwrap();
    let (code, out, _) = status(&[], dir);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with(&format!("cvc5 1.0.8 ({dir}/cvc5)\n")), "{out}");
    let (code, out, _) = status(&["--format", "json"], dir);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["usable"], &json["solver"]["version"]), (0, &true.into(), &"1.0.8".into()));
    assert_eq!(json["looked"][3], serde_json::json!({"place": "PATH", "found": "solver"}));
}

#[test]
fn status_without_a_solver_is_3() {
    let (code, out, err) = status(&[], "/nowhere");
    assert_eq!(code, 3, "{out}{err}");
    assert!(err.contains("no cvc5 solver was found") && err.contains("polctl solver install"), "{err}");
    let (code, out, _) = status(&["--format", "json", "--solver", "/nowhere/cvc5"], "/usr/bin:/bin");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["usable"], &json["solver"]), (3, &false.into(), &serde_json::Value::Null));
    assert!(json["error"]["message"].as_str().unwrap().contains("/nowhere/cvc5"), "{json}");
}

/// What `polctl diff` says with a solver: its exit code, and all that it prints.
fn compared(arguments: &[&str], solver: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polctl"));
    command.args(["diff", "--no-cache", "--solver"]).arg(solver).args(arguments);
    let out = command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

/// A comparison that needs a solver is never decided by one that fails.
#[test]
fn a_solver_that_fails_makes_a_comparison_inconclusive() {
    let plain = "--cedar cedar/CASE/old.cedar cedar/CASE/new.cedar --schema cedar/CASE/schema.cedarschema";
    let plain = plain.replace("CASE", "docs-clearance-removed-forbid");
    let plain: Vec<&str> = plain.split(' ').collect();
    let (code, said) = compared(&plain, Path::new("/nowhere/cvc5"));
    assert_eq!(code, 3, "{said}");
    for (what, fake) in [
        ("an old version", (|| Fake::plain("echo 'This is cvc5 version 0.0.1'")) as fn() -> Fake),
        ("garbage", || talking("echo abracadabra", "")),
        ("one that dies", || talking("kill -9 $$", "")),
        ("a flood", || talking("head -c 100000000 /dev/zero | tr '\\0' e >&2; exit 1", "")),
        ("one that hangs", || Fake::new("while :; do sleep 1; done")),
    ] {
        let fake = fake();
        let map = ["--engine", "both", "fleet/v2", "fleet/v3"];
        // One that hangs takes its time at each question; it is enough to wait once.
        for arguments in [&plain[..], &map].into_iter().take(if what == "one that hangs" { 1 } else { 2 }) {
            let (code, said) = compared(arguments, &fake.path());
            assert_eq!(code, 3, "{what}: {said}");
            assert!(said.contains("inconclusive"), "{what}: {said}");
            fake.is_deserted();
        }
    }
}
