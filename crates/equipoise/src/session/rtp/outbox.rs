use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::session::{Event, Ignored, Output, Transmit};
use crate::wire::rtp::RtpHeader;

/// What a state machine has decided and not yet handed out, in order.
///
/// Media packets are kept as headers and encoded when they are taken, into one buffer that is used again: no allocation
/// per packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    items: VecDeque<Item>,
    buffer: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Item {
    Media { header: RtpHeader, media: usize },
    Control(Vec<u8>),
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

    /// An RTCP datagram, encoded by `write` into an empty buffer.
    pub(super) fn control(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::with_capacity(Transmit::MAX_HEAD);
        write(&mut bytes);
        self.items.push_back(Item::Control(bytes));
    }

    pub(super) fn poll(&mut self) -> Option<Output<'_>> {
        let media = match self.items.pop_front()? {
            Item::Event(event) => return Some(Output::Event(event)),
            Item::Media { header, media } => {
                self.buffer.clear();
                header.encode(&mut self.buffer);
                media
            }
            Item::Control(bytes) => {
                self.buffer = bytes;
                0
            }
        };
        Some(Output::Transmit(Transmit { head: &self.buffer, media }))
    }
}
