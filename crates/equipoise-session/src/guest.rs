//! A controller as the guest of a stack that is not ours: WebRTC's, QUIC's.
//!
//! ```text
//!   the stack ── a packet left, feedback came, time passed ──▶ Guest ──▶ rate, pace, window
//! ```
//!
//! The stack has its own wire format, its own history of packets and its own timers; the adapter translates between them and
//! a [`Guest`], which holds the controller to the rules that our own sessions hold it to: what is sent is at most twice what was
//! proved to arrive, silence halves it, and what was never proved ends soon. If feedback comes as RTCP, [`Reports`] joins it with what
//! was sent.

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

/// A controller in a foreign stack, and the limit to what it may decide.
///
/// Calls may come in any order; times that go back do no harm.
#[derive(Debug)]
pub struct Guest {
    governor: Governor,
    application: Application,
    tally: Tally,
    /// When the first packet left, and when the last one.
    first: Option<Instant<SenderClock>>,
    last: Instant<SenderClock>,
    /// When the first packet left behind the last feedback, or that feedback came without telling of all packets; the next one is
    /// waited for.
    waiting_since: Option<Instant<SenderClock>>,
    /// Reports that are missing in a row, as silence is counted.
    missing: u64,
    /// When it was last judged whether the application limits what is sent, how long it had been waited for by then, and whether.
    judged: (Instant<SenderClock>, Span, bool),
    round_trip: Span,
}

/// Time in which a report is due at the latest: a receiver of transport-wide feedback reports each 50 ms to 250 ms, QUIC's
/// acknowledges within 25 ms. Ours.
const REPORT: Span = Span::from_millis(250);
/// Reports that have to be missing in a row before that counts as silence.
const SILENT: u64 = 3;
/// The round trip that is assumed before one was measured.
const USUAL_ROUND_TRIP: Span = Span::from_millis(250);

impl Guest {
    /// The guest `controller` of a stack that provides `provided`, which is [`Needs::PACKETS`] and perhaps [`Needs::ECN`].
    ///
    /// A controller of intervals gets them of the packets, as `intervals` says.
    ///
    /// # Errors
    /// [`SessionError::Needs`] if the controller needs something else, [`SessionError::NoRate`] if it allows a window alone.
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

    /// The rate of IP packets from now on.
    pub const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// The rate at which single packets may follow each other, where what [`rate`](Self::rate) allows comes in bursts, as frames
    /// do: `pacing` times that rate, unless the controller has a view of its own or wants a probe.
    pub fn pace(&self, pacing: f64) -> Rate {
        let pace = self.governor.pace(pacing);
        self.governor.probe().map_or(pace, |probe| probe.rate.max(pace))
    }

    /// The most data that may be under way; `None` if the controller leaves that open.
    pub fn window(&self) -> Option<Size> {
        self.governor.window()
    }

    /// The probe that the next packets are part of, if one is wanted now.
    pub fn probe(&self) -> Option<Probe> {
        self.governor.probe()
    }

    /// The round trip that was measured last, or the one that is assumed before.
    pub const fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// What the controller says of its last decision, or why it is not followed.
    pub fn snapshot(&self) -> Snapshot {
        self.governor.snapshot()
    }

    /// What the controller believes of the path.
    pub fn beliefs(&self) -> Option<Beliefs> {
        self.governor.beliefs()
    }

    /// A packet left at `now`.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, packet: SentPacket) {
        self.first.get_or_insert(now);
        self.last = now;
        self.waiting_since.get_or_insert(now);
        self.application.goes_on(now);
        self.governor.on_sent(now, packet);
    }

    /// A frame joins what waits to be sent.
    pub fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.governor.on_frame(now, frame);
    }

    /// The application has nothing to send from `from` on, which may lie ahead: a packet could leave then.
    ///
    /// A stack that knows by itself when its application limits it says so in [`PacketFeedback::app_limited`] and need not call this.
    pub fn on_idle(&mut self, from: Instant<SenderClock>) {
        self.application.waits(from);
    }

    /// Feedback came at `now`, on packets that were let go at `pacing` times the rate.
    pub fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>, pacing: f64) {
        if feedback.packets.is_empty() {
            return;
        }
        // Packets that left later are waited for still: if all of them are lost, and fill a window, nothing leaves that would be.
        let newest = feedback.packets.iter().map(|packet| packet.departed).max();
        self.waiting_since = newest.is_some_and(|newest| newest < self.last).then_some(now);
        self.missing = 0;
        self.round_trip = feedback.round_trip.unwrap_or(self.round_trip);
        let mut feedback = *feedback;
        feedback.app_limited |= self.is_app_limited(now, pacing);
        if let Some(proof) = self.tally.take(now, &feedback) {
            let mut summary = IntervalSummary::unmeasured();
            summary.app_limited = feedback.app_limited;
            self.governor.on_interval(now, summary, proof);
        }
        self.governor.on_packets(now, &feedback);
    }

    /// Judged over a quarter of a second at least: in less there may be a frame more or less.
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

    /// When [`on_timer`](Self::on_timer) is to be called, if nothing else happens before; `None` for never.
    pub fn next_timer(&self) -> Option<Instant<SenderClock>> {
        [self.governor.next_timer(), self.silence_at()].into_iter().flatten().min()
    }

    /// Time has come to `now`. Returns whether feedback is missing for so long that nothing is known of what was under way.
    pub fn on_timer(&mut self, now: Instant<SenderClock>) -> bool {
        self.governor.on_timer(now);
        let since_first = self.first.map_or(Span::ZERO, |first| now - first);
        self.governor.on_unproved(since_first, REPORT);
        if self.silence_at().is_none_or(|at| at > now) {
            return false;
        }
        if now - self.last > REPORT * SILENT.cast_signed() {
            // Who sends nothing hears nothing, if the last packets were lost: it is the next ones that have to be answered.
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

    /// When the next report is missing, after three of them each by itself.
    fn silence_at(&self) -> Option<Instant<SenderClock>> {
        let reports = i64::try_from(self.missing.max(SILENT - 1)).unwrap_or(i64::MAX).saturating_add(1);
        self.waiting_since.map(|since| since + self.round_trip + REPORT * reports)
    }
}

/// What feedback has told of since the last proof.
#[derive(Debug, Default)]
struct Tally {
    /// The last packet of the proof before: when it left, and when it arrived, or its feedback came.
    before: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    latest: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    proof: Proof,
}

/// A proof is of so many packets, and of so much time, at least. Ours: while packets are lost each proof takes the rate down to what
/// arrived, of which an application leaves a part unused; with one for each feedback, that alone would take the rate to nothing.
const PACKETS: u64 = 5;
const TIME: Span = Span::from_millis(200);

impl Tally {
    /// Takes feedback that came at `now`; a proof, if there is enough for one.
    fn take(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<Proof> {
        for packet in feedback.packets {
            // Where no arrival is known, its feedback stands for it.
            let arrived = match packet.fate {
                Fate::Arrived { at, .. } => Some(at.unwrap_or(now.assume_clock())),
                _ => None,
            };
            let Some(before) = self.before else {
                // The first packet only says when the first time begins.
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
        // Times of arrival are the receiver's word: whatever they say, no more came in a time than was sent in it.
        let proof = Proof { sending, arriving: (latest.1 - before.1).max(sending), ..self.proof };
        (self.before, self.latest, self.proof) = (Some((newest, latest.1)), None, Proof::default());
        Some(proof)
    }
}

#[cfg(test)]
mod tests;
