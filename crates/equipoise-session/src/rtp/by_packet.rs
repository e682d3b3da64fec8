//! A sender's feedback by packet: the history of what left, and what reports do to it.

use alloc::boxed::Box;

use equipoise::control::adapt::{IntervalConfig, Intervals, Origin};
use equipoise::control::{BoxedController, Fate, Needs, PacketFeedback, SentPacket};
use equipoise::measure::ClockMap;
use equipoise::random::stream_seed;
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};

use super::application::Application;
use super::delays::Delays;
use super::payload::Payload;
use super::sender::SenderConfig;
use super::stream::{SessionError, check_reporting};
use crate::Event;
use crate::feedback::{Format, History, Refusal, Reporting, Scope, Traps};
use crate::wire::feedback::{ArrivalReport, PacketStatus};

/// What a sender keeps for feedback by packet.
#[derive(Debug)]
pub(crate) struct ByPacket {
    format: Format,
    history: History,
    /// The transport-wide number of the next packet, which is none of RTP's.
    next_transport: u64,
    traps: Option<Traps>,
    /// When the last report came, and how long the application had been waited for by then.
    reported: (Instant<SenderClock>, Span),
    /// The time from one report to the next.
    interval: Span,
    /// When the last request that is answered was sent.
    answered: Instant<SenderClock>,
    /// How a law of intervals gets them of the packets.
    intervals: IntervalConfig,
}

/// So many packets are remembered: 0.8 s of 100 Mbit/s.
const REMEMBERED: u16 = 1 << 13;
/// One transport-wide number in so many is left out.
const TRAP_EVERY: u32 = 64;
/// Streams of a session's seed from which its transport-wide numbers and traps come.
const NUMBER_STREAM: u64 = 3;
const TRAP_STREAM: u64 = 4;

impl ByPacket {
    /// What `config` asks for; `None` if its session has no feedback by packet.
    ///
    /// # Errors
    /// [`SessionError::FeedbackInterval`] and [`SessionError::TransportWide`].
    pub(crate) fn new(config: &SenderConfig) -> Result<Option<Self>, SessionError> {
        let Some(Reporting { format, interval }) = config.reporting else { return Ok(None) };
        check_reporting(config.reporting)?;
        if format == Format::TransportWide && config.payload != Payload::Generated {
            return Err(SessionError::TransportWide);
        }
        let scope = match format {
            Format::CongestionFeedback => Scope::Stream(config.stream.ssrc),
            Format::TransportWide => Scope::Transport,
        };
        let has_traps = format == Format::TransportWide && config.delays != Delays::Agreed;
        Ok(Some(Self {
            format,
            interval,
            history: History::new(scope, REMEMBERED),
            next_transport: stream_seed(config.seed, NUMBER_STREAM) & 0x7FFF,
            traps: has_traps.then(|| Traps::new(stream_seed(config.seed, TRAP_STREAM), TRAP_EVERY)),
            reported: (config.start, Span::ZERO),
            answered: config.start,
            intervals: IntervalConfig {
                origin: match config.delays {
                    Delays::Agreed | Delays::Synchronised => Origin::Departure(ClockMap::SYNCHRONISED),
                    Delays::Estimated | Delays::Queueing => Origin::Queueing,
                },
                quantum: format.quantum(),
                ..IntervalConfig::new(config.report_interval)
            },
        }))
    }

    /// A number like those that the headers of packets say, where they say one.
    pub(crate) const fn like(&self) -> Option<u16> {
        match self.format {
            Format::CongestionFeedback => None,
            Format::TransportWide => Some(0),
        }
    }

    /// `controller` as reports by packet feed it: a law of intervals gets them of the packets.
    pub(crate) fn adapt(&self, controller: BoxedController) -> BoxedController {
        let needs = controller.needs();
        if needs.contains(Needs::INTERVALS) && !needs.contains(Needs::PLAYOUT) {
            Box::new(Intervals::new(controller, self.intervals))
        } else {
            controller
        }
    }

    /// The number that the next packet has among all of its transport, where its header says one.
    pub(crate) fn number(&mut self) -> Option<u16> {
        if self.format == Format::CongestionFeedback {
            return None;
        }
        if self.traps.as_mut().is_some_and(Traps::skips) {
            self.next_transport += 1;
        }
        Some(self.next_transport as u16)
    }

    /// The packet with this number in its stream left at `now`.
    pub(crate) fn on_sent(&mut self, now: Instant<SenderClock>, sequence: u64, size: Size) -> SentPacket {
        let number = match self.format {
            Format::CongestionFeedback => sequence,
            Format::TransportWide => {
                self.next_transport += 1;
                self.next_transport - 1
            }
        };
        self.history.on_sent(number, size, now);
        SentPacket::new(number, size, self.history.in_flight())
    }

    /// The format of the reports.
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// A moment near which the times of the next report lie ([`History::reference`]).
    pub(crate) fn reference(&self, now: Instant<SenderClock>) -> Instant<ReceiverClock> {
        self.history.reference(now)
    }

    /// A report came at `now` on packets that were let go at `pacing` times the rate, by when the application has been waited for for
    /// `waited` in all. Returns what a controller is told of it, and what everybody is.
    pub(crate) fn on_report<I>(
        &mut self,
        now: Instant<SenderClock>,
        report: &ArrivalReport<I>,
        (waited, pacing): (Span, f64),
    ) -> Result<(PacketFeedback<'_>, Event), Refusal>
    where
        I: Iterator<Item = PacketStatus> + Clone,
    {
        let joined = self.history.on_report(now, report)?;
        let (since, before) = core::mem::replace(&mut self.reported, (now, waited));
        let feedback = joined.feedback(Application::limits(now - since, waited - before, pacing));
        let lost = feedback.packets.iter().filter(|packet| packet.fate == Fate::Lost).count() as u64;
        let event = Event::PacketsReported {
            arrived: feedback.packets.len() as u64 - lost,
            lost,
            unknown: joined.unknown,
            round_trip: joined.round_trip,
        };
        Ok((feedback, event))
    }

    /// Data under way.
    pub(crate) const fn in_flight(&self) -> Size {
        self.history.in_flight()
    }

    /// The request that was sent at `asked` is answered: what left before the one that was answered before is not under way any more, if
    /// reports on it had the time to come. Where nothing arrives no report on packets comes, and nothing else would empty the window.
    pub(crate) fn on_answer(&mut self, asked: Instant<SenderClock>) {
        let before = core::mem::replace(&mut self.answered, asked);
        self.history.give_up_before(before - self.interval * 2);
    }

    /// Nothing has been heard for so long that nothing is known of what is under way.
    pub(crate) fn on_silence(&mut self) {
        self.history.on_silence();
    }
}
