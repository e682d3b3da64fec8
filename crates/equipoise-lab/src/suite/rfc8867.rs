//! The cases of RFC 8867 with their variants. Each variant is a scenario file in `scenarios/rfc8867`.

use super::{Item, SuiteError};
use crate::scenario::nearest::similar;

/// The name of the suite.
pub const NAME: &str = "rfc8867";

/// Number of seeds for each variant in a full run.
pub const RUNS: u32 = 10;
/// Number of seeds for each variant in a quick run. The simulated time is not shortened.
pub const QUICK_RUNS: u32 = 3;

/// A test case of RFC 8867.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The section of RFC 8867 that defines the case, such as "5.1".
    pub number: &'static str,
    /// The title of the case.
    pub title: &'static str,
    /// What the RFC expects of a control law in this case, in our words.
    pub expected: &'static str,
    /// The name of a parameter that a controller must have in order to run the case; `None` if any controller can run
    /// it.
    pub needs: Option<&'static str>,
    /// The variants of the case. A quick run uses only the first one, unless another variant is named.
    pub variants: &'static [Variant],
}

/// A variant of a case.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the variant, unique within the case.
    pub name: &'static str,
    /// Text of the variant's scenario.
    pub text: &'static str,
}

macro_rules! variant {
    ($case:literal, $name:literal) => {
        Variant { name: $name, text: include_str!(concat!("../../scenarios/rfc8867/", $case, "-", $name, ".toml")) }
    };
}

/// All cases, in the order of their sections in the RFC.
pub const CASES: &[Case] = &[
    Case {
        number: "5.1",
        title: "Variable available capacity, one flow",
        expected: "The flow finds the capacity, stays close to it without swings, and follows its changes.",
        needs: None,
        variants: &[
            variant!("5.1", "50ms-link"),
            variant!("5.1", "100ms-link"),
            variant!("5.1", "50ms-udp"),
            variant!("5.1", "100ms-udp"),
            variant!("5.1", "50ms-link-jitter"),
        ],
    },
    Case {
        number: "5.2",
        title: "Variable available capacity, two flows",
        expected: "Both flows give way at each fall of the capacity, and ramp up again when it rises.",
        needs: None,
        variants: &[
            variant!("5.2", "50ms-link"),
            variant!("5.2", "100ms-link"),
            variant!("5.2", "50ms-udp"),
            variant!("5.2", "100ms-udp"),
            variant!("5.2", "50ms-link-jitter"),
        ],
    },
    Case {
        number: "5.3",
        title: "Congested feedback, media both ways",
        expected: "The flows bear feedback that is late or lost; the variants named reference have a way back without limit, to judge by.",
        needs: None,
        variants: &[
            variant!("5.3", "50ms-link"),
            variant!("5.3", "50ms-udp"),
            variant!("5.3", "50ms-link-reference"),
            variant!("5.3", "50ms-udp-reference"),
            variant!("5.3", "50ms-link-jitter"),
        ],
    },
    Case {
        number: "5.4",
        title: "Competing flows of one law",
        expected: "With the third flow the link is full, and all three converge to the same rate with little delay and loss.",
        needs: None,
        variants: &[variant!("5.4", "50ms"), variant!("5.4", "50ms-jitter")],
    },
    Case {
        number: "5.5",
        title: "Round-trip time fairness",
        expected: "The flows converge to the same rate, whatever their round-trip times.",
        needs: None,
        variants: &[variant!("5.5", "10-150ms"), variant!("5.5", "10-150ms-jitter")],
    },
    Case {
        number: "5.6",
        title: "Beside a long TCP flow",
        expected: "Media are not starved, or fall to their lowest rate at the worst.",
        needs: None,
        variants: &[
            variant!("5.6", "300ms-reno"),
            variant!("5.6", "1000ms-reno"),
            variant!("5.6", "300ms-cubic"),
            variant!("5.6", "1000ms-cubic"),
            variant!("5.6", "300ms-reno-jitter"),
        ],
    },
    Case {
        number: "5.7",
        title: "Beside short TCP flows",
        expected: "Bursts do not starve media, which come back to what they had before.",
        needs: None,
        variants: &[
            variant!("5.7", "one-connection"),
            variant!("5.7", "30-connections"),
            variant!("5.7", "one-connection-jitter"),
        ],
    },
    Case {
        number: "5.8",
        title: "Pause and resume",
        expected: "While one flow pauses the others rise to their highest rate; when it resumes, all come back to the rate of before.",
        needs: None,
        variants: &[variant!("5.8", "50ms"), variant!("5.8", "50ms-jitter")],
    },
    Case {
        number: "6.1",
        title: "Flows with priority",
        expected: "The first flow settles near twice the rate of each of the others.",
        needs: Some("priority"),
        variants: &[variant!("6.1", "50ms")],
    },
    Case {
        number: "6.2",
        title: "Explicit congestion notification",
        expected: "With ECN a law does no worse than without, and better than by delay alone.",
        needs: None,
        variants: &[
            variant!("6.2", "5.1-codel"),
            variant!("6.2", "5.2-codel"),
            variant!("6.2", "5.3-codel"),
            variant!("6.2", "5.4-codel"),
            variant!("6.2", "5.5-codel"),
            variant!("6.2", "5.6-codel"),
            variant!("6.2", "5.7-codel"),
            variant!("6.2", "5.8-codel"),
            variant!("6.2", "5.1-dualpi2"),
            variant!("6.2", "5.2-dualpi2"),
            variant!("6.2", "5.3-dualpi2"),
            variant!("6.2", "5.4-dualpi2"),
            variant!("6.2", "5.5-dualpi2"),
            variant!("6.2", "5.6-dualpi2"),
            variant!("6.2", "5.7-dualpi2"),
            variant!("6.2", "5.8-dualpi2"),
        ],
    },
    Case {
        number: "6.3",
        title: "Multiple bottlenecks",
        expected: "Both narrow links are full, and none of the flows is starved.",
        needs: None,
        variants: &[variant!("6.3", "40-100ms")],
    },
];

/// Returns the case with this section number.
pub fn case(number: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.number == number)
}

/// Returns the items with these names. A name is that of a case, such as "5.1", or of a single variant, such as
/// "5.1/50ms-link". Without names, returns the items of all cases. If `is_quick` is set, a case stands for its first
/// variant only, but any variant can be named.
///
/// # Errors
/// [`SuiteError::UnknownCase`] and [`SuiteError::UnknownVariant`], which suggest the most similar name.
pub fn items(names: &[String], is_quick: bool) -> Result<Vec<Item>, SuiteError> {
    let of_case = |case: &'static Case| {
        let count = if is_quick { 1 } else { case.variants.len() };
        case.variants.iter().take(count).map(move |variant| item(case, variant))
    };
    if names.is_empty() {
        return Ok(CASES.iter().flat_map(of_case).collect());
    }
    let mut items: Vec<Item> = Vec::new();
    for name in names {
        let (number, variant) = name.split_once('/').map_or((name.as_str(), None), |(case, name)| (case, Some(name)));
        let case = case(number).ok_or_else(|| unknown_case(number))?;
        match variant {
            None => items.extend(of_case(case)),
            Some(name) => {
                let variant = case.variants.iter().find(|variant| variant.name == name);
                items.push(item(case, variant.ok_or_else(|| unknown_variant(case, name))?));
            }
        }
    }
    // A variant that is named twice is run only once.
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert((item.case.clone(), item.variant.clone())));
    Ok(items)
}

pub(super) fn item(case: &Case, variant: &Variant) -> Item {
    Item {
        case: case.number.to_owned(),
        title: case.title.to_owned(),
        variant: variant.name.to_owned(),
        text: variant.text.into(),
        overrides: Vec::new(),
        needs: case.needs,
    }
}

fn unknown_case(name: &str) -> SuiteError {
    let known = || CASES.iter().map(|case| case.number);
    SuiteError::UnknownCase {
        name: name.to_owned(),
        known: known().collect::<Vec<_>>().join(", "),
        similar: similar(name, known()),
    }
}

fn unknown_variant(case: &Case, name: &str) -> SuiteError {
    let known = || case.variants.iter().map(|variant| variant.name);
    SuiteError::UnknownVariant {
        case: case.number.to_owned(),
        name: name.to_owned(),
        known: known().collect::<Vec<_>>().join(", "),
        similar: similar(name, known()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], is_quick: bool) -> Result<Vec<String>, String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let items = items(&names, is_quick).map_err(|error| error.to_string())?;
        Ok(items.into_iter().map(|item| format!("{}/{}", item.case, item.variant)).collect())
    }

    #[test]
    fn cases_and_variants_are_chosen_by_name_each_once() {
        let all: usize = CASES.iter().map(|case| case.variants.len()).sum();
        assert_eq!(names(&[], false).expect("all").len(), all);
        assert_eq!(names(&[], true).expect("all").len(), CASES.len());
        assert_eq!(names(&["5.4"], true), Ok(vec!["5.4/50ms".to_owned()]));
        let chosen = names(&["5.1/100ms-udp", "5.4", "5.4/50ms"], false);
        assert_eq!(chosen.expect("right names"), ["5.1/100ms-udp", "5.4/50ms", "5.4/50ms-jitter"]);
        assert_eq!(names(&["5.1/100ms-udp"], true).expect("a right name"), ["5.1/100ms-udp"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_most_similar_one() {
        let refused = |name: &str| names(&[name], false).expect_err("wrong on purpose");
        assert!(refused("5.9").contains("no case `5.9`; a similar one exists: `5."), "{}", refused("5.9"));
        assert!(refused("xyzzy").contains("there are: 5.1, 5.2"), "{}", refused("xyzzy"));
        let variant = refused("5.1/50ms-lnk");
        assert!(variant.contains("5.1 has no variant `50ms-lnk`; a similar one exists: `50ms-link`"), "{variant}");
    }

    #[test]
    fn every_name_is_of_its_own() {
        for case in CASES {
            let names: std::collections::BTreeSet<_> = case.variants.iter().map(|variant| variant.name).collect();
            assert_eq!(names.len(), case.variants.len(), "{}", case.number);
        }
    }
}
