//! A sender as the half of an end that receives, too.

use alloc::vec::Vec;

use super::Sender;
use crate::rtp::compound::CompoundTimer;
use crate::rtp::stream::Packetiser;
use crate::wire::rtcp::SenderInfo;
use equipoise::units::{Instant, SenderClock};

/// What a sending half has to say in the RTCP datagram that it shares with a receiving half.
#[derive(Debug, Default)]
pub(in crate::rtp) struct Draft {
    /// A request: the sender's information of that moment, and the extension.
    pub(in crate::rtp) request: Option<(SenderInfo, Vec<u8>)>,
}

impl Sender {
    /// The half of an end that sends: its requests stand in the datagrams of the whole end, and so do its regular reports, whose
    /// timer is given away.
    pub(in crate::rtp) fn into_half(mut self) -> (Self, CompoundTimer<SenderClock>) {
        let mut timer = CompoundTimer::new(0);
        core::mem::swap(&mut timer, &mut self.compound);
        timer.stop();
        (Self { shared: Some(Draft::default()), ..self }, timer)
    }

    /// What is to be said in the next datagram of the whole end.
    pub(in crate::rtp) fn take_draft(&mut self) -> Draft {
        self.shared.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Time goes on to `now`, or stays where it is.
    pub(in crate::rtp) fn come_to(&mut self, now: Instant<SenderClock>) -> Instant<SenderClock> {
        self.handled = self.handled.max(now);
        self.handled
    }

    /// What it sends.
    pub(in crate::rtp) const fn packetiser(&self) -> &Packetiser {
        &self.packetiser
    }

    /// The network said that nobody is there.
    pub(in crate::rtp) const fn on_unreachable(&mut self) {
        self.exchange.on_unreachable();
    }

    /// Whether media left since the turn before the last, or would if it were not stopped.
    pub(in crate::rtp) const fn is_active(&self) -> bool {
        self.breakers.has_stopped() || self.packetiser.next_sequence() != self.turns[0]
    }
}
