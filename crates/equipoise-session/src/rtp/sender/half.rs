//! Functions of a sender in an endpoint that also receives.

use alloc::vec::Vec;

use super::Sender;
use crate::rtp::compound::CompoundTimer;
use crate::rtp::stream::Packetiser;
use crate::wire::rtcp::SenderInfo;
use equipoise::units::{Instant, SenderClock};

/// The sending role's part of an RTCP datagram. The receiving role's part is in the same datagram.
#[derive(Debug, Default)]
pub(in crate::rtp) struct Draft {
    /// A request: the sender information at the time of the request, and the extension of the sender report.
    pub(in crate::rtp) request: Option<(SenderInfo, Vec<u8>)>,
}

impl Sender {
    /// Turns the sender into the sending role of an endpoint that also receives. The endpoint's datagrams then carry
    /// the sender's requests and regular reports. Also returns the timer of the regular reports.
    pub(in crate::rtp) fn into_half(mut self) -> (Self, CompoundTimer<SenderClock>) {
        let mut timer = CompoundTimer::new(0);
        core::mem::swap(&mut timer, &mut self.compound);
        timer.stop();
        (Self { shared: Some(Draft::default()), ..self }, timer)
    }

    /// Returns the sender's part of the endpoint's next RTCP datagram.
    pub(in crate::rtp) fn take_draft(&mut self) -> Draft {
        self.shared.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Advances time to `now`, but never backwards. Returns the resulting time.
    pub(in crate::rtp) fn come_to(&mut self, now: Instant<SenderClock>) -> Instant<SenderClock> {
        self.handled = self.handled.max(now);
        self.handled
    }

    /// Returns the stream that the sender sends.
    pub(in crate::rtp) const fn packetiser(&self) -> &Packetiser {
        &self.packetiser
    }

    /// Records that the network reported the destination as unreachable.
    pub(in crate::rtp) const fn on_unreachable(&mut self) {
        self.exchange.on_unreachable();
    }

    /// Returns true if media was sent since the second-last report request was due, or if a circuit breaker has stopped
    /// the media.
    pub(in crate::rtp) const fn is_active(&self) -> bool {
        self.breakers.has_stopped() || self.packetiser.next_sequence() != self.turns[0]
    }
}
