//! Reading binary formats: every step may find the end, and then there is nothing.

/// A place in some bytes.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// An unsigned number of `count` bytes, the highest first.
    pub(super) fn number(&mut self, count: usize) -> Option<u64> {
        Some(self.take(count)?.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    }

    fn length(&mut self, count: usize) -> Option<usize> {
        usize::try_from(self.number(count)?).ok()
    }

    /// Bytes behind their length, which has `count` bytes.
    pub(super) fn sized(&mut self, count: usize) -> Option<&'a [u8]> {
        let length = self.length(count)?;
        self.take(length)
    }

    /// A string of the SSH protocol.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.sized(4)
    }

    /// One DER element: its tag and contents.
    pub(super) fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let tag = self.u8()?;
        let first = self.u8()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x84 => self.length(usize::from(first & 0x0f))?,
            _ => return None,
        };
        Some((tag, self.take(length)?))
    }

    /// The contents of the next DER element, if it has this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element().filter(|(own, _)| *own == tag).map(|(_, contents)| contents)
    }
}
