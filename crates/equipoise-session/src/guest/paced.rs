//! A guest with packet history and pacer, for stacks that have neither.

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

/// Number of packets remembered if feedback refers to packets by number, as in RTCP.
const REMEMBERED: u16 = 1 << 13;
/// Packet numbers must be below this limit, so that there is always a next number.
const HIGHEST: u64 = 1 << 62;

/// The kind of feedback of a [`PacedGuest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// RTCP datagrams, from which feedback in one format is used.
    Rtcp(Format),
    /// Packets by number, with arrival times.
    Arrivals,
    /// Packets by number, without arrival times, as in acknowledgements.
    Acks,
}

/// The configuration of a [`PacedGuest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedConfig {
    /// The kind of feedback.
    pub feedback: FeedbackKind,
    /// Pacing rate within a frame, as a multiple of the rate.
    pub pacing: f64,
    /// Length of an interval, for controllers of interval summaries.
    pub interval: Span,
    /// Whether packets are sent as ECN-capable and feedback includes their marks.
    pub has_ecn: bool,
}

impl PacedConfig {
    /// The usual configuration: pacing at 1.5 times the rate, intervals of 250 ms, without ECN.
    pub const fn new(feedback: FeedbackKind) -> Self {
        Self { feedback, pacing: 1.5, interval: Span::from_millis(250), has_ecn: false }
    }
}

/// Why a [`PacedGuest`] rejects an input.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PacedError {
    /// Packet numbers must increase.
    #[error(
        "packet {number} does not follow the previous one, or is above 2^62; a packet that is sent again has a new number"
    )]
    Number {
        /// The packet's number.
        number: u64,
    },
    /// The guest was created for feedback on packets by number.
    #[error("this controller was made for feedback in arrays, and not in RTCP")]
    NotRtcp,
    /// The guest was created for RTCP.
    #[error("this controller was made for feedback in RTCP, and not in arrays")]
    NotArrays,
    /// The datagram is not RTCP.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// The feedback refers to packets that were never sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A report in a datagram refers to packets that were never sent.
    #[error("the report covers packets that were never sent")]
    NeverSent,
}

/// A controller with its pacer and the state of the packets sent. Calls may come in any order; times that go back do no
/// harm.
#[derive(Debug)]
pub struct PacedGuest {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    pacing: f64,
    sent: Sent,
}

/// The packets sent, to be joined with feedback on them.
#[derive(Debug)]
enum Sent {
    Rtcp(Reports),
    /// Packet history, and the last number used.
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
    /// A guest that starts at `now`. A pacing below 1 counts as 1.
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

    /// The guest, to read its decisions.
    pub const fn guest(&self) -> &Guest {
        &self.guest
    }

    /// The pacing rate of single packets.
    pub const fn pace(&self) -> Rate {
        self.pacer.rate()
    }

    /// Data in flight.
    pub fn in_flight(&self) -> Size {
        self.sent.in_flight()
    }

    /// The feedback counters so far.
    pub fn counts(&self) -> FeedbackCounts {
        match &self.sent {
            Sent::Rtcp(reports) => reports.counts(),
            Sent::Arrays(history, _) => history.counts(),
        }
    }

    /// Applies a possible new decision of the controller to the pacer.
    fn decided(&mut self) {
        self.pacer.set_rate(self.guest.pace(self.pacing));
    }

    /// Current pacing rate as a multiple of the rate.
    fn pacing_now(&self) -> f64 {
        self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0)
    }

    /// Records a packet that was sent at `now`, with the number to which feedback will refer. `ssrc` is used only for
    /// RFC 8888; for RTCP the lower 16 bits of the number are used.
    ///
    /// # Errors
    /// [`PacedError::Number`] if the number is invalid.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, ssrc: u32, number: u64, size: Size) -> Result<(), PacedError> {
        self.pacer.on_departure(now, size);
        let packet = match &mut self.sent {
            // Sequence numbers have 16 bits.
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

    /// Records a frame that is queued for sending.
    pub fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.guest.on_frame(now, frame);
        self.decided();
    }

    /// Records that nothing is queued since `now`: the sender is app-limited.
    pub fn on_idle(&mut self, now: Instant<SenderClock>) {
        let from = if let Readiness::At(due) = self.pacer.poll(now) { due } else { now };
        self.guest.on_idle(from);
        self.pacer.rested_until(now);
    }

    /// Processes an RTCP datagram that arrived at `now`. Feedback in the configured format takes effect; other packets
    /// are skipped.
    ///
    /// # Errors
    /// [`PacedError::NotRtcp`], [`PacedError::Malformed`] and [`PacedError::NeverSent`]; valid packets before the error
    /// take effect.
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

    /// Applies at `now` the fates of packets, each with its number, in any order.
    ///
    /// # Errors
    /// [`PacedError::NotArrays`], and [`PacedError::Refused`] if a packet that was never sent is reported as arrived;
    /// then nothing takes effect.
    pub fn on_fates(&mut self, now: Instant<SenderClock>, fates: &[(u64, Fate)]) -> Result<(), PacedError> {
        let pacing = self.pacing_now();
        let Sent::Arrays(history, _) = &mut self.sent else { return Err(PacedError::NotArrays) };
        let joined = history.on_fates(now, fates)?;
        self.guest.on_feedback(now, &joined.feedback(false), pacing);
        self.decided();
        Ok(())
    }

    /// When [`on_timer`](Self::on_timer) must be called, if nothing else happens before; `None` for never.
    pub fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.guest.next_timer()
    }

    /// Advances time to `now`; a call that is early or not needed does no harm.
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

    /// Whether the next packet may leave at `now`, or when. `Never` while the window is full or the rate is 0; feedback
    /// or the timer changes that.
    pub fn next_departure(&self, now: Instant<SenderClock>) -> Readiness<SenderClock> {
        // One packet may always be in flight, because without it no feedback would ever arrive.
        let is_full = self.guest.window().is_some_and(|window| self.in_flight() >= window.max(Size::from_bytes(1)));
        if is_full { Readiness::Never } else { self.pacer.poll(now) }
    }
}
