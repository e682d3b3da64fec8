//! A controller embedded as a guest in a foreign protocol stack, such as WebRTC or QUIC.
//!
//! ```text
//!   the stack ── packet sent, feedback received, timer ──▶ Guest ──▶ rate, pace, window
//! ```
//!
//! The stack has its own wire format, packet history and timers. An adapter translates between the stack and a
//! [`Guest`], which limits the controller as our own sessions do. The sending rate is at most twice the rate that
//! provably arrived. A start rate that no feedback confirms is soon reduced to the lowest rate. These two limits do not
//! apply to a fixed rate or to a control law that must act exactly as in its paper. The sending rate is halved if no
//! feedback arrives, unless the controller uses no feedback. [`Reports`] joins RTCP feedback with the packets sent.

use alloc::boxed::Box;

use equipoise::control::adapt::{IntervalConfig, Intervals};
use equipoise::control::{
    Beliefs, BoxedController, Fate, IntervalSummary, Needs, PacketFeedback, Probe, QueuedFrame, SentPacket, Snapshot,
};
use equipoise::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};

use crate::rtp::SessionError;
use crate::rtp::application::Application;
use crate::rtp::governor::Governor;
use crate::rtp::proof::Proof;

mod paced;
mod reports;
mod share;

pub use paced::{FeedbackKind, PacedConfig, PacedError, PacedGuest};
pub use reports::{News, Reports};
pub use share::MediaShare;

/// A controller in a foreign stack, and the limits that apply to the controller's decisions.
///
/// Calls may come in any order. A call may have an earlier time than the previous call.
#[derive(Debug)]
pub struct Guest {
    governor: Governor,
    application: Application,
    tally: Tally,
    /// When the first and the last packet were sent.
    first: Option<Instant<SenderClock>>,
    last: Instant<SenderClock>,
    /// The time since which feedback is expected: the sending time of the first packet after the last feedback, or the
    /// arrival time of feedback that does not cover all packets. `None` while no feedback is expected.
    waiting_since: Option<Instant<SenderClock>>,
    /// Number of consecutive missing reports, by which silence is detected.
    missing: u64,
    /// The last check of whether the application limits the sender: the time of the check, the total time until then in
    /// which the application had nothing to send, and the result.
    judged: (Instant<SenderClock>, Span, bool),
    round_trip: Span,
}

/// Time within which a feedback report is expected. Our choice: the longest usual interval. Transport-wide feedback is
/// sent every 50 ms to 250 ms, and QUIC acknowledges within 25 ms.
const REPORT: Span = Span::from_millis(250);
/// Number of consecutive missing reports that count as silence.
const SILENT: u64 = 3;
/// Assumed round-trip time before the first measurement.
const USUAL_ROUND_TRIP: Span = Span::from_millis(250);

impl Guest {
    /// Embeds `controller` in a stack that provides the feedback `provided`: [`Needs::PACKETS`], and also
    /// [`Needs::ECN`] if the stack reads ECN marks.
    ///
    /// A controller that needs interval summaries receives summaries that are computed from the per-packet feedback, as
    /// configured by `intervals`.
    ///
    /// # Errors
    /// [`SessionError::Needs`] if the controller needs feedback that is not `provided`. [`SessionError::NoRate`] if the
    /// controller has a window but no rate.
    pub fn new(
        controller: BoxedController,
        provided: Needs,
        intervals: IntervalConfig,
        now: Instant<SenderClock>,
    ) -> Result<Self, SessionError> {
        let needs = controller.needs();
        let controller = if needs.contains(Needs::INTERVALS) && !needs.contains(Needs::PLAYOUT) {
            Box::new(Intervals::new(controller, intervals))
        } else {
            controller
        };
        Ok(Self {
            governor: Governor::new(controller, provided)?,
            application: Application::default(),
            tally: Tally::default(),
            first: None,
            last: now,
            waiting_since: None,
            missing: 0,
            judged: (now, Span::ZERO, false),
            round_trip: USUAL_ROUND_TRIP,
        })
    }

    /// Returns the rate at which IP packets may be sent from now on.
    pub const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// Returns the rate at which packets within a burst, such as one frame, may be sent: `pacing` times
    /// [`rate`](Self::rate), unless the controller sets its own pace or wants a probe.
    pub fn pace(&self, pacing: f64) -> Rate {
        let pace = self.governor.pace(pacing);
        self.governor.probe().map_or(pace, |probe| probe.rate.max(pace))
    }

    /// Returns the maximum data in flight; `None` if the controller does not limit it.
    pub fn window(&self) -> Option<Size> {
        self.governor.window()
    }

    /// Returns the probe to which the next packets belong, if the controller wants a probe now.
    pub fn probe(&self) -> Option<Probe> {
        self.governor.probe()
    }

    /// Returns the last measured round-trip time, or an assumed value before the first measurement.
    pub const fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// Returns the controller's explanation of its last decision, or the reason why that decision is overridden.
    pub fn snapshot(&self) -> Snapshot {
        self.governor.snapshot()
    }

    /// The controller's estimates of the path.
    pub fn beliefs(&self) -> Option<Beliefs> {
        self.governor.beliefs()
    }

    /// Records a packet that was sent at `now`.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, packet: SentPacket) {
        self.first.get_or_insert(now);
        self.last = now;
        self.waiting_since.get_or_insert(now);
        self.application.goes_on(now);
        self.governor.on_sent(now, packet);
    }

    /// Records a frame that is queued for sending.
    pub fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.governor.on_frame(now, frame);
    }

    /// Records that the application has nothing to send from the time `from` on. `from` may be in the future, such as
    /// the time at which the pacer would release the next packet.
    ///
    /// A stack that detects by itself when it is app-limited sets [`PacketFeedback::app_limited`] and need not call
    /// this function. If the stack does neither, the sending rate is still limited to twice the delivery rate, provided
    /// that the controller's `is_held_to_proof` is true.
    pub fn on_idle(&mut self, from: Instant<SenderClock>) {
        self.application.waits(from);
    }

    /// Processes feedback that arrived at `now`, on packets that were paced at `pacing` times the rate.
    pub fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>, pacing: f64) {
        if feedback.packets.is_empty() {
            return;
        }
        // Feedback is still expected on packets sent after the newest packet in this feedback. If these later packets
        // fill the window and are all lost, no further packet can trigger feedback. In this case a timer must notice
        // that feedback is missing.
        let newest = feedback.packets.iter().map(|packet| packet.departed).max();
        self.waiting_since = newest.is_some_and(|newest| newest < self.last).then_some(now);
        self.missing = 0;
        self.round_trip = feedback.round_trip.unwrap_or(self.round_trip);
        let mut feedback = *feedback;
        feedback.app_limited |= self.is_app_limited(now, pacing);
        let was_held = self.governor.is_held();
        if let Some(proof) = self.tally.take(now, &feedback) {
            let mut summary = IntervalSummary::unmeasured();
            summary.app_limited = feedback.app_limited;
            self.governor.on_interval(now, summary, proof);
        }
        // While the session limits the rate to less than the law allows, the law's rate is not used. During this time,
        // the law must not raise its rate. The same rule applies in sessions over our own protocol stack.
        feedback.app_limited |= was_held;
        self.governor.on_packets(now, &feedback);
    }

    /// Whether the application limited the sender. This is judged over at least 250 ms, because over a shorter time the
    /// result would depend on whether one more frame was sent.
    fn is_app_limited(&mut self, now: Instant<SenderClock>, pacing: f64) -> bool {
        let waited = self.application.waited_by(now);
        let (since, before, was_limited) = self.judged;
        if now - since < REPORT {
            return was_limited;
        }
        let is_limited = Application::limits(now - since, waited - before, pacing);
        self.judged = (now, waited, is_limited);
        is_limited
    }

    /// Returns the time at which [`on_timer`](Self::on_timer) must be called; `None` if it need not be called. Any
    /// other call of this object may change this time.
    pub fn next_timer(&self) -> Option<Instant<SenderClock>> {
        [self.governor.next_timer(), self.silence_at()].into_iter().flatten().min()
    }

    /// Advances time to `now`. Returns whether feedback has been missing for so long that the fate of the packets in
    /// flight is unknown.
    pub fn on_timer(&mut self, now: Instant<SenderClock>) -> bool {
        self.governor.on_timer(now);
        let since_first = self.first.map_or(Span::ZERO, |first| now - first);
        self.governor.on_unproved(since_first, REPORT);
        if self.silence_at().is_none_or(|at| at > now) {
            return false;
        }
        if now - self.last > REPORT * SILENT.cast_signed() {
            // The sender has sent nothing for a while. If its last packets were lost, no feedback will come. Therefore
            // the sender waits for feedback again only after its next packet.
            self.waiting_since = None;
        } else {
            if self.missing >= SILENT {
                self.governor.on_further_silence();
            } else {
                self.governor.on_silence(now, SILENT);
            }
            self.missing = self.missing.saturating_add(1).max(SILENT);
        }
        true
    }

    /// Returns when the number of missing reports next rises. It rises from zero to three at once, and then by one for
    /// each further missing report.
    fn silence_at(&self) -> Option<Instant<SenderClock>> {
        let reports = i64::try_from(self.missing.max(SILENT - 1)).unwrap_or(i64::MAX).saturating_add(1);
        self.waiting_since.map(|since| since + self.round_trip + REPORT * reports)
    }
}

/// Collects feedback until it proves a delivery rate.
#[derive(Debug, Default)]
struct Tally {
    /// The last sending time and the last arrival time of the packets from which a delivery rate was last computed.
    before: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    latest: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    proof: Proof,
}

/// A proof of the delivery rate covers at least `PACKETS` packets and the time `TIME`. Our choice: while many packets
/// are lost, each proof reduces the allowed rate to the delivery rate. If every feedback report were a proof, the rate
/// would soon be almost zero.
const PACKETS: u64 = 5;
const TIME: Span = Span::from_millis(200);

impl Tally {
    /// Processes feedback that arrived at `now`. Returns a proof of the delivery rate, if the feedback so far covers
    /// enough packets and time.
    fn take(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<Proof> {
        for packet in feedback.packets {
            // If a packet's arrival time is not known, the time of the feedback is used.
            let arrived = match packet.fate {
                Fate::Arrived { at, .. } => Some(at.unwrap_or(now.assume_clock())),
                _ => None,
            };
            let Some(before) = self.before else {
                // The first packet that arrived marks the start of the first period. This packet and the lost packets
                // before it are not counted.
                self.before = arrived.map(|arrived| (packet.departed, arrived));
                continue;
            };
            self.proof.sent += 1;
            self.proof.sent_size = self.proof.sent_size + packet.size;
            if let Some(arrived) = arrived {
                self.proof.arrived += 1;
                self.proof.arrived_size = self.proof.arrived_size + packet.size;
                let (departed, latest) = self.latest.unwrap_or(before);
                self.latest = Some((departed.max(packet.departed), latest.max(arrived)));
            }
        }
        let (before, latest) = (self.before?, self.latest.or(self.before)?);
        let newest = feedback.packets.iter().map(|packet| packet.departed).max()?;
        let sending = newest - before.0;
        if self.proof.sent < PACKETS || sending < TIME {
            return None;
        }
        // The receiver may state false arrival times. Therefore `arriving` is at least `sending`.
        let proof = Proof { sending, arriving: (latest.1 - before.1).max(sending), ..self.proof };
        (self.before, self.latest, self.proof) = (Some((newest, latest.1)), None, Proof::default());
        Some(proof)
    }
}

#[cfg(test)]
mod tests;
