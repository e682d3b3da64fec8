//! How a sender processes per-packet reports.

use super::Sender;
use crate::DropReason;
use crate::feedback::{Format, Refusal};
use crate::wire::feedback::{ArrivalFeedback, ArrivalReport, PacketStatus};
use equipoise::units::{Instant, SenderClock};

impl Sender {
    /// Processes a feedback packet in either format.
    pub(super) fn on_feedback(
        &mut self,
        now: Instant<SenderClock>,
        feedback: ArrivalFeedback<'_>,
    ) -> Result<(), DropReason> {
        let Some(by_packet) = &self.by_packet else { return Err(DropReason::Foreign) };
        let near = by_packet.reference(now);
        let (format, from) = (by_packet.format(), self.exchange.receiver_ssrc());
        let is_of = |ssrc: u32| from.is_none_or(|from| from == ssrc);
        match (feedback, format) {
            (ArrivalFeedback::Congestion(feedback), Format::CongestionFeedback) if is_of(feedback.ssrc) => {
                feedback.streams().try_for_each(|stream| self.on_arrivals(now, &stream.report(near)))
            }
            (ArrivalFeedback::Transport(feedback), Format::TransportWide) if is_of(feedback.ssrc) => {
                self.on_arrivals(now, &feedback.report(near))
            }
            _ => Err(DropReason::Foreign),
        }
    }

    /// Processes a per-packet report.
    fn on_arrivals<I>(&mut self, now: Instant<SenderClock>, report: &ArrivalReport<I>) -> Result<(), DropReason>
    where
        I: Iterator<Item = PacketStatus> + Clone,
    {
        let Self { by_packet: Some(by_packet), application, governor, outbox, pacer, .. } = self else { return Ok(()) };
        let pacing = pacer.rate().as_bps_f64() / governor.rate().as_bps_f64().max(1.0);
        let (feedback, event) = match by_packet.on_report(now, report, (application.waited_by(now), pacing)) {
            Ok(told) => told,
            Err(Refusal::Foreign { .. }) => return Err(DropReason::Foreign),
            Err(Refusal::NeverSent { .. } | Refusal::Ahead { .. }) => return Err(DropReason::Stray),
            Err(Refusal::Skipped { .. }) => {
                let trip = self.breakers.on_contradiction(now);
                self.trips(trip);
                return Err(DropReason::Stray);
            }
        };
        outbox.event(event);
        governor.on_packets(now, &feedback);
        self.decided();
        Ok(())
    }
}
