//! A guest with its pacer, for stacks that have neither history nor pacer of their own.

use equipoise::control::adapt::{IntervalConfig, Origin};
use equipoise::control::{BoxedController, Fate, Needs, QueuedFrame, SentPacket};
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use thiserror::Error;

use super::{Guest, Reports};
use crate::feedback::{FeedbackCounts, Format, History, Refusal, Scope};
use crate::rtp::SessionError;
use crate::wire::WireError;
use crate::wire::feedback::ArrivalFeedback;
use crate::wire::rtcp::parse_compound;

/// So many packets are remembered where feedback is of packets by their numbers, as for RTCP.
const REMEMBERED: u16 = 1 << 13;
/// Numbers of packets are below it, so that others can follow.
const HIGHEST: u64 = 1 << 62;

/// The kind of feedback that a [`PacedGuest`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// Datagrams of RTCP, of which those of a format count.
    Rtcp(Format),
    /// Packets by their numbers, with the times of their arrivals.
    Arrivals,
    /// Packets by their numbers, without times, as acknowledgements tell them.
    Acks,
}

/// How a [`PacedGuest`] is told of packets, and how it lets them go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedConfig {
    /// The feedback.
    pub feedback: FeedbackKind,
    /// Packets of a frame follow each other at so many times the rate.
    pub pacing: f64,
    /// Length of an interval for controllers that decide by intervals.
    pub interval: Span,
    /// Whether packets are sent as ECN-capable and feedback tells their marks.
    pub has_ecn: bool,
}

impl PacedConfig {
    /// The usual one: 1.5 times the rate, 250 ms, without ECN.
    pub const fn new(feedback: FeedbackKind) -> Self {
        Self { feedback, pacing: 1.5, interval: Span::from_millis(250), has_ecn: false }
    }
}

/// Why a [`PacedGuest`] does not take what it is told.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PacedError {
    /// Packets are numbered upwards.
    #[error(
        "packet {number} is not behind the one before, or above 2^62; a packet that is sent again has a new number"
    )]
    Number {
        /// The packet's number.
        number: u64,
    },
    /// It was made for feedback on packets by their numbers.
    #[error("this controller was made for feedback in arrays, and not in RTCP")]
    NotRtcp,
    /// It was made for RTCP.
    #[error("this controller was made for feedback in RTCP, and not in arrays")]
    NotArrays,
    /// The datagram is no RTCP.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// The feedback tells of packets that nobody sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A report in a datagram tells of packets that nobody sent.
    #[error("the report tells of packets that were never sent")]
    NeverSent,
}

/// A controller with its pacer and what it has to remember of packets that were sent. Calls may come in any order; times that go back do no
/// harm.
#[derive(Debug)]
pub struct PacedGuest {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    pacing: f64,
    sent: Sent,
}

/// What was sent, to be joined with the feedback on it.
#[derive(Debug)]
enum Sent {
    Rtcp(Reports),
    /// Feedback is by numbers above the last one.
    Arrays(History, Option<u64>),
}

impl Sent {
    fn in_flight(&self) -> Size {
        match self {
            Self::Rtcp(reports) => reports.in_flight(),
            Self::Arrays(history, _) => history.in_flight(),
        }
    }
}

impl PacedGuest {
    /// A guest whose time begins at `now`. A pacing below 1 counts as 1.
    ///
    /// # Errors
    /// As [`Guest::new`].
    pub fn new(
        controller: BoxedController,
        config: PacedConfig,
        now: Instant<SenderClock>,
    ) -> Result<Self, SessionError> {
        let usual = IntervalConfig::new(config.interval);
        let history = || Sent::Arrays(History::new(Scope::Transport, REMEMBERED), None);
        let (sent, intervals) = match config.feedback {
            FeedbackKind::Rtcp(format) => {
                (Sent::Rtcp(Reports::new(format)), IntervalConfig { quantum: format.quantum(), ..usual })
            }
            FeedbackKind::Arrivals => (history(), usual),
            FeedbackKind::Acks => (history(), IntervalConfig { origin: Origin::RoundTrip, ..usual }),
        };
        let provided = if config.has_ecn { Needs::PACKETS.and(Needs::ECN) } else { Needs::PACKETS };
        let guest = Guest::new(controller, provided, intervals, now)?;
        let pacing = config.pacing.max(1.0);
        let pacer = Pacer::new(guest.pace(pacing));
        Ok(Self { guest, pacer, pacing, sent })
    }

    /// The guest, to read what it has decided.
    pub const fn guest(&self) -> &Guest {
        &self.guest
    }

    /// The rate at which single packets may follow each other.
    pub const fn pace(&self) -> Rate {
        self.pacer.rate()
    }

    /// Data that is under way.
    pub fn in_flight(&self) -> Size {
        self.sent.in_flight()
    }

    /// What came of the feedback so far.
    pub fn counts(&self) -> FeedbackCounts {
        match &self.sent {
            Sent::Rtcp(reports) => reports.counts(),
            Sent::Arrays(history, _) => history.counts(),
        }
    }

    /// The controller may have decided.
    fn decided(&mut self) {
        self.pacer.set_rate(self.guest.pace(self.pacing));
    }

    /// How much faster than the rate packets leave.
    fn pacing_now(&self) -> f64 {
        self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0)
    }

    /// A packet left at `now`: of source `ssrc`, which counts for RFC 8888 alone, with the number that feedback will name, of which the
    /// lower 16 bits count for RTCP.
    ///
    /// # Errors
    /// [`PacedError::Number`].
    pub fn on_sent(&mut self, now: Instant<SenderClock>, ssrc: u32, number: u64, size: Size) -> Result<(), PacedError> {
        self.pacer.on_departure(now, size);
        let packet = match &mut self.sent {
            // Sequence numbers are of 16 bits.
            Sent::Rtcp(reports) => reports.on_sent(now, ssrc, number as u16, size),
            Sent::Arrays(history, last) if number < HIGHEST && *last < Some(number) => {
                *last = Some(number);
                history.on_sent(number, size, now);
                Some(SentPacket::new(number, size, history.in_flight()))
            }
            Sent::Arrays(..) => None,
        };
        self.guest.on_sent(now, packet.ok_or(PacedError::Number { number })?);
        self.decided();
        Ok(())
    }

    /// A frame joins what waits to be sent.
    pub fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.guest.on_frame(now, frame);
        self.decided();
    }

    /// Nothing waits to be sent since `now`: it is the application that holds the sender back.
    pub fn on_idle(&mut self, now: Instant<SenderClock>) {
        let from = if let Readiness::At(due) = self.pacer.poll(now) { due } else { now };
        self.guest.on_idle(from);
        self.pacer.rested_until(now);
    }

    /// A datagram of RTCP arrived at `now`. What in it is feedback of the format has effect; other packets are passed over.
    ///
    /// # Errors
    /// [`PacedError::NotRtcp`], [`PacedError::Malformed`] and [`PacedError::NeverSent`]; what was right before has effect.
    pub fn on_rtcp(&mut self, now: Instant<SenderClock>, datagram: &[u8]) -> Result<(), PacedError> {
        let pacing = self.pacing_now();
        let Sent::Rtcp(reports) = &mut self.sent else { return Err(PacedError::NotRtcp) };
        let compound = parse_compound(datagram)?;
        let before = reports.counts();
        let mut malformed = None;
        for feedback in compound.filter_map(|packet| ArrivalFeedback::of(&packet)) {
            match feedback {
                Ok(feedback) => {
                    let news = reports.on_feedback(now, feedback);
                    self.guest.on_feedback(now, &news.feedback(), pacing);
                }
                Err(error) => malformed = Some(error),
            }
        }
        let refused = reports.counts().refused - before.refused;
        self.decided();
        match malformed {
            Some(error) => Err(error.into()),
            None if refused > 0 => Err(PacedError::NeverSent),
            None => Ok(()),
        }
    }

    /// It became known at `now` what became of packets, each by its number, in any order.
    ///
    /// # Errors
    /// [`PacedError::NotArrays`], and [`PacedError::Refused`] if a packet is said to have arrived that was never sent: then nothing has
    /// effect.
    pub fn on_fates(&mut self, now: Instant<SenderClock>, fates: &[(u64, Fate)]) -> Result<(), PacedError> {
        let pacing = self.pacing_now();
        let Sent::Arrays(history, _) = &mut self.sent else { return Err(PacedError::NotArrays) };
        let joined = history.on_fates(now, fates)?;
        self.guest.on_feedback(now, &joined.feedback(false), pacing);
        self.decided();
        Ok(())
    }

    /// When [`on_timer`](Self::on_timer) is to be called, if nothing else happens before; `None` for never.
    pub fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.guest.next_timer()
    }

    /// Time has come to `now`; too early or without need does no harm.
    pub fn on_timer(&mut self, now: Instant<SenderClock>) {
        if self.guest.next_timer().is_some_and(|at| at <= now) {
            if self.guest.on_timer(now) {
                match &mut self.sent {
                    Sent::Rtcp(reports) => reports.on_silence(),
                    Sent::Arrays(history, _) => history.on_silence(),
                }
            }
            self.decided();
        }
    }

    /// Whether the next packet may leave at `now`, or when; never while the window is full or the rate 0: then feedback or the timer
    /// changes it.
    pub fn next_departure(&self, now: Instant<SenderClock>) -> Readiness<SenderClock> {
        // One packet may always be under way: nothing would ever be heard without.
        let is_full = self.guest.window().is_some_and(|window| self.in_flight() >= window.max(Size::from_bytes(1)));
        if is_full { Readiness::Never } else { self.pacer.poll(now) }
    }
}
