//! The transmission of segments: which segment is sent next, and whether the segment may leave now.

use equipoise::units::Rate;

use super::{Phase, Sender};
use crate::Time;
use crate::tcp::{LossRecovery, Segment};

/// The segment that the sender sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A segment that was never sent; the number of the segment.
    New(u64),
    /// A retransmission of the segment with this number.
    Again(u64),
    /// A retransmission of the last unacknowledged segment, at most once per recovery (RFC 6675, Sec. 4, `NextSeg`,
    /// rule 4). `end` was the number of the next new segment when the recovery began.
    Rescue { number: u64, end: u64 },
}

/// Before a recovery, each duplicate acknowledgement allows the sender to send a new segment beyond the window. This is
/// the maximum number of such segments (RFC 3042, Sec. 2).
const LIMITED_TRANSMIT: u64 = 2;
/// In slow start, a sender that measures bandwidth is paced at this multiple of one window per round-trip time. The
/// value is that of Linux.
const SLOW_START_GAIN: f64 = 2.0;
/// After slow start, a sender that measures bandwidth is paced at this multiple of one window per round-trip time. The
/// multiple is above 1, so that the window limits the rate. The value is our choice. With the value of Linux, 1.2, a
/// sender is silent for a sixth of each round-trip time. Other connections that measure bandwidth mistake this silence
/// for free capacity.
const PACING_GAIN: f64 = 1.05;

impl Sender {
    /// Returns the segment to send next, as far as the windows allow (RFC 6675, Sec. 4, `NextSeg`).
    pub(super) fn choose(&mut self, now: Time) -> Option<Next> {
        if self.pressing
            && let Some(number) = self.board.next_lost()
        {
            return Some(Next::Again(number));
        }
        self.pressing = false;
        self.restart_after_idleness(now);
        if self.pipe() >= self.window() {
            self.window_limited = true;
            return None;
        }
        if let Some(number) = self.board.next_lost() {
            return Some(Next::Again(number));
        }
        let next = self.board.next();
        self.application.written_mut().flush(self.board.in_flight() == 0);
        let fits = self.board.in_flight() < self.peer_window;
        if fits && self.application.has(next, now) {
            return Some(Next::New(next));
        }
        self.window_limited = false;
        if fits {
            self.departures.hold(self.application.next_at(next).filter(|at| *at > now));
        }
        self.without_new_data()
    }

    /// Returns a segment that recovery may retransmit if no new data can be sent (RFC 6675, Sec. 4, `NextSeg`, rules 3
    /// and 4).
    fn without_new_data(&mut self) -> Option<Next> {
        let Phase::Recovery { end } = self.phase else { return None };
        if self.config.recovery != LossRecovery::Sack {
            return None;
        }
        if let Some(number) = self.board.next_below_highest() {
            return Some(Next::Again(number));
        }
        let again = self.rescued.is_none_or(|rescued| self.board.first() > rescued);
        let number = self.board.last_unsacked().filter(|_| again)?;
        Some(Next::Rescue { number, end })
    }

    /// Number of segments that the sender assumes to be on the path.
    fn pipe(&self) -> u64 {
        let counted = match (self.config.recovery, self.phase) {
            // Without limited transmit, duplicate acknowledgements do not allow new segments before recovery.
            (_, Phase::Open) if !self.config.limited_transmit => return self.board.in_flight(),
            (LossRecovery::Sack, _) => return self.board.pipe(),
            (LossRecovery::NewReno, Phase::Open) => self.duplicates.min(LIMITED_TRANSMIT),
            (LossRecovery::NewReno, _) => self.duplicates,
        };
        self.board.pipe().saturating_sub(counted)
    }

    fn restart_after_idleness(&mut self, now: Time) {
        let idle = self.last_sent.is_some_and(|last| now - last > self.round_trips.timeout());
        if idle && self.config.idle_restart && self.board.in_flight() == 0 {
            self.law.on_restart(now.assume_clock(), self.restart_window);
            self.last_sent = None;
        }
    }

    /// Whether pacing and the bandwidth measurement allow a segment to leave at `now`.
    pub(super) fn may_leave(&mut self, now: Time, next: Next) -> bool {
        let room = if let Next::New(number) = next {
            let windows = (self.window() - self.pipe()).min(self.peer_window - self.board.in_flight());
            Some(windows.min(self.application.available(number, now)))
        } else {
            None
        };
        self.departures.allow(now, self.pace(), room)
    }

    /// The pacing rate. A connection that measures bandwidth is paced even if the congestion control sets no rate,
    /// because the measurement detects only cross traffic that arrives between two segments.
    fn pace(&self) -> Option<Rate> {
        self.law.pacing_rate().or_else(|| {
            let round_trip_s = self.round_trips.smoothed().filter(|_| self.config.measurement.is_some())?.as_secs_f64();
            let window = self.law.window(self.config.packet);
            let slow_start = self.law.slow_start_threshold().is_none_or(|threshold| window < threshold);
            let gain = if slow_start { SLOW_START_GAIN } else { PACING_GAIN };
            Rate::from_bps_f64(gain * window * self.config.packet.as_bits() as f64 / round_trip_s)
        })
    }

    pub(super) fn transmit(&mut self, now: Time, next: Next) -> Segment {
        let number = match next {
            Next::New(number) => {
                self.board.push(now);
                number
            }
            Next::Again(number) => {
                self.board.push_again(number, now);
                number
            }
            Next::Rescue { number, end } => {
                self.board.push_rescue(number, now);
                self.rescued = Some(end);
                number
            }
        };
        match (next, self.phase) {
            (Next::New(_), _) => {}
            (_, Phase::Loss { .. }) => self.resent_after_timeout += 1,
            _ => self.resent_in_recovery += 1,
        }
        let segment = Segment::Data { number, payload: self.application.payload(number) };
        let again = !matches!(next, Next::New(_));
        self.departures.on_sent(now, (number, again), segment.size(), self.pace());
        self.report_sent(now, number, segment.size());
        // A transmission starts the timer, but does not restart a running timer (RFC 6298, Sec. 5.1 and 5.6).
        if !self.timer.is_set() {
            self.timer.set(Some(now + self.round_trips.timeout()));
        }
        self.pressing = false;
        self.sent += 1;
        self.last_sent = Some(now);
        segment
    }
}
