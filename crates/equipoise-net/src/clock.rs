use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

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

/// A stamp that seems older than this has the distance measured anew, in case the wall clock was set back. Ours: readers
/// are seldom so late, and the measurement costs half a microsecond.
const DOUBTFUL_AGE: Span = Span::from_millis(10);

/// A distance that changed by more than this, plus a thousandth of the time since it was measured, was a step and no
/// slewing: Linux slews by 500 ppm at the most (adjtimex(2)).
const LEAST_STEP: Span = Span::from_millis(1);

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
    /// How often the distance was found to have stepped.
    steps: AtomicU64,
}

impl Clock {
    /// A clock that agrees with the wall clock at this moment.
    pub fn new() -> Self {
        let distance = Distance::measure();
        let shared = Shared {
            made: distance.nanos,
            current: AtomicI64::new(distance.nanos),
            measured: AtomicI64::new(distance.monotonic),
            steps: AtomicU64::new(0),
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
    /// at once for a stamp that seems to lie ahead or far back, so that a wall clock that is set moves the delays of those
    /// datagrams only that were stamped before and read after. A step back by less than 10 ms moves them for half a second.
    /// Never later than [`now`](Self::now).
    pub fn from_realtime(&self, nanos: u64) -> Time {
        let stamp = i64::try_from(nanos).unwrap_or(i64::MAX);
        let monotonic = read(ClockId::CLOCK_MONOTONIC);
        let age = monotonic.saturating_sub(self.shared.measured.load(Ordering::Relaxed));
        let mut distance = self.shared.current.load(Ordering::Relaxed);
        let shown_age = monotonic.saturating_sub(stamp.saturating_sub(distance));
        if age > TRUST.as_nanos() || !(0..=DOUBTFUL_AGE.as_nanos()).contains(&shown_age) {
            distance = self.measure_anew(distance, age);
        }
        self.at_monotonic(stamp.saturating_sub(distance).min(monotonic))
    }

    /// How often the wall clock was found to have been set, by a millisecond or more, since this clock was made.
    ///
    /// Noticed by [`from_realtime`](Self::from_realtime) only, so with the next datagram. It moves no time that this clock
    /// tells.
    pub fn wall_clock_steps(&self) -> u64 {
        self.shared.steps.load(Ordering::Relaxed)
    }

    /// The distance as it is now, where `known` was measured `age` nanoseconds ago.
    fn measure_anew(&self, known: i64, age: i64) -> i64 {
        let measured = Distance::measure();
        let distance = measured.unless_within_error_of(known);
        // Of threads that find the same step, one counts it.
        let was = self.shared.current.swap(distance, Ordering::Relaxed);
        self.shared.measured.store(measured.monotonic, Ordering::Relaxed);
        let slewed = LEAST_STEP.as_nanos().unsigned_abs().saturating_add(age.unsigned_abs() / 1000);
        if distance.abs_diff(was) > slewed.saturating_add(measured.error.unsigned_abs()) {
            self.shared.steps.fetch_add(1, Ordering::Relaxed);
        }
        distance
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
        assert_eq!(clock.wall_clock_steps(), 1);
        // The two distances may each be off by their error.
        assert!(time >= before - Span::from_micros(100) && time <= clock.now(), "{time:?} is not after {before:?}");
    }

    /// If it fails, a wall clock that is set back makes delays negative for half a second.
    #[test]
    fn a_wall_clock_set_back_is_noticed_by_the_first_stamp() {
        let clock = Clock::new();
        // As if it had been three seconds further when the distance was measured, a moment ago.
        clock.shared.current.fetch_add(3_000_000_000, Ordering::Relaxed);
        let before = clock.now();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        assert!(time >= before - Span::from_micros(100), "{time:?} is not after {before:?}");
        let again = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        assert!(again >= before && clock.wall_clock_steps() == 1);
    }

    /// Stamps of datagrams that waited are old, and no reason to count.
    #[test]
    fn an_old_stamp_stays_old_and_counts_as_no_step() {
        let clock = Clock::new();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64 - 60_000_000);
        assert!(time <= clock.now() - Span::from_millis(60));
        assert_eq!(clock.wall_clock_steps(), 0);
    }

    #[test]
    fn a_stamp_ahead_of_the_clock_is_now_and_not_later() {
        let clock = Clock::new();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64 + 60_000_000_000);
        assert!(time <= clock.now());
    }
}
