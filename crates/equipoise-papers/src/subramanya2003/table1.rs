use super::cases::{Compared, Printed, apart, claims, compared, over_time, table};
use super::outcome::{Outcome, Row};
use super::rows::case1;
use super::scenarios::{CASE1, MAIN, METHODS, UNLIMITED, unlimited};
use super::{Found, Lab, Mean, Options, Rule, Spec, read, sensitivity};
use crate::{Claim, Figure, Table};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

const RUNS: u32 = 20;
/// Number of runs of each additional source.
const OTHER_RUNS: u32 = 10;
pub(super) const PAPER: Printed =
    Printed { table: "Table 1", values: [[0.517, 1.5033, 1.3304], [0.583, 1.5360, 1.3021]] };
/// Minimum transmission delay, as a share of the 30 s of the content. The second half of the content has 15 s at
/// 2 Mbit/s. It takes 60 s at 0.5 Mbit/s, so the delay is `(15 + 60) / 30 - 1`.
pub(super) const LEAST_DELAY: f64 = 1.5;
/// Time at which the rate of the link is cut, in seconds.
const CUT_S: f64 = 15.0;
/// Length of the transient that follows the cut of the link's rate, in seconds.
const TRANSIENT_S: f64 = 1.0;

pub(super) const COMPARED: Compared = compared(["table1.plr", "table1.td", "table1.power"], PAPER.table, &PAPER);
const EXCESS: Spec = Spec::new(
    "table1.td_excess",
    "Table 1",
    "TQ's transmission delay of 1.5033 is 0.0033 above what the cut alone costs; ours is so within a factor of two.",
    Rule::within(0.00165, 0.0066),
)
.paper(0.0033)
.unit("T_c/T_o - 1");
const TRANSIENT: Spec = Spec::new(
    "fig3.losses_only_transient",
    "Fig. 3",
    "TQ loses packets only in the transient: none before the cut, and none later than 1 s behind it.",
    Rule::within(0.0, 0.0),
)
.unit("packets");
const OTHER_PLR: Spec = Spec::new(
    "case1.other_plr",
    "Sec. 4.3",
    "Other single sources do the same: the packet loss ratio of TQ is below that of NewReno, of the video Soccer and of CBR 1 Mbit/s.",
    Rule::below(-0.001).in_every_cell(),
)
.unit("% of packets");
const OTHER_TD: Spec =
    Spec::new("case1.other_td", "Sec. 4.3", "The same of the transmission delay.", Rule::below(0.0).in_every_cell())
        .unit("T_c/T_o - 1");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 4] = [EXCESS, TRANSIENT, OTHER_PLR, OTHER_TD];

/// A source that replaces the source of case I in additional runs.
struct Other {
    name: &'static str,
    source: &'static [(&'static str, &'static str)],
    peak_and_cv: Option<(f64, f64)>,
}

/// Two sources of Sec. 4.1, one with a variable and one with a constant bit rate. Their rates exceed 0.5 Mbit/s, the
/// rate of the link after the cut.
const OTHERS: [Other; 2] = [
    Other {
        name: "video Soccer",
        source: &[("kind", "video"), ("rate", "572 kbit/s")],
        peak_and_cv: Some((3.24, 0.41)),
    },
    Other { name: "CBR 1 Mbit/s", source: &[("rate", "1 Mbit/s")], peak_and_cv: None },
];

impl Other {
    fn overrides(&self) -> Vec<Override> {
        let key = |key: &str| format!("flow.cbr-2.source.{key}");
        let mut overrides: Vec<_> = self.source.iter().map(|(name, text)| Override::set(key(name), *text)).collect();
        if let Some((peak, cv)) = self.peak_and_cv {
            overrides.extend([Override::set(key("peak"), peak), Override::set(key("cv"), cv)]);
        }
        overrides
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    3 * options.runs(RUNS, 2)
        + (OTHERS.len() * METHODS.len()) as u32 * options.runs(OTHER_RUNS, 2)
        + sensitivity::planned(options, sensitivity::Case::One)
}

/// Returns the claims that are tested under every interpretation of the paper.
pub(super) fn judged(rows: [&Row; 2], runs: u32) -> Vec<Claim> {
    let excess = |row: &Row| row.mean(|outcome| outcome.excess_over_quarter(CUT_S));
    let outside = |row: &Row| {
        row.mean(|outcome: &Outcome| Some(outcome.lost(0.0, CUT_S) + outcome.lost(CUT_S + TRANSIENT_S, f64::MAX)))
    };
    let note = |of: &dyn Fn(&Row) -> Mean, decimals: usize| format!("NewReno {}.", of(rows[1]).words(decimals));
    let mut found = claims(&COMPARED, rows, runs);
    found.push(EXCESS.decide(runs, excess(rows[0]), note(&excess, 4)));
    found.push(TRANSIENT.decide(runs, outside(rows[0]), note(&outside, 1)));
    found
}

/// Runs Table 1, Fig. 3 and 4: one source with each method.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let rows = [case1(lab, METHODS[0], CASE1[0], &[], runs)?, case1(lab, METHODS[1], CASE1[1], &[], runs)?];
    let open = case1(lab, UNLIMITED, CASE1[1], &[unlimited()], runs)?;
    let both = [&rows[0], &rows[1]];
    found.claims.extend(judged(both, runs));
    read(found, MAIN, judged(both, runs));
    read(found, UNLIMITED, judged([&rows[0], &open], runs));
    found.figures.push(Figure {
        name: "Table 1, Fig. 3, 4".to_owned(),
        title: "Case I: one source, the bottleneck cut to a quarter at 15 s".to_owned(),
        text: format!("The first run of each. The cut alone costs a transmission delay of {LEAST_DELAY}."),
        charts: vec![
            over_time(("Cumulative packet loss", "packets"), &both, |outcome| &outcome.losses, Vec::new()),
            over_time(
                ("Packets waiting in front of Link0", "packets"),
                &both,
                |outcome| &outcome.queue,
                vec![(10.0, "buffer".to_owned()), (5.0, "x_d".to_owned())],
            ),
            over_time(("Utilisation of Link0", "share"), &both, |outcome| &outcome.utilisation, Vec::new()),
            over_time(("Congestion window", "segments"), &both, |outcome| &outcome.window, Vec::new()),
        ],
        tables: vec![table(&PAPER, &rows, &[open])],
    });
    others(lab, found)?;
    sensitivity::run(lab, sensitivity::Case::One, &rows[1], found)
}

/// Runs case I with each source in `OTHERS`. The paper says: "We also test some other single traffic sources".
fn others(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(OTHER_RUNS, 2);
    let mut rows = Vec::new();
    for other in &OTHERS {
        let of = |method: usize| {
            let name = format!("{}, {}", other.name, METHODS[method]);
            case1(lab, &name, CASE1[method], &other.overrides(), runs)
        };
        rows.push([of(0)?, of(1)?]);
    }
    let judge = |spec: &Spec, of: fn(&Row) -> Mean| {
        let cells: Option<Vec<_>> = rows.iter().map(|[tq, newreno]| apart([tq, newreno], of).estimate).collect();
        spec.decide_cells(
            runs,
            &cells.unwrap_or_default(),
            "The other sources have 0.5 Mbit/s or less, which the cut leaves.",
        )
    };
    found.claims.push(judge(&OTHER_PLR, Row::loss_percent));
    found.claims.push(judge(&OTHER_TD, Row::delay));
    found.figures.push(Figure {
        name: "Sec. 4.3".to_owned(),
        title: "Case I with other single sources".to_owned(),
        text: "\"We also test some other single traffic sources, the results are similar\": which is not printed."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Means with 95 % intervals".to_owned(),
            columns: Row::COLUMNS.map(str::to_owned).to_vec(),
            rows: rows.iter().flatten().map(Row::cells).collect(),
        }],
    });
    Ok(())
}
