//! The end of what a child writes on standard error.
//!
//! A pipe that nobody reads stops its writer, so a thread reads all of it, whatever the
//! amount, and keeps the last bytes.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::time::Duration;

use super::error::one_line;
use super::group::looked;

/// How much is kept, in bytes.
const KEPT: usize = 2048;

/// How long the rest of a process that has ended may take to arrive.
const ARRIVAL: Duration = Duration::from_millis(500);

/// The last bytes so far.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    /// Reads `source` to its end in a thread of its own. It ends when the last holder of the
    /// pipe is gone.
    pub(super) fn of(mut source: impl Read + Send + 'static) -> std::io::Result<Tail> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let filled = Arc::clone(&kept);
        let reader = std::thread::Builder::new().name("solver stderr".into()).spawn(move || {
            let mut chunk = [0; 4 * KEPT];
            while let Some(new) = source.read(&mut chunk).ok().filter(|n| *n > 0).and_then(|n| chunk.get(..n)) {
                push(&filled, new);
            }
        })?;
        Ok(Tail { kept, reader })
    }

    /// What is kept, as one line that cannot disturb a terminal. For a process that has ended:
    /// it waits a moment for what is still in the pipe.
    pub(super) fn text(&self) -> String {
        looked(ARRIVAL, || self.reader.is_finished().then_some(()));
        let kept = self.kept.lock().map(|kept| kept.clone()).unwrap_or_default();
        one_line(&kept)
    }
}

fn push(kept: &Mutex<Vec<u8>>, new: &[u8]) {
    let Ok(mut kept) = kept.lock() else { return };
    kept.extend_from_slice(new);
    let surplus = kept.len().saturating_sub(KEPT);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use super::{KEPT, Tail};

    #[test]
    fn only_the_end_is_kept() {
        let text = Cursor::new(vec![b'a'; 10 * KEPT]).chain(Cursor::new(b"end"));
        let text = Tail::of(text).unwrap().text();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("aaend"));
    }
}
