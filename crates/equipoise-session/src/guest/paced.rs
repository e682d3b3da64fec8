//! A [`Guest`] with a packet history and a pacer, for protocol stacks that have neither.

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

/// Number of packets that the history remembers if feedback identifies packets by their full numbers.
const REMEMBERED: u16 = 1 << 13;
/// Full packet numbers must be below this limit, so that there is always a next number.
const HIGHEST: u64 = 1 << 62;

/// The kind of feedback of a [`PacedGuest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// RTCP datagrams. Only feedback in the given format is used.
    Rtcp(Format),
    /// Lists of packet numbers, with arrival times.
    Arrivals,
    /// Lists of packet numbers, without arrival times, as in acknowledgements.
    Acks,
}

/// The configuration of a [`PacedGuest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedConfig {
    /// The kind of feedback that the guest accepts.
    pub feedback: FeedbackKind,
    /// Pacing rate within a frame, as a multiple of the controller's rate. Not used if the controller sets its own
    /// pacing rate.
    pub pacing: f64,
    /// Length of an interval, for controllers that need interval summaries.
    pub interval: Span,
    /// Whether packets are sent as ECN-capable and feedback includes their ECN marks.
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
    /// The packet's number does not exceed the previous number, or is 2^62 or more; or the packet belongs to a new
    /// stream although the maximum number of streams is reached.
    #[error(
        "packet {number} does not follow the previous one, or is 2^62 or more; a packet sent again has a new number"
    )]
    Number {
        /// The packet's number.
        number: u64,
    },
    /// An RTCP datagram was passed to a guest that was created for lists of packet numbers.
    #[error("this controller was made for feedback in arrays, and not in RTCP")]
    NotRtcp,
    /// A list of packet numbers was passed to a controller that was created for feedback in RTCP.
    #[error("this controller was made for feedback in RTCP, and not in arrays")]
    NotArrays,
    /// The datagram is not valid RTCP, or its feedback is malformed.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// A list of packet numbers acknowledges packets that were never sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A report in an RTCP datagram acknowledges packets that were never sent.
    #[error("the report covers packets that were never sent")]
    NeverSent,
}

/// A controller with its pacer and the state of the packets sent. Calls may come in any order; a call whose time is
/// before the time of an earlier call does no harm.
#[derive(Debug)]
pub struct PacedGuest {
    guest: Guest,
    pacer: Pacer<SenderClock>,
    pacing: f64,
    sent: Sent,
}

/// The packets that were sent. Feedback is matched to these packets.
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
    /// Creates a guest that starts at `now`. If `config.pacing` is below 1, the guest uses 1.
    ///
    /// # Errors
    /// The same errors as [`Guest::new`].
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

    /// Returns the guest, to read its decisions.
    pub const fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Returns the current pacing rate.
    pub const fn pace(&self) -> Rate {
        self.pacer.rate()
    }

    /// Returns the data in flight.
    pub fn in_flight(&self) -> Size {
        self.sent.in_flight()
    }

    /// Returns the feedback counters so far.
    pub fn counts(&self) -> FeedbackCounts {
        match &self.sent {
            Sent::Rtcp(reports) => reports.counts(),
            Sent::Arrays(history, _) => history.counts(),
        }
    }

    /// Sets the pacer to the controller's current decision.
    fn decided(&mut self) {
        self.pacer.set_rate(self.guest.pace(self.pacing));
    }

    /// Returns the current pacing rate as a multiple of the controller's rate.
    fn pacing_now(&self) -> f64 {
        self.pacer.rate().as_bps_f64() / self.guest.rate().as_bps_f64().max(1.0)
    }

    /// Records that a packet was sent at `now`. Feedback will identify the packet by `number`; feedback in RTCP uses
    /// the lower 16 bits. `ssrc` is used only for feedback as in RFC 8888.
    ///
    /// # Errors
    /// [`PacedError::Number`] if the number does not exceed the previous one or is too high, or if `ssrc` is a new
    /// stream although the maximum number of streams is reached.
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

    /// Records that no packet is queued from `now` on. The flow counts as app-limited only from the time at which the
    /// pacer would release a packet.
    pub fn on_idle(&mut self, now: Instant<SenderClock>) {
        let from = if let Readiness::At(due) = self.pacer.poll(now) { due } else { now };
        self.guest.on_idle(from);
        self.pacer.rested_until(now);
    }

    /// Processes an RTCP datagram that arrived at `now`. Feedback in the configured format takes effect; other packets
    /// are skipped.
    ///
    /// # Errors
    /// [`PacedError::NotRtcp`], [`PacedError::Malformed`] and [`PacedError::NeverSent`]. If the datagram as a whole is
    /// valid RTCP, its valid feedback packets take effect despite an error in another packet.
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

    /// Applies the fates of packets, which became known at `now`. Each packet is identified by its number, and the
    /// order does not matter.
    ///
    /// # Errors
    /// [`PacedError::NotArrays`] if the guest was created for feedback in RTCP; [`PacedError::Refused`] if `fates`
    /// reports the arrival of a packet that was never sent. After an error, none of `fates` takes effect.
    pub fn on_fates(&mut self, now: Instant<SenderClock>, fates: &[(u64, Fate)]) -> Result<(), PacedError> {
        let pacing = self.pacing_now();
        let Sent::Arrays(history, _) = &mut self.sent else { return Err(PacedError::NotArrays) };
        let joined = history.on_fates(now, fates)?;
        self.guest.on_feedback(now, &joined.feedback(false), pacing);
        self.decided();
        Ok(())
    }

    /// Returns the time at which [`on_timer`](Self::on_timer) must be called; `None` if it need not be called. Any other
    /// call of this object may change this time.
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

    /// Returns whether the next packet may be sent at `now`, or the time at which it may be sent. Returns `Never` while
    /// the window is full or the rate is 0. In this case, ask again after feedback or a timer call.
    pub fn next_departure(&self, now: Instant<SenderClock>) -> Readiness<SenderClock> {
        // One packet may always be in flight, because without it no feedback would ever arrive.
        let is_full = self.guest.window().is_some_and(|window| self.in_flight() >= window.max(Size::from_bytes(1)));
        if is_full { Readiness::Never } else { self.pacer.poll(now) }
    }
}
