use super::cases::{Printed, claims, over_time, table};
use super::outcome::{Outcome, Row};
use super::{CASE3, Found, Lab, METHODS, NS2_WINDOW, Options, parse};
use crate::Figure;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 20;
const PAPER: Printed = Printed {
    ids: ["table6.plr", "table6.td", "table6.power"],
    table: "Table 6",
    values: [[0.0, 0.6587, 6.9984], [0.42, 0.6643, 6.968]],
};

/// What is changed beside: its name, the method, and the words of the scenario.
type Change = (&'static str, usize, &'static [(&'static str, &'static str)]);

const SLOW: (&str, &str) = ("\"100 ms\"\ncontroller", "\"400 ms\"\ncontroller");
const ACCUMULATED: (&str, &str) = ("queue = \"printed\"", "queue = \"accumulated\"");
const CHANGES: [Change; 4] = [
    ("TQ, T = 400 ms", 0, &[SLOW]),
    ("TQ, q accumulated", 0, &[ACCUMULATED]),
    ("TQ, q accumulated, T = 400 ms", 0, &[ACCUMULATED, SLOW]),
    (NS2_WINDOW.0, 1, &[(NS2_WINDOW.1, NS2_WINDOW.2)]),
];

pub(super) fn planned(options: &Options) -> u32 {
    (METHODS.len() + CHANGES.len()) as u32 * options.runs(RUNS, 2)
}

/// Table 6 and Fig. 10, with another q and a slower T beside.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let row = |name: &str, text: &str| {
        let scenario = parse(text);
        let outcomes = lab.runs(&scenario, runs, |run| Outcome::of(run, 0.0, "Link3"))?;
        Ok::<_, SimError>(Row::new(name, &scenario, outcomes))
    };
    let rows = [row(METHODS[0], CASE3[0])?, row(METHODS[1], CASE3[1])?];
    let mut more = Vec::new();
    for (name, method, replaced) in CHANGES {
        let text = replaced.iter().fold(CASE3[method].to_owned(), |text, (from, to)| text.replace(from, to));
        more.push(row(name, &text)?);
    }
    found.claims.extend(claims(&PAPER, &rows, runs));
    let all: Vec<&Row> = rows.iter().chain(more.get(2)).collect();
    found.figures.push(Figure {
        name: "Table 6, Fig. 10".to_owned(),
        title: "Case III: four bottlenecks in a row".to_owned(),
        text: "Link0 to Link3 cut to 4, 3, 2 and 1 Mbit/s at 3, 6, 24 and 27 s. The first run of each. The paper does not print which \
               source goes where, so that its numbers are not ours to meet."
            .to_owned(),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &all, |outcome| &outcome.losses, Vec::new()),
            over_time(("Packets waiting in front of Link3", "packets"), &all, |outcome| &outcome.queue, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &more)],
    });
    Ok(())
}
