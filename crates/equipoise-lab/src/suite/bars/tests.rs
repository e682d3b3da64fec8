//! Tests of verdicts from handmade results, of measures from handmade packets, and of the selection of cases.

use std::collections::BTreeSet;

use equipoise::units::{Instant, Size, Span};
use equipoise_session::{Ecn, Event};

use super::cases::{Bar, Of};
use super::*;
use crate::scenario::Scenario;
use crate::sim::RunObserver;

const MEASURE: Measure = Measure::QueueMean;

fn bar(limit: Limit, of: Of) -> Bar {
    Bar { key: "it", quantity: "it".into(), unit: Unit::Ratio, limit, of }
}

/// Returns the measures of a law in a variant of the case "c". `runs` are the values of one measure in each run.
fn found<'a>(variant: &'a str, controller: &'a str, runs: &[&[f64]]) -> Found<'a> {
    let runs = runs.iter().map(|values| vec![(MEASURE, values.to_vec())]).collect();
    Found { case: "c", variant, controller, runs, compared: Compared::default() }
}

fn with(found: Found<'_>, rate_bps: f64, queueing_p95_s: f64) -> Found<'_> {
    let compared = Compared { rate_bps: Some(rate_bps), queueing_p95_s: Some(queueing_p95_s) };
    Found { compared, ..found }
}

/// Judges one bar (pass criterion). Returns the mean of each control law, whether our law meets the bar, and the laws
/// because of which our law fails.
fn judged(bar: Bar, found: &[Found<'_>]) -> (Vec<Option<f64>>, Option<bool>, Vec<String>) {
    let item = Item { case: "c".into(), variant: "v".into(), ..cases()[0].variants[0].item.clone() };
    let mut all = judge::all(&[Variant { item, bars: vec![bar] }], found);
    let bar = all.pop().expect("one bar");
    (bar.laws.iter().map(|law| law.value.map(|value| value.mean)).collect(), bar.met, bar.behind)
}

#[test]
fn a_bar_is_met_by_the_mean_and_its_own_value_counts_as_met() {
    let own = [found("v", JUDGED, &[&[0.9], &[1.0]]), found("v", "gcc", &[&[0.5], &[0.7]])];
    let of = |limit| judged(bar(limit, Of::Run(MEASURE)), &own);
    assert_eq!(of(Limit::AtLeast(0.95)), (vec![Some(0.95), Some(0.6)], Some(true), Vec::new()));
    assert_eq!(of(Limit::AtLeast(0.951)).1, Some(false));
    assert_eq!(of(Limit::AtMost(0.95)).1, Some(true));
    assert_eq!(of(Limit::AtMost(0.949)).1, Some(false));
    assert_eq!([of(Limit::Within(0.8, 1.25)).1, of(Limit::Within(0.96, 1.25)).1], [Some(true), Some(false)]);
    assert_eq!(of(Limit::Reported).1, None);
    assert_eq!(judged(bar(Limit::AtLeast(0.1), Of::Run(MEASURE)), &own[1..]).1, None, "another law is not judged");
}

/// If a measure has several values in each run, each of them is averaged over the runs. The smallest mean counts for a
/// lower limit, the largest for an upper limit.
#[test]
fn of_several_values_the_worst_in_the_mean_counts() {
    let own = [found("v", JUDGED, &[&[0.9, 0.99, 1.0], &[1.0, 0.93, 1.0]])];
    assert_eq!(judged(bar(Limit::AtLeast(0.95), Of::Run(MEASURE)), &own).0, [Some(0.95)]);
    assert_eq!(judged(bar(Limit::AtMost(0.95), Of::Run(MEASURE)), &own).0, [Some(1.0)]);
}

/// If this test fails, differences and ratios are not computed seed by seed. Then random effects that are equal in two
/// runs with the same seed do not cancel.
#[test]
fn another_variant_and_another_law_are_compared_seed_by_seed() {
    let all = [
        found("v", JUDGED, &[&[0.80], &[0.90]]),
        found("v", "nada", &[&[0.40], &[0.60]]),
        found("reference", JUDGED, &[&[0.84], &[0.94]]),
    ];
    let value = |of, limit| {
        let (means, met, _) = judged(bar(limit, of), &all);
        (means[0].expect("our own"), means[1], met)
    };
    let (less, nada, met) = value(Of::Less(MEASURE, "reference"), Limit::AtMost(0.05));
    assert!((less - 0.04).abs() < 1e-9 && nada.is_none() && met == Some(true), "{less}");
    let (lower, _, met) = value(Of::Lower(MEASURE, "reference"), Limit::AtMost(0.045));
    assert!((lower - f64::midpoint(0.04 / 0.84, 0.04 / 0.94)).abs() < 1e-6 && met == Some(false), "{lower}");
    let (over, nada, met) = value(Of::OverLaw(MEASURE, "nada"), Limit::AtMost(1.5));
    assert!((over - 1.75).abs() < 1e-9 && nada == Some(1.0) && met == Some(false), "{over}");
    let (_, met, _) = judged(bar(Limit::AtMost(1.5), Of::OverLaw(MEASURE, "nada")), &all[..1]);
    assert_eq!(met, None, "without NADA there is no verdict");
}

/// Wilson's interval for 1 of 10 runs is 1.8 % to 40.4 %.
#[test]
fn a_share_of_runs_has_the_interval_of_a_share() {
    let measure = Measure::Frozen;
    let runs = (0..10).map(|run| vec![(measure, vec![f64::from(u8::from(run == 0))])]).collect();
    let found = [Found { case: "c", variant: "v", controller: JUDGED, runs, compared: Compared::default() }];
    let item = Item { case: "c".into(), variant: "v".into(), ..cases()[0].variants[0].item.clone() };
    let all = judge::all(&[Variant { item, bars: vec![bar(Limit::AtMost(0.0), Of::Run(measure))] }], &found);
    let value = all[0].laws[0].value.expect("a share");
    assert!((value.mean - 0.1).abs() < 1e-9 && all[0].met == Some(false));
    let [lo, hi] = [value.lo, value.hi].map(|end| end.expect("an interval"));
    assert!((lo - 0.0179).abs() < 1e-3 && (hi - 0.4042).abs() < 1e-3, "{lo} to {hi}");
}

#[test]
fn frames_are_below_those_of_every_law_that_is_as_fast() {
    let slow = with(found("v", "slow", &[&[0.05]]), 0.94e6, 0.01);
    let fast = |delay_s: f64| with(found("v", "fast", &[&[delay_s]]), 0.96e6, 0.01);
    let own = with(found("v", JUDGED, &[&[0.10]]), 1e6, 0.01);
    let of = |others: &[Found<'_>]| {
        let all: Vec<_> = std::iter::once(&own).chain(others).cloned().collect();
        let (_, met, behind) = judged(bar(Limit::BelowOthers, Of::Run(MEASURE)), &all);
        (met, behind)
    };
    assert_eq!(of(&[slow.clone(), fast(0.11)]), (Some(true), Vec::new()), "who is slow may be early");
    assert_eq!(of(&[slow, fast(0.10)]), (Some(false), vec!["fast".to_owned()]));
    assert_eq!(of(&[]), (None, Vec::new()), "there is nobody to compare with");
}

#[test]
fn a_law_is_ahead_unless_its_queue_is_twice_as_long() {
    let own = with(found("v", JUDGED, &[&[0.90]]), 1e6, 0.020);
    let of = |used: f64, p95_s: f64| {
        let other = with(found("v", "other", &[&[used]]), 1e6, p95_s);
        judged(bar(Limit::NotBehindOthers, Of::Run(MEASURE)), &[own.clone(), other]).1
    };
    assert_eq!([of(0.949, 0.001), of(0.96, 0.040), of(0.96, 0.039)], [Some(true), Some(true), Some(false)]);
}

/// Returns one packet of 1250 bytes every 10 ms from 1 s to 10 s, which is 1 Mbit/s.
fn steady() -> Packets {
    let mut packets = Packets::default();
    for number in 0..900u64 {
        let at = Span::from_millis(1000 + 10 * number as i64);
        packets.on_waited(at, 0, Span::from_millis(if number < 400 { 100 } else { 20 }));
        let (sent, delay) = (Instant::ZERO + (at - Span::from_millis(50)), Span::from_millis(50));
        let size = Size::from_bytes(1250);
        packets.on_event(at, 0, &Event::MediaReceived { sequence: number, sent, delay, size, ecn: Ecn::default() });
    }
    packets
}

/// Returns the value of a measure from these packets. The run that is passed to the measure does not matter.
fn measured(measure: Measure, packets: &Packets) -> Option<f64> {
    let scenario = Scenario::parse(crate::DEMO_SHORT).expect("a scenario");
    let run = crate::sim::simulate(&scenario, 1, &mut |_| {}).expect("it runs");
    measure::of(measure, &scenario, &run, packets).first().copied()
}

/// 50 packets arrive in each half second from 1 s on. The 48th packet arrives at 1.47 s, and raises the rate in the
/// preceding half second to at least 95 % of 1 Mbit/s.
#[test]
fn a_rate_is_reached_where_the_window_before_is_full_enough() {
    let packets = steady();
    let reached = |rate_bps, most_s| {
        let measure = Measure::Reached { flow: 0, at_s: 0.5, window_s: 0.5, rate_bps, most_s };
        measured(measure, &packets).expect("a time")
    };
    assert!((reached(0.95e6, 5.0) - 0.97).abs() < 0.011, "{}", reached(0.95e6, 5.0));
    assert!((reached(1.1e6, 5.0) - 5.0).abs() < 1e-9, "never");
}

#[test]
fn rates_shares_and_waits_are_those_of_the_window() {
    let mut packets = steady();
    let of = |measure, packets: &Packets| measured(measure, packets).expect("measured");
    let rate = Measure::Rate { from_s: 2.0, until_s: 4.0, over_bps: 2e6 };
    assert!((of(rate, &packets) - 0.5).abs() < 1e-9);
    assert!((of(Measure::QueueP95Until { until_s: 4.0 }, &packets) - 0.1).abs() < 1e-3);
    // The queueing delays fall at 5 s, so the first second with short delays ends at 6 s.
    let calm = |within_s| of(Measure::CalmAgain { at_s: 4.0, within_s, p95_s: 0.03 }, &packets);
    assert_eq!([calm(1.8), calm(2.1)].map(|calm| calm > 0.5), [false, true]);
    let size = Size::from_bytes(2500);
    for number in 0..900u64 {
        let at = Span::from_millis(1000 + 10 * number as i64);
        let event =
            Event::MediaReceived { sequence: number, sent: Instant::ZERO, delay: at, size, ecn: Ecn::default() };
        packets.on_event(at, 1, &event);
    }
    // Jain's index for the rates 1 and 2 is (1 + 2)² / (2 (1 + 4)).
    let jain = Measure::Jain { flows: &[0, 1], from_s: 2.0, until_s: 4.0 };
    assert!((of(jain, &packets) - 0.9).abs() < 1e-9);
    assert!((of(Measure::Spread { from_s: 2.0, until_s: 4.0 }, &packets) - 2.0).abs() < 1e-9);
}

fn names(names: &[&str], is_quick: bool) -> Result<Vec<String>, String> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let variants = variants(&names, is_quick).map_err(|error| error.to_string())?;
    Ok(variants.iter().map(|it| format!("{}/{}", it.item.case, it.item.variant)).collect())
}

#[test]
fn what_a_bar_compares_with_is_run_with_it() {
    assert_eq!(names(&["loss"], true), Ok(vec!["loss/1-percent".to_owned(), "loss/0-percent".to_owned()]));
    let chosen = names(&["5.3/50ms-link", "policer", "policer/1M"], false).expect("right names");
    assert_eq!(chosen, ["5.3/50ms-link", "5.3/50ms-link-reference", "policer/1M"]);
    assert!(names(&[], true).expect("all").len() < names(&[], false).expect("all").len());
}

#[test]
fn an_unknown_name_is_refused_with_the_most_similar_one() {
    let refused = |name: &str| names(&[name], false).expect_err("wrong on purpose");
    assert!(refused("polcer").contains("a similar one exists: `policer`"), "{}", refused("polcer"));
    let variant = refused("5.6/50ms-rno");
    assert!(variant.contains("5.6 has no variant `50ms-rno`; a similar one exists: `50ms-reno`"), "{variant}");
}

/// If this test fails, two variants of the suite or two bars of a variant have the same name and could be confused, or
/// a scenario is invalid.
#[test]
fn every_name_and_every_key_of_a_variant_is_of_its_own_and_every_scenario_is_right() {
    let catalogue = Catalogue::default();
    let mut seen = BTreeSet::new();
    for variant in cases().iter().flat_map(|case| &case.variants) {
        let Item { case, variant: name, .. } = &variant.item;
        assert!(seen.insert((case.clone(), name.clone())), "{case}/{name}");
        let keys: BTreeSet<_> = variant.bars.iter().map(|bar| bar.key).collect();
        assert_eq!(keys.len(), variant.bars.len(), "{case}/{name}");
        let scenario = Scenario::parse_in(&catalogue, &variant.item.text, &variant.item.overrides);
        assert!(scenario.is_ok() || variant.item.needs.is_some(), "{case}/{name}: {scenario:?}");
    }
}
