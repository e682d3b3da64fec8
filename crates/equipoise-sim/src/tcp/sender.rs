mod reporting;
mod sending;

use equipoise::control::Needs;
use equipoise::control::window::Acknowledged;
use equipoise::measure::{BandwidthEstimate, InlineMeasurement};
use equipoise::units::Span;

use super::departures::Departures;
use super::scoreboard::{DUP_THRESH, Scoreboard};
use super::segment::Encoded;
use super::supply::Application;
use super::timer::{RoundTrips, Timer};
use super::{Ack, Law, LossRecovery, Segment, SenderConfig, SenderStats, TcpError};
use crate::Time;

/// The sender of a TCP connection.
///
/// Call [`on_segment`](Self::on_segment) or [`on_timer`](Self::on_timer). Then call [`poll`](Self::poll) until it
/// returns `None`, and query [`wake`](Self::wake) for the time of the next timer.
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own, in any combination")]
pub struct Sender {
    pub(super) config: SenderConfig,
    law: Law,
    application: Application,
    phase: Phase,
    board: Scoreboard,
    /// Number of duplicate acknowledgements, for NewReno. An acknowledgement of new segments resets this number to
    /// zero, but a partial acknowledgement of n segments in a recovery reduces it by n - 1.
    duplicates: u64,
    /// Whether the first lost segment may be sent although the window is full.
    pressing: bool,
    /// The number of the next new segment at the last timeout or start of a recovery. Until an acknowledgement exceeds
    /// this number, duplicate acknowledgements start no fast retransmit, because unnecessary retransmissions may have
    /// caused them (RFC 6582, Sec. 3.2, steps 2 and 4).
    recover: Option<u64>,
    /// Whether the retransmission timer has expired since new segments were last acknowledged.
    timed_out: bool,
    /// Until an acknowledgement exceeds this number, the last segment is not retransmitted again (`RescueRxt`; RFC
    /// 6675, Sec. 4, `NextSeg`, rule 4).
    rescued: Option<u64>,
    /// Whether a partial acknowledgement has restarted the retransmission timer in this recovery. Only the first
    /// partial acknowledgement restarts the timer (RFC 6582, Sec. 4, the impatient variant).
    restarted: bool,
    /// Whether the sender last stopped because of the congestion window, and not because of the receive window or a
    /// lack of data.
    window_limited: bool,
    /// Whether pacing or the bandwidth measurement delayed the next segment at the last attempt to send.
    paced: bool,
    /// When the controller's timer last fired.
    timer_served: Option<Time>,
    peer_window: u64,
    restart_window: f64,
    round_trips: RoundTrips,
    timer: Timer,
    departures: Departures,
    last_sent: Option<Time>,
    sent: u64,
    resent_in_recovery: u64,
    resent_after_timeout: u64,
    recoveries: u64,
    timeouts: u64,
    acknowledged: u64,
    last_round_trip: Option<Span>,
    finished: Option<Time>,
    /// The time of the last input. Only the implementation of `Endpoint` uses this field.
    pub(super) handled: Time,
    /// The segment that is being sent. Only the implementation of `Endpoint` uses this field.
    pub(super) encoded: Encoded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The connection does not open until its start time.
    Closed,
    /// A SYN was sent or must be sent now.
    Opening { sent: Option<Time>, again: bool },
    /// The connection is open, and no loss is known.
    Open,
    /// Fast recovery: the segments before `end` that count as lost are retransmitted.
    Recovery { end: u64 },
    /// The retransmission timer expired: segments before `end` are retransmitted in slow start.
    Loss { end: u64 },
}

/// Minimum receive window that the sender assumes, in segments. If the receive window is closed, one segment is sent at
/// each retransmission timeout as a probe (RFC 9293, Sec. 3.8.6.1).
const LEAST_PEER_WINDOW: u64 = 1;
/// Initial congestion window after a lost SYN, in segments (RFC 5681, Sec. 3.1).
const WINDOW_AFTER_LOST_SYN: f64 = 1.0;

impl Sender {
    /// The feedback that a connection provides to a controller. TCP acknowledgements contain no arrival times.
    pub const PROVIDES: Needs = Needs::PACKETS;

    /// Creates a sender that opens its connection at the configured time.
    ///
    /// # Errors
    /// [`TcpError::NoPayload`] if a packet has no room for data, and [`TcpError::Needs`] if the controller needs more
    /// than [`PROVIDES`](Self::PROVIDES).
    pub fn new(config: SenderConfig, law: impl Into<Law>) -> Result<Self, TcpError> {
        let law = law.into();
        let board = match &law {
            Law::Window(_) => Scoreboard::default(),
            Law::Controller(controller) => {
                controller.needs().met_by(Self::PROVIDES)?;
                Scoreboard::with_journal()
            }
        };
        let application = Application::new(config.supply.clone(), config.payload()?, config.start);
        Ok(Self {
            round_trips: RoundTrips::new(config.min_rto),
            restart_window: law.window(config.packet),
            law,
            application,
            phase: Phase::Closed,
            board,
            duplicates: 0,
            pressing: false,
            recover: None,
            timed_out: false,
            rescued: None,
            restarted: false,
            window_limited: false,
            paced: false,
            timer_served: None,
            peer_window: u64::MAX,
            timer: Timer::default(),
            departures: Departures::new(config.measurement.map(InlineMeasurement::new)),
            last_sent: None,
            sent: 0,
            resent_in_recovery: 0,
            resent_after_timeout: 0,
            recoveries: 0,
            timeouts: 0,
            acknowledged: 0,
            last_round_trip: None,
            finished: None,
            handled: Time::ZERO,
            encoded: Encoded::EMPTY,
            config,
        })
    }

    /// Processes a segment from the receiver.
    pub fn on_segment(&mut self, now: Time, segment: Segment) {
        match segment {
            Segment::SynAck { window } => self.open(now, window),
            Segment::Ack(ack) => self.on_ack(now, &ack),
            Segment::Syn | Segment::Data { .. } => {}
        }
    }

    /// Must be called at the time of [`wake`](Self::wake).
    pub fn on_timer(&mut self, now: Time) {
        self.departures.on_timer(now);
        self.serve_controller(now);
        if self.config.stop.is_some_and(|stop| stop <= now) {
            self.stop(now);
        }
        if self.opens_at().is_some_and(|start| start <= now) {
            if self.config.handshake {
                self.phase = Phase::Opening { sent: None, again: false };
            } else {
                self.phase = Phase::Open;
                self.finish(now);
            }
        }
        if self.timer.is_due(now) {
            self.on_timeout(now);
        }
    }

    /// When the connection opens; `None` if it has already opened or will not open.
    fn opens_at(&self) -> Option<Time> {
        (self.phase == Phase::Closed && self.finished.is_none()).then_some(self.config.start)
    }

    /// Stops the application. If the sender has not started to open the connection, the connection stays closed.
    pub fn stop(&mut self, now: Time) {
        self.config.stop = None;
        self.application.stop(self.board.next());
        self.finish(now);
    }

    /// Adds `bytes` of application data to be sent, if the supply is [`Supply::Written`](super::Supply::Written).
    pub fn write(&mut self, bytes: u64) {
        self.application.written_mut().write(bytes);
    }

    /// Sets whether partial segments are sent at once (`TCP_NODELAY`).
    pub fn set_no_delay(&mut self, on: bool) {
        self.application.written_mut().set_no_delay(on);
    }

    /// Number of written bytes that are cumulatively acknowledged, and number of written bytes that are not sent yet.
    pub fn written(&self) -> (u64, u64) {
        let written = self.application.written();
        (written.bytes_before(self.board.first()), written.bytes_from(self.board.next()))
    }

    /// Sets the congestion window of a window law to `segments`, or to one segment if `segments` is less than 1. Has no
    /// effect if a controller is used instead of a window law.
    pub fn reset_to(&mut self, segments: f64) {
        self.law.reset_to(segments);
    }

    /// Passes an estimate of the path's bandwidth to the window law. Has no effect if a controller is used instead of a
    /// window law.
    pub fn on_bandwidth(&mut self, now: Time, estimate: &BandwidthEstimate) {
        self.law.on_bandwidth(now.assume_clock(), estimate);
    }

    /// Returns the next segment to send at `now`. Call this until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Segment> {
        match self.phase {
            Phase::Closed | Phase::Opening { sent: Some(_), .. } => None,
            Phase::Opening { sent: None, again } => {
                self.phase = Phase::Opening { sent: Some(now), again };
                self.timer.set(Some(now + self.round_trips.timeout()));
                Some(Segment::Syn)
            }
            Phase::Open | Phase::Recovery { .. } | Phase::Loss { .. } => {
                let next = self.choose(now);
                self.paced = next.is_some_and(|next| !self.pressing && !self.may_leave(now, next));
                next.filter(|_| !self.paced).map(|next| self.transmit(now, next))
            }
        }
    }

    /// When to call [`on_timer`](Self::on_timer); `None` if no call is needed.
    pub fn wake(&self) -> Option<Time> {
        let law = self.controller_timer();
        let own = [self.opens_at(), self.config.stop, self.timer.wake(), self.departures.wake()];
        own.into_iter().chain([law]).flatten().min()
    }

    /// When all data was acknowledged and no more data could follow; `None` before.
    pub const fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// The state and the counters of the sender.
    pub fn stats(&self) -> SenderStats {
        // If a window law does not use the bandwidth, it reports no bandwidth. In this case, the connection's own
        // measurement is reported.
        let mut law = self.law.snapshot();
        law.bandwidth = law.bandwidth.or(self.departures.measured());
        let window = self.law.window(self.config.packet);
        SenderStats {
            window: if window.is_finite() { window } else { self.board.in_flight() as f64 },
            slow_start_threshold: self.law.slow_start_threshold(),
            in_flight: self.board.in_flight(),
            round_trip: self.last_round_trip,
            smoothed_round_trip: self.round_trips.smoothed(),
            min_round_trip: self.round_trips.least(),
            sent: self.sent,
            acknowledged: self.acknowledged,
            resent_in_recovery: self.resent_in_recovery,
            resent_after_timeout: self.resent_after_timeout,
            recoveries: self.recoveries,
            timeouts: self.timeouts,
            finished: self.finished,
            law,
        }
    }

    fn open(&mut self, now: Time, window: u64) {
        let Phase::Opening { sent: Some(sent), again } = self.phase else { return };
        (self.phase, self.peer_window) = (Phase::Open, window.max(LEAST_PEER_WINDOW));
        self.timer.set(None);
        if again {
            // After a lost SYN, the retransmission timeout is 3 s (RFC 6298, Sec. 5.7), and the window is one segment
            // (RFC 5681, Sec. 3.1).
            self.round_trips.syn_was_lost();
            self.restart_window = WINDOW_AFTER_LOST_SYN;
            self.law.on_restart(now.assume_clock(), self.restart_window);
        } else {
            self.round_trip(now - sent);
        }
        self.finish(now);
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        if ack.next > self.board.next() || matches!(self.phase, Phase::Closed | Phase::Opening { .. }) {
            return;
        }
        if ack.next >= self.board.first() {
            self.peer_window = ack.window.max(LEAST_PEER_WINDOW);
        }
        let (in_flight, under_way) = (self.board.in_flight(), self.under_way());
        let covered = self.board.advance(ack.next);
        self.application.written_mut().acknowledge(self.board.first());
        if self.config.recovery == LossRecovery::Sack {
            self.board.mark_sacked(&ack.sacked);
        }
        if let Some(estimate) = self.departures.on_ack(now, ack.next) {
            self.law.on_bandwidth(now.assume_clock(), &estimate);
        }
        let sample = covered.sent.map(|sent| (now - sent).max(Span::ZERO));
        if covered.segments > 0 {
            self.on_progress(now, covered.segments, sample, in_flight);
        } else if ack.next == self.board.first() && in_flight > 0 && !matches!(self.phase, Phase::Loss { .. }) {
            self.duplicates += 1;
        }
        self.look_for_loss(now);
        self.report(now, sample, under_way);
    }

    /// Handles an acknowledgement that newly covers the first `segments` segments in flight.
    fn on_progress(&mut self, now: Time, segments: u64, sample: Option<Span>, in_flight: u64) {
        self.acknowledged += segments;
        self.timed_out = false;
        if let Some(sample) = sample {
            self.round_trip(sample);
        }
        let mut put_off = true;
        match self.phase {
            Phase::Recovery { end } if self.board.first() < end => {
                if self.config.recovery == LossRecovery::NewReno {
                    // RFC 6582, Sec. 3.2, step 3: a partial acknowledgement of n segments reduces the inflated window
                    // by n - 1 segments. Our choice: the window never becomes smaller than without inflation, even if
                    // duplicate acknowledgements were lost.
                    self.duplicates = self.duplicates.saturating_sub(segments - 1);
                    self.board.mark_first_lost();
                    self.pressing = true;
                    put_off = !std::mem::replace(&mut self.restarted, true);
                }
            }
            Phase::Recovery { .. } => (self.phase, self.duplicates) = (Phase::Open, 0),
            Phase::Closed | Phase::Opening { .. } | Phase::Open | Phase::Loss { .. } => {
                self.duplicates = 0;
                if let Phase::Loss { end } = self.phase
                    && self.board.first() >= end
                {
                    self.phase = Phase::Open;
                }
                let ack = Acknowledged {
                    segments,
                    round_trip: sample,
                    smoothed_round_trip: self.round_trips.smoothed(),
                    min_round_trip: self.round_trips.least(),
                    in_flight,
                    window_limited: self.window_limited,
                };
                self.law.on_ack(now.assume_clock(), &ack);
            }
        }
        if self.board.in_flight() == 0 {
            self.timer.set(None);
        } else if put_off {
            self.timer.set(Some(now + self.round_trips.timeout()));
        }
        self.finish(now);
    }

    /// Starts a fast recovery if a loss is detected (RFC 6675, Sec. 5; RFC 6582, Sec. 3.2, step 2).
    ///
    /// Our interpretation of the RFCs: if a loss is known when a recovery ends, the next recovery starts at once,
    /// without another duplicate acknowledgement. The retransmission timer restarts with the first retransmission (RFC
    /// 6675, Sec. 6), because it could otherwise expire before the retransmission is acknowledged.
    fn look_for_loss(&mut self, now: Time) {
        if self.phase != Phase::Open {
            return;
        }
        let lost = match self.config.recovery {
            LossRecovery::Sack => self.board.first_is_lost(),
            LossRecovery::NewReno => {
                let again = self.recover.is_none_or(|recover| self.board.first() > recover);
                again && self.duplicates >= DUP_THRESH as u64
            }
        };
        if !lost {
            return;
        }
        let end = self.board.next();
        (self.phase, self.recover) = (Phase::Recovery { end }, Some(end));
        (self.pressing, self.restarted) = (true, false);
        self.recoveries += 1;
        self.board.begin_recovery();
        self.departures.on_loss();
        self.timer.set(Some(now + self.round_trips.timeout()));
        self.law.on_loss(now.assume_clock(), self.flight_of_window());
    }

    /// Number of segments in flight, at most the window: segments that limited transmit sent beyond the window do not
    /// count (RFC 5681, Sec. 3.2, step 2).
    fn flight_of_window(&self) -> u64 {
        self.board.in_flight().min(self.window())
    }

    /// The congestion window in whole segments, at least one.
    ///
    /// After a timeout, a controller's window is one segment until new data is acknowledged (RFC 5681, Sec. 3.1). This
    /// applies even if the controller does not react to [`TimedOut`](equipoise::control::Feedback::TimedOut) or sets no
    /// window.
    fn window(&self) -> u64 {
        if self.timed_out && matches!(self.law, Law::Controller(_)) {
            return 1;
        }
        (self.law.window(self.config.packet) as u64).max(1)
    }

    fn on_timeout(&mut self, now: Time) {
        if let Phase::Opening { sent: Some(_), .. } = self.phase {
            self.round_trips.back_off();
            self.phase = Phase::Opening { sent: None, again: true };
            return;
        }
        if self.board.in_flight() == 0 {
            return;
        }
        self.timeouts += 1;
        self.round_trips.back_off();
        let under_way = self.under_way();
        // Only the first expiry of the timer for a segment is reported to the congestion control (RFC 5681, Sec. 3.1).
        if !self.timed_out {
            self.law.on_timeout(now.assume_clock(), self.flight_of_window(), under_way);
            self.timed_out = true;
        }
        self.board.mark_all_lost();
        self.report(now, None, under_way);
        self.departures.on_timeout();
        if let Some(known) = &self.config.bandwidth {
            known.discard();
        }
        let end = self.board.next();
        (self.phase, self.recover) = (Phase::Loss { end }, Some(end));
        (self.duplicates, self.pressing) = (0, true);
    }

    fn round_trip(&mut self, sample: Span) {
        self.last_round_trip = Some(sample);
        self.round_trips.push(sample);
    }

    fn finish(&mut self, now: Time) {
        if self.finished.is_none() && self.board.in_flight() == 0 && self.application.ends_at(self.board.next()) {
            self.finished = Some(now);
        }
    }
}
