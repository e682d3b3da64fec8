use alloc::collections::VecDeque;

use equipoise::control::{
    Beliefs, BoxedController, Feedback, IntervalSummary, Needs, PacketFeedback, Probe, QueuedFrame, Reason, SentPacket,
    Snapshot,
};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

use super::SessionError;
use super::probe_budget::ProbeBudget;
use super::proof::Proof;

/// A session's controller, and a limit on the rates that it decides.
///
/// The session's rate is at most twice the delivery rate that reports prove. A per-packet law may also use the rate at
/// which a short burst of packets, such as a probe, arrived. If a tenth or more of the packets is lost, the rate is at
/// most the delivery rate itself. The third missing report in a row halves the rate, and so does each further missing
/// report. Our choice, after RFC 5348, Sec. 4.3 (twice the receive rate) and RFC 8083, Sec. 4.3.
///
/// There are two exceptions. If a control law must act exactly as in its paper, only missing reports and the circuit
/// breakers limit the rate. If the controller has a fixed rate, only the circuit breakers limit the rate.
#[derive(Debug)]
pub(crate) struct Governor {
    controller: BoxedController,
    rate: Rate,
    /// Maximum rate that the session sets, in addition to the limits of the controller; `None` for no maximum.
    cap: Option<Rate>,
    /// How much was sent and how much arrived, according to the latest reports.
    proofs: VecDeque<Proof>,
    /// Whether any report has proved that a packet arrived.
    is_proved: bool,
    /// Whether a circuit breaker set the cap.
    is_broken: bool,
    probes: ProbeBudget,
}

/// The delivery rate is computed from the latest reports that together cover this time. The delivery rate of a single
/// short interval is too noisy, because the delay of its report varies and affects the measured duration of the
/// interval.
const PROVED_OVER: Span = Span::from_millis(900);
/// For controllers with per-packet feedback, the delivery rate is computed over [`PROVED_OVER`] and over this time. The
/// higher result limits the sending rate.
const PROVED_BY_PACKETS: Span = Span::from_millis(200);
/// For controllers with per-packet feedback, the delivery rate in a single report can raise the maximum rate, even if
/// the report covers a short time. At least this number of the report's packets must have arrived, and fewer than a
/// tenth may be lost.
const PEAK_PACKETS: u64 = 5;
/// If at least this share of the packets and at least `LOSSES` packets are lost, the rate is at most the delivery rate.
const LOSSY: f64 = 0.1;
const LOSSES: u64 = 3;
/// If no report has proved any arrival at this time after the controller's first packet, the rate falls to the lowest
/// rate. If two report intervals plus `USUAL_ROUND_TRIP` are longer, this longer time applies.
const UNPROVED: Span = Span::from_secs(2);
const USUAL_ROUND_TRIP: Span = Span::from_millis(250);

impl Governor {
    /// Creates a governor for `controller` in a session that provides the feedback `provided`.
    ///
    /// # Errors
    /// [`SessionError::Needs`] if the controller needs feedback that is not `provided`, and [`SessionError::NoRate`] if
    /// the controller decides on no rate.
    pub(crate) fn new(controller: BoxedController, provided: Needs) -> Result<Self, SessionError> {
        controller.needs().met_by(provided)?;
        let rate = controller.allowance().rate.ok_or(SessionError::NoRate)?;
        let cap = controller.is_held_to_proof().then_some(rate);
        Ok(Self {
            controller,
            rate,
            cap,
            proofs: VecDeque::new(),
            is_proved: false,
            is_broken: false,
            probes: ProbeBudget::default(),
        })
    }

    /// Returns the current rate.
    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the pacing rate for the packets of frames: the pacing rate of the controller or, if the controller sets
    /// none, `pacing` times [`rate`](Self::rate). In both cases, the result is at most the session's maximum rate, and
    /// at least [`rate`](Self::rate).
    ///
    /// Must not be used for a source that always has data, because such a source would send at the pacing rate all the
    /// time.
    pub(crate) fn pace(&self, pacing: f64) -> Rate {
        let pace = self.controller.allowance().pace.or(Rate::from_bps_f64(self.rate.as_bps_f64() * pacing));
        let pace = pace.unwrap_or(self.rate);
        self.cap.map_or(pace, |cap| pace.min(cap)).max(self.rate)
    }

    /// Returns the maximum data in flight; `None` for no limit.
    pub(crate) fn window(&self) -> Option<Size> {
        self.controller.allowance().window
    }

    /// Returns the probe to send now, if any. There is no probe while a circuit breaker limits the rate, and none
    /// beyond the probe budget.
    pub(crate) fn probe(&self) -> Option<Probe> {
        self.controller.wanted_probe().filter(|_| !self.is_broken && self.probes.allows(self.rate))
    }

    /// Records a packet sent at `now`. If there is a [probe](Self::probe) to send, the packet is part of the probe.
    /// Returns whether the rate changed.
    pub(crate) fn on_sent(&mut self, now: Instant<SenderClock>, packet: SentPacket) -> bool {
        let packet = match self.probe() {
            Some(probe) => {
                self.probes.take(now, packet.size);
                packet.of_probe(probe.number)
            }
            None => packet,
        };
        let before = self.rate;
        self.controller.on_sent(now, &packet);
        self.decide();
        self.rate != before
    }

    /// Records a frame that is queued at the sender.
    pub(crate) fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.controller.on_frame(now, frame);
    }

    /// Returns when the controller's timer is due.
    pub(crate) fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.controller.next_timer()
    }

    /// Runs the controller's timer if it is due at `now`. Returns whether it was due.
    pub(crate) fn on_timer(&mut self, now: Instant<SenderClock>) -> bool {
        let is_due = self.controller.next_timer().is_some_and(|at| at <= now);
        if is_due {
            self.probes.come_to(now);
            self.controller.on_timer(now);
            self.decide();
        }
        is_due
    }

    /// Whether no circuit breaker limits the rate.
    pub(crate) const fn is_whole(&self) -> bool {
        !self.is_broken
    }

    /// Whether the controller needs packets that are sent in pairs.
    pub(crate) fn wants_packet_pairs(&self) -> bool {
        self.controller.needs().contains(Needs::PACKET_PAIRS)
    }

    /// Returns the controller's explanation of its last decision. If the session's rate is lower than the controller
    /// decided, the result contains the reason for the lower rate instead of the controller's reason.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.controller.snapshot();
        if self.allowed() > self.rate {
            snapshot.reason = Some(if self.is_broken { Reason::CircuitBreaker } else { Reason::Unproved });
        }
        snapshot
    }

    /// Returns the controller's estimates of the path, if it has any.
    pub(crate) fn beliefs(&self) -> Option<Beliefs> {
        self.controller.beliefs()
    }

    /// Whether the session's rate is lower than the controller's rate by more than a tenth. `Application::LIMITED` has
    /// the same threshold.
    pub(crate) fn is_held(&self) -> bool {
        self.allowed().as_bps() / 10 * 9 > self.rate.as_bps()
    }

    /// Processes a report on an interval; `proof` has the number of packets sent and the number of packets arrived.
    pub(crate) fn on_interval(&mut self, now: Instant<SenderClock>, mut summary: IntervalSummary, proof: Proof) {
        let was_held = self.is_held();
        self.prove(proof, summary.app_limited);
        summary.app_limited |= was_held;
        if !self.controller.needs().contains(Needs::PACKETS) {
            self.controller.on_feedback(now, &Feedback::Interval(summary));
        }
        self.decide();
    }

    /// Processes a per-packet report. A per-packet report proves no delivery rate. Only a report that answers a report
    /// request proves a delivery rate.
    pub(crate) fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        self.probes.come_to(now);
        self.controller.on_feedback(now, &Feedback::Packets(feedback));
        self.decide();
    }

    /// Notifies the controller that `reports` consecutive reports are missing. Halves the rate, unless the controller
    /// needs no feedback.
    pub(crate) fn on_silence(&mut self, now: Instant<SenderClock>, reports: u64) {
        self.controller.on_feedback(now, &Feedback::Silent { reports });
        if self.controller.needs() != Needs::NOTHING {
            self.lower_to(self.rate.halved());
        }
        self.decide();
    }

    /// Records that a request was not answered in time. Reduces the rate to the delivery rate that the last report
    /// proved, unless the controller has a fixed rate or must act exactly as in its paper. Returns whether the rate
    /// decreased.
    pub(crate) fn on_unanswered(&mut self) -> bool {
        let delivered = self.proofs.back().and_then(Proof::delivered).filter(|_| self.controller.is_held_to_proof());
        let before = self.rate;
        if let Some(proved) = delivered.map(|rate| rate.max(self.controller.lowest_rate())).filter(|it| *it < before) {
            self.cap = Some(proved);
            self.decide();
        }
        self.rate < before
    }

    /// Records one more interval without a report, after [`on_silence`](Self::on_silence). The controller is not
    /// notified, but the rate is halved again, unless the controller has a fixed rate or must act exactly as in its
    /// paper.
    pub(crate) fn on_further_silence(&mut self) {
        if self.controller.is_held_to_proof() {
            self.lower_to(self.rate.halved());
            self.decide();
        }
    }

    /// Records that a report proved the arrival of a packet.
    pub(crate) const fn on_arrival(&mut self) {
        self.is_proved = true;
    }

    /// Lowers the rate to the lowest rate if `since_first`, the time since the controller's first packet, is too long
    /// and no report has proved any arrival yet. There is no effect if the controller has a fixed rate or must act
    /// exactly as in its paper. Returns whether the rate decreased.
    pub(crate) fn on_unproved(&mut self, since_first: Span, report_interval: Span) -> bool {
        let lowest = self.controller.lowest_rate();
        let falls = !self.is_proved
            && self.controller.is_held_to_proof()
            && self.rate > lowest
            && since_first > UNPROVED.max(report_interval * 2 + USUAL_ROUND_TRIP);
        if falls {
            self.lower_to(lowest);
            self.decide();
        }
        falls
    }

    /// Reduces the rate to a tenth, for a circuit breaker.
    pub(crate) fn cut_to_tenth(&mut self) {
        self.is_broken = true;
        self.lower_to(Rate::from_bps(self.rate.as_bps() / 10));
        self.decide();
    }

    /// Reduces the rate by `part`, because a circuit breaker stopped a path that carried `part`: the other paths must
    /// not carry that load in addition to their own. There is no effect if the controller has a fixed rate or must act
    /// exactly as in its paper.
    pub(crate) fn give_up(&mut self, part: Rate) {
        if self.controller.is_held_to_proof() {
            self.lower_to(Rate::from_bps(self.rate.as_bps().saturating_sub(part.as_bps())));
            self.decide();
        }
    }

    /// Restarts media at the lowest rate after a stop.
    pub(crate) fn begin_again(&mut self) {
        self.is_broken = true;
        self.lower_to(self.controller.lowest_rate());
        self.decide();
    }

    /// Starts at the controller's lowest rate, because the path is new or usable again, and has no valid measurements.
    /// Then the maximum rate follows the delivery rate in the reports.
    pub(crate) fn begin_low(&mut self) {
        self.lower_to(self.controller.lowest_rate());
        self.decide();
    }

    fn allowed(&self) -> Rate {
        self.controller.allowance().rate.unwrap_or(self.rate)
    }

    fn lower_to(&mut self, cap: Rate) {
        self.proofs.clear();
        let cap = cap.max(self.controller.lowest_rate());
        self.cap = Some(self.cap.map_or(cap, |before| before.min(cap)));
    }

    /// Applies what a report proves: the maximum rate follows the delivery rate, up and down. If the application
    /// limited the rate, the maximum rate only increases, unless many packets were lost.
    fn prove(&mut self, proof: Proof, app_limited: bool) {
        if proof.sent == 0 {
            return;
        }
        self.is_proved |= proof.arrived > 0;
        self.proofs.push_back(proof);
        // Drop the packet counts of the oldest report while the later reports together cover at least `PROVED_OVER`.
        while self.proofs.iter().skip(1).fold(Span::ZERO, |time, it| time + it.arriving) >= PROVED_OVER {
            self.proofs.pop_front();
        }
        let Some(cap) = self.cap else { return };
        let whole = self.proofs.iter().fold(Proof::default(), |whole, it| whole.and(*it));
        let delivered = whole.delivered().unwrap_or(Rate::ZERO).max(self.lately());
        let is_lossy = whole.lost() >= LOSSES && whole.fraction_lost() >= LOSSY;
        let twice = Rate::from_bps(delivered.as_bps().saturating_mul(2));
        let proved = if is_lossy { delivered } else { twice.max(self.peak()) };
        let proved = if app_limited && !is_lossy { proved.max(cap) } else { proved };
        self.cap = Some(proved.max(self.controller.lowest_rate()));
    }

    /// For per-packet laws, returns the delivery rate over the latest reports that together cover the time
    /// `PROVED_BY_PACKETS`. Returns zero for other laws, or if the reports cover less time. A per-packet law may double
    /// its rate within a few round trips. The delivery rate over a longer time would be too low while the rate rises.
    fn lately(&self) -> Rate {
        if !self.controller.needs().contains(Needs::PACKETS) {
            return Rate::ZERO;
        }
        let mut newest = Proof::default();
        for proof in self.proofs.iter().rev() {
            newest = newest.and(*proof);
            if newest.arriving >= PROVED_BY_PACKETS {
                return newest.delivered().unwrap_or(Rate::ZERO);
            }
        }
        Rate::ZERO
    }

    /// For per-packet laws, returns the highest rate of a single recent interval, for example of a probe; otherwise 0.
    /// The rate of an interval is the size of the packets that arrived, divided by the longer of two times: the time in
    /// which the packets were sent, and the time in which they arrived.
    fn peak(&self) -> Rate {
        if !self.controller.needs().contains(Needs::PACKETS) {
            return Rate::ZERO;
        }
        let whole = self.proofs.iter().filter(|it| it.arrived >= PEAK_PACKETS && it.fraction_lost() < LOSSY);
        let rates = whole.filter_map(|proof| proof.arrived_size.over(proof.sending.max(proof.arriving)));
        rates.max().unwrap_or(Rate::ZERO)
    }

    fn decide(&mut self) {
        let allowed = self.allowed();
        self.rate = self.cap.map_or(allowed, |cap| allowed.min(cap));
        if self.rate == allowed {
            self.is_broken = false;
            if !self.controller.is_held_to_proof() {
                self.cap = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use equipoise::control::{Allowance, Cbr, Controller, find};
    use equipoise::units::Size;

    use super::*;

    /// A minimal controller, which allows 64 Mbit/s after any feedback, even after missing reports or losses.
    #[derive(Debug)]
    struct Deaf(Rate);

    impl Controller for Deaf {
        fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {
            self.0 = Rate::from_bps(64_000_000);
        }

        fn allowance(&self) -> Allowance {
            Allowance::rate(self.0)
        }
    }

    fn deaf() -> Governor {
        Governor::new(Box::new(Deaf(Rate::from_bps(8_000_000))), Needs::INTERVALS).expect("its needs are met")
    }

    /// Returns a [`Proof`] for one second: media was sent at `rate`, and the share `share` of the media arrived.
    fn second(rate: Rate, share: f64) -> Proof {
        let sent = rate.as_bps() / 8000;
        let arrived = (sent as f64 * share) as u64;
        let size = |packets: u64| Size::from_bytes(packets * 1000);
        let second = Span::from_secs(1);
        let (sent_size, arrived_size) = (size(sent), size(arrived));
        Proof { sent, arrived, sent_size, arrived_size, sending: second, arriving: second }
    }

    fn after(governor: &mut Governor, share: f64) -> u64 {
        let proof = second(governor.rate(), share);
        governor.on_interval(Instant::ZERO, IntervalSummary::unmeasured(), proof);
        governor.rate().as_bps()
    }

    /// If this test fails, a controller that ignores missing reports sends at its full rate in one of two cases: while
    /// the path is dead, or as soon as the path works again.
    #[test]
    fn silence_halves_a_controller_that_does_not_answer_it_and_proof_lets_it_come_back() {
        let mut governor = deaf();
        let rates = [(); 15].map(|()| {
            governor.on_silence(Instant::ZERO, 3);
            governor.rate().as_bps()
        });
        assert_eq!(rates[..3], [4_000_000, 2_000_000, 1_000_000]);
        assert_eq!(rates[14], 1_000, "the lowest rate");
        governor.on_interval(Instant::ZERO, IntervalSummary::unmeasured(), second(Rate::from_bps(16_000), 1.0));
        assert_eq!(governor.rate().as_bps(), 32_000, "twice what arrived");
        assert_eq!([(); 3].map(|()| after(&mut governor, 1.0)), [64_000, 128_000, 256_000]);
    }

    #[test]
    fn no_more_is_sent_than_twice_what_arrives_and_what_arrives_where_a_tenth_is_lost() {
        let mut governor = deaf();
        assert_eq!(after(&mut governor, 1.0), 16_000_000);
        assert_eq!(governor.snapshot().reason, Some(Reason::Unproved));
        assert_eq!(after(&mut governor, 0.25), 4_000_000);
        assert_eq!(after(&mut governor, 0.7), 2_800_000);
        assert_eq!(after(&mut governor, 0.0), 1_000, "nothing is proved");
    }

    /// If this test fails, an application that paused for a while restarts at a low rate.
    #[test]
    fn what_an_application_leaves_unused_takes_nothing_off_the_limit() {
        let mut governor = deaf();
        let mut limited = IntervalSummary::unmeasured();
        limited.app_limited = true;
        governor.on_interval(Instant::ZERO, limited, second(Rate::from_bps(80_000), 1.0));
        assert_eq!(governor.rate().as_bps(), 8_000_000);
        governor.on_interval(Instant::ZERO, limited, second(Rate::from_bps(80_000), 0.5));
        assert!(governor.rate().as_bps() < 100_000, "but losses do");
    }

    #[test]
    fn what_was_never_proved_ends_soon() {
        let mut governor = deaf();
        let second = Span::from_secs(1);
        assert!(!governor.on_unproved(second * 2, second));
        assert!(governor.on_unproved(Span::from_millis(2300), second));
        assert_eq!(governor.rate().as_bps(), 1_000);
    }

    #[test]
    fn a_fixed_rate_is_left_to_the_circuit_breakers() {
        let rate = Rate::from_bps(8_000_000);
        let mut governor = Governor::new(Box::new(Cbr::new(rate)), Needs::INTERVALS).expect("it needs nothing");
        governor.on_silence(Instant::ZERO, 3);
        assert_eq!((governor.rate(), after(&mut governor, 0.1)), (rate, 8_000_000));
        governor.cut_to_tenth();
        assert_eq!((governor.rate().as_bps(), governor.is_whole()), (800_000, false));
        assert_eq!([(); 4].map(|()| after(&mut governor, 1.0)), [1_600_000, 3_200_000, 6_400_000, 8_000_000]);
        assert!(governor.is_whole());
    }

    /// If this test fails, the controller `tq` runs without reports of the playout buffer's occupancy, which it needs,
    /// and sends at its highest rate forever.
    #[test]
    fn a_controller_whose_needs_are_not_met_is_refused_and_the_lack_is_named() {
        let entry = find("tq").expect("in the catalogue");
        let tq = || entry.build(&entry.parse(&[]).expect("defaults"), Size::from_bytes(1000)).expect("right");
        let refused = Governor::new(tq(), Needs::INTERVALS).expect_err("there is no playout buffer");
        assert!(matches!(refused, SessionError::Needs(unmet) if unmet.missing == Needs::PLAYOUT), "{refused}");
        assert!(Governor::new(tq(), Needs::INTERVALS.and(Needs::PLAYOUT)).is_ok());
    }
}
