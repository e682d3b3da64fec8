use equipoise::units::{Size, Span};

use super::measures::{self, mean_fairness, running_periods};
use super::setting::{FIG10, Trace, over, run_all};
use super::{Found, Lab, Options, drafts, mean_of, parse, rates_chart, with_interval};
use crate::{Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::{FlowKind, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, quantile, sorted};

/// The paper shows one run of each.
const RUNS: u32 = 10;
const DURATION_S: f64 = 40.0;
/// Flow 2 begins and ends (Tobe 1999, Sec. 6.1).
const VISIT: Visit = Visit { second: (10.0, 25.0), duration_s: DURATION_S };

/// When flow 2 is there, and how long it all lasts, in s.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    pub(super) second: (f64, f64),
    pub(super) duration_s: f64,
}

/// A path, a size of ADUs, and what they are called.
pub(super) struct Case {
    pub(super) round_trip: Span,
    pub(super) adu: Size,
    name: &'static str,
}

/// Ten payloads of 512 bytes, and one of 64 (Tobe 1999, Sec. 6.1).
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

/// The scenario with ADUs of another size.
pub(super) fn with_adu(mut scenario: Scenario, size: Size) -> Scenario {
    for flow in &mut scenario.flows {
        if let FlowKind::Pair(pair) = &mut flow.kind {
            pair.adu = size;
        }
    }
    scenario
}

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * CASES.len() as u32
}

fn traces(lab: &Lab<'_>, case: &Case) -> Result<Vec<Trace>, SimError> {
    let scenario = with_adu(over(parse(FIG10), case.round_trip), case.adu);
    run_all(lab, &scenario, lab.options.runs(RUNS, 2), |trace| trace)
}

/// Flows that are there in a stretch; `None` where that changes in it, or in the probing before it.
fn present(visit: Visit, (from, to): (f64, f64)) -> Option<&'static [usize]> {
    // Three intervals of a second are the shortest probing period.
    let since = from - 3.0;
    let (came, went) = visit.second;
    let changes = [came, went].into_iter().any(|change| change > since && change < to);
    let is_there = from > came && from < went;
    (!changes).then_some(if is_there { &[0, 1, 2] } else { &[0, 2] })
}

/// Mean fairness of the running periods of a run before whose probing, and in which, no flow came or went.
pub(super) fn fairness_after_probing(trace: &Trace, visit: Visit) -> f64 {
    let (came, went) = visit.second;
    // A running period is cut where flow 2 begins or ends: what it found holds until then.
    let cut = |(from, to): (f64, f64)| {
        let next = [came, went].into_iter().find(|change| *change > from).unwrap_or(visit.duration_s);
        (from, to.min(next))
    };
    let periods = running_periods(trace, visit.duration_s).into_iter().map(cut).filter(|(from, to)| to - from > 2.0);
    let fair = periods.filter_map(|period| Some(mean_fairness(trace, present(visit, period)?, period)));
    let fair: Vec<_> = fair.filter(|value| value.is_finite()).collect();
    fair.iter().sum::<f64>() / fair.len() as f64
}

/// Rates and fairness where a TCP flow comes and goes.
pub(super) fn fairness(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut charts, mut rows) = (Vec::new(), Vec::new());
    for (number, case) in CASES.iter().enumerate() {
        let traces = traces(lab, case)?;
        let fair = mean_of(traces.iter().map(|trace| fairness_after_probing(trace, VISIT)));
        if number == 0 {
            found.claims.push(
                drafts("Fig. 11", runs)(
                    "fig11.fair_after_probe",
                    "After each probing period fairness is near 1. Rule: above 0.95 on average over the running \
                                periods, as long as no flow comes or goes; rates are means over seconds.",
                    Some(1.0),
                    "Jain's index",
                )
                .decide(fair, |ours| ours.ci95[0] > 0.95, ""),
            );
        }
        rows.push(vec![case.name.to_owned(), with_interval(fair, 4)]);
        let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, TPBA"];
        charts.extend(traces.first().map(|trace| rates_chart(case.name, trace, 1.0, &names)));
    }
    found.figures.push(Figure {
        name: "Fig. 10, 11, 14, 15, 17, 18".to_owned(),
        title: "Rates and fairness with TPBA".to_owned(),
        text: "Flow 2 is there from 10 to 25 s.".to_owned(),
        charts,
        tables: vec![Table {
            caption: "Jain's index in running periods, means over the runs with their 95 % intervals".to_owned(),
            columns: vec!["path and ADU".to_owned(), "fairness".to_owned()],
            rows,
        }],
    });
    Ok(())
}

/// The largest; 0 of none.
fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// Inter-arrival times of ADUs at the receiver, at switches and elsewhere.
pub(super) fn gaps(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    // The first two seconds are TCP's slow start, which no switch is compared with.
    let gaps_of = |trace: &Trace| measures::gaps(trace, 3.0);
    let (mut charts, mut rows) = (Vec::new(), Vec::new());
    for (number, case) in CASES.iter().enumerate() {
        let traces = traces(lab, case)?;
        let gaps: Vec<_> = traces.iter().map(gaps_of).collect();
        let of = |value: fn(&measures::Gaps) -> f64| mean_of(gaps.iter().map(value));
        let ratio = of(|gaps| largest(&gaps.at_switches) / largest(&gaps.probing));
        let calmer = of(|gaps| deviation(&gaps.running) / deviation(&gaps.probing));
        if number == 0 {
            found.claims.extend(claims(runs, ratio, calmer));
        }
        rows.push(vec![
            case.name.to_owned(),
            with_interval(of(|gaps| 1e3 * largest(&gaps.at_switches)), 1),
            with_interval(of(|gaps| 1e3 * largest(&gaps.probing)), 1),
            with_interval(of(|gaps| 1e3 * quantile(&sorted(&gaps.running), 0.99)), 1),
            with_interval(ratio, 2),
        ]);
        charts.extend(traces.first().map(|trace| gaps_chart(case.name, trace)));
    }
    found.figures.push(Figure {
        name: "Fig. 12 and 16".to_owned(),
        title: "Inter-arrival times of ADUs with TPBA".to_owned(),
        text: "The gap before the first ADU of a period counts as one at a switch.".to_owned(),
        charts,
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
            rows,
        }],
    });
    Ok(())
}

fn claims(runs: u32, ratio: Option<Estimate>, calmer: Option<Estimate>) -> [crate::Claim; 2] {
    let draft = |id, statement: &str, unit| drafts("Fig. 12", runs)(id, statement, None, unit);
    [
        draft(
            "fig12.no_iat_jump",
            "The inter-arrival time of ADUs does not jump at switches. Rule: the largest at a switch is not above the largest \
             within probing periods.",
            "ratio",
        )
        .decide(
            ratio,
            |ours| ours.ci95[1] <= 1.0,
            "At a switch the sender waits for TCP's unsent bytes, or RTP's queue, to run out.",
        ),
        draft(
            "fig12.calmer_running",
            "Inter-arrival times fluctuate more while probing than while running. Rule: the deviation while running is below \
             that while probing.",
            "ratio of deviations",
        )
        .decide(calmer, |ours| ours.ci95[1] < 1.0, ""),
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
