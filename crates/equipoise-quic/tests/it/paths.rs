//! Tests of one noq connection with several paths, among which a scheduler of Equipoise divides the rate.

use std::sync::Arc;
use std::time::Duration;

use equipoise::units::Rate;
use equipoise_quic::{Config, Split};
use noq_proto::{FourTuple, PathStatus};

use crate::pair::noq::{OTHER, Pair};
use crate::pair::{Between, Way};

const FRAME: Duration = Duration::from_millis(40);
const TOTAL: Rate = Rate::from_bps(2_000_000);

/// Sends frames over a path with a short delay and a path with a long delay. Each path could carry all frames. Returns
/// two values over the time from 20 s on: the short path's share of the arrived data, and the arrived rate divided by
/// the total rate of the scheduler (`TOTAL`). The rate of the frames is 92 % of `TOTAL`.
fn divided(scheduler: &str) -> (f64, f64) {
    let split = Split::named(scheduler, &[]).expect("right");
    split.set_total(TOTAL);
    let config = Config::named("equipoise", &[("max_rate", "4 Mbit/s")]).expect("right").with_split(split);
    let between = |millis| Between { bps: 6_000_000, round_trip: Duration::from_millis(millis), ..Between::default() };
    let mut pair = Pair::with(Arc::new(config), between(20), |transport| {
        transport.max_concurrent_multipath_paths(2);
    });
    pair.other_way = Some(Way::new(between(120)));
    pair.is_bulk = false;
    let mut is_open = false;
    for frame in 0..25 * 40 {
        if pair.is_connected {
            let now = pair.instant();
            is_open =
                is_open || pair.client().open_path(FourTuple::from_remote(OTHER), PathStatus::Available, now).is_ok();
            pair.send_frame((TOTAL.as_bps_f64() * 0.92 / 8.0 * FRAME.as_secs_f64()) as usize);
        }
        pair.run_until(FRAME * (frame + 1));
    }
    let short = pair.way.delivered_bps(20.0, 40.0);
    let long = pair.other_way.as_ref().map_or(0.0, |way| way.delivered_bps(20.0, 40.0));
    (short / (short + long), (short + long) / TOTAL.as_bps_f64())
}

/// If this test fails, `ap` sends too much over the long path, `equal` does not send about half over each path, or too
/// few frames arrive.
#[test]
fn the_short_way_carries_most_by_the_scheduler_and_half_without() {
    let (share, used) = divided("ap");
    assert!(share > 0.75 && used > 0.85, "ap: {share} on the short way, {used} of the total");
    let (share, used) = divided("equal");
    assert!((0.4..0.65).contains(&share) && used > 0.85, "equal: {share} on the short way, {used} of the total");
}
