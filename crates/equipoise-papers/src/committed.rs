//! The results that the chapters are made from, held against the program that made them.

use crate::experiment::Spec;
use crate::{Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999};

/// A paper's name, its results (those of Waki 2013 have not been run by its new rules yet), and its claims as they stand before any run.
const PAPERS: [(&str, &str, &[&[Spec]]); 4] = [
    ("Kodama 2009", include_str!("../../../docs/results/kodama2009.json"), kodama2009::CLAIMS),
    ("Subramanya 2003", include_str!("../../../docs/results/subramanya2003.json"), subramanya2003::CLAIMS),
    ("Tobe 1999", include_str!("../../../docs/results/tobe1999.json"), tobe1999::CLAIMS),
    ("Asvarujanon 2014", include_str!("../../../docs/results/asvarujanon2014.json"), asvarujanon2014::CLAIMS),
];

fn committed(text: &str) -> Results {
    serde_json::from_str(text).expect("results as they are written")
}

/// If it fails, a claim or its rule was changed after the run that the book shows.
#[test]
fn the_committed_results_are_of_the_claims_rules_and_figures_of_the_program() {
    for (paper, text, claims) in PAPERS {
        let results = committed(text);
        assert_eq!(results.paper, paper);
        assert!(!results.quick && results.runs.is_none(), "{paper}: the full run");
        let mut results = results;
        results.claims.sort_by(|a, b| a.id.cmp(&b.id));
        let ids: Vec<_> = results.claims.iter().map(|claim| claim.id.as_str()).collect();
        let mut specs: Vec<_> = claims.iter().copied().flatten().collect();
        specs.sort_by_key(|spec| spec.id);
        assert_eq!(ids, specs.iter().map(|spec| spec.id).collect::<Vec<_>>(), "{paper}");
        for (claim, spec) in results.claims.iter().zip(specs) {
            let rule = spec.rule.map(|rule| rule.words()).unwrap_or_default();
            let found = (&*claim.figure, &*claim.statement, &*claim.rule, claim.paper, &*claim.unit);
            assert_eq!(found, (spec.figure, spec.statement, &*rule, spec.paper, spec.unit), "{paper}: {}", spec.id);
        }
    }
}
