//! Common code for the three tables of the paper: makes one table of the methods TQ and `NewReno`, and the claims that
//! compare the two methods.

use super::outcome::{Row, printed};
use super::scenarios::METHODS;
use super::{Mean, Rule, Spec, difference, with_interval};
use crate::{Claim, Plot, PlotData, PlotLayer, Table};

/// The numbers of a table of the paper, for TQ and then for `NewReno`: packet loss in percent, transmission delay
/// (Eq. 7, without a unit), and power in Mbit/s.
pub(super) struct Printed {
    pub(super) table: &'static str,
    pub(super) values: [[f64; 3]; 2],
}

/// The claims about a table, in this order: on the packet loss ratio, on the transmission delay, and on the power. The
/// power is the rate of the content divided by the delay.
pub(super) type Compared = [Spec; 3];

/// The paper states the loss in thousandths of a percent. Therefore the loss ratio of TQ counts as lower than that of
/// `NewReno` only if the difference is above this value.
const LEAST_LOSS_PERCENT: f64 = 0.001;

/// Defines the claims of one table of the paper. They say that TQ is better than `NewReno`.
///
/// The claim about power has no rule, because power depends on the delay, and the delay has its own claim.
pub(super) const fn compared(ids: [&'static str; 3], figure: &'static str, paper: &Printed) -> Compared {
    let [plr, td, power] = ids;
    let [tq, newreno] = paper.values;
    [
        Spec::new(
            plr,
            figure,
            "The packet loss ratio of TQ is below that of NewReno; shown is TQ's less NewReno's.",
            Rule::below(-LEAST_LOSS_PERCENT),
        )
        .paper(tq[0] - newreno[0])
        .unit("% of packets"),
        Spec::new(
            td,
            figure,
            "The transmission delay of TQ is below that of NewReno; shown is TQ's less NewReno's.",
            Rule::below(0.0),
        )
        .paper(tq[1] - newreno[1])
        .unit("T_c/T_o - 1"),
        Spec::shown(
            power,
            figure,
            "The power of TQ, which is above that of NewReno where its transmission delay is below.",
        )
        .paper(tq[2])
        .unit("Mbit/s"),
    ]
}

/// Decides the claims that compare both methods.
pub(super) fn claims(specs: &Compared, rows: [&Row; 2], runs: u32) -> Vec<Claim> {
    let [plr, td, power] = specs;
    let note = |of: fn(&Row) -> Mean, decimals: usize| {
        let [tq, newreno] = rows.map(|row| of(row).words(decimals));
        format!("TQ {tq}, NewReno {newreno}.{}", incomplete(rows))
    };
    vec![
        plr.decide(runs, apart(rows, Row::loss_percent), note(Row::loss_percent, 3)),
        td.decide(runs, apart(rows, Row::delay), note(Row::delay, 4)),
        power.decide(runs, rows[0].power(), note(Row::power, 4)),
    ]
}

/// Returns the value of TQ minus the value of `NewReno`.
pub(super) fn apart(rows: [&Row; 2], of: impl Fn(&Row) -> Mean) -> Mean {
    let [tq, newreno] = rows.map(of);
    let value = tq.value.zip(newreno.value).map(|(tq, newreno)| tq - newreno);
    Mean { value, estimate: tq.estimate.zip(newreno.estimate).map(|(tq, newreno)| difference(tq, newreno)) }
}

fn incomplete(rows: [&Row; 2]) -> String {
    let short = rows.iter().filter(|row| row.complete() < 1.0);
    short.map(|row| format!(" {} was complete in {:.2} of the runs.", row.name, row.complete())).collect()
}

/// Returns a table in which each row of the paper is followed by our row.
pub(super) fn table(paper: &Printed, rows: &[Row; 2], more: &[Row]) -> Table {
    let both = METHODS.iter().zip(&paper.values).zip(rows);
    let mut lines: Vec<_> = both.flat_map(|((name, values), row)| [printed(name, *values), row.cells()]).collect();
    let apart = [
        String::from("TQ less NewReno"),
        with_interval(apart([&rows[0], &rows[1]], Row::loss_percent).estimate, 3),
        with_interval(apart([&rows[0], &rows[1]], Row::delay).estimate, 4),
        with_interval(apart([&rows[0], &rows[1]], Row::mean_delay).estimate, 4),
        with_interval(apart([&rows[0], &rows[1]], Row::power).estimate, 4),
        String::new(),
    ];
    lines.push(apart.into());
    lines.extend(more.iter().map(Row::cells));
    Table {
        caption: format!("{} and ours, with 95 % intervals", paper.table),
        columns: Row::COLUMNS.map(str::to_owned).to_vec(),
        rows: lines,
    }
}

/// Returns a chart over time that shows the first run of each method.
pub(super) fn over_time(
    (title, y): (&str, &'static str),
    rows: &[&Row],
    of: impl Fn(&super::outcome::Outcome) -> &[(f64, f64)],
    marks: Vec<(f64, String)>,
) -> Plot {
    let layer = |row: &&Row| {
        let line = row.outcomes.first().map(|outcome| of(outcome).to_vec()).unwrap_or_default();
        (!line.is_empty()).then(|| PlotLayer { name: row.name.clone(), data: PlotData::Line(line) })
    };
    let layers = rows.iter().filter_map(layer).collect();
    Plot { title: title.to_owned(), x: "time (s)", y, y_limits: None, layers, marks }
}
