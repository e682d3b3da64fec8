//! Tests of ECN in sessions over several paths.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::super::Total;
use super::bench::{Bench, EPOCH, MILLI, SSRC, scheduler};
use crate::rtp::{SenderConfig, StreamConfig};
use crate::{Ecn, Event, PathId};
use equipoise::control::{Allowance, Controller, Feedback};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// A controller with a constant rate of 4 Mbit/s. From 1.5 s on, it asserts that the reported share of marked packets
/// is `wanted`.
#[derive(Debug)]
struct Told {
    wanted: Option<f64>,
}

impl Controller for Told {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        let Feedback::Interval(summary) = feedback else { return };
        if now >= Instant::from_nanos(EPOCH + 1500 * MILLI) {
            let difference = summary.fraction_marked.zip(self.wanted).map(|(found, wanted)| (found - wanted).abs());
            assert_eq!(summary.fraction_marked.is_some(), self.wanted.is_some());
            assert!(difference.is_none_or(|difference| difference < 0.01), "{:?}", summary.fraction_marked);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(Rate::from_bps(4_000_000))
    }

    fn is_held_to_proof(&self) -> bool {
        false
    }
}

fn bench(ecn: Ecn, wanted: Option<f64>) -> Bench {
    let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(200), Instant::from_nanos(EPOCH), 1);
    let network = Box::new(|_: &super::bench::Passing| vec![10 * MILLI]);
    let total = Total::Pooled(Box::new(Told { wanted }));
    Bench::between(SenderConfig { ecn, ..base }, 2, (total, scheduler("equal", &[])), network)
}

/// Path 0 marks every tenth ECN-capable packet; path 1 clears the ECN field of all packets.
#[test]
fn a_path_that_clears_the_field_gives_it_up_alone() {
    let mut bench = bench(Ecn::Ect0, Some(0.1));
    bench.field = |passing| match passing.ecn {
        Ecn::NotCapable => Ecn::NotCapable,
        _ if passing.path == 1 => Ecn::NotCapable,
        // The path carries one packet every 4 ms, so every tenth packet is marked.
        _ if passing.millis / 4 % 10 == 0 => Ecn::Marked,
        ecn => ecn,
    };
    bench.run_until(6000);
    // Path 1 clears the ECN field of all its packets except the first one. Therefore the first report counts one packet
    // with ECT, and ECN does not fail yet. The second report covers 50 packets without ECT, so ECN fails.
    let failed = bench.events.iter().filter(|(_, _, event)| matches!(event, Event::EcnFailed { .. }));
    assert_eq!(failed.map(|(at, path, _)| (*at, *path)).collect::<Vec<_>>(), [(420, Some(PathId(1)))]);
    let came =
        |ecn: Ecn| bench.count(|_, event| matches!(event, Event::MediaReceived { ecn: found, .. } if *found == ecn));
    // Each path carries 250 packets/s.
    assert!(came(Ecn::NotCapable).abs_diff(1500) < 5 && came(Ecn::Marked).abs_diff(150) < 5);
}

#[test]
fn without_ecn_nobody_is_told_of_marks() {
    let mut bench = bench(Ecn::NotCapable, None);
    // The network sets congestion marks on packets although they are Not-ECT.
    bench.field = |_| Ecn::Marked;
    bench.run_until(3000);
    assert_eq!(bench.count(|_, event| matches!(event, Event::EcnFailed { .. })), 0);
}
