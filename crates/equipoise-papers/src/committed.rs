//! The results that the chapters are made from, held against the program that made them.

use std::collections::BTreeSet;

use crate::experiment::Spec;
use crate::{Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013};

/// Parts of a paper, with the claims of each.
type Claims = &'static [&'static [Spec]];

/// A paper's name, its results, and its claims apart from any run. Waki 2013 has no results by these rules so far.
const PAPERS: [(&str, Option<&str>, Claims); 5] = [
    ("Waki 2013", None, waki2013::CLAIMS),
    ("Kodama 2009", Some(include_str!("../../../docs/results/kodama2009.json")), kodama2009::CLAIMS),
    ("Subramanya 2003", Some(include_str!("../../../docs/results/subramanya2003.json")), subramanya2003::CLAIMS),
    ("Tobe 1999", Some(include_str!("../../../docs/results/tobe1999.json")), tobe1999::CLAIMS),
    ("Asvarujanon 2014", Some(include_str!("../../../docs/results/asvarujanon2014.json")), asvarujanon2014::CLAIMS),
];

/// Names of claims.
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

/// If it fails, a claim or its rule was changed after the run that the book shows.
#[test]
fn the_committed_results_are_of_the_claims_rules_and_figures_of_the_program() {
    for (paper, text, claims) in PAPERS {
        let Some(text) = text else { continue };
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
