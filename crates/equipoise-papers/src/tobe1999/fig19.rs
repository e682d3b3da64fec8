use equipoise::units::{Size, Span};

use super::fig10::{ADU1, ADU2, LONG, SHORT, with_adu};
use super::measures::{mean_fairness, running_periods};
use super::setting::{FIG19, Trace, over, run_all};
use super::{Found, Lab, Options, drafts, mean_of, parse, with_interval};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::regression;

/// Tobe 1999, Sec. 6.1: ten trials of 40 s.
const RUNS: u32 = 10;
const DURATION_S: f64 = 40.0;
/// The paper's numbers of connections are on an axis that is not in the text.
const MOST_CONNECTIONS: usize = 5;
const CASES: [(Span, Size, &str); 4] = [
    (SHORT, ADU2, "12 ms, 5120 bytes"),
    (LONG, ADU2, "160 ms, 5120 bytes"),
    (SHORT, ADU1, "12 ms, 64 bytes"),
    (LONG, ADU1, "160 ms, 64 bytes"),
];

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * (CASES.len() * MOST_CONNECTIONS) as u32
}

/// Fairness from the end of the first probing period on; not a number where there was none.
fn fairness(trace: &Trace) -> f64 {
    let from = running_periods(trace, DURATION_S).first().map_or(DURATION_S, |first| first.0);
    let flows: Vec<_> = (0..trace.rates.len()).collect();
    mean_fairness(trace, &flows, (from, DURATION_S))
}

/// Fairness of TPBA among one to five TCP connections.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut rows, mut layers) = (vec![Vec::new(); MOST_CONNECTIONS], Vec::new());
    for (round_trip, adu, name) in CASES {
        let scenario = with_adu(over(parse(FIG19), round_trip), adu);
        let (mut points, mut means) = (Vec::new(), Vec::new());
        for connections in 1..=MOST_CONNECTIONS {
            let mut scenario = scenario.clone();
            scenario.flows.drain(connections..MOST_CONNECTIONS);
            let fair = run_all(lab, &scenario, runs, |trace| fairness(&trace))?;
            let known: Vec<_> = fair.iter().copied().filter(|fair| fair.is_finite()).collect();
            points.extend(known.iter().map(|fair| (connections as f64, *fair)));
            let mean = mean_of(known);
            means.extend(mean.map(|mean| (connections as f64, mean.value)));
            rows[connections - 1].push(with_interval(mean, 3));
        }
        if (round_trip, adu) == (SHORT, ADU2) {
            let slope = regression(&points).map(|line| line.slope);
            found.claims.push(
                drafts("Fig. 19", runs * MOST_CONNECTIONS as u32)(
                    "fig19.independent_of_n",
                    "Fairness after the first probing period does not depend on the number of TCP connections. Rule: \
                                over one to five of them its slope is within 0.02 a connection.",
                    Some(0.0),
                    "Jain's index a connection",
                )
                .decide(slope, |ours| ours.ci95.iter().all(|end| end.abs() < 0.02), ""),
            );
        }
        layers.push(PlotLayer { name: name.to_owned(), data: PlotData::Line(means) });
    }
    found.figures.push(figure(rows, layers));
    Ok(())
}

fn figure(rows: Vec<Vec<String>>, layers: Vec<PlotLayer>) -> Figure {
    let rows =
        rows.into_iter().enumerate().map(|(place, cells)| [(place + 1).to_string()].into_iter().chain(cells).collect());
    Figure {
        name: "Fig. 19".to_owned(),
        title: "Fairness over the number of TCP connections".to_owned(),
        text: "Means over 40 s but for the first probing period; rates are means over seconds.".to_owned(),
        charts: vec![Plot {
            title: "Fairness".to_owned(),
            x: "TCP connections",
            y: "Jain's index",
            y_limits: Some((0.0, 1.0)),
            layers,
            marks: Vec::new(),
        }],
        tables: vec![Table {
            caption: "Jain's index, means over the runs with their 95 % intervals; a dash where fewer than two runs got through \
                      the probing period"
                .to_owned(),
            columns: ["TCP connections"].into_iter().chain(CASES.map(|case| case.2)).map(str::to_owned).collect(),
            rows: rows.collect(),
        }],
    }
}
