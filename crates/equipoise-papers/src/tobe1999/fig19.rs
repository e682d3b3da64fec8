use equipoise::units::{Size, Span};

use super::fig10::{ADU1, ADU2, LONG, SHORT, with_adu};
use super::measures::{mean_fairness, running_periods};
use super::setting::{FIG19, Testbed, Trace, over, run_all};
use super::{Found, Lab, Options, Rule, Spec, mean_of, parse, read_all, whole, with_interval};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::regression;

/// Number of runs. The paper has ten trials of 40 s each (Tobe 1999, Sec. 6.1).
const RUNS: u32 = 10;
const DURATION_S: f64 = 40.0;
/// Maximum number of TCP connections, as read from the axis of the paper's figure.
const MOST_CONNECTIONS: usize = 5;
const CASES: [(Span, Size, &str); 4] = [
    (SHORT, ADU2, "12 ms, 5120 bytes"),
    (LONG, ADU2, "160 ms, 5120 bytes"),
    (SHORT, ADU1, "12 ms, 64 bytes"),
    (LONG, ADU1, "160 ms, 64 bytes"),
];

const INDEPENDENT: Spec = Spec::new(
    "fig19.independent_of_n",
    "Fig. 19",
    "Fairness after the first probing period does not depend on the number of TCP connections, over both paths and for both ADUs: \
     over one to five of them its slope is within 0.01 a connection.",
    Rule::within(-0.01, 0.01).in_every_cell(),
)
.paper(0.0)
.unit("Jain's index a connection");
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 1] = [INDEPENDENT];

pub(super) fn planned(options: &Options) -> u32 {
    Testbed::runs_of_all(options, RUNS) * (CASES.len() * MOST_CONNECTIONS) as u32
}

/// Returns the fairness from the end of the first probing period on; `NaN` if the first probing period did not end.
fn fairness(trace: &Trace) -> f64 {
    let from = running_periods(trace, DURATION_S).first().map_or(DURATION_S, |first| first.0);
    let flows: Vec<_> = (0..trace.rates.len()).collect();
    mean_fairness(trace, &flows, (from, DURATION_S))
}

/// For each run of a case, the number of TCP connections and the fairness. Runs in which the first probing period did
/// not end are left out.
type Points = Vec<(f64, f64)>;

/// Runs Fig. 19, which shows the fairness of TPBA with one to five TCP connections.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut main: Option<Vec<Points>> = None;
    read_all(found, |testbed| {
        let runs = testbed.runs(&lab.options, RUNS);
        let cases: Vec<_> = CASES
            .iter()
            .map(|&(round_trip, adu, _)| points(lab, testbed, round_trip, adu, runs))
            .collect::<Result<_, _>>()?;
        let slopes: Vec<_> = cases.iter().map(|points| regression(points).map(|line| line.slope)).collect();
        let words = slopes.iter().zip(CASES).map(|(slope, case)| format!("{}: {}", case.2, with_interval(*slope, 4)));
        let note = format!("{}.", words.collect::<Vec<_>>().join("; "));
        main.get_or_insert(cases);
        Ok(vec![INDEPENDENT.decide_cells(runs * MOST_CONNECTIONS as u32, &whole(slopes), note)])
    })?;
    found.figures.push(figure(&main.unwrap_or_default()));
    Ok(())
}

fn points(lab: &Lab<'_>, testbed: &Testbed, round_trip: Span, adu: Size, runs: u32) -> Result<Points, SimError> {
    let scenario = testbed.of(with_adu(over(parse(FIG19), round_trip), adu));
    let mut points = Vec::new();
    for connections in 1..=MOST_CONNECTIONS {
        let mut scenario = scenario.clone();
        scenario.flows.drain(connections..MOST_CONNECTIONS);
        let fair = run_all(lab, &scenario, runs, |trace| fairness(&trace))?;
        points.extend(fair.into_iter().filter(|fair| fair.is_finite()).map(|fair| (connections as f64, fair)));
    }
    Ok(points)
}

fn figure(cases: &[Points]) -> Figure {
    let mean = |points: &Points, connections: usize| {
        mean_of(points.iter().filter(|(of, _)| *of as usize == connections).map(|(_, fair)| *fair))
    };
    let layers = cases.iter().zip(CASES).map(|(points, case)| {
        let means = (1..=MOST_CONNECTIONS).filter_map(|of| Some((of as f64, mean(points, of)?.value)));
        PlotLayer { name: case.2.to_owned(), data: PlotData::Line(means.collect()) }
    });
    let rows = (1..=MOST_CONNECTIONS).map(|of| {
        let cells = cases.iter().map(|points| with_interval(mean(points, of), 3));
        std::iter::once(of.to_string()).chain(cells).collect()
    });
    Figure {
        name: "Fig. 19".to_owned(),
        title: "Fairness over the number of TCP connections".to_owned(),
        text: "Means over 40 s but for the first probing period; rates are means over seconds.".to_owned(),
        charts: vec![Plot {
            title: "Fairness".to_owned(),
            x: "TCP connections",
            y: "Jain's index",
            y_limits: Some((0.0, 1.0)),
            layers: layers.collect(),
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
