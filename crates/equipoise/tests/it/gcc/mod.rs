//! Google congestion control beside foreign code that takes the same feedback: libwebrtc's form beside the crate `goog_cc`, a translation
//! of libwebrtc's code, and the draft's form beside pion and the crate `rtc-interceptor` ([`draft`]).
//!
//! Beside `goog_cc` the sender follows our rate, so that theirs is what libwebrtc would say of the same packets. It is set to libwebrtc's
//! configuration of today, whose loss-based estimate has changed since the crate was written, and without padding and probes, which
//! nothing sends here. What is left of differences, and why: it rounds times to milliseconds, rates to bit/s and sizes to bytes; it orders
//! equal observations of losses by their place in a ring, we by their age; it lowers the rate by a long round trip with its process
//! interval, we with packets. Rounding alone may move the moment of an overuse by a group or a report, and with it the rate until the next
//! one.

mod draft;
mod libwebrtc;
mod path;
mod pion;

use equipoise::units::Span;

use self::libwebrtc::GoogCc;
use self::path::{Conditions, Leader, Path, Point};

/// The points of both rates from the fifth second on.
fn run(path: Path, seconds: i64) -> Vec<Point> {
    path.run(Span::from_secs(seconds)).into_iter().filter(|point| point.at_s >= 5.0).collect()
}

/// Mean of |ln(ours/theirs)|, and the share of points at which they differ by more than a tenth.
fn distance(points: &[Point]) -> (f64, f64) {
    let count = points.len() as f64;
    let apart = |point: &Point| (point.ours_bps / point.theirs_bps).ln().abs();
    let mean = points.iter().map(apart).sum::<f64>() / count;
    (mean, points.iter().filter(|point| apart(point) > 0.1).count() as f64 / count)
}

/// Without random losses: what rounding makes of it. Measured are 0.000 3 at most, and no point apart.
const ROUNDING: (f64, f64) = (0.001, 0.0);
/// With random losses a candidate that is hardly more likely than the next one may win here and lose there, and the rates meet again with the
/// next decrease. Measured are 2 % on average at 10 % of loss, 11 % of the points apart, and less at other losses.
const LOSSES: (f64, f64) = (0.03, 0.15);

fn compare(name: &str, conditions: Conditions, most: (f64, f64)) {
    let path = Path::new(conditions, &[("probing", "off")], Box::new(GoogCc::new()), Leader::Ours);
    let found = distance(&run(path, 90));
    assert!(found.0 <= most.0 && found.1 <= most.1, "{name}: {found:?}, where {most:?} are the most");
}

#[test]
fn on_a_steady_link_both_say_the_same() {
    for capacity_bps in [0.5e6, 2e6, 8e6] {
        compare("steady", Conditions { capacity_bps, ..Conditions::new() }, ROUNDING);
    }
}

#[test]
fn on_a_link_that_changes_both_say_the_same() {
    let conditions = Conditions { changes: vec![(30.0, 0.6e6)], ..Conditions::new() };
    compare("a drop", conditions, ROUNDING);
    let conditions = Conditions { changes: vec![(30.0, 5e6)], ..Conditions::new() };
    compare("a rise", conditions, ROUNDING);
}

#[test]
fn under_jitter_both_say_the_same() {
    for seed in 1..4 {
        compare("jitter", Conditions { jitter_ms: 4.0, seed, ..Conditions::new() }, ROUNDING);
    }
}

#[test]
fn under_losses_both_say_nearly_the_same() {
    for (loss, seed) in [(0.01, 1), (0.03, 2), (0.1, 3), (0.25, 4)] {
        compare("losses", Conditions { loss, seed, ..Conditions::new() }, LOSSES);
    }
}

#[test]
fn of_an_application_that_sends_little_both_say_the_same() {
    compare("little", Conditions { application_bps: 200e3, ..Conditions::new() }, ROUNDING);
}
