use std::mem;

use equipoise::units::Span;

use crate::lateness::LatenessMeter;
use crate::watchdog::StallLog;
use crate::{Lateness, Time};

/// Length of a measurement window. Packets of a window in which the machine stalled count only in [`Punctuality::all`].
/// Our choice: long compared with a stall, short compared with a run.
const WINDOW: Span = Span::from_millis(100);

/// Packets that were delayed by a stall leave within this time after the stall. Our choice: the bridge can send several
/// hundred packets in this time.
const SETTLING: Span = Span::from_millis(5);

/// The punctuality of a bridge: how late packets left, compared with their departure times in the emulated path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Punctuality {
    /// Lateness of all packets; `None` if no packet left.
    pub all: Option<Lateness>,
    /// Lateness of the packets in windows of 100 ms in which the machine did not stall; `None` if there are no such
    /// packets.
    pub quiet: Option<Lateness>,
    /// Number of packets that left.
    pub packets: u64,
    /// Number of packets that left in windows of 100 ms in which the machine did not stall.
    pub quiet_packets: u64,
}

/// Measures the lateness of all packets, and the lateness of the packets in windows in which the machine did not stall.
///
/// A window is evaluated after the next window has ended. At that time, the watchdog has recorded all stalls of the
/// evaluated window.
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
    /// A meter without packets. `log` contains the stalls of the machine.
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

    /// Returns the results. Must be called after the watchdog has stopped.
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
            // The machine stalls from 420 to 460 ms; packets that are due in this time leave at 460 ms.
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
