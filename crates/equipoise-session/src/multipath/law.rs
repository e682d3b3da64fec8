use equipoise::control::{IntervalSummary, Needs, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

use super::total::PathLaws;
use crate::feedback::Refusal;
use crate::rtp::application::Application;
use crate::rtp::by_packet::ByPacket;
use crate::rtp::exchange::Exchange;
use crate::rtp::governor::Governor;
use crate::rtp::proof::Proof;
use crate::rtp::{Payload, SenderConfig, SessionError};
use crate::wire::feedback::StreamFeedback;
use crate::{DropReason, Event};

/// The control law of one path, in a session in which each path has its own law.
///
/// The law works as in a session over this path alone. It uses per-packet reports about the path's packets. In
/// addition, the sender requests reports on the path. The answers show the path's delivery rate, which limits the law's
/// rate.
#[derive(Debug)]
pub(super) struct Law {
    governor: Governor,
    by_packet: ByPacket,
    /// The controller gets no feedback on packets sent before this time.
    begun: Instant<SenderClock>,
    /// When the last answered request was sent. The next answer covers the packets that were sent after this time.
    answered: Instant<SenderClock>,
    /// When the first packet was sent under this law.
    first: Option<Instant<SenderClock>>,
    /// When the last report request was sent on the path, and how long in total the pacer had waited for data from the
    /// application by then.
    asked: (Instant<SenderClock>, Span),
    /// Number of the probe that is being sent.
    probe: Option<u64>,
    /// Whether the application sends frames. If it does, its encoder and not the pacer limits the average rate.
    has_frames: bool,
}

impl Law {
    /// The feedback that a path's reports provide to the path's controller.
    pub(super) const PROVIDES: Needs = Needs::PACKETS;

    /// Creates a law that starts at `now`, with its controller's initial rate.
    ///
    /// # Errors
    /// [`SessionError`] if `laws` creates no controller, if the controller decides on no rate or needs feedback that
    /// cannot be computed from [`Law::PROVIDES`], or if the configuration has no valid per-packet reports.
    pub(super) fn new(config: &SenderConfig, laws: &PathLaws, now: Instant<SenderClock>) -> Result<Self, SessionError> {
        let by_packet = ByPacket::new(config)?.ok_or(SessionError::ByPacket)?;
        let controller = (laws.make)().ok_or(SessionError::NoController)?;
        let governor = Governor::new(by_packet.adapt(controller), Self::PROVIDES)?;
        Ok(Self {
            governor,
            by_packet,
            begun: now,
            answered: now,
            first: None,
            asked: (now, Span::ZERO),
            probe: None,
            has_frames: config.payload == Payload::Rtp,
        })
    }

    /// Restarts the law at the lowest rate, because the path is alive again and earlier measurements say nothing about
    /// its present state.
    pub(super) fn begin_anew(&mut self, laws: &PathLaws, now: Instant<SenderClock>) {
        let controller = (laws.make)().map(|controller| self.by_packet.adapt(controller));
        if let Some(Ok(governor)) = controller.map(|controller| Governor::new(controller, Self::PROVIDES)) {
            self.governor = governor;
        }
        self.governor.begin_low();
        self.by_packet.on_silence();
        (self.begun, self.first, self.probe) = (now, None, None);
    }

    /// Returns the maximum rate of the path.
    pub(super) const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// Whether no circuit breaker limits the rate.
    pub(super) const fn is_whole(&self) -> bool {
        self.governor.is_whole()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.governor.snapshot()
    }

    /// Returns the pacing rate of the path, whose share of the total rate is `share`. If the application sends frames,
    /// the controller may set a pacing rate above `share`. Other payload is paced at `share`, because only the pacer
    /// limits the average rate of this payload. A probe can raise the pacing rate.
    pub(super) fn pace(&self, share: Rate) -> Rate {
        let used = share.as_bps_f64() / self.rate().as_bps_f64().max(1.0);
        let pace = Rate::from_bps_f64(self.governor.pace(1.0).as_bps_f64() * used).filter(|_| self.has_frames);
        let pace = pace.unwrap_or(share);
        // If the path's share is below the rate that its law allows, a probe for a higher rate is of no use.
        let probe = self.governor.probe().filter(|_| share > Rate::ZERO && share >= self.rate());
        probe.map_or(pace, |probe| probe.rate.max(pace))
    }

    /// Whether the data in flight has reached the controller's window.
    pub(super) fn is_window_full(&self) -> bool {
        // One packet may always be in flight, because without it no feedback would ever arrive.
        self.governor.window().is_some_and(|window| self.by_packet.in_flight() >= window.max(Size::from_bytes(1)))
    }

    /// Returns when the controller's timer is due.
    pub(super) fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.governor.next_timer()
    }

    /// Performs everything due at `now`. Returns whether a probe has begun or ended; if so, the sender must request a
    /// report on the path.
    pub(super) fn tend(&mut self, now: Instant<SenderClock>, report_interval: Span) -> bool {
        let since_first = self.first.map_or(Span::ZERO, |first| now - first);
        self.governor.on_unproved(since_first, report_interval);
        self.governor.on_timer(now);
        let probe = self.governor.probe().map(|probe| probe.number);
        core::mem::replace(&mut self.probe, probe) != probe
    }

    /// Records that packet `number` of the path was sent at `now`.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, size: Size) {
        self.first.get_or_insert(now);
        let packet = self.by_packet.on_sent(now, number, size);
        self.governor.on_sent(now, packet);
    }

    /// Records a report request that is sent at `now`. `waited` is the total time for which the pacer waited for data
    /// from the application; `pace` is the pacing rate. Returns whether the application, or the path's share of the
    /// total rate, limited the rate since the last request.
    pub(super) fn on_asked(&mut self, now: Instant<SenderClock>, waited: Span, pace: Rate) -> bool {
        let (since, before) = core::mem::replace(&mut self.asked, (now, waited));
        Application::limits(now - since, waited - before, self.pacing(pace))
    }

    /// Returns the pacing rate `pace` as a multiple of the law's rate.
    fn pacing(&self, pace: Rate) -> f64 {
        pace.as_bps_f64() / self.rate().as_bps_f64().max(1.0)
    }

    /// Records that an earlier request [is unanswered](Exchange::is_unanswered) when the next request is due.
    pub(super) fn on_unanswered(&mut self) {
        self.governor.on_unanswered();
    }

    /// Records that a request is skipped, because the receiver [is silent](Exchange::is_silent).
    pub(super) fn on_silence(&mut self, now: Instant<SenderClock>) {
        self.governor.on_silence(now, Exchange::MISSING);
        self.by_packet.on_silence();
    }

    /// Records that a request is sent while the receiver is silent. Each such request halves the rate again, unless the
    /// controller has a fixed rate or must act exactly as in its paper.
    pub(super) fn on_further_silence(&mut self) {
        self.governor.on_further_silence();
    }

    /// Processes the answer to the request sent at `asked`. `proof` counts the packets that were sent, and those that
    /// arrived. `summary` is `None` if a clock was set during the interval.
    pub(super) fn on_answer(
        &mut self,
        now: Instant<SenderClock>,
        asked: Instant<SenderClock>,
        summary: Option<IntervalSummary>,
        proof: Proof,
    ) {
        self.by_packet.on_answer(asked);
        let since = core::mem::replace(&mut self.answered, asked);
        // Packets that were sent before the law started prove nothing about the rate that the law allows.
        if let Some(summary) = summary.filter(|_| since >= self.begun) {
            self.governor.on_interval(now, summary, proof);
        }
    }

    /// Processes a per-packet report. `waited` is the total time for which the pacer waited for data from the
    /// application. Returns an event with the report's content.
    ///
    /// # Errors
    /// [`DropReason`] if the report acknowledges packets that were never sent, or is not about this path's stream.
    pub(super) fn on_report(
        &mut self,
        now: Instant<SenderClock>,
        report: &StreamFeedback<'_>,
        (waited, pace): (Span, Rate),
    ) -> Result<Event, DropReason> {
        let (near, pacing) = (self.by_packet.reference(now), self.pacing(pace));
        let told = self.by_packet.on_report(now, &report.report(near), (waited, pacing));
        let (mut feedback, event) = told.map_err(|refusal| match refusal {
            Refusal::Foreign { .. } => DropReason::Foreign,
            Refusal::NeverSent { .. } | Refusal::Ahead { .. } | Refusal::Skipped { .. } => DropReason::Stray,
        })?;
        let first = feedback.packets.partition_point(|packet| packet.departed < self.begun);
        feedback.packets = feedback.packets.get(first..).unwrap_or_default();
        if !feedback.packets.is_empty() {
            self.governor.on_packets(now, &feedback);
        }
        Ok(event)
    }

    /// Restarts the law at the lowest rate after a circuit breaker stopped the path. From then on, the law ignores
    /// feedback about packets that were sent before `now`.
    pub(super) fn on_stopped(&mut self, now: Instant<SenderClock>) {
        self.begin_again();
        self.begun = now;
    }

    /// Starts at the lowest rate.
    pub(super) fn begin_low(&mut self) {
        self.governor.begin_low();
    }

    /// Reduces the rate to a tenth, for a circuit breaker.
    pub(super) fn cut_to_tenth(&mut self) {
        self.governor.cut_to_tenth();
    }

    /// Restarts media at the lowest rate after a stop.
    pub(super) fn begin_again(&mut self) {
        self.governor.begin_again();
    }
}
