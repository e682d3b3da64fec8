use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use equipoise::units::{Instant, Span};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// The clock of this host, which all its sockets share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClock {}

/// A moment on the host's clock.
pub type Time = Instant<HostClock>;

/// How long a measured distance between the wall clock and the monotonic clock is relied on.
const TRUST: Span = Span::from_millis(500);

/// The host's time: `CLOCK_MONOTONIC` plus its distance from `CLOCK_REALTIME`, fixed when the clock was made.
///
/// It reads like the wall clock but never steps. Clones tell the same time; two clocks made apart need not.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
}

/// Nanoseconds throughout. The atomics may be read torn from each other: a pair of old and new only leads to another
/// measurement.
#[derive(Debug)]
struct Shared {
    /// Realtime less monotonic, when the clock was made.
    made: i64,
    /// Realtime less monotonic, as last measured.
    current: AtomicI64,
    /// Monotonic time of that measurement.
    measured: AtomicI64,
}

impl Clock {
    /// A clock that agrees with the wall clock at this moment.
    pub fn new() -> Self {
        let distance = Distance::measure();
        let shared = Shared {
            made: distance.nanos,
            current: AtomicI64::new(distance.nanos),
            measured: AtomicI64::new(distance.monotonic),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.at_monotonic(read(ClockId::CLOCK_MONOTONIC))
    }

    /// The time at which the wall clock showed `nanos` since the Unix epoch, for a moment that has just passed.
    ///
    /// The kernel stamps arrivals with the wall clock. Its distance from this clock is measured anew twice a second, and
    /// at once for a stamp that seems to lie ahead, so that a wall clock that is stepped does not move delays for longer.
    /// Never later than [`now`](Self::now).
    pub fn from_realtime(&self, nanos: u64) -> Time {
        let stamp = i64::try_from(nanos).unwrap_or(i64::MAX);
        let monotonic = read(ClockId::CLOCK_MONOTONIC);
        let age = monotonic.saturating_sub(self.shared.measured.load(Ordering::Relaxed));
        let ahead = |distance: i64| stamp.saturating_sub(distance) > monotonic;
        let mut distance = self.shared.current.load(Ordering::Relaxed);
        if age > TRUST.as_nanos() || ahead(distance) {
            let measured = Distance::measure();
            distance = measured.unless_within_error_of(distance);
            self.shared.current.store(distance, Ordering::Relaxed);
            self.shared.measured.store(measured.monotonic, Ordering::Relaxed);
        }
        self.at_monotonic(stamp.saturating_sub(distance).min(monotonic))
    }

    /// Sleeps until `at`, by an absolute deadline; returns at once where that has passed.
    ///
    /// Wakes some 30 to 50 µs late on a quiet machine.
    pub fn sleep_until(&self, at: Time) {
        let monotonic = (at.as_nanos() as i64).saturating_sub(self.shared.made).max(0);
        let request = TimeSpec::new(monotonic / 1_000_000_000, monotonic % 1_000_000_000);
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &request)
            == Err(Errno::EINTR)
        {}
    }

    fn at_monotonic(&self, nanos: i64) -> Time {
        Time::from_nanos(nanos.saturating_add(self.shared.made).max(0) as u64)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// How far the wall clock is from the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// Realtime less monotonic.
    nanos: i64,
    /// How far off `nanos` may be.
    error: i64,
    /// Monotonic time of the measurement.
    monotonic: i64,
}

impl Distance {
    /// Reads the wall clock between two readings of the monotonic one; of five such triples the tightest counts, as one
    /// may have been interrupted.
    fn measure() -> Self {
        let once = || {
            let before = read(ClockId::CLOCK_MONOTONIC);
            let wall = read(ClockId::CLOCK_REALTIME);
            let after = read(ClockId::CLOCK_MONOTONIC);
            let middle = before + (after - before) / 2;
            Self { nanos: wall - middle, error: after - before, monotonic: after }
        };
        (0..4).fold(once(), |best, _| {
            let next = once();
            if next.error < best.error { next } else { best }
        })
    }

    /// `known`, where the measurement does not contradict it: its own error is no reason to move a time.
    fn unless_within_error_of(self, known: i64) -> i64 {
        if self.nanos.abs_diff(known) <= self.error.unsigned_abs() { known } else { self.nanos }
    }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock).expect("Linux always has the monotonic and the realtime clock");
    time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, every half second a measured delay jumps by the error of reading two clocks.
    #[test]
    fn a_measurement_within_its_error_changes_nothing() {
        let measured = Distance { nanos: 1_000_040, error: 50, monotonic: 0 };
        assert_eq!(measured.unless_within_error_of(1_000_000), 1_000_000);
    }

    #[test]
    fn a_stepped_wall_clock_is_followed() {
        let measured = Distance { nanos: -5_000_000_000, error: 50, monotonic: 0 };
        assert_eq!(measured.unless_within_error_of(1_000_000), -5_000_000_000);
    }

    /// If it fails, a wall clock set back or forth lengthens or shortens delays by as much.
    #[test]
    fn a_stale_distance_is_measured_anew_and_the_stamp_is_right_again() {
        let clock = Clock::new();
        clock.shared.current.fetch_add(3_000_000_000, Ordering::Relaxed);
        clock.shared.measured.fetch_sub(2 * TRUST.as_nanos(), Ordering::Relaxed);
        let before = clock.now();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        // The two distances may each be off by their error.
        assert!(time >= before - Span::from_micros(100) && time <= clock.now(), "{time:?} is not after {before:?}");
    }

    #[test]
    fn a_stamp_ahead_of_the_clock_is_now_and_not_later() {
        let clock = Clock::new();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64 + 60_000_000_000);
        assert!(time <= clock.now());
    }
}
