//! What the three tables have in common: both methods side by side, and the claims on them.

use super::outcome::{Row, printed};
use super::scenarios::METHODS;
use super::{Mean, difference, drafts, with_interval};
use crate::{Claim, Plot, PlotData, PlotLayer, Table};

/// A table of the paper: loss in per cent, transmission delay and power of TQ and of `NewReno`.
pub(super) struct Printed {
    pub(super) ids: [&'static str; 3],
    pub(super) table: &'static str,
    pub(super) values: [[f64; 3]; 2],
}

/// A number of a row, its unit, what is claimed of it, and its decimals.
type Number = (fn(&Row) -> Mean, &'static str, &'static str, usize);

/// Of each number the paper's claim, that TQ is better than `NewReno`, with TQ's number beside the paper's.
pub(super) fn claims(paper: &Printed, rows: &[Row; 2], runs: u32) -> Vec<Claim> {
    let [tq, newreno] = rows;
    let numbers: [Number; 3] = [
        (Row::loss_percent, "% of packets", "packet loss ratio of TQ is below that of NewReno", 3),
        (Row::delay, "T_c/T_o - 1", "transmission delay of TQ is below that of NewReno", 4),
        (Row::power, "Mbit/s", "power of TQ is above that of NewReno", 4),
    ];
    let claim = |(place, (of, unit, what, decimals)): (usize, Number)| {
        let [ours, other] = [of(tq), of(newreno)];
        let apart = ours.estimate.zip(other.estimate).map(|(tq, newreno)| difference(tq, newreno));
        let better = apart.map(|apart| if place == 2 { apart.ci95[0] > 0.0 } else { apart.ci95[1] < 0.0 });
        let theirs = paper.values[1][place];
        let note = format!(
            "NewReno: {}, and {theirs} in the paper. TQ less NewReno: {}.{}",
            other.words(decimals),
            with_interval(apart, decimals),
            incomplete(rows),
        );
        let draft = drafts(paper.table, runs)(
            paper.ids[place],
            &format!("The {what}. Rule: the interval of the difference lies on that side of zero."),
            Some(paper.values[0][place]),
            unit,
        );
        match better {
            Some(better) => draft.decide(ours, |_| better, note),
            None => draft.beyond(ours, note),
        }
    };
    numbers.into_iter().enumerate().map(claim).collect()
}

fn incomplete(rows: &[Row; 2]) -> String {
    let short = rows.iter().filter(|row| row.complete() < 1.0);
    short.map(|row| format!(" {} was complete in {:.2} of the runs.", row.name, row.complete())).collect()
}

/// The paper's rows, ours below each.
pub(super) fn table(paper: &Printed, rows: &[Row; 2], more: &[Row]) -> Table {
    let both = METHODS.iter().zip(&paper.values).zip(rows);
    let mut lines: Vec<_> = both.flat_map(|((name, values), row)| [printed(name, *values), row.cells()]).collect();
    lines.extend(more.iter().map(Row::cells));
    Table {
        caption: format!("{} and ours, with 95 % intervals", paper.table),
        columns: Row::COLUMNS.map(str::to_owned).to_vec(),
        rows: lines,
    }
}

/// Lines over time of the first run of each method.
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
