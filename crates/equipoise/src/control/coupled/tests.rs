use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use super::*;
use crate::control::{Allowance, Cbr, Controller, Feedback, SentPacket, find};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

fn at(millis: i64) -> Instant<SenderClock> {
    Instant::ZERO + Span::from_millis(millis)
}

fn kbps(rate: u64) -> Rate {
    Rate::from_bps(rate * 1000)
}

/// Returns a group of flows with these priorities. Each flow joins at 400 kbit/s and sends a packet at once.
fn group(coupling: Coupling, priorities: &[f64]) -> (FlowGroup, Vec<FlowNumber>) {
    let mut group = FlowGroup::new(coupling);
    let flows: Vec<_> =
        priorities.iter().map(|priority| group.register(*priority, kbps(400)).expect("a weight")).collect();
    for flow in &flows {
        group.on_sent(at(0), *flow);
    }
    (group, flows)
}

/// Returns the shares of all flows, in bit/s.
fn shares(group: &FlowGroup, flows: &[FlowNumber]) -> Vec<Option<u64>> {
    flows.iter().map(|flow| group.share(*flow).map(Rate::as_bps)).collect()
}

fn step(before: u64, calculated: u64) -> Update {
    let (before, calculated) = (kbps(before), kbps(calculated));
    Update { before, calculated, desired: None, round_trip: Some(Span::from_millis(50)) }
}

/// All rates are in kbit/s. When the flows join, `S_CR` is 400 + 400 + 400 = 1200. The first update adds 500 - 300, so
/// `S_CR` is 1400. The second update adds 500 - 700, so `S_CR` is 1200 again.
#[test]
fn golden_values_of_the_active_exchange() {
    let (mut group, flows) = group(Coupling::Active, &[1.0, 1.0, 2.0]);
    assert_eq!(shares(&group, &flows), [300_000, 300_000, 600_000].map(Some));
    assert_eq!(group.update(at(10), flows[0], step(300, 500)), Some(kbps(350)));
    assert_eq!(shares(&group, &flows), [350_000, 350_000, 700_000].map(Some));
    assert_eq!(group.update(at(20), flows[2], step(700, 500)), Some(kbps(600)));
    assert_eq!(shares(&group, &flows), [300_000, 300_000, 600_000].map(Some));
}

/// In kbit/s: the first update changes `S_CR`, the sum of the calculated rates (RFC 8699), to 1200 · 300 / 600 = 600.
/// After that, rates are ignored for two round-trip times of 50 ms. The last update changes `S_CR` to 600 + 250 - 150 =
/// 700.
#[test]
fn golden_values_of_the_conservative_exchange() {
    let (mut group, flows) = group(Coupling::Conservative, &[1.0, 1.0, 2.0]);
    group.update(at(10), flows[2], step(600, 300));
    assert_eq!(shares(&group, &flows), [150_000, 150_000, 300_000].map(Some));
    group.update(at(109), flows[0], step(150, 250));
    group.update(at(109), flows[1], step(150, 75));
    assert_eq!(group.sum(), kbps(600));
    group.update(at(110), flows[0], step(150, 250));
    assert_eq!(shares(&group, &flows), [175_000, 175_000, 350_000].map(Some));
}

/// All rates are in kbit/s. The sum is 1200. If the second flow desires 100, the first and the third flow share 1100 in
/// the ratio of their priorities, 1 to 2. The third flow then desires 500, which is less than its share of 733, so the
/// first flow gets the remaining 600.
#[test]
fn what_a_flow_does_not_desire_is_the_others() {
    let (mut group, flows) = group(Coupling::Active, &[1.0, 1.0, 2.0]);
    let limited = |kilobits| Update { desired: Some(kbps(kilobits)), ..step(300, 300) };
    group.update(at(10), flows[1], limited(100));
    assert_eq!(shares(&group, &flows), [366_667, 100_000, 733_333].map(Some));
    group.update(at(20), flows[2], limited(500));
    assert_eq!(shares(&group, &flows), [600_000, 100_000, 500_000].map(Some));
}

/// If this test fails, the sum of the rates grows while the flows use only a small part of the sum. The reaction to
/// congestion then reduces only the unused part.
#[test]
fn what_is_left_over_does_not_grow_and_congestion_counts_from_what_was_given() {
    let (mut group, flows) = group(Coupling::Active, &[1.0, 1.0]);
    let limited = |before, calculated| Update { desired: Some(kbps(100)), ..step(before, calculated) };
    for flow in &flows {
        assert!(group.update(at(10), *flow, limited(100, 100)).is_some());
    }
    for millis in 20..200 {
        group.update(at(millis), flows[0], limited(100, 150));
    }
    assert_eq!(group.sum(), kbps(800));
    group.update(at(200), flows[0], limited(100, 60));
    assert_eq!(group.sum(), kbps(160));
    assert_eq!(shares(&group, &flows), [80_000, 80_000].map(Some));
}

#[test]
fn a_flow_that_leaves_or_sends_nothing_for_long_frees_its_share_and_one_that_comes_back_has_it_again() {
    let (mut group, flows) = group(Coupling::Active, &[1.0, 1.0, 2.0]);
    group.deregister(flows[2]);
    assert_eq!(shares(&group, &flows), [Some(600_000), Some(600_000), None]);
    group.on_sent(at(1100), flows[0]);
    assert_eq!(shares(&group, &flows), [Some(1_200_000), None, None]);
    assert_eq!(group.update(at(1200), flows[1], step(600, 900)), None);
    group.on_sent(at(1300), flows[1]);
    assert_eq!(shares(&group, &flows), [Some(800_000), Some(800_000), None]);
    for flow in &flows {
        group.deregister(*flow);
    }
    assert_eq!(group.sum(), Rate::ZERO);
    group.on_sent(at(1400), flows[0]);
    assert_eq!((group.update(at(1400), flows[0], step(1, 2)), group.first()), (None, None));
}

#[test]
fn what_is_no_priority_and_one_flow_too_many_are_refused() {
    let mut group = FlowGroup::default();
    for priority in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(matches!(group.register(priority, kbps(1)), Err(GroupError::Priority { .. })), "{priority}");
    }
    for _ in 0..FlowGroup::MOST_FLOWS {
        assert!(group.register(8.0, kbps(1)).is_ok());
    }
    assert_eq!(group.register(8.0, kbps(1)), Err(GroupError::Full { most: FlowGroup::MOST_FLOWS }));
}

/// Generates random events of a group: a kind of event, a flow, a rate and a desired rate in kbit/s, and the time since
/// the previous event in ms.
fn happenings() -> impl Strategy<Value = Vec<(u8, usize, u64, Option<u64>, i64)>> {
    let rate = || prop_oneof![Just(0), 1..5_000_u64, Just(u64::from(u32::MAX))];
    prop::collection::vec((0..4_u8, 0..5_usize, rate(), prop::option::of(rate()), 0..400_i64), 1..80)
}

proptest! {
    /// The shares are max-min fair after any events. No share exceeds the flow's desired rate. The shares add up to the
    /// group's total rate, unless the desired rates limit all flows. The quotient of share and priority is equal for
    /// all unlimited flows. For a limited flow, the quotient is not larger than for an unlimited flow.
    #[test]
    fn shares_are_a_water_level(conservative: bool, happenings in happenings()) {
        let priorities = [0.01, 1.0, 2.0, 8.0, 100.0];
        let (mut group, flows) =
            group(if conservative { Coupling::Conservative } else { Coupling::Active }, &priorities);
        let mut desires = [f64::INFINITY; 5];
        let mut now = 0;
        for (what, which, rate, desired, later) in happenings {
            now += later;
            let flow = flows[which];
            match what {
                0 => group.on_sent(at(now), flow),
                1 if rate == 0 => group.deregister(flow),
                _ => {
                    let before = group.share(flow).unwrap_or(Rate::ZERO);
                    let update = Update { before, desired: desired.map(kbps), ..step(0, rate) };
                    if group.update(at(now), flow, update).is_some() {
                        desires[which] = desired.map_or(f64::INFINITY, |desired| kbps(desired).as_bps_f64());
                    }
                }
            }
            let found = shares(&group, &flows);
            let mut given = 0.0;
            let mut levels = vec![];
            for ((share, desire), priority) in found.iter().zip(&mut desires).zip(priorities) {
                let Some(share) = share.map(|share| share as f64) else { *desire = f64::INFINITY; continue };
                prop_assert!(share <= *desire + 1.0);
                given += share;
                levels.push((share < *desire - 1.0, share / priority, 1.0 / priority));
            }
            let sum = group.sum().as_bps_f64();
            // Each share is rounded to 1 bit/s, and floating-point numbers have about 16 digits.
            let rounding = 5.0 + 1e-12 * sum;
            prop_assert!(given <= sum + rounding, "{given} of {sum}");
            if let Some((_, level, off)) = levels.iter().find(|(is_open, ..)| *is_open).copied() {
                prop_assert!((given - sum).abs() < rounding, "{given} of {sum}");
                for (is_open, other, other_off) in levels {
                    let near = off + other_off + 1e-9 * level;
                    prop_assert!(other <= level + near && (!is_open || other >= level - near), "{other}, {level}");
                }
            }
        }
    }
}

#[derive(Debug)]
struct Locked(Mutex<FlowGroup>);

impl SharedGroup for Locked {
    fn with(&self, act: &mut dyn FnMut(&mut FlowGroup)) {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

const PACKET: Size = Size::from_bytes(1000);

fn law(name: &str) -> Box<dyn Controller> {
    let entry = find(name).expect("in the catalogue");
    entry.build(&entry.parse(&[]).expect("defaults"), PACKET).expect("right")
}

/// When a second flow joins, each flow changes its rate to its share when it sends its next packet. When the reports to
/// one flow are missing, the rates of both flows fall.
#[test]
fn every_law_by_packet_goes_on_from_the_share_that_it_is_given() {
    for name in ["gcc", "nada", "scream", "equipoise"] {
        let group = Arc::new(Locked(Mutex::new(FlowGroup::default())));
        let join = |priority| Coupled::new(law(name), Arc::clone(&group) as _, priority).expect("it can be coupled");
        let (mut first, mut second) = (join(1.0), join(3.0));
        let start = law(name).calculated_rate().expect("it can be coupled").as_bps();
        let send =
            |flow: &mut Coupled, number| flow.on_sent(at(number as i64), &SentPacket::new(number, PACKET, PACKET));
        let rate = |flow: &Coupled| flow.calculated_rate().expect("it can be coupled").as_bps();
        send(&mut first, 0);
        assert_eq!(rate(&first), start, "{name}: a group of one is as the flow alone");
        send(&mut second, 1);
        assert_eq!(rate(&second), start * 2 * 3 / 4, "{name}");
        send(&mut first, 2);
        let least = first.lowest_rate().as_bps();
        assert_eq!(rate(&first), (start * 2 / 4).max(least), "{name}");
        second.on_feedback(at(500), &Feedback::Silent { reports: 3 });
        assert!(rate(&second) < start * 2 * 3 / 4, "{name}");
        send(&mut first, 501);
        assert!(rate(&first) <= rate(&second).max(least), "{name}");
        drop(second);
        let Allowance { rate: allowed, .. } = first.allowance();
        send(&mut first, 502);
        assert!(first.allowance().rate > allowed, "{name}: what another leaves is its own");
    }
}

#[test]
fn a_law_that_cannot_go_on_from_a_share_is_refused() {
    let group = Arc::new(Locked(Mutex::new(FlowGroup::default())));
    let refused = Coupled::new(Box::new(Cbr::new(kbps(500))), group, 1.0).expect_err("it is fixed");
    assert_eq!(refused, GroupError::NotCoupled);
}
