use equipoise::units::{Size, Span};

use super::measures::{self, mean_fairness, mean_rate, running_periods};
use super::setting::{FIG10, Testbed, Trace, over, run_all};
use super::{Found, Lab, Options, Rule, Spec, mean_of, parse, rates_chart, read_all, whole, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::{FlowKind, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{quantile, sorted};

/// Number of runs of each case. The paper shows one run.
const RUNS: u32 = 10;
const DURATION_S: f64 = 40.0;
/// The times of the paper's run, in seconds (Tobe 1999, Sec. 6.1).
const VISIT: Visit = Visit { second: (10.0, 25.0), duration_s: DURATION_S };

/// The start and the end of flow 2, and the length of the run, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    pub(super) second: (f64, f64),
    pub(super) duration_s: f64,
}

/// A case of the figures: the round-trip time of the path, the size of an ADU, and the name of the case.
pub(super) struct Case {
    pub(super) round_trip: Span,
    pub(super) adu: Size,
    name: &'static str,
}

/// The two sizes of an ADU: ten payloads of 512 bytes, and one payload of 64 bytes (Tobe 1999, Sec. 6.1).
pub(super) const ADU2: Size = Size::from_bytes(5120);
pub(super) const ADU1: Size = Size::from_bytes(64);
pub(super) const SHORT: Span = Span::from_millis(12);
pub(super) const LONG: Span = Span::from_millis(160);

const CASES: [Case; 4] = [
    Case { round_trip: SHORT, adu: ADU2, name: "12 ms, ADUs of 5120 bytes (Fig. 10 to 12)" },
    Case { round_trip: LONG, adu: ADU2, name: "160 ms, ADUs of 5120 bytes (Fig. 14 to 16)" },
    Case { round_trip: SHORT, adu: ADU1, name: "12 ms, ADUs of 64 bytes" },
    Case { round_trip: LONG, adu: ADU1, name: "160 ms, ADUs of 64 bytes (Fig. 17 and 18)" },
];

/// Returns the scenario with the ADU size `size`.
pub(super) fn with_adu(mut scenario: Scenario, size: Size) -> Scenario {
    for flow in &mut scenario.flows {
        if let FlowKind::Pair(pair) = &mut flow.kind {
            pair.adu = size;
        }
    }
    scenario
}

const FAIR: Spec = Spec::new(
    "fig11.fair_after_probe",
    "Fig. 11, 15, 18",
    "After each probing period fairness is near 1, over both paths and for both ADUs: above 0.95 on average over the running periods, \
     as long as no flow comes or goes; rates are means over seconds.",
    Rule::above(0.95).in_every_cell(),
)
.paper(1.0)
.unit("Jain's index");
const DROP: Spec = Spec::new(
    "fig11.drop_when_flow_2_comes",
    "Fig. 11",
    "When flow 2 starts, fairness drops to 0.7: the least of a second from 10 to 14 s.",
    Rule::within(0.65, 0.75),
)
.paper(0.7)
.unit("Jain's index");
const HOLDS: Spec = Spec::new(
    "fig10.flow_3_holds_its_rate",
    "Fig. 10",
    "Flow 3 does not decrease its rate for flow 2 before it probes: that from 11 to 13 s over that from 7 to 9 s, where it runs from 7 \
     to 13 s.",
    Rule::within(0.95, 1.05),
)
.unit("ratio");
const JUMP: Spec = Spec::new(
    "fig12.no_iat_jump",
    "Fig. 12, 16",
    "The inter-arrival time of ADUs does not jump at switches, over both paths and for both ADUs: the largest at a switch is below the \
     largest within probing periods.",
    Rule::below(1.0).in_every_cell(),
)
.unit("ratio");
const CALMER: Spec = Spec::new(
    "fig12.calmer_running",
    "Fig. 12, 16",
    "Inter-arrival times fluctuate more while probing than while running, over both paths and for both ADUs.",
    Rule::below(1.0).in_every_cell(),
)
.unit("ratio of deviations");
#[cfg(test)]
pub(super) const FAIRNESS_CLAIMS: [Spec; 3] = [FAIR, DROP, HOLDS];
#[cfg(test)]
pub(super) const GAPS_CLAIMS: [Spec; 2] = [JUMP, CALMER];

pub(super) fn planned(options: &Options) -> u32 {
    Testbed::runs_of_all(options, RUNS) * CASES.len() as u32
}

/// Returns the runs of every case, under one interpretation of the testbed.
fn traces(lab: &Lab<'_>, testbed: &Testbed) -> Result<Vec<Vec<Trace>>, SimError> {
    let of_case = |case: &Case| {
        let scenario = testbed.of(with_adu(over(parse(FIG10), case.round_trip), case.adu));
        run_all(lab, &scenario, testbed.runs(&lab.options, RUNS), |trace| trace)
    };
    CASES.iter().map(of_case).collect()
}

/// Returns the indices of the flows that are active in a running period. Returns `None` if a flow starts or ends in the
/// running period, or in the 3 s before it.
fn present(visit: Visit, (from, to): (f64, f64)) -> Option<&'static [usize]> {
    // The shortest probing period lasts 3 s.
    let since = from - 3.0;
    let (came, went) = visit.second;
    let changes = [came, went].into_iter().any(|change| change > since && change < to);
    let is_there = from > came && from < went;
    (!changes).then_some(if is_there { &[0, 1, 2] } else { &[0, 2] })
}

/// Returns the mean fairness over the running periods of a run. A running period is cut where flow 2 starts or ends.
/// The period is left out if at most 2 s of it remain, or if flow 2 started or ended in the 3 s before the period.
pub(super) fn fairness_after_probing(trace: &Trace, visit: Visit) -> f64 {
    let (came, went) = visit.second;
    // In a running period, the rate of flow 3 is fair only until flow 2 starts or ends.
    let cut = |(from, to): (f64, f64)| {
        let next = [came, went].into_iter().find(|change| *change > from).unwrap_or(visit.duration_s);
        (from, to.min(next))
    };
    let periods = running_periods(trace, visit.duration_s).into_iter().map(cut).filter(|(from, to)| to - from > 2.0);
    let fair = periods.filter_map(|period| Some(mean_fairness(trace, present(visit, period)?, period)));
    let fair: Vec<_> = fair.filter(|value| value.is_finite()).collect();
    fair.iter().sum::<f64>() / fair.len() as f64
}

/// Computes the fairness among the three flows in each second of an interval, and returns the minimum.
fn least_fairness(trace: &Trace, from: u32, to: u32) -> f64 {
    let seconds = (from..to).map(f64::from);
    seconds.map(|second| mean_fairness(trace, &[0, 1, 2], (second, second + 1.0))).fold(f64::INFINITY, f64::min)
}

/// Returns the rate of flow 3 after the start of flow 2, divided by the rate of flow 3 before this start. Returns `NaN`
/// if the time from 7 s to 13 s is not within one running period of flow 3.
fn held(trace: &Trace) -> f64 {
    let is_running = running_periods(trace, DURATION_S).iter().any(|(from, to)| *from <= 7.0 && *to >= 13.0);
    if is_running { mean_rate(trace, 2, (11.0, 13.0)) / mean_rate(trace, 2, (7.0, 9.0)) } else { f64::NAN }
}

/// Runs Fig. 10, 11, 14, 15, 17 and 18, which show rates and fairness when a TCP flow starts and ends.
pub(super) fn fairness(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut main = None;
    read_all(found, |testbed| {
        let cases = traces(lab, testbed)?;
        let claims = fairness_claims(&cases);
        main.get_or_insert(cases);
        Ok(claims)
    })?;
    let main = main.unwrap_or_default();
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, TPBA"];
    let both = || CASES.iter().zip(&main);
    found.figures.push(Figure {
        name: "Fig. 10, 11, 14, 15, 17, 18".to_owned(),
        title: "Rates and fairness with TPBA".to_owned(),
        text: "Flow 2 is there from 10 to 25 s.".to_owned(),
        charts: both()
            .filter_map(|(case, traces)| traces.first().map(|trace| rates_chart(case.name, trace, 1.0, &names)))
            .collect(),
        tables: vec![Table {
            caption: "Jain's index in running periods, means over the runs with their 95 % intervals".to_owned(),
            columns: vec!["path and ADU".to_owned(), "fairness".to_owned()],
            rows: both()
                .map(|(case, traces)| {
                    let fair = mean_of(traces.iter().map(|trace| fairness_after_probing(trace, VISIT)));
                    vec![case.name.to_owned(), with_interval(fair, 4)]
                })
                .collect(),
        }],
    });
    Ok(())
}

fn fairness_claims(cases: &[Vec<Trace>]) -> Vec<Claim> {
    let fair = cases.iter().map(|traces| mean_of(traces.iter().map(|trace| fairness_after_probing(trace, VISIT))));
    let fair: Vec<_> = fair.collect();
    let words = fair.iter().zip(&CASES).map(|(fair, case)| format!("{}: {}", case.name, with_interval(*fair, 3)));
    let note = format!("{}.", words.collect::<Vec<_>>().join("; "));
    let first = cases.first().map(Vec::as_slice).unwrap_or_default();
    let runs = first.len() as u32;
    let held: Vec<_> = first.iter().map(held).filter(|held| held.is_finite()).collect();
    let running = format!("Flow 3 runs all that time in {} of {runs} runs.", held.len());
    vec![
        FAIR.decide_cells(runs, &whole(fair), note),
        DROP.decide(
            runs,
            mean_of(first.iter().map(|trace| least_fairness(trace, 10, 14))),
            "With a flow of three that has nothing yet the index is two thirds.",
        ),
        HOLDS.decide(runs, mean_of(held), running),
    ]
}

/// Returns the largest value; 0 if there are no values.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// Time at which TCP's slow start has ended, in seconds. Earlier inter-arrival times are left out.
const SETTLED_S: f64 = 3.0;

/// Runs Fig. 12 and 16. Both figures show the inter-arrival times of ADUs at the receiver. If an ADU is the first of a
/// probing or running period, its inter-arrival time is evaluated separately.
pub(super) fn gaps(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut main = None;
    read_all(found, |testbed| {
        let cases = traces(lab, testbed)?;
        let claims = gaps_claims(&cases);
        main.get_or_insert(cases);
        Ok(claims)
    })?;
    let main = main.unwrap_or_default();
    let charts =
        CASES.iter().zip(&main).filter_map(|(case, traces)| traces.first().map(|trace| gaps_chart(case.name, trace)));
    found.figures.push(Figure {
        name: "Fig. 12 and 16".to_owned(),
        title: "Inter-arrival times of ADUs with TPBA".to_owned(),
        text: "The gap before the first ADU of a period counts as one at a switch.".to_owned(),
        charts: charts.collect(),
        tables: vec![Table {
            caption: "Inter-arrival times, means over the runs with their 95 % intervals".to_owned(),
            columns: [
                "path and ADU",
                "largest at a switch (ms)",
                "largest while probing (ms)",
                "99 % while running (ms)",
                "switch over probing",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: CASES.iter().zip(&main).map(|(case, traces)| gaps_row(case, traces)).collect(),
        }],
    });
    Ok(())
}

fn gaps_row(case: &Case, traces: &[Trace]) -> Vec<String> {
    let gaps: Vec<_> = traces.iter().map(|trace| measures::gaps(trace, SETTLED_S)).collect();
    let of = |value: fn(&measures::Gaps) -> f64| mean_of(gaps.iter().map(value));
    vec![
        case.name.to_owned(),
        with_interval(of(|gaps| 1e3 * largest(&gaps.at_switches)), 1),
        with_interval(of(|gaps| 1e3 * largest(&gaps.probing)), 1),
        with_interval(of(|gaps| 1e3 * quantile(&sorted(&gaps.running), 0.99)), 1),
        with_interval(of(|gaps| largest(&gaps.at_switches) / largest(&gaps.probing)), 2),
    ]
}

fn gaps_claims(cases: &[Vec<Trace>]) -> Vec<Claim> {
    let gaps: Vec<Vec<_>> =
        cases.iter().map(|traces| traces.iter().map(|trace| measures::gaps(trace, SETTLED_S)).collect()).collect();
    let runs = gaps.first().map_or(0, Vec::len) as u32;
    let claim = |spec: Spec, value: fn(&measures::Gaps) -> f64| {
        let cells: Vec<_> = gaps.iter().map(|gaps| mean_of(gaps.iter().map(value))).collect();
        let words = cells.iter().zip(&CASES).map(|(cell, case)| format!("{}: {}", case.name, with_interval(*cell, 2)));
        let note = format!("{}.", words.collect::<Vec<_>>().join("; "));
        spec.decide_cells(runs, &whole(cells), note)
    };
    vec![
        claim(JUMP, |gaps| largest(&gaps.at_switches) / largest(&gaps.probing)),
        claim(CALMER, |gaps| deviation(&gaps.running) / deviation(&gaps.probing)),
    ]
}

fn gaps_chart(title: &str, trace: &Trace) -> Plot {
    let points = trace.adus.windows(2).map(|pair| (pair[1].at_s, 1e3 * (pair[1].at_s - pair[0].at_s))).collect();
    let switches = trace.began.iter().map(|began| (began.at_s, 0.0)).collect();
    Plot {
        title: title.to_owned(),
        x: "time (s)",
        y: "inter-arrival time (ms)",
        y_limits: None,
        layers: vec![
            PlotLayer { name: "ADUs".to_owned(), data: PlotData::Points(points) },
            PlotLayer { name: "switches".to_owned(), data: PlotData::Points(switches) },
        ],
        marks: Vec::new(),
    }
}
