use super::scenarios::*;
use super::*;
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
        let windowed = flows(newreno, Some(ns2_window())).into_iter().zip(flows(newreno, None));
        assert!(windowed.into_iter().all(|(one, other)| one != other));
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

#[test]
fn every_claim_of_the_tables_comes_with_a_number() {
    let results = quick(Part::Table1);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["table1.plr", "table1.td", "table1.power", "table1.td_absolute"]);
    assert!(results.claims.iter().all(|claim| claim.ours.is_some_and(f64::is_finite)));
    let tables = results.figures.iter().flat_map(|figure| &figure.tables);
    assert!(tables.flat_map(|table| table.rows.iter().map(|row| row.len() == table.columns.len())).all(|fits| fits));
}

#[test]
fn case_three_has_the_papers_claims_and_what_was_changed_beside() {
    let results = quick(Part::Table6);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["table6.plr", "table6.td", "table6.power"]);
    let rows = &results.figures[0].tables[0].rows;
    assert_eq!(rows.len(), 8, "two printed, two of ours, four beside");
    assert!(rows.iter().all(|row| row.len() == 6));
}
