use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::wire::is_rtcp;
use crate::wire::rtp::RtpHeader;
use crate::{Carrier, DropReason, Ecn, Event, Output, PathId, Transmit};

/// What a state machine has decided and not yet handed out, in order.
///
/// Media packets are kept as headers and encoded when they are taken, into one buffer that is used again, and so are the
/// buffers of whole datagrams: no allocation per packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    items: VecDeque<(Option<PathId>, Item)>,
    /// The path that what comes next is about; none in a session of one path.
    path: Option<PathId>,
    /// Of media packets; reports are never marked (RFC 6679, Sec. 7.3.1).
    ecn: Ecn,
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
    /// One whose media packets say this of congestion.
    pub(crate) fn of(ecn: Ecn) -> Self {
        Self { ecn, ..Self::default() }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.push(Item::Event(event));
    }

    pub(crate) fn ignore(&mut self, reason: DropReason) {
        self.event(Event::Ignored(reason));
    }

    /// So many packets of payload were given up.
    pub(crate) fn expired(&mut self, packets: u64) {
        if packets > 0 {
            self.event(Event::PayloadExpired { packets });
        }
    }

    pub(crate) fn media(&mut self, header: RtpHeader, media: usize) {
        self.push(Item::Media { header, media });
    }

    /// A whole datagram, encoded by `write` into an empty buffer.
    pub(crate) fn whole(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(Transmit::MAX_HEAD));
        bytes.clear();
        write(&mut bytes);
        self.push(Item::Whole(bytes));
    }

    /// What comes next is about this path.
    pub(crate) const fn about(&mut self, path: Option<PathId>) {
        self.path = path;
    }

    fn push(&mut self, item: Item) {
        self.items.push_back((self.path, item));
    }

    pub(crate) fn poll(&mut self) -> Option<Output<'_>> {
        let (path, item) = self.items.pop_front()?;
        let media = match item {
            Item::Event(event) => return Some(Output::Event { path, event }),
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
        let ecn = if is_rtcp(&self.buffer) { Ecn::NotCapable } else { self.ecn };
        let transmit = Transmit { head: &self.buffer, media, carrier: Carrier::Udp, ecn };
        Some(Output::Transmit { path: path.unwrap_or_default(), transmit })
    }
}
