//! Lines from a pipe, none longer than a limit.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// What a line can be instead of a line.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The pipe ended, perhaps in the middle of a line.
    End,
    /// It is longer than the limit.
    TooLong,
    /// Reading failed.
    Failed(std::io::Error),
}

/// A pipe, read line by line.
#[derive(Debug)]
pub(super) struct Lines<R>(BufReader<R>);

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Lines(BufReader::new(source))
    }

    /// The next line with its end.
    pub(super) async fn next(&mut self, limit: usize) -> Result<Vec<u8>, NoLine> {
        let mut line = Vec::new();
        loop {
            let available = self.0.fill_buf().await.map_err(NoLine::Failed)?;
            if available.is_empty() {
                return Err(NoLine::End);
            }
            let length = memchr::memchr(b'\n', available).map_or(available.len(), |at| at + 1);
            line.extend_from_slice(available.get(..length).unwrap_or(available));
            self.0.consume(length);
            if line.len() > limit {
                return Err(NoLine::TooLong);
            }
            if line.ends_with(b"\n") {
                return Ok(line);
            }
        }
    }
}
