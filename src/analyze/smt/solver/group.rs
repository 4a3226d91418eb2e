//! A child process in a process group of its own, which ends with its owner.
//!
//! Owns killing and reaping. The group's number stays ours as long as its leader is not
//! reaped, so the group is always killed first and its leader reaped afterwards: no signal can
//! reach a stranger. What leaves the group by its own will (`setsid`) is not followed.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::time::Duration;

/// How long a killed process may take until it is gone.
const BURIAL: Duration = Duration::from_secs(2);
/// Between two looks at a process that is about to end.
const PAUSE: Duration = Duration::from_millis(1);

/// A child process and all that it forks.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    id: Pid,
    status: Option<ExitStatus>,
}

/// A child's ends of pipes.
pub(super) struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl Group {
    /// Starts a command with three pipes and in its own group.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(super) fn start(command: &mut Command) -> io::Result<(Group, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut group = Group { id: Pid::from_child(&child), child, status: None };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            group.end();
            return Err(io::Error::other("the child has no pipes"));
        };
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    /// Gives the leader a moment to end by itself, so that its own status is seen.
    pub(super) fn await_exit(&self, patience: Duration) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.status.is_some()
            || looked(patience, || waitid(WaitId::Pid(self.id), options).ok().flatten().map(|_| ())).is_some()
    }

    /// Kills the whole group and reaps its leader. Once is enough; more does nothing.
    pub(super) fn end(&mut self) {
        if self.status.is_none() {
            // It fails only where nothing is left to kill.
            let _ = kill_process_group(self.id, Signal::KILL);
            self.status = looked(BURIAL, || self.child.try_wait().ok().flatten());
        }
    }

    /// Whether the leader ended by itself with exit code 0.
    pub(super) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How the leader ended, for a message.
    pub(super) fn status(&self) -> String {
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("exit code {code}"),
            Some((_, Some(signal))) => format!("signal {signal}"),
            _ => "no exit code".into(),
        }
    }
}

/// A command with nothing of polctl's surroundings: the root directory, and an environment of
/// two variables. A solver needs no more, and what it doesn't have it can't print or follow.
pub(super) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").current_dir("/");
    command
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Looks until something is there or the patience is used up.
pub(super) fn looked<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut left = patience;
    loop {
        let found = look();
        if found.is_some() || left.is_zero() {
            return found;
        }
        std::thread::sleep(PAUSE);
        left = left.saturating_sub(PAUSE);
    }
}
