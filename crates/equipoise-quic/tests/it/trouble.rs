//! Tests of loss, reordering, changed MTUs, changed addresses, and complete loss.

use std::sync::Arc;
use std::time::Duration;

use equipoise_quic::Config;

use crate::pair::{Between, noq, quinn};

const BPS: f64 = 5e6;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Defines a test that is run with both stacks.
macro_rules! by_both {
    ($name:ident, $law:expr, $between:expr, |$pair:ident, $stack:ident| $test:block) => {
        mod $name {
            use super::*;

            #[test]
            fn by_noq() {
                let config = Arc::new(Config::named($law, &[]).expect("right"));
                #[allow(unused_mut, reason = "some only look")]
                let mut $pair = noq::Pair::new(config, $between);
                let $stack = "noq";
                $test
            }

            #[test]
            fn by_quinn() {
                let config = Arc::new(Config::named($law, &[]).expect("right"));
                #[allow(unused_mut, reason = "some only look")]
                let mut $pair = quinn::Pair::new(config, $between);
                let $stack = "quinn";
                $test
            }
        }
    };
}

by_both!(
    one_packet_in_a_hundred_is_lost,
    "equipoise",
    Between { lose_one_in: 100, ..Between::default() },
    |pair, stack| {
        pair.run_until(seconds(20));
        let used = pair.way.delivered_bps(10.0, 20.0) / BPS;
        assert!(used > 0.6, "{stack}: {used}");
    }
);

by_both!(
    packets_overtake_each_other,
    "equipoise",
    Between { late: Duration::from_millis(5), ..Between::default() },
    |pair, stack| {
        pair.run_until(seconds(20));
        let used = pair.way.delivered_bps(10.0, 20.0) / BPS;
        assert!(used > 0.6, "{stack}: {used}");
    }
);

by_both!(packets_grow_and_shrink_with_the_mtu, "equipoise", Between::default(), |pair, stack| {
    pair.run_until(seconds(5));
    let largest = pair.way.log.iter().map(|(_, bytes, _)| *bytes).max().unwrap_or(0);
    assert!(largest > 1300, "{stack}: no more than {largest} bytes");
    pair.way.between.mtu = 1250;
    pair.run_until(seconds(20));
    let later = pair.way.log.iter().filter(|(at, ..)| *at > seconds(15)).map(|(_, bytes, _)| *bytes).max().unwrap_or(0);
    assert!(later <= 1250 + 28, "{stack}: {later} bytes after the path became narrower");
    let used = pair.way.delivered_bps(15.0, 20.0) / BPS;
    assert!(used > 0.5, "{stack}: {used}");
});

by_both!(a_client_moves_to_another_address, "equipoise", Between::default(), |pair, stack| {
    pair.run_until(seconds(8));
    pair.migrate(2000);
    pair.run_until(seconds(25));
    assert!(!pair.is_dead(), "{stack}: the connection ended");
    let used = pair.way.delivered_bps(18.0, 25.0) / BPS;
    assert!(used > 0.6, "{stack}: {used} after the migration");
});

// If this test fails, a stack with a controller of Equipoise keeps sending at a high rate on a path that is
// interrupted.
by_both!(nothing_gets_through_for_ten_seconds, "equipoise", Between::default(), |pair, stack| {
    pair.run_until(seconds(8));
    pair.way.between.is_black = true;
    pair.run_until(seconds(18));
    let into_it = pair.way.rate_bps(10.0, 18.0);
    assert!(into_it < 50e3, "{stack}: {into_it} bit/s into nothing");
    pair.way.between.is_black = false;
    pair.run_until(seconds(40));
    let back = pair.way.delivered_bps(34.0, 40.0) / BPS;
    assert!(back > 0.5, "{stack}: {back} after it");
});
