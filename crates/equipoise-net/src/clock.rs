use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use equipoise::units::{Instant, Span};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Marks an [`Instant`] as a time of this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClock {}

/// A point in time on the host's clock.
pub type Time = Instant<HostClock>;

/// How long a measured offset between the wall clock and the monotonic clock is used before it is measured again.
const TRUST: Span = Span::from_millis(500);

/// If a timestamp seems older than this, the offset between the wall clock and the monotonic clock is measured again,
/// because the wall clock may have been set back. Our choice: datagrams are seldom read that late, and a measurement
/// takes 0.5 µs.
const DOUBTFUL_AGE: Span = Span::from_millis(10);

/// If the offset between the wall clock and the monotonic clock changed by more than this, the wall clock was stepped.
/// A thousandth of the time since the last measurement is allowed in addition, because Linux slews the wall clock by up
/// to 500 ppm (adjtimex(2)).
const LEAST_STEP: Span = Span::from_millis(1);

/// The host's time: `CLOCK_MONOTONIC` plus a constant. The constant is `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`,
/// measured when the clock was created.
///
/// The clock shows about the same time as the wall clock, but never steps. All clones of a clock show the same time.
/// Clocks that are created separately may differ.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
}

/// The state that all clones of a clock share; all times are in nanoseconds. `current` is written before `measured`. So
/// a thread that reads a new `measured` also reads the new `current`. A thread that reads only the new `current`
/// measures the offset once more than necessary.
#[derive(Debug)]
struct Shared {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` when the clock was created.
    made: i64,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` at the last measurement.
    current: AtomicI64,
    /// `CLOCK_MONOTONIC` at the last measurement.
    measured: AtomicI64,
    /// Number of detected steps of the wall clock.
    steps: AtomicU64,
}

impl Clock {
    /// Creates a clock and sets it to the current time of the wall clock.
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

    /// The current time.
    pub fn now(&self) -> Time {
        self.at_monotonic(read(ClockId::CLOCK_MONOTONIC))
    }

    /// Converts a recent time of the wall clock, `nanos` since the Unix epoch, into the time of this clock.
    ///
    /// The kernel stamps arrivals with the wall clock. The offset between the clocks is measured again if the last
    /// measurement is older than 0.5 s, or if a timestamp seems to be in the future or older than 10 ms. If the wall
    /// clock is set while a datagram waits to be read, the delay of this datagram is wrong. If the wall clock is set by
    /// less than 10 ms, delays may be wrong for up to 0.5 s. The result is never later than [`now`](Self::now).
    pub fn from_realtime(&self, nanos: u64) -> Time {
        let stamp = i64::try_from(nanos).unwrap_or(i64::MAX);
        let monotonic = read(ClockId::CLOCK_MONOTONIC);
        let age = monotonic.saturating_sub(self.shared.measured.load(Ordering::Acquire));
        let mut distance = self.shared.current.load(Ordering::Relaxed);
        let shown_age = monotonic.saturating_sub(stamp.saturating_sub(distance));
        if age > TRUST.as_nanos() || !(0..=DOUBTFUL_AGE.as_nanos()).contains(&shown_age) {
            distance = self.measure_anew(distance, age);
        }
        self.at_monotonic(stamp.saturating_sub(distance).min(monotonic))
    }

    /// Number of steps of the wall clock, each longer than 1 ms, that were detected since this clock was created.
    ///
    /// Only [`from_realtime`](Self::from_realtime) detects steps, when it converts the timestamp of a datagram that was
    /// received. So a step is not counted before the next datagram is read. Steps do not change the times of this
    /// clock.
    pub fn wall_clock_steps(&self) -> u64 {
        self.shared.steps.load(Ordering::Relaxed)
    }

    /// Measures the offset between the clocks. `known` is the previous offset, which was measured `age` nanoseconds
    /// ago.
    fn measure_anew(&self, known: i64, age: i64) -> i64 {
        let measured = Distance::measure();
        let distance = measured.unless_within_error_of(known);
        // If several threads detect the same step, only one of them counts it.
        let was = self.shared.current.swap(distance, Ordering::Relaxed);
        self.shared.measured.store(measured.monotonic, Ordering::Release);
        let slewed = LEAST_STEP.as_nanos().unsigned_abs().saturating_add(age.unsigned_abs() / 1000);
        if distance.abs_diff(was) > slewed.saturating_add(measured.error.unsigned_abs()) {
            self.shared.steps.fetch_add(1, Ordering::Relaxed);
        }
        distance
    }

    /// Sleeps until the absolute time `at`. Returns at once if this time has passed.
    ///
    /// On a machine without other load, the thread wakes some 30 to 50 µs late.
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

/// The offset of the wall clock from the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, in nanoseconds.
    nanos: i64,
    /// The maximum error of `nanos`.
    error: i64,
    /// `CLOCK_MONOTONIC` at the time of the measurement, in nanoseconds.
    monotonic: i64,
}

impl Distance {
    /// Reads the wall clock between two readings of the monotonic clock. Of five attempts, the shortest is used,
    /// because the others may have been interrupted.
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

    /// Returns the measured offset of the wall clock from the monotonic clock. If it differs from the earlier offset
    /// `known` by at most the error of the measurement, returns `known`, so that measurement errors do not shift times.
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

    /// If this test fails, measured delays jump every half second by the error of reading two clocks.
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

    /// If this test fails, a step of the wall clock changes measured delays by the size of the step.
    #[test]
    fn a_stale_distance_is_measured_anew_and_the_stamp_is_right_again() {
        let clock = Clock::new();
        clock.shared.current.fetch_add(3_000_000_000, Ordering::Relaxed);
        clock.shared.measured.fetch_sub(2 * TRUST.as_nanos(), Ordering::Relaxed);
        let before = clock.now();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        assert_eq!(clock.wall_clock_steps(), 1);
        // Two offsets were measured, at creation and now. The 100 µs allow for the errors of both.
        assert!(time >= before - Span::from_micros(100) && time <= clock.now(), "{time:?} is not after {before:?}");
    }

    /// If this test fails, measured delays are negative for half a second after the wall clock is set back.
    #[test]
    fn a_wall_clock_set_back_is_noticed_by_the_first_stamp() {
        let clock = Clock::new();
        // This imitates a wall clock that was 3 s ahead at the last measurement and was set back a short time ago.
        clock.shared.current.fetch_add(3_000_000_000, Ordering::Relaxed);
        let before = clock.now();
        let time = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        assert!(time >= before - Span::from_micros(100), "{time:?} is not after {before:?}");
        let again = clock.from_realtime(read(ClockId::CLOCK_REALTIME) as u64);
        assert!(again >= before && clock.wall_clock_steps() == 1);
    }

    /// If this test fails, the old timestamp of a datagram that waited in the socket is mistaken for a step of the wall
    /// clock.
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
