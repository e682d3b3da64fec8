use super::criteria::Outcome;
use super::scenarios::*;
use super::*;
use crate::Verdict;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::statistics::Estimate;

/// All scenarios of the folder, which the program parses without asking.
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
    assert_eq!(results.claims.len(), 2);
    assert!(results.claims.iter().all(|claim| claim.verdict == Verdict::NotComparable && claim.ci95.is_none()));
}

/// An outcome with these mean delays in ms.
fn outcome(delays_ms: &[f64]) -> Outcome {
    let delays_s = delays_ms.iter().map(|delay| delay / 1e3).collect();
    Outcome { delays_s, rates_mbps: vec![1.0; delays_ms.len()], third_s: 8.2e-3 }
}

#[test]
fn the_criteria_are_those_of_the_hand() {
    let mut delays = vec![8.2; 40];
    delays[0] = 100.0; // in the transient
    delays[10] = 8.7;
    delays[30] = 7.2;
    let run = outcome(&delays);
    assert!((run.mse_ms2() - (0.25 + 1.0) / 35.0).abs() < 1e-9);
    assert!((run.jitter_ms() - 1.0).abs() < 1e-9);
    assert!((run.mse_after_ms2() - 1.0 / 20.0).abs() < 1e-9);
    // Mean 8.2 - 0.5/35, squared distances by hand.
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
fn a_verdict_follows_from_the_interval_alone() {
    let draft = || drafts("", 9)("x", "", Some(1.0), "");
    let ours = Estimate { value: 0.9, ci95: [0.8, 1.01] };
    let below_one = |ours: &Estimate| ours.ci95[1] < 1.0;
    assert_eq!(draft().decide(Some(ours), below_one, "").verdict, Verdict::NotReproduced);
    let tighter = Estimate { ci95: [0.8, 0.99], ..ours };
    assert_eq!(draft().decide(Some(tighter), below_one, "").verdict, Verdict::Reproduced);
    assert_eq!(draft().decide(None, below_one, "").verdict, Verdict::NotComparable);
}

/// Few runs reproduce what many do not, and the reverse: a verdict from them would be one to quote.
#[test]
fn a_quick_look_says_too_few_runs_in_place_of_a_verdict() {
    let draft = || drafts("Fig. 0", 5)("fig0.x", "below one", Some(1.0), "ms");
    let ours = Some(Estimate { value: 0.8, ci95: [0.7, 0.9] });
    let verdicts = |quick| {
        let claims =
            vec![draft().decide(ours, |_| true, ""), draft().decide(ours, |_| false, ""), draft().beyond(ours, "")];
        let options = Options { runs: None, quick, seed: 1, threads: None };
        let results = Found { claims, ..Found::default() }.results("Waki 2013", &options, &[]);
        (
            results.to_text().matches("too few runs").count(),
            results.claims.into_iter().map(|claim| claim.verdict).collect(),
        )
    };
    let full = vec![Verdict::Reproduced, Verdict::NotReproduced, Verdict::NotComparable];
    assert_eq!(verdicts(false), (0, full));
    assert_eq!(verdicts(true), (2, vec![Verdict::TooFewRuns, Verdict::TooFewRuns, Verdict::NotComparable]));
}

#[test]
fn ratios_carry_the_intervals_of_both() {
    let estimate = |value: f64, half: f64| Estimate { value, ci95: [value - half, value + half] };
    let found = ratio(estimate(2.0, 0.06), estimate(1.0, 0.04)).expect("positive");
    // Relative halves of 3 and 4 % make 5 %.
    assert!((found.value - 2.0).abs() < 1e-12 && (found.ci95[1] / 2.0 - 0.05f64.exp()).abs() < 1e-12, "{found:?}");
    assert_eq!(ratio(estimate(1.0, 0.1), estimate(0.0, 0.1)), None);
}
