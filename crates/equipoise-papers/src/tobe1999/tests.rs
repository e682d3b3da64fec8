use super::*;
use crate::Verdict;

fn few(parts: &[Part], threads: usize) -> Results {
    let options = Options { runs: Some(2), quick: true, seed: 1, threads: Some(threads) };
    run(parts, &options, &|_| {}).expect("settings of the program")
}

#[test]
fn the_results_do_not_depend_on_the_number_of_threads() {
    assert_eq!(few(&[Part::Table3, Part::Fig3], 1), few(&[Part::Table3, Part::Fig3], 2));
}

/// Without probing nothing tells LDA of its share, as long as nothing is lost.
#[test]
fn every_claim_of_the_short_parts_has_a_number_and_every_table_is_whole() {
    let results = few(&[Part::Fig3, Part::Fig10, Part::Fig12, Part::Table3], 2);
    let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "fig3.difference_grows",
            "fig3.no_loss_reported",
            "fig11.fair_after_probe",
            "fig12.no_iat_jump",
            "fig12.calmer_running",
            "table3.t_pr",
            "table3.t_pi"
        ]
    );
    for claim in &results.claims {
        assert!(claim.ours.is_some_and(f64::is_finite), "{}", claim.id);
        assert_ne!(claim.verdict, Verdict::NotComparable, "{}", claim.id);
    }
    for table in results.figures.iter().flat_map(|figure| &figure.tables) {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
    }
}
