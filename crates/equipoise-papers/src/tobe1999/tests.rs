use super::*;
use crate::Verdict;
use crate::committed::ids;

fn few(parts: &[Part], threads: usize) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(threads) };
    run(parts, &options, &|_| {}).expect("settings of the program")
}

#[test]
fn the_results_do_not_depend_on_the_number_of_threads() {
    assert_eq!(few(&[Part::Table3, Part::Fig3], 1), few(&[Part::Table3, Part::Fig3], 2));
}

/// If this test fails, two interpretations of the testbed are the same scenario. A possible cause is an invalid text of
/// a queue length: `Testbed::of` then keeps the queue length of the scenario file without an error.
#[test]
fn every_reading_of_the_testbed_differs_from_the_others() {
    let scenario = |testbed: Testbed| {
        let scenario = testbed.of(parse(setting::FIG10));
        format!("{:?} {:?}", scenario.links, scenario.flows)
    };
    let different: std::collections::BTreeSet<_> = Testbed::ALL.map(scenario).into_iter().collect();
    assert_eq!(different.len(), Testbed::ALL.len());
}

#[test]
fn every_claim_of_the_short_parts_comes_in_its_place_and_every_table_is_whole() {
    let results = few(&[Part::Fig3, Part::Fig10, Part::Fig12, Part::Table3], 2);
    let found: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    let of = [&fig3::CLAIMS[..], &fig10::FAIRNESS_CLAIMS, &fig10::GAPS_CLAIMS, &fig16::CLAIMS, &table3::CLAIMS];
    assert_eq!(found, ids(&of));
    for claim in &results.claims {
        assert!(claim.ours.is_none_or(f64::is_finite), "{}", claim.id);
        assert!(!claim.id.starts_with("fig3") || claim.verdict == Verdict::NotComparable, "{}", claim.id);
    }
    for table in results.figures.iter().flat_map(|figure| &figure.tables) {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
    }
}
