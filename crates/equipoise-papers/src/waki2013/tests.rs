use super::criteria::Outcome;
use super::scenarios::*;
use super::*;
use crate::Verdict;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::statistics::Estimate;

/// The program parses the scenario files of Waki 2013 without handling errors. If a file is invalid, an experiment
/// panics.
#[test]
fn every_scenario_of_the_program_parses_and_every_variation_changes_it() {
    let texts = [FIG7, AP_300, AP_407, AP_LOAD, AP_ROBUST, AP_LEARN, CBR_3, CBR_08];
    for text in texts.into_iter().chain(AIMD.map(|(_, text)| text)) {
        assert!(Scenario::parse(text).is_ok());
    }
    let flows = |text: &str, change: Option<Override>| {
        let scenario = Scenario::parse_with(text, change.as_slice()).expect("a right scenario");
        format!("{:?}", scenario.flows)
    };
    for super::runaway::Variation { name, change } in super::runaway::variations() {
        let is_changed = flows(AP_300, change.clone()) != flows(AP_300, None);
        assert_eq!(is_changed, change.is_some(), "{name} changes no flow");
    }
    for text in [AP_300, AP_ROBUST] {
        assert_ne!(flows(text, Some(super::fig10::every_second())), flows(text, None));
    }
}

/// The interpretation of AP with media in both directions must equal the scenario file `ap-both-ways.toml`. Both ends
/// must have the same control law, except for AP with b(ρ), because only one end knows the load.
#[test]
fn media_both_ways_mirror_the_session_and_its_background() {
    let shipped = include_str!("../../scenarios/waki2013/ap-both-ways.toml");
    let flows = |scenario: &Scenario| format!("{:?} {:?}", scenario.links, scenario.flows);
    assert_eq!(flows(&BOTH_WAYS.scenario(AP_300)), flows(&parse(shipped)));
    for text in [AP_407, AP_LOAD, CBR_3, CBR_08].into_iter().chain(AIMD.map(|(_, text)| text)) {
        let scenario = BOTH_WAYS.scenario(text);
        let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["media", "media (back)", "background", "background back"]);
        let [there, back, ..] = &scenario.flows[..] else { panic!("four flows") };
        assert_eq!(format!("{:?}", there.kind) == format!("{:?}", back.kind), text != AP_LOAD);
    }
    let outcome = outcome(&[8.2; 40]);
    assert_eq!(BOTH_WAYS.outcome(&outcome).rates_mbps, outcome.rates_mbps);
}

fn quick(part: Part) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(2) };
    run(&[part], &options, &|_| {}).expect("scenarios of the program")
}

#[test]
fn the_parts_asked_for_are_the_parts_that_come() {
    let ids: Vec<_> = quick(Part::Fig5).claims.into_iter().map(|claim| claim.id).collect();
    assert_eq!(ids, ["fig5.flat"]);
}

#[test]
#[ignore = "long simulations"]
fn too_few_runs_for_an_interval_are_not_comparable() {
    let results = quick(Part::Fig14);
    assert_eq!(results.claims.len(), super::fig13::CLAIMS_14.len());
    assert!(results.claims.iter().all(|claim| claim.verdict == Verdict::NotComparable && claim.ci95.is_none()));
}

/// Returns the results of a run whose intervals have the mean delays `delays_ms`, in ms.
fn outcome(delays_ms: &[f64]) -> Outcome {
    let delays_s = delays_ms.iter().map(|delay| delay / 1e3).collect();
    let rates_mbps = vec![1.0; delays_ms.len()];
    Outcome { delays_s, rates_mbps, variance_s2: 1e-6, third_s: 8.2e-3, transient: 5 }
}

#[test]
fn the_criteria_are_those_of_the_hand() {
    let mut delays = vec![8.2; 40];
    delays[0] = 100.0; // this interval belongs to the initial transient
    delays[10] = 8.7;
    delays[30] = 7.2;
    let run = outcome(&delays);
    assert!((run.mse_ms2() - (0.25 + 1.0) / 35.0).abs() < 1e-9);
    assert!((run.jitter_ms() - 1.0).abs() < 1e-9);
    assert!((run.mse_after_ms2() - 1.0 / 20.0).abs() < 1e-9);
    // The mean is 8.2 - 0.5/35. The squared distances from the mean are computed by hand.
    let mean = 8.2 - 0.5 / 35.0;
    let squares: f64 =
        [8.7, 7.2].iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() + 33.0 * (8.2 - mean) * (8.2 - mean);
    assert!((run.cv() - (squares / 35.0).sqrt() / mean).abs() < 1e-12);
}

#[test]
fn thirty_seconds_above_twice_the_target_are_a_runaway_and_twenty_are_not() {
    let mut delays = vec![8.2; 40];
    delays[20..22].fill(20.0);
    assert_eq!(outcome(&delays).runs_away_at(), None);
    delays[22] = 16.5;
    assert_eq!(outcome(&delays).runs_away_at(), Some(20));
}

#[test]
fn every_claim_has_a_name_of_its_own_and_a_rule_or_nothing_to_compare_with() {
    let mut ids: Vec<_> = CLAIMS.iter().copied().flatten().map(|spec| spec.id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    let without: Vec<_> =
        CLAIMS.iter().copied().flatten().filter(|spec| spec.rule.is_none()).map(|spec| spec.id).collect();
    assert_eq!(without, ["fig5.flat", "fig7.md1_slope", "runaway.probability_printed"]);
}

/// The load changes in a step at 200 s. The control action at 201 s uses the statistics from 191 s to 201 s, which are
/// almost all from before the step. If this test fails, values from before and after the step are mixed.
#[test]
fn steps_and_levels_are_those_of_the_hand() {
    let mut run = outcome(&vec![8.2; 39]);
    run.rates_mbps = [vec![3.0; 20], vec![2.7], vec![1.8; 18]].concat();
    run.delays_s[20] = 9.07e-3;
    let [first, second] = run.decreases_mbps();
    assert!((first - 0.3).abs() < 1e-9 && (second - 0.9).abs() < 1e-9);
    assert!((run.first_behind_ms() - 9.07).abs() < 1e-9);
    assert!((run.rate_before_mbps() - 3.0).abs() < 1e-9);
    assert!((run.rate_after_mbps() - (2.7 + 18.0 * 1.8) / 19.0).abs() < 1e-9);
    assert!((run.settled_before_ms() - 8.2).abs() < 1e-9);
    // The error is 0.87 ms in one interval, and zero in all others. There are 34 intervals, or 29 if the transient is
    // longer.
    assert!((run.mse_ms2() - 0.87 * 0.87 / 34.0).abs() < 1e-9);
    assert!((run.with_transient(10).mse_ms2() - 0.87 * 0.87 / 29.0).abs() < 1e-9);
}

#[test]
fn the_intervals_are_the_sessions_own_and_the_step_lies_in_the_20th() {
    let run = equipoise_lab::sim::simulate(&Scenario::parse(CBR_3).expect("right"), 1, &mut |_| {}).expect("it runs");
    let of = Outcome::of(&run);
    assert_eq!(of.delays_s.len(), 39);
    assert!(of.rates_mbps.iter().all(|mbps| (mbps - 3.0).abs() < 0.01), "{:?}", of.rates_mbps);
    assert!(
        of.settled_before_ms() < 8.4 && of.first_behind_ms() > 8.6,
        "{} {}",
        of.settled_before_ms(),
        of.first_behind_ms()
    );
    let (own, all) = (of.variance_s2, run.flows[0].intervals[20].delay_variance_s2);
    assert_eq!(Some(own.to_bits()), all.map(f64::to_bits));
    // In Sec. 5.2, 15 Mbit/s correspond to 2048 packets/s.
    let units = SEC_5_2.scenario(CBR_3);
    let run = equipoise_lab::sim::simulate(&units, 1, &mut |_| {}).expect("it runs");
    let packets_per_s = run.flows[0].intervals[3].packets as f64 / 10.0;
    assert!((packets_per_s - 3.0 * 2048.0 / 15.0).abs() < 0.2, "{packets_per_s}");
    assert!((SEC_5_2.outcome(&Outcome::of(&run)).rates_mbps[3] - 3.0).abs() < 0.01);
}

/// A claim may be reproduced with few runs but not with many runs, or the other way round. If this test fails, a
/// verdict from too few runs can be quoted.
#[test]
fn a_quick_look_says_too_few_runs_in_place_of_a_verdict() {
    let spec = |rule| Spec::new("fig0.x", "Fig. 0", "below one", rule);
    let ours = Some(Estimate { value: 0.8, ci95: [0.7, 0.9] });
    let verdicts = |quick| {
        let claims = vec![
            spec(Rule::below(1.0)).decide(5, ours, ""),
            spec(Rule::above(1.0)).decide(5, ours, ""),
            Spec::shown("fig0.y", "Fig. 0", "a number").decide(5, ours, ""),
        ];
        let options = Options { runs: None, quick, seed: 1, threads: None };
        let results = Found { claims, ..Found::default() }.results("Waki 2013", &options, &[]);
        (
            results.to_text().matches("too few runs").count(),
            results.claims.into_iter().map(|claim| claim.verdict).collect(),
        )
    };
    let full = vec![Verdict::Reproduced, Verdict::NotReproduced, Verdict::NotComparable];
    assert_eq!(verdicts(false), (0, full));
    // The words "too few runs" must appear once for each of the two claims, and once in the last line, which counts the
    // verdicts.
    assert_eq!(verdicts(true), (3, vec![Verdict::TooFewRuns, Verdict::TooFewRuns, Verdict::NotComparable]));
}

#[test]
fn ratios_carry_the_intervals_of_both() {
    let estimate = |value: f64, half: f64| Estimate { value, ci95: [value - half, value + half] };
    let found = ratio(estimate(2.0, 0.06), estimate(1.0, 0.04)).expect("positive");
    // The relative half-widths are 3 % and 4 %. The relative half-width of the ratio is √(3² + 4²) % = 5 %.
    assert!((found.value - 2.0).abs() < 1e-12 && (found.ci95[1] / 2.0 - 0.05f64.exp()).abs() < 1e-12, "{found:?}");
    assert_eq!(ratio(estimate(1.0, 0.1), estimate(0.0, 0.1)), None);
}
