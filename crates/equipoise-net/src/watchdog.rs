use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::Span;

use crate::thread::Worker;
use crate::{Clock, NetError, Time};

/// Time between two wake-ups of the watchdog.
const PERIOD: Span = Span::from_millis(1);

/// If the time between two wake-ups is longer than this, it counts as a stall. Our choice: a hundred times the usual
/// lateness of a timer. A shorter stall hardly changes a mean delay.
const THRESHOLD: Span = Span::from_millis(5);

/// Maximum number of stalls that are stored; further stalls are only counted.
const KEPT: usize = 10_000;

/// A period in which the watchdog should have run but did not. Probably no other thread ran in this period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the watchdog last ran before the stall.
    pub start: Time,
    /// When the watchdog ran again after the stall.
    pub end: Time,
}

/// The stalls that a watchdog has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The recorded stalls in time order.
    pub list: Vec<Stall>,
    /// Number of further stalls that are not in the list.
    pub omitted: u64,
}

impl Stalls {
    /// Records a stall if the time from `previous` to `now` is longer than `THRESHOLD`.
    fn note(&mut self, previous: Time, now: Time) {
        if now - previous <= THRESHOLD {
            return;
        }
        if self.list.len() < KEPT {
            self.list.push(Stall { start: previous, end: now });
        } else {
            self.omitted += 1;
        }
    }
}

/// A thread that wakes every millisecond and records when it woke too late.
///
/// The host of a virtual machine may suspend the machine for tens of milliseconds, and the machine is not notified. A
/// measurement that includes such a period does not describe the network.
#[derive(Debug)]
pub struct Watchdog {
    worker: Worker<()>,
    log: StallLog,
}

/// The stalls recorded so far, which other threads can read.
#[derive(Clone, Debug, Default)]
pub(crate) struct StallLog {
    stalls: Arc<Mutex<Stalls>>,
}

impl StallLog {
    /// Whether a recorded stall overlaps the time from `start` to `end`.
    pub(crate) fn meets(&self, start: Time, end: Time) -> bool {
        self.read(|stalls| {
            stalls.list.iter().rev().take_while(|stall| stall.end >= start).any(|stall| stall.start <= end)
        })
    }

    /// Records a stall from `previous` to `now`, if this time is long enough.
    pub(crate) fn note(&self, previous: Time, now: Time) {
        self.read(|stalls| stalls.note(previous, now));
    }

    fn read<T>(&self, read: impl FnOnce(&mut Stalls) -> T) -> T {
        // Each change of the list is one step. Therefore the list is consistent even if a thread panicked.
        read(&mut self.stalls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Watchdog {
    /// Starts the watchdog.
    ///
    /// # Errors
    /// [`NetError::Spawn`] if no thread can be started.
    pub fn start(clock: &Clock) -> Result<Self, NetError> {
        let (clock, log) = (clock.clone(), StallLog::default());
        let to = log.clone();
        let worker = Worker::spawn("watchdog", move |stop| watch(&clock, &to, stop))?;
        Ok(Self { worker, log })
    }

    /// Returns a view of the recorded stalls, which also shows stalls that are recorded later.
    pub(crate) fn log(&self) -> StallLog {
        self.log.clone()
    }

    /// Ends the watchdog's thread. Returns the recorded stalls.
    ///
    /// # Errors
    /// [`NetError::Panicked`] if the thread panicked.
    pub fn stop(self) -> Result<Stalls, NetError> {
        self.worker.request_stop();
        self.worker.join()?;
        Ok(self.log.read(|stalls| stalls.clone()))
    }
}

fn watch(clock: &Clock, log: &StallLog, stop: &AtomicBool) {
    let mut previous = clock.now();
    while !stop.load(Ordering::Relaxed) {
        clock.sleep_until(previous + PERIOD);
        let now = clock.now();
        log.note(previous, now);
        previous = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn only_a_gap_above_the_threshold_is_a_stall() {
        let mut stalls = Stalls::default();
        for (previous, now) in [(0, 1), (1, 6), (6, 76), (76, 77)] {
            stalls.note(at(previous), at(now));
        }
        assert_eq!(stalls, Stalls { list: vec![Stall { start: at(6), end: at(76) }], omitted: 0 });
    }

    #[test]
    fn a_stall_meets_what_it_overlaps() {
        let log = StallLog::default();
        log.note(at(10), at(20));
        log.note(at(40), at(50));
        let met: Vec<_> = [(0, 9), (0, 10), (12, 13), (20, 30), (21, 39), (45, 90), (51, 90)]
            .iter()
            .map(|&(start, end)| log.meets(at(start), at(end)))
            .collect();
        assert_eq!(met, [false, true, true, true, false, true, false]);
    }

    #[test]
    fn a_machine_that_stalls_all_day_does_not_fill_the_memory() {
        let mut stalls = Stalls::default();
        for second in 0..KEPT as i64 + 7 {
            stalls.note(at(1000 * second), at(1000 * second + 20));
        }
        assert_eq!((stalls.list.len(), stalls.omitted), (KEPT, 7));
    }
}
