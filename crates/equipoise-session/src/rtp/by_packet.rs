//! A sender's state for per-packet feedback. It contains the history of sent packets, which each report updates.

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

/// A sender's state for per-packet feedback.
#[derive(Debug)]
pub(crate) struct ByPacket {
    format: Format,
    history: History,
    /// The transport-wide number of the next packet, which is independent of the RTP sequence number.
    next_transport: u64,
    traps: Option<Traps>,
    /// When the last report arrived, and how long in total the pacer had waited for data from the application before
    /// this arrival.
    reported: (Instant<SenderClock>, Span),
    /// Time between two reports.
    interval: Span,
    /// When the last answered request was sent.
    answered: Instant<SenderClock>,
    /// How per-packet feedback is combined into interval summaries, for laws that need such summaries.
    intervals: IntervalConfig,
}

/// Number of packets that the history remembers: 0.8 s of 1200-byte packets at 100 Mbit/s.
const REMEMBERED: u16 = 1 << 13;
/// One transport-wide number is skipped per this many packets, on average ([`Traps`]).
const TRAP_EVERY: u32 = 64;
/// Numbers of the random streams that are derived from the session's seed. The first stream gives the first
/// transport-wide number. The second one chooses the numbers that are skipped to detect false acknowledgements.
const NUMBER_STREAM: u64 = 3;
const TRAP_STREAM: u64 = 4;

impl ByPacket {
    /// Creates the state for a session with `config`; `None` if that session has no per-packet feedback.
    ///
    /// # Errors
    /// [`SessionError::FeedbackInterval`] if reports would be too rare or too frequent; [`SessionError::TransportWide`]
    /// for transport-wide feedback if the payload is not generated.
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

    /// Returns an example of a transport-wide number if packet headers carry such a number. The caller needs the
    /// example only to compute the length of the headers.
    pub(crate) const fn like(&self) -> Option<u16> {
        match self.format {
            Format::CongestionFeedback => None,
            Format::TransportWide => Some(0),
        }
    }

    /// Adapts `controller` to per-packet feedback. A law that needs interval summaries gets summaries of the per-packet
    /// feedback. A law that also needs the state of the playout buffer is returned unchanged, because per-packet
    /// feedback does not contain this state.
    pub(crate) fn adapt(&self, controller: BoxedController) -> BoxedController {
        let needs = controller.needs();
        if needs.contains(Needs::INTERVALS) && !needs.contains(Needs::PLAYOUT) {
            Box::new(Intervals::new(controller, self.intervals))
        } else {
            controller
        }
    }

    /// Returns the transport-wide number of the next packet, if its header carries such a number.
    pub(crate) fn number(&mut self) -> Option<u16> {
        if self.format == Format::CongestionFeedback {
            return None;
        }
        if self.traps.as_mut().is_some_and(Traps::skips) {
            self.next_transport += 1;
        }
        Some(self.next_transport as u16)
    }

    /// Records that packet `sequence` of its stream was sent at `now`. Returns the description of the packet for the
    /// controller.
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

    /// Returns a time close to the times in the next report ([`History::reference`]).
    pub(crate) fn reference(&self, now: Instant<SenderClock>) -> Instant<ReceiverClock> {
        self.history.reference(now)
    }

    /// Processes a report that arrived at `now`. `waited` is how long the pacer has waited for data from the
    /// application, summed up since the session's start. `pacing` is the pacing rate as a multiple of the rate that the
    /// application may use. Returns the feedback for the controller and the event for observers.
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

    /// Returns the data in flight.
    pub(crate) const fn in_flight(&self) -> Size {
        self.history.in_flight()
    }

    /// Records that the request sent at `asked` was answered. Old packets then no longer count as in flight, because
    /// per-packet reports on them are overdue. A packet is old if it was sent more than two per-packet report intervals
    /// before the previous answered request. If all packets are lost but requests are answered, only this call reduces
    /// the data in flight.
    pub(crate) fn on_answer(&mut self, asked: Instant<SenderClock>) {
        let before = core::mem::replace(&mut self.answered, asked);
        self.history.give_up_before(before - self.interval * 2);
    }

    /// Must be called if no report was received for too long. The fate of all packets in flight then counts as unknown.
    pub(crate) fn on_silence(&mut self) {
        self.history.on_silence();
    }
}
