use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thiserror::Error;

use crate::wire::AduHeader;

/// Why an application's bytes were not taken; none of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The ADU would be longer than any may be.
    #[error("an ADU of {found} bytes is too long; it may have {most}")]
    TooLong {
        /// Its length with these bytes.
        found: usize,
        /// The most there may be.
        most: usize,
    },
    /// There is no room now.
    #[error("{found} bytes do not fit into the {room} that are free; send what waits first")]
    Full {
        /// How many bytes were given.
        found: usize,
        /// How many would be taken.
        room: usize,
    },
    /// The flow was stopped.
    #[error("the flow was stopped and takes no more")]
    Stopped,
}

/// ADUs that wait to be sent, oldest first.
#[derive(Debug, Default)]
pub(super) struct AduQueue {
    bytes: VecDeque<u8>,
    /// Lengths of the ADUs that are whole.
    lengths: VecDeque<u32>,
    /// Bytes of the last one, whose end has not come.
    open: usize,
}

impl AduQueue {
    const LONGEST: usize = AduHeader::LONGEST as usize;
    /// Bytes that may wait: two of the longest, so that one can be filled while the other is sent.
    const MOST: usize = 2 * Self::LONGEST;
    /// ADUs that may wait. Ours: their lengths then take less than their bytes may.
    const MOST_ADUS: usize = 1 << 16;

    /// Bytes that it would take now.
    pub(super) fn room(&self) -> usize {
        if self.lengths.len() >= Self::MOST_ADUS { 0 } else { Self::MOST.saturating_sub(self.bytes.len()) }
    }

    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is a whole ADU.
    pub(super) fn is_ready(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// The next bytes of the last ADU, and whether it ends with them.
    pub(super) fn push(&mut self, data: &[u8], end: bool) -> Result<(), PushError> {
        let found = self.open.saturating_add(data.len());
        if found > Self::LONGEST {
            return Err(PushError::TooLong { found, most: Self::LONGEST });
        }
        if data.len() > self.room() || (end && self.lengths.len() >= Self::MOST_ADUS) {
            return Err(PushError::Full { found: data.len(), room: self.room() });
        }
        self.bytes.extend(data);
        self.open = found;
        if end {
            self.end();
        }
        Ok(())
    }

    /// Ends the last ADU where it is.
    pub(super) fn end(&mut self) {
        self.lengths.push_back(core::mem::take(&mut self.open) as u32);
    }

    /// Whether there is an ADU whose end has not come.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Length of the next ADU, which is whole, taken off the list; its bytes are to be [taken](Self::take).
    pub(super) fn next(&mut self) -> Option<u32> {
        self.lengths.pop_front()
    }

    /// Takes the first `length` bytes and appends them to `out`.
    pub(super) fn take(&mut self, length: usize, out: &mut Vec<u8>) {
        out.extend(self.bytes.drain(..length.min(self.bytes.len())));
    }
}
