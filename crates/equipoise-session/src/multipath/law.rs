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

/// The law of one path, if each path has its own: it uses reports on the packets of that path, and is limited to what answers to
/// requests on it prove, as the law of a session over that path alone would be.
#[derive(Debug)]
pub(super) struct Law {
    governor: Governor,
    by_packet: ByPacket,
    /// Packets sent before do not concern the controller.
    begun: Instant<SenderClock>,
    /// When the last answered request was sent: an answer covers the packets since then.
    answered: Instant<SenderClock>,
    /// When the first packet left under it.
    first: Option<Instant<SenderClock>>,
    /// When the path was asked for a report last, and how long the application had been waited for by then.
    asked: (Instant<SenderClock>, Span),
    /// The probe that is being sent, by its number.
    probe: Option<u64>,
    /// The application sends frames, and its encoder keeps their mean rate.
    has_frames: bool,
}

impl Law {
    /// What a path's reports provide to its controller.
    pub(super) const PROVIDES: Needs = Needs::PACKETS;

    /// A law that begins at `now`, at the rate that its controller begins with.
    ///
    /// # Errors
    /// [`SessionError`] where the controller needs something else, or the configuration has no reports on packets.
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

    /// The path is back: nothing is known of it, and its law restarts, at the lowest rate.
    pub(super) fn begin_anew(&mut self, laws: &PathLaws, now: Instant<SenderClock>) {
        let controller = (laws.make)().map(|controller| self.by_packet.adapt(controller));
        if let Some(Ok(governor)) = controller.map(|controller| Governor::new(controller, Self::PROVIDES)) {
            self.governor = governor;
        }
        self.governor.begin_low();
        self.by_packet.on_silence();
        (self.begun, self.first, self.probe) = (now, None, None);
    }

    /// The most that the path may carry.
    pub(super) const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// Whether the controller has all that it allows.
    pub(super) const fn is_whole(&self) -> bool {
        self.governor.is_whole()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.governor.snapshot()
    }

    /// The rate at which packets follow each other if the path has this share of the total. Packets of frames follow each other
    /// faster than the share if the controller wants that. Other packets follow each other at the share, because there is always
    /// a next one: the pace would be the rate.
    pub(super) fn pace(&self, share: Rate) -> Rate {
        let used = share.as_bps_f64() / self.rate().as_bps_f64().max(1.0);
        let pace = Rate::from_bps_f64(self.governor.pace(1.0).as_bps_f64() * used).filter(|_| self.has_frames);
        let pace = pace.unwrap_or(share);
        // If the scheduler gives the path less than its law allows, there is no use in looking for more.
        let probe = self.governor.probe().filter(|_| share > Rate::ZERO && share >= self.rate());
        probe.map_or(pace, |probe| probe.rate.max(pace))
    }

    /// Whether the data in flight is at its limit.
    pub(super) fn is_window_full(&self) -> bool {
        // One packet may always be: nothing would ever be heard without.
        self.governor.window().is_some_and(|window| self.by_packet.in_flight() >= window.max(Size::from_bytes(1)))
    }

    /// When the controller wants to be woken.
    pub(super) fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.governor.next_timer()
    }

    /// Does what is due at `now`; whether a probe has begun or ended, about which the path is to be asked at once.
    pub(super) fn tend(&mut self, now: Instant<SenderClock>, report_interval: Span) -> bool {
        let since_first = self.first.map_or(Span::ZERO, |first| now - first);
        self.governor.on_unproved(since_first, report_interval);
        self.governor.on_timer(now);
        let probe = self.governor.probe().map(|probe| probe.number);
        core::mem::replace(&mut self.probe, probe) != probe
    }

    /// The packet of this number on the path left at `now`.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, size: Size) {
        self.first.get_or_insert(now);
        let packet = self.by_packet.on_sent(now, number, size);
        self.governor.on_sent(now, packet);
    }

    /// The path is asked for a report at `now`, by when the application has been waited for for `waited` in all; its packets went at
    /// `pace`. Returns whether the application, or the total, limited the time since it was asked last.
    pub(super) fn on_asked(&mut self, now: Instant<SenderClock>, waited: Span, pace: Rate) -> bool {
        let (since, before) = core::mem::replace(&mut self.asked, (now, waited));
        Application::limits(now - since, waited - before, self.pacing(pace))
    }

    /// How much faster than the law's rate packets go: less where the path has less.
    fn pacing(&self, pace: Rate) -> f64 {
        pace.as_bps_f64() / self.rate().as_bps_f64().max(1.0)
    }

    /// The last request has no answer, although one had the time to come.
    pub(super) fn on_unanswered(&mut self) {
        self.governor.on_unanswered();
    }

    /// Three reports are missing in a row.
    pub(super) fn on_silence(&mut self, now: Instant<SenderClock>) {
        self.governor.on_silence(now, Exchange::MISSING);
        self.by_packet.on_silence();
    }

    /// Another one is.
    pub(super) fn on_further_silence(&mut self) {
        self.governor.on_further_silence();
    }

    /// The request that was sent at `asked` is answered, and `proof` says what arrived. There is no `summary` where a clock was set.
    pub(super) fn on_answer(
        &mut self,
        now: Instant<SenderClock>,
        asked: Instant<SenderClock>,
        summary: Option<IntervalSummary>,
        proof: Proof,
    ) {
        self.by_packet.on_answer(asked);
        let since = core::mem::replace(&mut self.answered, asked);
        // Packets that were sent before the law began prove nothing about what it allows.
        if let Some(summary) = summary.filter(|_| since >= self.begun) {
            self.governor.on_interval(now, summary, proof);
        }
    }

    /// Handles a report on single packets, when the sender has waited for the application for `waited` in total. Returns its content.
    ///
    /// # Errors
    /// [`DropReason`] where it is on packets that nobody sent.
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

    /// A circuit breaker has stopped the path: its law starts again at the lowest rate, and what was sent until now proves nothing more.
    pub(super) fn on_stopped(&mut self, now: Instant<SenderClock>) {
        self.begin_again();
        self.begun = now;
    }

    /// Starts at the lowest rate.
    pub(super) fn begin_low(&mut self) {
        self.governor.begin_low();
    }

    /// A circuit breaker cuts the rate to a tenth.
    pub(super) fn cut_to_tenth(&mut self) {
        self.governor.cut_to_tenth();
    }

    /// Media begins again after a stop, at the lowest rate.
    pub(super) fn begin_again(&mut self) {
        self.governor.begin_again();
    }
}
