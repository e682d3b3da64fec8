//! Tests of frames that are sent as datagrams and whose size follows the controller's rate, and of a connection's
//! trace.

use std::sync::Arc;
use std::time::Duration;

use equipoise_quic::Config;

use crate::pair::{Between, noq, quinn};

const FRAME: Duration = Duration::from_millis(40);

/// Defines a test with the QUIC stack `$stack`. The size of each sent frame follows the controller's rate.
macro_rules! frames_follow_the_rate_over_datagrams {
    ($name:ident, $stack:ident) => {
        #[test]
        fn $name() {
            let config = Config::named("equipoise", &[("max_rate", "10 Mbit/s")]).expect("right").with_pacing(1.5);
            let monitor = config.monitor();
            let mut pair = $stack::Pair::new(Arc::new(config), Between { bps: 2_000_000, ..Between::default() });
            pair.is_bulk = false;
            for frame in 0..25 * 30 {
                if pair.is_connected {
                    let rate = monitor.paths().first().and_then(|path| path.rate);
                    let bps = rate.map_or(300e3, |rate| rate.as_bps_f64());
                    // Payload is about 92 % of the rate; the rest is IP, UDP and QUIC headers.
                    pair.send_frame((bps * 0.92 / 8.0 * FRAME.as_secs_f64()) as usize);
                }
                pair.run_until(FRAME * (frame + 1));
            }
            let used = pair.way.delivered_bps(10.0, 30.0) / 2e6;
            let (p95, lost) = pair.way.waiting(10.0, 30.0);
            assert!((0.75..1.01).contains(&used), "{used} of the link");
            assert!(p95 < 60.0 && lost < 0.01, "{p95} ms, {lost} lost");
            assert!(pair.read as f64 * 8.0 > 0.7 * 2e6 * 25.0, "{} bytes were read", pair.read);
        }
    };
}

frames_follow_the_rate_over_datagrams!(frames_follow_the_rate_over_datagrams_by_noq, noq);
frames_follow_the_rate_over_datagrams!(frames_follow_the_rate_over_datagrams_by_quinn, quinn);

/// If this test fails, a trace in qlog format does not contain the controller's decisions.
#[test]
fn a_trace_in_qlog_has_the_laws_window_and_rate() {
    let folder = std::env::temp_dir().join(format!("equipoise-qlog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = Arc::new(Config::named("cbr", &[("rate", "2 Mbit/s")]).expect("right"));
    let mut pair = noq::Pair::with(config, Between::default(), |transport| {
        transport.qlog_from_path(&folder, "client");
    });
    pair.run_until(Duration::from_secs(2));
    drop(pair);
    let files = std::fs::read_dir(&folder).expect("it is there").filter_map(Result::ok);
    let trace: String = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
    std::fs::remove_dir_all(&folder).expect("it was there");
    assert!(trace.contains("congestion_window") && trace.contains("pacing_rate"), "{} bytes", trace.len());
}
