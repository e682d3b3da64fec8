//! Property tests: statements that are true for TCP on any path.

use equipoise::control::Cbr;
use equipoise::control::adapt::Windowed;
use proptest::prelude::*;

use super::path::{Faults, Path};
use super::*;
use crate::tcp::{DelayedAcks, ReceiverConfig, Supply};

fn recoveries() -> impl Strategy<Value = LossRecovery> {
    prop_oneof![Just(LossRecovery::NewReno), Just(LossRecovery::Sack)]
}

fn faults(lost: u64, doubled: u64, jitter: u64) -> impl Strategy<Value = Faults> {
    (0..=lost, 0..=lost, 0..=doubled, 0..=jitter, any::<u64>()).prop_map(
        |(data_lost, acks_lost, doubled, jitter, seed)| Faults { data_lost, acks_lost, doubled, jitter, seed },
    )
}

/// Receivers with random settings. The path has no bottleneck, so without a limited receive window the congestion
/// window would grow without bound.
fn receivers() -> impl Strategy<Value = ReceiverConfig> {
    (1u64..60, any::<bool>()).prop_map(|(window, delayed)| {
        let delayed_acks = delayed.then_some(DelayedAcks::STANDARD);
        ReceiverConfig { window, delayed_acks, sack: true }
    })
}

fn reno(window: f64) -> Law {
    Law::Window(Box::new(Reno::new(window)))
}

/// Congestion control for the tests: Reno as a window law, Reno as a controller, and a constant rate without a window.
fn laws() -> impl Strategy<Value = fn(f64) -> Law> {
    let windowed: fn(f64) -> Law = |window| Law::Controller(Box::new(Windowed::new(Reno::new(window), PACKET)));
    let rate: fn(f64) -> Law = |window| Law::Controller(Box::new(Cbr::new(Rate::from_bps((1e6 * window) as u64))));
    prop_oneof![Just(reno as fn(f64) -> Law), Just(windowed), Just(rate)]
}

proptest! {
    /// If this test fails, a byte of a transfer is not delivered exactly once, or the sender does not get the last
    /// acknowledgement. The time limit is 100 000 s: if 150 segments each need five attempts, one per minute, they take
    /// 45 000 s.
    #[test]
    fn a_transfer_ends_on_any_path(
        faults in faults(300, 100, 200),
        recovery in recoveries(),
        far in receivers(),
        bytes in 0u64..150 * FULL,
        (limited_transmit, handshake, window) in (any::<bool>(), any::<bool>(), 1.0f64..30.0),
        law in laws(),
    ) {
        let supply = Supply::Transfer(Size::from_bytes(bytes));
        let config = SenderConfig { supply, limited_transmit, handshake, ..bulk(recovery) };
        let mut path = Path::new(config, law(window), far, faults);
        let until = Time::ZERO + Span::from_secs(100_000);
        let mut steps = 0;
        while path.step(until) {
            steps += 1;
            prop_assert!(steps < 100_000, "150 segments do not take so much");
        }
        let stats = path.sender.stats();
        prop_assert!(stats.finished.is_some(), "{:?}", stats);
        prop_assert_eq!(path.receiver.delivered(), Size::from_bytes(bytes));
        let segments = bytes.div_ceil(FULL);
        prop_assert_eq!((stats.acknowledged, stats.in_flight), (segments, 0));
        // A segment that was transmitted with two sizes would be in `came` twice.
        prop_assert_eq!(path.came.len() as u64, segments);
        prop_assert_eq!(path.came.iter().map(|(_, payload)| payload).sum::<u64>(), bytes);
        let (received, duplicates) = path.receiver.received();
        prop_assert!(received - duplicates >= segments);
        prop_assert_eq!(path.sender.wake(), None, "nothing is left to wait for");
    }

    /// If the test fails, the sender puts more segments than one window on a path without reordering. Retransmissions
    /// of the first lost segment and of the last segment (RFC 6675, Sec. 4, `NextSeg`, rule 4) may exceed the window.
    /// The test checks nothing directly after a timeout.
    #[test]
    fn never_more_than_a_window_is_on_the_path(
        faults in faults(200, 0, 0),
        recovery in recoveries(),
        far in receivers(),
        limited_transmit in any::<bool>(),
        window in 1.0f64..60.0,
    ) {
        // The handshake reports the receive window. Without the handshake, the first segments could exceed this window.
        let config = SenderConfig { limited_transmit, handshake: true, ..bulk(recovery) };
        let mut path = Path::new(config, reno(window), far, faults);
        let until = Time::ZERO + Span::from_secs(60);
        while path.step(until) {}
        prop_assert_eq!(path.excess, None);
    }

    /// If this test fails, two runs of a connection over the same path differ.
    #[test]
    fn the_same_path_gives_the_same_connection(faults in faults(100, 100, 100), recovery in recoveries(), far in receivers()) {
        let run = || {
            let mut path = Path::new(bulk(recovery), reno(10.0), far, faults);
            while path.step(Time::ZERO + Span::from_secs(10)) {}
            (path.sender.stats(), path.receiver.delivered())
        };
        prop_assert_eq!(run(), run());
    }
}

/// Without faults, a window of 20 segments and a round-trip time of 100 ms result in a constant rate.
#[test]
fn a_window_each_round_trip() {
    let faults = Faults { data_lost: 0, acks_lost: 0, doubled: 0, jitter: 0, seed: 1 };
    for recovery in [LossRecovery::NewReno, LossRecovery::Sack] {
        let mut path =
            Path::new(bulk(recovery), Law::Window(Box::new(Fixed::new(20.0, 10.0))), ReceiverConfig::new(), faults);
        while path.step(Time::ZERO + Span::from_secs(10)) {}
        // At the end, acknowledgements have just arrived, and the sender has just sent 20 more segments.
        assert_eq!(path.sender.stats().acknowledged, 2000);
        let stats = path.sender.stats();
        assert_eq!((stats.recoveries, stats.timeouts, stats.sent), (0, 0, 2020));
    }
}
