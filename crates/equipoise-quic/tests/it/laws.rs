//! Tests each controller over a bottleneck, and compares it with the built-in controllers of the QUIC stacks quinn and
//! noq.
#![allow(clippy::print_stdout, reason = "the table of the book")]

use std::sync::Arc;
use std::time::Duration;

use equipoise_quic::Config;

use crate::pair::{Between, noq, quinn};

/// Rate controllers that need only acknowledgements, with their required parameters.
const RATES: [(&str, &[(&str, &str)]); 8] = [
    ("equipoise", &[]),
    ("gcc", &[]),
    ("nada", &[]),
    ("scream", &[]),
    ("ap", &[("target", "20 ms")]),
    ("aimd", &[("target", "20 ms")]),
    ("tfrc", &[]),
    ("rap", &[]),
];
const WINDOWS: [&str; 4] = ["reno", "cubic", "vegas", "symbiosis"];
const END: Duration = Duration::from_secs(30);

fn config(name: &str, given: &[(&str, &str)]) -> Arc<Config> {
    Arc::new(Config::named(name, given).expect("right"))
}

fn row(stack: &str, name: &str, way: &crate::pair::Way) -> f64 {
    let (p95, lost) = way.waiting(10.0, 30.0);
    let used = way.delivered_bps(10.0, 30.0) / way.between.bps as f64;
    println!("| {stack} | {name} | {:.0} % | {p95:.0} | {:.2} % |", used * 100.0, lost * 100.0);
    used
}

#[test]
fn every_law_transfers_by_noq_beside_the_stacks_own() {
    let own: [(&str, Arc<dyn noq_proto::congestion::ControllerFactory + Send + Sync>); 2] = [
        ("noq's cubic", Arc::new(noq_proto::congestion::CubicConfig::default())),
        ("noq's bbr3", Arc::new(noq_proto::congestion::Bbr3Config::default())),
    ];
    let rates = RATES.map(|(name, given)| (name, config(name, given) as _));
    let windows = WINDOWS.map(|name| (name, config(name, &[]) as _));
    for (name, factory) in rates.into_iter().chain(windows).chain(own) {
        let mut pair = noq::Pair::new(factory, Between::default());
        pair.run_until(END);
        let used = row("noq", name, &pair.way);
        assert!((0.1..1.01).contains(&used), "{name}: {used}");
    }
}

#[test]
fn every_law_transfers_by_quinn_beside_the_stacks_own() {
    let own: [(&str, Arc<dyn quinn_proto::congestion::ControllerFactory + Send + Sync>); 2] = [
        ("quinn's cubic", Arc::new(quinn_proto::congestion::CubicConfig::default())),
        ("quinn's bbr", Arc::new(quinn_proto::congestion::BbrConfig::default())),
    ];
    let rates = RATES.map(|(name, given)| (name, config(name, given) as _));
    let windows = WINDOWS.map(|name| (name, config(name, &[]) as _));
    for (name, factory) in rates.into_iter().chain(windows).chain(own) {
        let mut pair = quinn::Pair::new(factory, Between::default());
        pair.run_until(END);
        let used = row("quinn", name, &pair.way);
        assert!((0.1..1.01).contains(&used), "{name}: {used}");
    }
}

/// If this test fails, noq does not pace by the controller's rate, or the adapter passes a wrong rate to noq.
#[test]
fn what_leaves_by_noq_is_the_rate() {
    for bps in [500_000u64, 2_000_000, 20_000_000] {
        let config = config("cbr", &[("rate", &format!("{bps} bit/s"))]);
        let mut pair = noq::Pair::new(config, Between { bps: 100_000_000, ..Between::default() });
        pair.run_until(Duration::from_secs(12));
        let left = pair.way.rate_bps(2.0, 12.0);
        assert!((left / bps as f64 - 1.0).abs() < 0.05, "{left} bit/s left, where {bps} were to");
    }
}

/// quinn paces 25 % faster than one window per round trip, and pauses when the window is full. So only the mean sending
/// rate can be the controller's rate. If this test fails, the mean differs from that rate by 15 % or more.
#[test]
fn what_leaves_by_quinn_is_the_rate_in_the_mean() {
    for bps in [2_000_000u64, 20_000_000] {
        let config = config("cbr", &[("rate", &format!("{bps} bit/s"))]);
        let mut pair = quinn::Pair::new(config, Between { bps: 100_000_000, ..Between::default() });
        pair.run_until(Duration::from_secs(12));
        let left = pair.way.rate_bps(2.0, 12.0);
        assert!((left / bps as f64 - 1.0).abs() < 0.15, "{left} bit/s left, where {bps} were to");
    }
}
