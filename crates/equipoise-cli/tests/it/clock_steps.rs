//! Tests of clocks that are set during a session, by 3 s forwards or backwards, at the sender or at the receiver. The
//! hosts are network namespaces, and the sessions run in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use equipoise::units::Span;
use equipoise_net::{Clock, Watchdog};

use crate::clocks::Which;
use crate::faults::{Bench, Told};
use crate::machine::Machine;
use crate::middle::Passing;
use crate::support::{Running, skip};

/// The steps, in order: the host whose clock is set (0 for the sender, 1 for the receiver), and the change of its clock
/// in seconds.
const STEPS: [(usize, i64); 4] = [(0, 3), (0, -3), (1, 3), (1, -3)];
const NAMES: [&str; 2] = ["sender", "receiver"];
/// The rates in this number of intervals before a step are compared with the rates in the same number of intervals
/// after the step. An interval is half a second long.
const WATCHED: usize = 8;
/// If the machine stalls for longer than this, which is one report interval, the test is skipped.
const STALL: Span = Span::from_millis(250);

/// Returns the mean rate in the `watched` intervals before the interval `at`, and the minimum rate in the same number
/// of intervals from `at` on, in bit/s. An interval is half a second long.
fn around(rates: &[f64], at: usize, watched: usize) -> (f64, f64) {
    let before = &rates[at - watched..at];
    let least = rates[at..].iter().take(watched).copied().fold(f64::MAX, f64::min);
    (before.iter().sum::<f64>() / watched as f64, least)
}

/// Runs a whole session, and calls `act` when the session has started. If the machine was too busy for the test, prints
/// the reason and returns `None`.
#[expect(clippy::print_stdout, reason = "it says how far off the machine was")]
fn session(bench: &Bench, seconds: u32, act: impl FnOnce(Instant, &Running, &Running)) -> Option<Told> {
    let watchdog = Watchdog::start(&Clock::new()).expect("a thread");
    let mut receiver = bench.receiver("receiver.json", &["--one-off"]);
    let mut sender = bench.sender(seconds, &[]);
    act(Instant::now(), &sender, &receiver);
    sender.finish();
    receiver.finish();
    let told = bench.told();
    let longest = watchdog.stop().expect("it ran").list.iter().map(|stall| stall.end - stall.start).max();
    let longest = longest.unwrap_or(Span::ZERO);
    let late = told.sender["end"]["duration_s"].as_f64().expect("a number") - f64::from(seconds);
    if longest > STALL || late > STALL.as_secs_f64() {
        println!("the machine stalled for {longest}, and the sender ended {late:.1} s late");
        skip("a machine that never stalls for a quarter of a second");
        return None;
    }
    Some(told)
}

fn wait_until(start: Instant, seconds: u64) {
    thread::sleep((start + Duration::from_secs(seconds)).saturating_duration_since(Instant::now()));
}

/// Returns, for each end, how many steps of its own wall clock it has detected.
fn noticed(told: &Told) -> [Option<u64>; 2] {
    [&told.sender["end"], &told.receiver].map(|end| end["wall_clock_steps"].as_u64())
}

/// The fast test of this file: the clock is set once, after one second, and the delays are checked.
#[test]
fn a_senders_wall_clock_that_is_set_once_is_noticed_and_moves_neither_delay_nor_rate() {
    let Some(mut bench) = Bench::new(Machine::shared(), |_: &Passing| vec![0]) else { return };
    if !bench.give_clocks() {
        return;
    }
    let told = session(&bench, 3, |start, _, _| {
        wait_until(start, 1);
        bench.clocks().set(0, Which::Wall, 3);
    });
    let Some(told) = told else { return };
    told.hold("the sender's wall clock set by +3 s");
    assert_eq!(noticed(&told), [Some(1), Some(0)]);
    assert_eq!(told.sender["end"]["clock_steps"].as_array().map(Vec::len), Some(0), "{}", told.sender["end"]);
    let intervals = told.sender["intervals"].as_array().expect("intervals");
    let delays: Vec<f64> = intervals.iter().filter_map(|interval| interval["delay_mean_s"].as_f64()).collect();
    assert!(delays.len() >= 4 && delays.iter().all(|delay| (0.0..0.5).contains(delay)), "{delays:?}");
    let (before, least) = around(&told.rates(), 2, 2);
    assert!(least > 0.4 * before, "{:?}", told.rates());
}

/// If this test fails, the measured delays change when an administrator or a time server sets a host's clock. The rate
/// then changes, too.
#[test]
#[ignore = "real time: 31 s, on a quiet machine"]
fn a_wall_clock_that_is_set_is_noticed_and_moves_neither_delay_nor_rate() {
    const FIRST_S: u64 = 8;
    const EVERY_S: u64 = 5;
    let Some(mut bench) = Bench::new(Machine::half(), |_: &Passing| vec![0]) else { return };
    if !bench.give_clocks() {
        return;
    }
    let at = |number: usize| FIRST_S + EVERY_S * number as u64;
    let told = session(&bench, 30, |start, _, _| {
        for (number, (side, by)) in STEPS.into_iter().enumerate() {
            wait_until(start, at(number));
            bench.clocks().set(side, Which::Wall, by);
        }
    });
    let Some(told) = told else { return };
    told.hold("wall clocks set by +-3 s");
    assert_eq!(noticed(&told), [Some(2), Some(2)]);
    assert_eq!(told.sender["end"]["clock_steps"].as_array().map(Vec::len), Some(0), "{}", told.sender["end"]);
    for (number, (side, by)) in STEPS.into_iter().enumerate() {
        let (before, least) = around(&told.rates(), 2 * at(number) as usize, WATCHED);
        println!("wall clock of the {} set by {by:+} s: from {before:.0} to {least:.0} bit/s at least", NAMES[side]);
        assert!(least > 0.4 * before, "at most one halving, where a busy machine adds a queue: {:?}", told.rates());
    }
}

/// The monotonic clock of a host jumps if the host is a virtual machine that is moved, and stops while the host is
/// suspended.
///
/// If this test fails, a jump of one host's clock is measured as delay.
#[test]
#[ignore = "real time: 43 s, on a quiet machine"]
fn a_session_clock_that_jumps_or_stalled_is_noticed_and_the_rate_comes_back() {
    const FIRST_S: u64 = 8;
    const EVERY_S: u64 = 9;
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = cut.clone();
    let fate = move |_: &Passing| if is_cut.load(Ordering::Relaxed) { vec![] } else { vec![0] };
    let Some(mut bench) = Bench::new(Machine::half(), fate) else { return };
    if !bench.give_clocks() {
        return;
    }
    let at = |number: usize| FIRST_S + EVERY_S * number as u64;
    let told = session(&bench, 42, |start, sender, receiver| {
        for (number, (side, by)) in STEPS.into_iter().enumerate() {
            wait_until(start, at(number));
            if by > 0 {
                bench.clocks().set(side, Which::Monotonic, by);
                continue;
            }
            // A suspended machine receives nothing, and its monotonic clock does not advance. The test simulates both.
            let process = [sender, receiver][side];
            process.signal("STOP");
            cut.store(true, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(by.unsigned_abs()));
            bench.clocks().set(side, Which::Monotonic, by);
            cut.store(false, Ordering::Relaxed);
            process.signal("CONT");
        }
    });
    let Some(told) = told else { return };
    told.hold("session clocks set by +-3 s");
    assert_eq!(noticed(&told), [Some(2), Some(2)], "the wall clock did not go along");
    let found = told.sender["end"]["clock_steps"].as_array().expect("a list");
    let found: Vec<f64> = found.iter().filter_map(serde_json::Value::as_f64).collect();
    // A step is the change of the difference "receiver's clock minus sender's clock".
    let made = STEPS.map(|(side, by)| if side == 0 { -by as f64 } else { by as f64 });
    assert_eq!(found.len(), made.len(), "{found:?}");
    assert!(found.iter().zip(made).all(|(found, made)| (found - made).abs() < 0.1), "{found:?}");
    // The times in the results are those of the sender's clock, which the earlier steps have changed.
    let mut sender_ahead = 0;
    for (number, (side, by)) in STEPS.into_iter().enumerate() {
        let from = 2 * (at(number) as i64 + sender_ahead) as usize;
        sender_ahead += if side == 0 { by } else { 0 };
        // A step of 3 s leaves six intervals of half a second without media in two cases: the sender's clock was set
        // forward, or the receiver was suspended.
        let until = from + if (side == 0) == (by > 0) { 6 } else { 0 };
        let (before, least) = around(&told.rates(), from, WATCHED);
        let rates = told.rates();
        let back = rates[until..].iter().position(|rate| *rate > 0.6 * before);
        println!(
            "session clock of the {} set by {by:+} s: from {before:.0} to {least:.0} bit/s at least, back after {:.1} s",
            NAMES[side],
            back.map_or(f64::NAN, |back| back as f64 / 2.0)
        );
        // Some steps leave 3 s without media. In this time, reports count as missing, and the sender halves
        // the rate several times. Therefore the minimum rate is checked only for the other steps.
        let is_silence = (side == 0) == (by > 0);
        assert!(is_silence || least > 0.2 * before, "at most two halvings: {rates:?}");
        assert!(back.is_some_and(|back| back <= 8), "within 16 report intervals: {rates:?}");
    }
}
