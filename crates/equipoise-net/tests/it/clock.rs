use std::time::SystemTime;

use equipoise::units::Span;
use equipoise_net::{Clock, Watchdog};

fn wall_nanos() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
    u64::try_from(since.as_nanos()).expect("it is earlier than 2554")
}

#[test]
fn the_clock_shows_the_wall_clocks_time_and_never_runs_backwards() {
    let clock = Clock::new();
    let (before, now, after) = (wall_nanos(), clock.now().as_nanos(), wall_nanos());
    let error = 1_000_000;
    assert!(before - error <= now && now <= after + error, "{before} <= {now} <= {after}, ± {error} ns");
    let times: Vec<_> = (0..10_000).map(|_| clock.now()).collect();
    assert!(times.is_sorted());
}

#[test]
fn clones_tell_the_same_time() {
    let clock = Clock::new();
    let (before, between, after) = (clock.now(), clock.clone().now(), clock.now());
    assert!(before <= between && between <= after);
}

#[test]
fn a_sleep_never_ends_early() {
    let clock = Clock::new();
    for micros in [0, 50, 1_000, 20_000] {
        let until = clock.now() + Span::from_micros(micros);
        clock.sleep_until(until);
        assert!(clock.now() >= until, "{micros} us");
    }
    let before = clock.now();
    clock.sleep_until(before - Span::from_secs(1));
    assert!(clock.now() - before < Span::from_millis(900), "a moment that has passed is not waited for");
}

/// Stalls are not predictable. Therefore this test only checks that the watchdog runs and ends, and that recorded
/// stalls are in order and within the run.
#[test]
fn a_watchdog_tells_stalls_in_order_and_within_its_watch() {
    let clock = Clock::new();
    let start = clock.now();
    let watchdog = Watchdog::start(&clock).unwrap();
    clock.sleep_until(start + Span::from_millis(200));
    let stalls = watchdog.stop().unwrap();
    let end = clock.now();
    assert!(stalls.list.iter().all(|stall| start <= stall.start && stall.start < stall.end && stall.end <= end));
    assert!(stalls.list.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert_eq!(stalls.omitted, 0);
}
