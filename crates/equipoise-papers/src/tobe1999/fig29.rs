use equipoise::units::Span;

use super::measures::{Deviations, deviations, mean_rate};
use super::setting::{FIG22, FIG24, FIG26, Trace, run_all};
use super::{Found, Lab, Options, difference, drafts, mean_of, parse_with, rates_chart, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::PairTransport;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, quantile, sorted};

/// Tobe 1999, Sec. 6.2: ten trials of each case.
const RUNS: u32 = 10;
/// Flow 4 begins.
pub(super) const CHANGE_S: usize = 200;
/// Its place.
const FOURTH: usize = 3;
/// Two cases have not reached their cycle by then, and are looked at for twice as long.
const LATE_CHANGE_S: usize = 400;

/// A case of Table 4.
#[derive(Clone, Copy)]
pub(super) struct Case {
    scheme: Scheme,
    /// `T_adapt` and `T_rtcp`, in s.
    adapt: (f64, f64),
    /// `T_running` in s, or `AIR_0` in kbit/s.
    third: u32,
    factor: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Tpba,
    Ldaf,
    Lda,
}

const fn case(scheme: Scheme, adapt: (f64, f64), third: u32, factor: u32) -> Case {
    Case { scheme, adapt, third, factor }
}

const SLOW: (f64, f64) = (3.0, 1.0);
const FAST: (f64, f64) = (1.0, 0.5);

/// Tobe 1999, Table 4.
pub(super) const CASES: [Case; 16] = [
    case(Scheme::Tpba, SLOW, 10, 3),
    case(Scheme::Tpba, SLOW, 10, 6),
    case(Scheme::Tpba, SLOW, 30, 3),
    case(Scheme::Tpba, FAST, 10, 3),
    case(Scheme::Tpba, FAST, 30, 3),
    case(Scheme::Ldaf, SLOW, 10, 3),
    case(Scheme::Ldaf, SLOW, 10, 6),
    case(Scheme::Ldaf, SLOW, 100, 3),
    case(Scheme::Ldaf, FAST, 10, 3),
    case(Scheme::Ldaf, FAST, 100, 3),
    case(Scheme::Lda, SLOW, 10, 3),
    case(Scheme::Lda, SLOW, 10, 6),
    case(Scheme::Lda, SLOW, 100, 3),
    case(Scheme::Lda, SLOW, 100, 6),
    case(Scheme::Lda, FAST, 10, 3),
    case(Scheme::Lda, FAST, 100, 3),
];

impl Case {
    /// The paper's name for it.
    pub(super) fn name(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Tpba => "TPBA",
            Scheme::Ldaf => "LDAF",
            Scheme::Lda => "LDA",
        };
        format!("{scheme}-{}-{}-{}-{}", self.adapt.0, self.adapt.1, self.third, self.factor)
    }

    /// Two TCP flows, the media flow, and a third TCP flow that comes late.
    pub(super) fn scenario(&self) -> Scenario {
        let of_media = |key: &str| format!("flow.\"flow 3\".{key}");
        let (text, third, law) = match self.scheme {
            Scheme::Tpba => (FIG22, Override::set(of_media("pair.running"), format!("{} s", self.third)), "pair.law"),
            Scheme::Ldaf | Scheme::Lda => {
                let increase = Override::set(of_media("controller.increase"), format!("{} kbit/s", self.third));
                (if self.scheme == Scheme::Lda { FIG26 } else { FIG24 }, increase, "controller")
            }
        };
        let (adapt, report) = self.adapt;
        let mut scenario = parse_with(
            text,
            &[
                third,
                Override::set(of_media(&format!("{law}.adapt")), format!("{adapt} s")),
                Override::set(of_media(&format!("{law}.reduction_factor")), i64::from(self.factor)),
                Override::set(of_media("report_interval"), format!("{report} s")),
            ],
        );
        let later = Span::from_secs(self.change_s() as i64 - CHANGE_S as i64);
        scenario.duration = scenario.duration + later;
        if let Some(fourth) = scenario.flows.get_mut(FOURTH) {
            fourth.start = fourth.start + later;
        }
        scenario
    }

    /// When flow 4 begins.
    fn change_s(&self) -> usize {
        let is_slow = self.scheme == Scheme::Ldaf && self.adapt.0 > 2.0 && self.third == 10;
        if is_slow { LATE_CHANGE_S } else { CHANGE_S }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * CASES.len() as u32
}

/// What counts of a run.
struct Outcome {
    deviations: Option<Deviations>,
    /// By how much the media flow's rate differs from the mean of TCP's after the change, as a share of that.
    unfriendly: f64,
}

impl Outcome {
    fn of(trace: &Trace, change: usize) -> Self {
        // Half a minute to find a new rate, which the paper's rule of flow 4 reaching the others grants less of.
        let after = (change as f64 + 30.0, trace.rates.first().map_or(0.0, |rates| rates.len() as f64));
        let tcp = [0, 1, 3].map(|flow| mean_rate(trace, flow, after)).iter().sum::<f64>() / 3.0;
        Self {
            deviations: deviations(&trace.rates, change),
            unfriendly: (mean_rate(trace, 2, after) - tcp).abs() / tcp,
        }
    }
}

/// The three deviations: claim, figure, what it is, and how it is read off.
type Metric = (&'static str, &'static str, &'static str, fn(&Deviations) -> f64);
const METRICS: [Metric; 3] = [
    ("fig29.tpba_below_lda", "Fig. 29", "range of a flow's rate in the steady state", |found| found.intra),
    ("fig30.tpba_below_lda", "Fig. 30", "difference of the flows' mean rates in the steady state", |found| {
        found.average
    }),
    ("fig31.tpba_below_lda", "Fig. 31", "difference of the flows' mean rates after the change", |found| {
        found.average_after
    }),
];

/// All cases of Table 4.
fn run_cases(lab: &Lab<'_>) -> Result<Vec<Vec<Outcome>>, SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let of_case = |case: &Case| run_all(lab, &case.scenario(), runs, |trace| Outcome::of(&trace, case.change_s()));
    CASES.iter().map(of_case).collect()
}

/// Fig. 29 to 31, and what Fig. 28 is cited for.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let outcomes = run_cases(lab)?;
    let runs = lab.options.runs(RUNS, 2);
    let mut figure = Figure {
        name: "Fig. 29 to 31".to_owned(),
        title: "TPBA, LDAF and LDA in the cases of Table 4".to_owned(),
        text: "A case is named by scheme, T_adapt and T_rtcp (s), T_running (s) or AIR_0 (kbit/s), and R_f. Boxes are the quartiles \
               of the runs, whiskers their extremes."
            .to_owned(),
        charts: Vec::new(),
        tables: Vec::new(),
    };
    let mut rows: Vec<_> = CASES.iter().map(|case| vec![case.name()]).collect();
    for metric in METRICS {
        let values: Vec<Vec<f64>> = outcomes.iter().map(|runs| values_of(runs, metric.3)).collect();
        for (row, values) in rows.iter_mut().zip(&values) {
            row.push(with_interval(mean_of(values.iter().copied()), 0));
        }
        figure.charts.push(boxes(metric.2, &values));
        found.claims.push(comparison(metric, &values, runs));
    }
    for (row, outcomes) in rows.iter_mut().zip(&outcomes) {
        row.push(with_interval(mean_of(outcomes.iter().map(|outcome| 100.0 * outcome.unfriendly)), 1));
    }
    figure.tables.push(Table {
        caption: "Means over the runs with their 95 % intervals".to_owned(),
        columns: [
            "case",
            "δR_intra (kbit/s)",
            "δR_ave1 (kbit/s)",
            "δR_ave2 (kbit/s)",
            "off TCP's rate after the change (%)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    });
    found.figures.push(figure);
    let last = outcomes.last().map(|runs| mean_of(runs.iter().map(|outcome| outcome.unfriendly))).unwrap_or_default();
    found.claims.push(
        drafts("Fig. 28", runs)(
            "fig28.lda_not_friendly_after_change",
            "LDA does not return to TCP's rate after the change. Rule: LDA-1-0.5-100-3 is off the mean rate of the TCP \
                        flows by more than 20 %, from 30 s behind the change on.",
            None,
            "share of TCP's rate",
        )
        .decide(last, |ours| ours.ci95[0] > 0.2, ""),
    );
    Ok(())
}

/// A deviation of all runs that have a steady state, in kbit/s.
fn values_of(runs: &[Outcome], of: fn(&Deviations) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|outcome| outcome.deviations.as_ref()).map(|found| of(found) / 1e3).collect()
}

fn comparison((id, figure, what, _): Metric, values: &[Vec<f64>], runs: u32) -> Claim {
    let all = |scheme| {
        let of_scheme = CASES.iter().zip(values).filter(move |(case, _)| case.scheme == scheme);
        mean_of(of_scheme.flat_map(|(_, values)| values.iter().copied()).collect::<Vec<_>>())
    };
    let (tpba, lda) = (all(Scheme::Tpba), all(Scheme::Lda));
    let means = |scheme| {
        let of_scheme = CASES.iter().zip(values).filter(move |(case, _)| case.scheme == scheme);
        of_scheme.filter_map(|(_, values)| mean_of(values.iter().copied())).map(|mean: Estimate| mean.value)
    };
    let worst = means(Scheme::Tpba).fold(f64::MIN, f64::max);
    let best = means(Scheme::Lda).fold(f64::MAX, f64::min);
    let why = if id == METRICS[0].0 {
        " TPBA has reached the others within the first seconds, so that TCP's own beginning counts; plain TCP in its place has as \
         much. LDA's steady state begins later, where it does at all."
    } else {
        ""
    };
    drafts(figure, runs * 11)(
        id,
        &format!("TPBA is below LDA: {what}. Rule: the mean over all runs of TPBA's cases is below that of LDA's."),
        None,
        "kbit/s that LDA has more",
    )
    .decide(
        lda.zip(tpba).map(|(lda, tpba)| difference(lda, tpba)),
        |ours| ours.ci95[0] > 0.0,
        format!(
            "TPBA {}, LDA {} kbit/s. The worst case of TPBA has {worst:.0}, the best of LDA {best:.0}.{why}",
            with_interval(tpba, 0),
            with_interval(lda, 0)
        ),
    )
}

fn boxes(title: &str, values: &[Vec<f64>]) -> Plot {
    let layer = |(case, values): (&Case, &Vec<f64>)| {
        let values = sorted(values);
        let five = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&values, share));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then(|| PlotLayer { name: case.name(), data: PlotData::Box { five, mean } })
    };
    Plot {
        title: title.to_owned(),
        x: "case",
        y: "deviation (kbit/s)",
        y_limits: None,
        layers: CASES.iter().zip(values).filter_map(layer).collect(),
        marks: Vec::new(),
    }
}

/// Cases of which the paper shows a run, and where.
const SHOWN: [(usize, &str); 8] = [
    (8, "Fig. 20"),
    (0, "Fig. 22"),
    (2, "Fig. 23"),
    (5, "Fig. 24"),
    (7, "Fig. 25"),
    (10, "Fig. 26"),
    (12, "Fig. 27"),
    (15, "Fig. 28"),
];

pub(super) fn planned_snapshots(options: &Options) -> u32 {
    SHOWN.len() as u32 + 2 * options.runs(RUNS, 2)
}

/// Fig. 20 and 22 to 28: a run of each, and how soon TPBA answers to the change.
pub(super) fn snapshots(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, media", "flow 4, TCP"];
    let mut charts = Vec::new();
    for (place, figure) in SHOWN {
        let case = CASES[place];
        let traces = run_all(lab, &case.scenario(), 1, |trace| trace)?;
        let title = format!("{figure}: {}", case.name());
        charts.extend(traces.iter().map(|trace| rates_chart(&title, trace, 1.0, &names)));
    }
    // The two lengths of the running period.
    let mut responses = Vec::new();
    for case in [CASES[0], CASES[2]] {
        responses.push(mean_of(run_all(lab, &case.scenario(), runs, |trace| response_s(&trace))?));
    }
    let [short, long] = [0, 1].map(|place| responses.get(place).copied().flatten());
    found.claims.push(
        drafts("Fig. 22 and 23", 2 * runs)(
            "fig22.longer_running_responds_later",
            "The response to the change is worse with a longer running period. Rule: from the change until the next \
                        running period begins it takes longer with 30 s than with 10 s.",
            None,
            "s longer",
        )
        .decide(
            long.zip(short).map(|(long, short)| difference(long, short)),
            |ours| ours.ci95[0] > 0.0,
            format!("{} s with 30 s, {} s with 10 s.", with_interval(long, 1), with_interval(short, 1)),
        ),
    );
    found.figures.push(Figure {
        name: "Fig. 20 and 22 to 28".to_owned(),
        title: "Rates in cases of Table 4".to_owned(),
        text: "Flow 4 begins at 200 s; in Fig. 24 at 400 s, as its case has not reached its cycle before. Rates are means over \
               seconds, those of Fig. 20 over 0.5 s in the paper."
            .to_owned(),
        charts,
        tables: Vec::new(),
    });
    Ok(())
}

/// From the change until the next running period begins.
fn response_s(trace: &Trace) -> f64 {
    let change = CHANGE_S as f64;
    let next = trace.began.iter().find(|began| began.at_s > change && began.over == PairTransport::Rtp);
    next.map_or(f64::NAN, |began| began.at_s - change)
}
