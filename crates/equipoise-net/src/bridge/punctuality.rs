use std::mem;

use equipoise::units::Span;

use crate::lateness::LatenessMeter;
use crate::watchdog::StallLog;
use crate::{Lateness, Time};

/// A stall invalidates a whole window of this length. Our choice: long compared with a stall, short compared with a
/// run.
const WINDOW: Span = Span::from_millis(100);

/// Packets that were delayed by a stall still leave during this time after it. Our choice: enough for some hundred
/// packets.
const SETTLING: Span = Span::from_millis(5);

/// Punctuality of a bridge: how late packets left, compared with the ideal times of their path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Punctuality {
    /// Over all packets; `None` if no packet left.
    pub all: Option<Lateness>,
    /// Over the packets in windows of 100 ms without a stall of the machine; `None` if there are none.
    pub quiet: Option<Lateness>,
    /// Packets that left.
    pub packets: u64,
    /// The number of packets in windows without a stall.
    pub quiet_packets: u64,
}

/// Collects lateness, with and without the windows in which the machine stalled.
///
/// A window is evaluated only after the next window has passed, so that the watchdog has recorded all of its stalls.
#[derive(Debug)]
pub(super) struct PunctualityMeter {
    all: LatenessMeter,
    quiet: LatenessMeter,
    log: StallLog,
    current: Window,
    previous: Window,
}

#[derive(Debug, Default)]
struct Window {
    start: Time,
    lateness: Vec<Span>,
}

impl PunctualityMeter {
    /// An empty meter; `log` provides the stalls.
    pub(super) fn new(log: StallLog) -> Self {
        let (all, quiet) = (LatenessMeter::new(), LatenessMeter::new());
        Self { all, quiet, log, current: Window::default(), previous: Window::default() }
    }

    /// Records a packet that was due at `due` and left at `now`.
    pub(super) fn record(&mut self, now: Time, due: Time) {
        if now >= self.current.start + WINDOW {
            self.judge_previous();
            mem::swap(&mut self.current, &mut self.previous);
            self.current.start = now;
        }
        let late = now - due;
        self.all.record(late);
        self.current.lateness.push(late);
    }

    /// The results, after the watchdog has run for the last time.
    pub(super) fn finish(&mut self) -> Punctuality {
        self.judge_previous();
        mem::swap(&mut self.current, &mut self.previous);
        self.judge_previous();
        Punctuality {
            all: self.all.summary(),
            quiet: self.quiet.summary(),
            packets: self.all.count(),
            quiet_packets: self.quiet.count(),
        }
    }

    fn judge_previous(&mut self) {
        let Window { start, lateness } = &mut self.previous;
        if !self.log.meets(*start - SETTLING, *start + WINDOW) {
            for late in lateness.iter() {
                self.quiet.record(*late);
            }
        }
        lateness.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: i64) -> Time {
        Time::ZERO + Span::from_secs(1) + Span::from_millis(millis)
    }

    #[test]
    fn windows_with_a_stall_count_apart() {
        let log = StallLog::default();
        let mut meter = PunctualityMeter::new(log.clone());
        for ms in 0..1000 {
            // The machine stalls from 420 to 460; packets due in that time leave at 460.
            let stood = (420..460).contains(&ms);
            let now = if stood { millis(460) } else { millis(ms) + Span::from_micros(10) };
            if ms == 460 {
                log.note(millis(420), millis(460));
            }
            meter.record(now, millis(ms));
        }
        let found = meter.finish();
        assert_eq!((found.packets, found.quiet_packets), (1000, 900));
        assert_eq!(found.all.map(|lateness| lateness.max), Some(Span::from_millis(40)));
        assert_eq!(found.quiet.map(|lateness| lateness.max), Some(Span::from_micros(10)));
    }
}
