//! Tests of paths that preserve ECN marks, clear them, or drop ECN-capable packets.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::two_ends::{EPOCH, MILLI, Passing, TwoEnds};
use super::{Payload, Sender, SenderConfig, StreamConfig};
use crate::{Ecn, Event};
use equipoise::control::Cbr;
use equipoise::units::{Instant, Rate, Size, Span};

/// Creates a session with ECT(0), 25 packets/s and a report every 500 ms, over a path with a delay of 5 ms. Packets for
/// which `drops` returns true are lost.
fn bench(drops: fn(&Passing) -> bool) -> TwoEnds<impl FnMut(&Passing) -> Vec<u64>> {
    let cbr = || Box::new(Cbr::new(Rate::from_bps(200_000)));
    let path = move |passing: &Passing| if drops(passing) { vec![] } else { vec![5 * MILLI] };
    let mut ends = TwoEnds::new(Payload::Generated, cbr(), path);
    let stream = StreamConfig::new(0x0102_0304, 96, Size::from_bytes(1000), "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(500), Instant::from_nanos(EPOCH), 1);
    ends.sender = Sender::new(SenderConfig { ecn: Ecn::Ect0, ..base }, cbr()).expect("a valid configuration");
    ends
}

/// Returns the time, in ms, and the number of packets of each event [`Event::EcnFailed`].
fn failures<F>(ends: &TwoEnds<F>) -> Vec<(u64, u64)> {
    let of = |(at, event): &(u64, Event)| match event {
        Event::EcnFailed { packets } => Some((at / MILLI, *packets)),
        _ => None,
    };
    ends.events.iter().filter_map(of).collect()
}

/// Returns the ECN fields of the packets that arrived between two times in ms, with consecutive equal values merged.
fn came<F>(ends: &TwoEnds<F>, from: u64, to: u64) -> Vec<Ecn> {
    let of = |(at, event): &(u64, Event)| match event {
        Event::MediaReceived { ecn, .. } if (from..to).contains(&(at / MILLI)) => Some(*ecn),
        _ => None,
    };
    let mut all: Vec<_> = ends.events.iter().filter_map(of).collect();
    all.dedup();
    all
}

/// Returns the share of marked packets in each report.
fn shares<F>(ends: &TwoEnds<F>) -> Vec<Option<f64>> {
    let of = |(_, event): &(u64, Event)| match event {
        Event::ReportApplied { fraction_marked, .. } => Some(*fraction_marked),
        _ => None,
    };
    ends.events.iter().filter_map(of).collect()
}

#[test]
fn a_path_that_lets_the_field_pass_is_told_of_its_marks_and_of_no_failure() {
    let mut ends = bench(|_| false);
    ends.field = |passing| {
        assert!(!passing.is_rtcp || passing.ecn == Ecn::NotCapable, "requests and reports are never marked");
        if passing.at >= 10_000 * MILLI && passing.ecn == Ecn::Ect0 { Ecn::Marked } else { passing.ecn }
    };
    ends.run_until(20_000);
    assert_eq!(failures(&ends), []);
    assert_eq!((came(&ends, 0, 10_000), came(&ends, 10_010, 20_000)), (vec![Ecn::Ect0], vec![Ecn::Marked]));
    let shares = shares(&ends);
    assert!(shares[..18].iter().all(|share| *share == Some(0.0)), "{shares:?}");
    assert!(shares[22..].iter().all(|share| *share == Some(1.0)), "{shares:?}");
}

/// In the first 10 s, the path clears the ECN field of every packet. If this test fails, the sender concludes that the
/// path has no congestion.
#[test]
fn a_path_that_clears_the_field_gets_packets_that_ask_for_no_mark() {
    let mut ends = bench(|_| false);
    ends.field = |passing| if passing.at < 10_000 * MILLI { Ecn::NotCapable } else { passing.ecn };
    ends.run_until(20_000);
    // The first report covers 13 packets and each further report 12.5 packets on average, so the 50th packet is in the
    // fourth report.
    assert_eq!(failures(&ends), [(2010, 50)]);
    assert_eq!(came(&ends, 10_010, 20_000), [Ecn::NotCapable], "it is not tried again");
    assert_eq!(shares(&ends).into_iter().flatten().count(), 0);
}

#[test]
fn a_path_that_begins_to_clear_the_field_is_found_out() {
    let mut ends = bench(|_| false);
    ends.field = |passing| {
        let clears = (5000..9000).contains(&(passing.at / MILLI));
        if clears { Ecn::NotCapable } else { passing.ecn }
    };
    ends.run_until(15_000);
    assert_eq!(failures(&ends).len(), 1);
    assert!((7000..7600).contains(&failures(&ends)[0].0), "{:?}", failures(&ends));
    assert_eq!((came(&ends, 0, 5000), came(&ends, 9010, 15_000)), (vec![Ecn::Ect0], vec![Ecn::NotCapable]));
}

/// The first path drops all ECN-capable packets from the start. The second path has an outage, which begins later.
#[test]
fn a_host_that_drops_what_may_be_marked_is_told_from_an_outage() {
    let mut ends = bench(|passing| passing.ecn != Ecn::NotCapable);
    ends.run_until(10_000);
    assert_eq!(failures(&ends), [(2010, 50)]);
    assert_eq!(came(&ends, 0, 10_000), [Ecn::NotCapable], "then media comes through");
    let mut ends = bench(|passing| !passing.is_rtcp && (5000..8000).contains(&(passing.at / MILLI)));
    ends.run_until(20_000);
    assert_eq!(failures(&ends), []);
    assert_eq!(came(&ends, 0, 20_000), [Ecn::Ect0]);
    assert!(!came(&ends, 15_000, 20_000).is_empty(), "media goes on");
}
