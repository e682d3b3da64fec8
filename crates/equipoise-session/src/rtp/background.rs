use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::outbox::Outbox;
use super::stream::{Numbers, Packetiser, SessionError, StreamConfig};
use crate::{Endpoint, Event, Input, Output, Wake, WakeReason};
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_path::source::Source;

/// Sends an RTP stream on the schedule of a traffic model, without reports or rate control, and ends it with a BYE.
///
/// A timer call that is late by more than 5 ms postpones the schedule, so that the sender never sends a long burst to
/// catch up.
#[derive(Debug)]
pub struct Background {
    packetiser: Packetiser,
    source: Source<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

/// If a timer call is late by more than this time, the host counts as stalled. Our choice: more than the usual lateness
/// of timers, and less than the delay of a queue of a few packets.
const STALL: Span = Span::from_millis(5);

impl Background {
    /// Creates a sender of the packets that `source` schedules.
    ///
    /// # Errors
    /// [`SessionError`] if RTP cannot carry the configuration.
    pub fn new(stream: StreamConfig, source: Source<SenderClock>) -> Result<Self, SessionError> {
        let mut random = Pcg64Mcg::seed_from_u64(u64::from(stream.ssrc));
        let stream = StreamConfig { packet_size: source.packet_size(), ..stream };
        let packetiser = Packetiser::new(stream, Numbers::default(), &mut random)?;
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
            self.packetiser.send_compound(now, true, &mut self.outbox);
            self.outbox.event(Event::Ended { by_peer: false });
            return;
        }
        while let Some(due) = self.source.next_departure().filter(|due| *due <= now) {
            // After a small lateness, all packets that are due are sent, so that the load is as planned. After a stall,
            // all packets that are due would be a burst above the planned load. Therefore the schedule is postponed.
            let late = now - due;
            if late > STALL {
                self.source.postpone(now);
                self.outbox.event(Event::PacingReset { late });
            }
            let content = self.packetiser.full(now);
            self.packetiser.send(now, content, Numbers::default(), &mut self.outbox);
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

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::units::{Rate, Schedule, Size};
    use equipoise_path::source::Traffic;

    /// Calls the timer at `millis`. Returns how many packets were sent, and how often the schedule was reset.
    fn ring(background: &mut Background, millis: u64) -> (usize, usize) {
        background.handle(Instant::from_nanos(millis * 1_000_000), Input::Timer);
        let (mut sent, mut resets) = (0, 0);
        while let Some(output) = background.poll() {
            sent += usize::from(matches!(output, Output::Event { event: Event::MediaSent { .. }, .. }));
            resets += usize::from(matches!(output, Output::Event { event: Event::PacingReset { .. }, .. }));
        }
        (sent, resets)
    }

    #[test]
    fn a_late_timer_is_made_up_for_and_a_stall_is_not() {
        let packet_size = Size::from_bytes(1000);
        let stream = StreamConfig::new(1, 96, packet_size, "a");
        let rate = Schedule::constant(Rate::from_bps(8_000_000));
        let source = Source::new(Traffic::Constant, rate, packet_size, Instant::ZERO, (1, 1));
        let mut background = Background::new(stream, source).expect("a valid configuration");
        assert_eq!(ring(&mut background, 4), (4, 0), "those of 1, 2, 3 and 4 ms");
        assert_eq!(ring(&mut background, 80), (1, 1), "one, not the 76 that were due");
        assert_eq!(ring(&mut background, 81), (1, 0));
    }
}
