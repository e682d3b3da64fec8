use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::outbox::Outbox;
use super::stream::{Packetiser, SessionError, StreamConfig};
use crate::pace::Source;
use crate::session::{Endpoint, Event, Input, Output, Wake, WakeReason};
use crate::units::{Instant, SenderClock};

/// Sends an RTP stream on the schedule of a traffic model; takes no reports and controls nothing.
#[derive(Clone, Debug)]
pub struct Background {
    packetiser: Packetiser,
    source: Source<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

impl Background {
    /// A stream of the source's packets.
    ///
    /// # Errors
    /// [`SessionError`] where the configuration cannot be carried by RTP.
    pub fn new(stream: StreamConfig, source: Source<SenderClock>) -> Result<Self, SessionError> {
        let mut random = Pcg64Mcg::seed_from_u64(u64::from(stream.ssrc));
        let stream = StreamConfig { packet_size: source.packet_size(), ..stream };
        let packetiser = Packetiser::new(stream, &mut random)?;
        Ok(Self { packetiser, source, ended: false, outbox: Outbox::default() })
    }
}

impl Endpoint for Background {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        if self.ended {
            return;
        }
        if input == Input::Stop {
            self.ended = true;
            self.outbox.event(Event::Ended { by_peer: false });
            return;
        }
        // A source that a late timer holds up sends all that is due: the load is to be as planned.
        while self.source.next_departure().is_some_and(|due| due <= now) {
            self.packetiser.send(now, &mut self.outbox);
            self.source.advance();
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        let at = self.source.next_departure().filter(|_| !self.ended)?;
        Some(Wake { at, reason: WakeReason::Media })
    }
}
