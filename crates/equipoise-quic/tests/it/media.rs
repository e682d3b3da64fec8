//! Frames as datagrams, whose size follows the law's rate.

use std::sync::Arc;
use std::time::Duration;

use equipoise_quic::Config;

use crate::pair::{Between, noq};

const FRAME: Duration = Duration::from_millis(40);

#[test]
fn frames_follow_the_rate_over_datagrams() {
    let config = Config::named("equipoise", &[("max_rate", "10 Mbit/s")]).expect("right").with_pacing(1.5);
    let monitor = config.monitor();
    let mut pair = noq::Pair::new(Arc::new(config), Between { bps: 2_000_000, ..Between::default() }, |_| {});
    pair.is_bulk = false;
    for frame in 0..25 * 30 {
        if pair.is_connected {
            let rate = monitor.paths().first().and_then(|path| path.rate).map_or(300e3, |rate| rate.as_bps_f64());
            // What headers of IP, UDP and QUIC leave of it.
            pair.send_frame((rate * 0.92 / 8.0 * FRAME.as_secs_f64()) as usize);
        }
        pair.run_until(FRAME * (frame + 1));
    }
    let used = pair.way.delivered_bps(10.0, 30.0) / 2e6;
    let (p95, lost) = pair.way.waiting(10.0, 30.0);
    assert!((0.75..1.01).contains(&used), "{used} of the link");
    assert!(p95 < 60.0 && lost < 0.01, "{p95} ms, {lost} lost");
    assert!(pair.read as f64 * 8.0 > 0.7 * 2e6 * 25.0, "{} bytes were read", pair.read);
}
