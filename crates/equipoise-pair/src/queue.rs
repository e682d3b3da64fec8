use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thiserror::Error;

use crate::wire::AduHeader;

/// Why the application's bytes were not accepted. No byte of the push was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The ADU would exceed the maximum length.
    #[error("an ADU of {found} bytes is too long; it may have {most}")]
    TooLong {
        /// The ADU's length, in bytes, including the new bytes.
        found: usize,
        /// The maximum length of an ADU, in bytes.
        most: usize,
    },
    /// There is not enough free space at present.
    #[error("{found} bytes do not fit into the {room} free bytes; send the waiting data first")]
    Full {
        /// Number of bytes offered.
        found: usize,
        /// Number of bytes that would be accepted.
        room: usize,
    },
    /// The flow was stopped.
    #[error("the flow was stopped and takes no more")]
    Stopped,
}

/// ADUs waiting to be sent, oldest first.
#[derive(Debug, Default)]
pub(super) struct AduQueue {
    bytes: VecDeque<u8>,
    /// Lengths of the complete ADUs.
    lengths: VecDeque<u32>,
    /// Number of bytes of the last ADU, if it is not complete.
    open: usize,
}

impl AduQueue {
    const LONGEST: usize = AduHeader::LONGEST as usize;
    /// Maximum number of waiting bytes: two ADUs of maximum length, so that the application can fill one while the
    /// other is sent.
    const MOST: usize = 2 * Self::LONGEST;
    /// Maximum number of waiting ADUs. Our choice: the list of their lengths then needs 256 KiB, which is less than the
    /// memory that the bytes of the ADUs may need.
    const MOST_ADUS: usize = 1 << 16;

    /// Returns the number of bytes that the queue would accept now.
    pub(super) fn room(&self) -> usize {
        if self.lengths.len() >= Self::MOST_ADUS { 0 } else { Self::MOST.saturating_sub(self.bytes.len()) }
    }

    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the queue contains a complete ADU.
    pub(super) fn is_ready(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Appends bytes to the last ADU. If `end` is true, the ADU is complete.
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

    /// Declares the last ADU complete, with the bytes that it has.
    pub(super) fn end(&mut self) {
        self.lengths.push_back(core::mem::take(&mut self.open) as u32);
    }

    /// Whether the last ADU is not complete.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Removes the length of the next complete ADU from the list and returns it. The caller must then
    /// [take](Self::take) the ADU's bytes.
    pub(super) fn next(&mut self) -> Option<u32> {
        self.lengths.pop_front()
    }

    /// Removes the first `length` bytes and appends them to `out`.
    pub(super) fn take(&mut self, length: usize, out: &mut Vec<u8>) {
        out.extend(self.bytes.drain(..length.min(self.bytes.len())));
    }
}
