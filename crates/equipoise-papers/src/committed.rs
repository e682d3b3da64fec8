//! Tests that the committed results in `docs/results` match the claims of the program. Parts of the book's chapters on
//! the papers are generated from these results.

use std::collections::BTreeSet;

use crate::experiment::{Options, Spec};
use crate::{Claim, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013};

/// The claims of a paper, one list for each part of the paper.
type Claims = &'static [&'static [Spec]];

/// The name, the committed results and the claims of each paper.
const PAPERS: [(&str, &str, Claims); 5] = [
    ("Waki 2013", include_str!("../../../docs/results/waki2013.json"), waki2013::CLAIMS),
    ("Kodama 2009", include_str!("../../../docs/results/kodama2009.json"), kodama2009::CLAIMS),
    ("Subramanya 2003", include_str!("../../../docs/results/subramanya2003.json"), subramanya2003::CLAIMS),
    ("Tobe 1999", include_str!("../../../docs/results/tobe1999.json"), tobe1999::CLAIMS),
    ("Asvarujanon 2014", include_str!("../../../docs/results/asvarujanon2014.json"), asvarujanon2014::CLAIMS),
];

/// Returns the identifiers of the claims.
pub(crate) fn ids(specs: &[&[Spec]]) -> Vec<&'static str> {
    specs.iter().copied().flatten().map(|spec| spec.id).collect()
}

#[test]
fn every_claim_of_a_paper_has_a_name_of_its_own() {
    for (paper, _, claims) in PAPERS {
        let all = ids(claims);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{paper}");
    }
}

/// If this test fails, a claim or its rule was changed after the run whose results the book shows.
#[test]
fn the_committed_results_are_of_the_claims_rules_and_figures_of_the_program() {
    for (paper, text, claims) in PAPERS {
        let results: Results = serde_json::from_str(text).expect("results as they are written");
        assert!(results.paper == paper && !results.quick && results.runs.is_none(), "{paper}: the full run");
        assert_eq!(results.claims.len(), ids(claims).len(), "{paper}");
        for spec in claims.iter().copied().flatten() {
            let claim = results.claims.iter().find(|claim| claim.id == spec.id);
            let claim = claim.unwrap_or_else(|| panic!("{paper}: {} is not in its results", spec.id));
            let rule = spec.rule.map(|rule| rule.words()).unwrap_or_default();
            let found = (&*claim.figure, &*claim.statement, &*claim.rule, claim.paper, &*claim.unit);
            assert_eq!(found, (spec.figure, spec.statement, &*rule, spec.paper, spec.unit), "{paper}: {}", spec.id);
        }
    }
}

/// The chapter on inline measurement quotes numbers of some claims. If the test fails, the numbers have changed, but
/// the chapter has not.
#[test]
fn the_chapter_on_inline_measurement_quotes_the_committed_numbers() {
    let chapter = include_str!("../../../docs/src/inline.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, text, _) = PAPERS.iter().find(|(paper, ..)| *paper == "Kodama 2009").expect("a paper");
    let results: Results = serde_json::from_str(text).expect("results as they are written");
    let reading = results.readings.iter().find(|reading| reading.name == "Fig. 3: measured inline");
    let claims = &reading.expect("the reading that is quoted").claims;
    let claim = |id: &str| claims.iter().find(|claim| claim.id == id).expect("a claim of Fig. 3");
    let number = |id: &str| claim(id).ours.expect("a number");
    let [low, high] = claim("fig3.jain").ci95.expect("an interval");
    assert!(number("fig3.no_loss").abs() < 1e-9 && chapter.contains("No packet was lost,"));
    assert!(chapter.contains(&format!("{:.1} % of the capacity was used", 100.0 * number("fig3.utilisation"))));
    assert!(chapter.contains(&format!("{:.3} [{low:.3}, {high:.3}]", number("fig3.jain"))));
    assert!(chapter.contains(claim("fig3.jain").verdict.words()));
}

/// Whether the mean `ours` of `few` runs is compatible with the committed mean and interval. The difference may be at
/// most four standard errors, because the runs may have other random numbers.
fn is_possible(ours: f64, full: &Claim, few: u32) -> bool {
    let (Some(mean), Some([low, high])) = (full.ours, full.ci95) else { return false };
    let standard_error = (high - low) / 2.0 / 1.96 * (f64::from(full.runs) / f64::from(few)).sqrt();
    // If a value is the same in all runs, its standard error is zero. Such a value may differ from the committed value
    // in the last digits, because of rounding.
    (ours - mean).abs() <= 4.0 * standard_error + 1e-6 * mean.abs()
}

/// Runs parts of a paper again, with `few` runs, and compares three claims with the committed results. If this test
/// fails, the program has changed, and the whole paper must be run again.
fn come_out_again(name: &str, ids: [&str; 3], run: impl Fn(&Options) -> Results, few: u32) {
    let (_, text, _) = PAPERS.iter().find(|(paper, ..)| *paper == name).expect("a paper");
    let full: Results = serde_json::from_str(text).expect("results as they are written");
    let again = run(&Options { runs: Some(few), quick: false, seed: full.seed, threads: None });
    let claim = |results: &Results, id| results.claims.iter().find(|claim| claim.id == id).cloned();
    for id in ids {
        let (Some(committed), Some(found)) = (claim(&full, id), claim(&again, id)) else { panic!("{id} is missing") };
        let ours = found.ours.unwrap_or_else(|| panic!("{id} has no number"));
        assert!(is_possible(ours, &committed, few), "{id}: {ours}, and committed {committed:?}");
    }
}

#[test]
#[ignore = "long simulations"]
fn three_claims_of_waki_come_out_again() {
    let run = |options: &Options| waki2013::run(&[waki2013::Part::Fig10], options, &|_| {}).expect("it can be run");
    come_out_again("Waki 2013", ["fig10.cbr3_before", "fig10.cbr3_after", "fig10.cbr08_after"], run, 6);
}

#[test]
#[ignore = "long simulations"]
fn three_claims_of_kodama_come_out_again() {
    let run = |options: &Options| kodama2009::run(&[kodama2009::Part::Fig3], options, &|_| {}).expect("it can be run");
    come_out_again("Kodama 2009", ["fig3.jain", "fig3.rapid", "fig3.utilisation"], run, 2);
}

#[test]
#[ignore = "long simulations"]
fn three_claims_of_subramanya_come_out_again() {
    let run = |options: &Options| {
        subramanya2003::run(&[subramanya2003::Part::Table1], options, &|_| {}).expect("it can be run")
    };
    come_out_again("Subramanya 2003", ["table1.plr", "table1.td", "table1.power"], run, 3);
}

#[test]
#[ignore = "long simulations"]
fn three_claims_of_tobe_come_out_again() {
    let run = |options: &Options| {
        tobe1999::run(&[tobe1999::Part::Table3, tobe1999::Part::Fig3], options, &|_| {}).expect("it can be run")
    };
    come_out_again("Tobe 1999", ["table3.t_pi", "fig3.difference_grows", "fig3.no_loss_reported"], run, 3);
}

#[test]
#[ignore = "long simulations"]
fn three_claims_of_asvarujanon_come_out_again() {
    let run = |options: &Options| {
        asvarujanon2014::run(&[asvarujanon2014::Part::Fig3], None, options, &|_| {}).expect("it can be run")
    };
    come_out_again("Asvarujanon 2014", ["sec3.linear_wimax", "sec3.gaussian_lte", "fig3.lte_only_surges"], run, 1);
}
