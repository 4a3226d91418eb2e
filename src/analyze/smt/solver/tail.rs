//! The end of what a child writes on standard error.
//!
//! A pipe that nobody reads stops its writer, so a thread reads all of it, whatever the
//! amount, and keeps the last bytes.

use std::io::Read;
use std::sync::{Arc, Mutex};

use super::error::one_line;

/// How much is kept, in bytes.
const KEPT: usize = 2048;

/// The last bytes so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Reads `source` to its end in a thread of its own. The thread is not waited for: it ends
    /// when the last holder of the pipe is gone.
    pub(super) fn of(mut source: impl Read + Send + 'static) -> std::io::Result<Tail> {
        let tail = Tail::default();
        let kept = tail.clone();
        std::thread::Builder::new().name("solver stderr".into()).spawn(move || {
            let mut chunk = [0; 4 * KEPT];
            while let Some(new) = source.read(&mut chunk).ok().filter(|n| *n > 0).and_then(|n| chunk.get(..n)) {
                kept.push(new);
            }
        })?;
        Ok(tail)
    }

    fn push(&self, new: &[u8]) {
        let Ok(mut kept) = self.0.lock() else { return };
        kept.extend_from_slice(new);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }

    /// What is kept, as one line that cannot disturb a terminal.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().map(|kept| kept.clone()).unwrap_or_default();
        one_line(&kept)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Tail};

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::default();
        tail.push(&vec![b'a'; 10 * KEPT]);
        tail.push(b"end");
        let text = tail.text();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("aaend"));
    }
}
