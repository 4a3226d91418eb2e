//! A short command, such as `cvc5 --version`: its whole output, within a time and a size.

use std::io::Read as _;
use std::process::Command;
use std::sync::mpsc::channel;

use tokio::time::Duration;

use super::error::SolverError;
use super::group::Group;
use super::tail::Tail;

/// What a command left behind.
#[derive(Debug)]
pub(super) struct Output {
    /// Standard output, cut where the limit is reached.
    pub stdout: Vec<u8>,
    /// The end of standard error.
    pub stderr: String,
    /// Whether it ended by itself with exit code 0.
    pub success: bool,
}

/// How long a command may take to end after its output.
const PARTING: Duration = Duration::from_millis(500);

/// Runs a command to the end of its output, or to `most` bytes of it.
///
/// # Errors
///
/// [`SolverError::Start`], [`SolverError::Hangs`] when its output does not end in `time`.
pub(super) fn output(
    command: &mut Command,
    question: &'static str,
    time: Duration,
    most: u64,
) -> Result<Output, SolverError> {
    let solver = command.get_program().to_string_lossy().into_owned();
    let cannot = |source| SolverError::Start { solver: solver.clone(), source };
    let (mut group, pipes) = Group::start(command).map_err(cannot)?;
    let tail = Tail::of(pipes.stderr).map_err(cannot)?;
    drop(pipes.stdin);
    let (sender, receiver) = channel();
    let mut stdout = pipes.stdout.take(most);
    std::thread::Builder::new()
        .name("solver output".into())
        .spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
            // Nobody listens any more when time is up.
            let _ = sender.send(read);
        })
        .map_err(cannot)?;
    let read = receiver.recv_timeout(time);
    if read.is_ok() {
        group.await_exit(PARTING);
    }
    group.end();
    match read {
        Ok(Ok(stdout)) => Ok(Output { stdout, stderr: tail.text(), success: group.succeeded() }),
        Ok(Err(source)) => Err(SolverError::Pipe { solver, source }),
        Err(_) => Err(SolverError::Hangs { solver, question, seconds: time.as_secs() }),
    }
}
