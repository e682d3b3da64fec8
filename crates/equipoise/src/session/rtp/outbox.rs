use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::session::{Event, Ignored, Output, Transmit};
use crate::wire::rtp::RtpHeader;

/// What a state machine has decided and not yet handed out, in order.
///
/// Media packets are kept as headers and encoded when they are taken, into one buffer that is used again, and so are the
/// buffers of whole datagrams: no allocation per packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    items: VecDeque<Item>,
    buffer: Vec<u8>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Item {
    Media { header: RtpHeader, media: usize },
    Whole(Vec<u8>),
    Event(Event),
}

impl Outbox {
    pub(super) fn event(&mut self, event: Event) {
        self.items.push_back(Item::Event(event));
    }

    pub(super) fn ignore(&mut self, reason: Ignored) {
        self.event(Event::Ignored(reason));
    }

    pub(super) fn media(&mut self, header: RtpHeader, media: usize) {
        self.items.push_back(Item::Media { header, media });
    }

    /// A whole datagram, encoded by `write` into an empty buffer.
    pub(super) fn whole(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(Transmit::MAX_HEAD));
        bytes.clear();
        write(&mut bytes);
        self.items.push_back(Item::Whole(bytes));
    }

    pub(super) fn poll(&mut self) -> Option<Output<'_>> {
        let media = match self.items.pop_front()? {
            Item::Event(event) => return Some(Output::Event(event)),
            Item::Media { header, media } => {
                self.buffer.clear();
                header.encode(&mut self.buffer);
                media
            }
            Item::Whole(bytes) => {
                self.spare.push(core::mem::replace(&mut self.buffer, bytes));
                0
            }
        };
        Some(Output::Transmit(Transmit { head: &self.buffer, media }))
    }
}
