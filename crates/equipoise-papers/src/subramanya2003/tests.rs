use super::scenarios::*;
use super::*;
use crate::committed::ids;
use equipoise_lab::scenario::{Override, Scenario};

#[test]
fn every_scenario_of_the_program_parses_and_every_change_changes_it() {
    for text in [CASE1, CASE2, CASE3].concat() {
        assert!(Scenario::parse(text).is_ok(), "{:?}", Scenario::parse(text).err());
    }
    let flows = |text: &str, change: Option<Override>| {
        let scenario = Scenario::parse_with(text, change.as_slice()).expect("a right scenario");
        scenario.flows.iter().map(|flow| format!("{flow:?}")).collect::<Vec<_>>()
    };
    for [tq, newreno] in [CASE1, CASE2, CASE3] {
        for sensitivity::Change { name, change } in sensitivity::changes() {
            let pairs = flows(tq, change.clone()).into_iter().zip(flows(tq, None));
            assert!(pairs.into_iter().all(|(one, other)| (one != other) == change.is_some()), "{name}");
        }
        let open = flows(newreno, Some(unlimited())).into_iter().zip(flows(newreno, None));
        assert!(open.into_iter().all(|(one, other)| one != other));
    }
    for (name, overrides) in table6::readings() {
        for (text, overrides) in CASE3.into_iter().zip(overrides) {
            let flows = |overrides: &[Override]| {
                let scenario = Scenario::parse_with(text, overrides).expect("a right scenario");
                format!("{:?}", scenario.flows)
            };
            assert!(overrides.is_none_or(|overrides| flows(&overrides) != flows(&[])), "{name}");
        }
    }
}

fn quick(part: Part) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(2) };
    run(&[part], &options, &|_| {}).expect("scenarios of the program")
}

#[test]
fn no_method_is_faster_than_the_cut_allows() {
    let lab_options = Options { runs: Some(3), quick: true, seed: 1, threads: Some(2) };
    let lab = Lab::new(&lab_options, 6, &|_| {});
    for (name, text) in METHODS.into_iter().zip(CASE1) {
        let row = rows::case1(&lab, name, text, &[], 3).expect("it runs");
        for outcome in &row.outcomes {
            let delay = outcome.delay.expect("it is complete");
            assert!((table1::LEAST_DELAY..2.0).contains(&delay), "{name}: {delay}");
        }
    }
    for (name, text) in METHODS.into_iter().zip(CASE2) {
        let row = rows::case2(&lab, name, text, &[], 3).expect("it runs");
        for outcome in &row.outcomes {
            let delay = outcome.delay.expect("it is complete");
            assert!((table4::LEAST_DELAY - 0.005..1.5).contains(&delay), "{name}: {delay}");
        }
    }
}

fn found(results: &Results) -> Vec<&str> {
    results.claims.iter().map(|claim| claim.id.as_str()).collect()
}

#[test]
fn every_claim_of_the_tables_comes_with_a_number() {
    let results = quick(Part::Table1);
    assert_eq!(found(&results), ids(&[&table1::COMPARED, &table1::CLAIMS]));
    assert!(results.claims.iter().all(|claim| claim.ours.is_some_and(f64::is_finite)));
    let tables = results.figures.iter().flat_map(|figure| &figure.tables);
    assert!(tables.flat_map(|table| table.rows.iter().map(|row| row.len() == table.columns.len())).all(|fits| fits));
    // The interpretations are the main one, one with another window, and one for each entry of `changes` except the
    // first, which changes nothing.
    assert_eq!(results.readings.len(), 2 + sensitivity::changes().len() - 1);
}

#[test]
fn case_three_has_the_papers_claims_and_its_readings_beside() {
    let results = quick(Part::Table6);
    assert_eq!(found(&results), ids(&[&table6::COMPARED, &table6::CLAIMS]));
    assert_eq!(results.readings.len(), 1 + table6::readings().len());
    let fitted = results.readings.iter().filter(|reading| reading.name.starts_with("a parking lot"));
    // If this check fails, an interpretation that was chosen because its results fit the paper counts as reproduced.
    assert!(fitted.flat_map(|reading| &reading.claims).all(|claim| claim.verdict != crate::Verdict::Reproduced));
}

/// In Table 4, TQ and `NewReno` have a packet loss of 0.087 % and 0.443 %, and a transmission delay (Eq. 7, without a
/// unit) of 0.2783 and 0.4110. The claims use TQ's value minus `NewReno`'s.
#[test]
fn the_papers_differences_are_those_of_its_tables() {
    let paper = table4::COMPARED.map(|spec| spec.paper.expect("a number"));
    assert!((paper[0] + 0.356).abs() < 1e-9 && (paper[1] + 0.1327).abs() < 1e-9, "{paper:?}");
    let Some(power) = table4::COMPARED.last() else { unreachable!("three of them") };
    assert!(power.rule.is_none(), "one finding is judged once");
}
