use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::wire::is_rtcp;
use crate::wire::rtp::RtpHeader;
use crate::{Carrier, DropReason, Ecn, Event, Output, PathId, Transmit};

/// The pending outputs of a state machine, in order.
///
/// For a packet of generated media, only the RTP header is stored. [`poll`](Self::poll) encodes the header. Other
/// datagrams are stored as bytes. The buffers are reused, so there is no allocation per packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    items: VecDeque<(Option<PathId>, Item)>,
    /// The path of the outputs that are added next; `None` in a session over one path.
    path: Option<PathId>,
    /// ECN field of the media packets that are added next.
    ecn: Ecn,
    buffer: Vec<u8>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Item {
    Media { header: RtpHeader, media: usize, ecn: Ecn },
    Whole(Vec<u8>, Ecn),
    Event(Event),
}

impl Outbox {
    pub(crate) fn event(&mut self, event: Event) {
        self.push(Item::Event(event));
    }

    pub(crate) fn ignore(&mut self, reason: DropReason) {
        self.event(Event::Ignored(reason));
    }

    /// If `packets` is above zero, adds the event that this number of payload packets was dropped.
    pub(crate) fn expired(&mut self, packets: u64) {
        if packets > 0 {
            self.event(Event::PayloadExpired { packets });
        }
    }

    pub(crate) fn media(&mut self, header: RtpHeader, media: usize) {
        self.push(Item::Media { header, media, ecn: self.ecn });
    }

    /// Adds a datagram that `write` encodes completely into an empty buffer. Packets of generated payload are added by
    /// [`media`](Self::media) instead.
    pub(crate) fn whole(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(Transmit::MAX_HEAD));
        bytes.clear();
        write(&mut bytes);
        // RTCP packets are never ECN-capable (RFC 6679, Sec. 7.3.1).
        let ecn = if is_rtcp(&bytes) { Ecn::NotCapable } else { self.ecn };
        self.push(Item::Whole(bytes, ecn));
    }

    /// Sets the path of the outputs that are added next.
    pub(crate) const fn about(&mut self, path: Option<PathId>) {
        self.path = path;
    }

    /// Sets the ECN field of the media packets that are added next.
    pub(crate) const fn media_says(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    /// Whether there is no pending output.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn push(&mut self, item: Item) {
        self.items.push_back((self.path, item));
    }

    pub(crate) fn poll(&mut self) -> Option<Output<'_>> {
        let (path, item) = self.items.pop_front()?;
        let (media, ecn) = match item {
            Item::Event(event) => return Some(Output::Event { path, event }),
            Item::Media { header, media, ecn } => {
                self.buffer.clear();
                header.encode(&mut self.buffer);
                (media, ecn)
            }
            Item::Whole(bytes, ecn) => {
                self.spare.push(core::mem::replace(&mut self.buffer, bytes));
                (0, ecn)
            }
        };
        let transmit = Transmit { head: &self.buffer, media, carrier: Carrier::Udp, ecn };
        Some(Output::Transmit { path: path.unwrap_or_default(), transmit })
    }
}
