use equipoise::units::Span;

use super::measures::{Deviations, deviations, mean_rate, steady};
use super::setting::{FIG22, FIG24, FIG26, Testbed, Trace, run_all};
use super::{Found, Lab, Options, Rule, Spec, difference, mean_of, parse_with, read_all, whole, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, quantile, sorted};

/// Number of runs of each case: ten trials (Tobe 1999, Sec. 6.2).
const RUNS: u32 = 10;
/// Time at which flow 4 starts, in seconds.
pub(super) const CHANGE_S: usize = 200;
/// Index of flow 4.
const FOURTH: usize = 3;
/// Time at which flow 4 starts in the two cases of LDAF whose rates are not steady at 200 s, in seconds.
const LATE_CHANGE_S: usize = 400;

/// A case of Table 4.
#[derive(Clone, Copy)]
pub(super) struct Case {
    scheme: Scheme,
    /// The parameters `T_adapt` and `T_rtcp`, in seconds.
    adapt: (f64, f64),
    /// The third parameter of the case: `T_running` in seconds for TPBA, `AIR_0` in kbit/s for LDAF and LDA.
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

/// All cases of Tobe 1999, Table 4.
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
    /// Returns the name that the paper uses for the case.
    pub(super) fn name(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Tpba => "TPBA",
            Scheme::Ldaf => "LDAF",
            Scheme::Lda => "LDA",
        };
        format!("{scheme}-{}-{}-{}-{}", self.adapt.0, self.adapt.1, self.third, self.factor)
    }

    /// Returns the scenario of the case: two TCP flows, the media flow, and a third TCP flow that starts late.
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

    /// Returns the time at which flow 4 starts, in seconds.
    fn change_s(&self) -> usize {
        let is_slow = self.scheme == Scheme::Ldaf && self.adapt.0 > 2.0 && self.third == 10;
        if is_slow { LATE_CHANGE_S } else { CHANGE_S }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    Testbed::runs_of_all(options, RUNS) * CASES.len() as u32
}

/// The values that the claims use, computed from one run.
struct Outcome {
    deviations: Option<Deviations>,
    /// Absolute difference between the media flow's rate and TCP's mean rate, divided by TCP's mean rate. Both rates
    /// are means over the time from 30 s after the start of flow 4 to the end of the run.
    unfriendly: f64,
    /// The media flow's rate divided by TCP's mean rate, in the last 100 s before the start of flow 4.
    share: f64,
    /// Standard deviation of the media flow's rate in the last 100 s before the start of flow 4, in bit/s.
    swing_bps: f64,
    /// First time at which the media flow's rate is steady, in seconds; `None` if flow 4 starts earlier.
    settled_s: Option<f64>,
    /// The result of [`apart_over_50_s`].
    apart_bps: f64,
    /// Whether any RTCP report contained a loss.
    is_lossy: bool,
}

impl Outcome {
    fn of(trace: &Trace, change: usize) -> Self {
        let change_s = change as f64;
        // The flows have 30 s to find their new rates. In the paper they have less time, only until flow 4 reaches the
        // rate of another flow.
        let after = (change_s + 30.0, trace.rates.first().map_or(0.0, |rates| rates.len() as f64));
        let tcp = [0, 1, 3].map(|flow| mean_rate(trace, flow, after)).iter().sum::<f64>() / 3.0;
        let late = (change_s - 100.0, change_s);
        let before = f64::midpoint(mean_rate(trace, 0, late), mean_rate(trace, 1, late));
        let media = trace.rates.get(2).map(Vec::as_slice).unwrap_or_default();
        Self {
            deviations: deviations(&trace.rates, change),
            unfriendly: (mean_rate(trace, 2, after) - tcp).abs() / tcp,
            share: mean_rate(trace, 2, late) / before,
            swing_bps: swing(media.get(late.0 as usize..change).unwrap_or_default()),
            settled_s: steady(media, change.min(media.len())).map(|second| second as f64),
            apart_bps: apart_over_50_s(trace, change_s),
            is_lossy: trace.reported_losses.iter().any(|lost| *lost > 0.0),
        }
    }
}

/// Returns the standard deviation of the rates.
fn swing(rates: &[f64]) -> f64 {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64).sqrt()
}

/// Divides the time from 50 s to the start of flow 4 into intervals of 50 s, and computes the mean rates of flows 1 to
/// 3 in each interval. Returns the largest difference between the mean rates of two flows in the same interval, in
/// bit/s.
fn apart_over_50_s(trace: &Trace, change_s: f64) -> f64 {
    let starts = (1..).map(|number| 50.0 * f64::from(number)).take_while(|start| start + 50.0 <= change_s);
    let apart = starts.map(|start| {
        let rates = [0, 1, 2].map(|flow| mean_rate(trace, flow, (start, start + 50.0)));
        rates.into_iter().fold(f64::MIN, f64::max) - rates.into_iter().fold(f64::MAX, f64::min)
    });
    apart.fold(0.0, f64::max)
}

const FIG20: Spec = Spec::new(
    "fig20.fair_over_50_s",
    "Fig. 20",
    "With LDAF-1-0.5-10-3 the rates of flows 1 to 3 over 50 s do not differ by more than 50 kbit/s.",
    Rule::below(50.0),
)
.paper(50.0)
.unit("kbit/s");
const FIG25: Spec = Spec::new(
    "fig25.large_air0_swings",
    "Fig. 24 and 25",
    "A large AIR_0 makes LDAF's rate oscillate: the standard deviation of flow 3's rate with 100 kbit/s less that with 10 kbit/s.",
    Rule::above(0.0),
)
.unit("kbit/s");
const FIG26_LOW: Spec = Spec::new(
    "fig26.small_air0_stays_low",
    "Fig. 26",
    "With a small AIR_0 (LDA-3-1-10-3) LDA stays at a low rate: below TCP's by more than 20 %.",
    Rule::below(0.8),
)
.unit("ratio");
const FIG27: Spec = Spec::new(
    "fig27.large_air0_overshoots",
    "Fig. 27",
    "With a large AIR_0 (LDA-3-1-100-3) LDA stays above: TCP's rate is exceeded by more than 20 %.",
    Rule::above(1.2),
)
.unit("ratio");
const FIG28_SOONER: Spec = Spec::new(
    "fig28.short_adapt_converges_sooner",
    "Fig. 27 and 28",
    "A smaller T_adapt accelerates LDA's convergence: its rate is steady later with 3 s than with 1 s.",
    Rule::above(0.0),
)
.unit("s later");
const FIG28: Spec = Spec::new(
    "fig28.lda_not_friendly_after_change",
    "Fig. 26 to 28, 31",
    "LDA does not return to TCP's rate after the change: in each of its cases it is off the mean rate of the TCP flows by more than 20 %, \
     from 30 s behind the change on.",
    Rule::above(0.2).in_every_cell(),
)
.unit("share of TCP's rate");
const REDUCTION: Spec = Spec::new(
    "fig29.reduction_factor_hardly_matters",
    "Fig. 29 to 31",
    "There is no significant difference between R_f of 3 and 6: each deviation differs by less than 50 kbit/s, in each pair of cases \
     that a report told of a loss in.",
    Rule::within(-50.0, 50.0).in_every_cell(),
)
.paper(0.0)
.unit("kbit/s");
const fn below_lda(id: &'static str, figure: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, figure, statement, Rule::above(0.0)).unit("kbit/s that LDA has more")
}
const INTRA: Spec = below_lda(
    "fig29.tpba_below_lda",
    "Fig. 29",
    "TPBA is below LDA in the range of a flow's rate in the steady state, on average over all runs of their cases.",
);
const AVERAGE: Spec = below_lda(
    "fig30.tpba_below_lda",
    "Fig. 30",
    "TPBA is below LDA in the difference of the flows' mean rates in the steady state.",
);
const AVERAGE_AFTER: Spec = below_lda(
    "fig31.tpba_below_lda",
    "Fig. 31",
    "TPBA is below LDA in the difference of the flows' mean rates after the change.",
);
#[cfg(test)]
pub(super) const CLAIMS: [Spec; 10] =
    [INTRA, AVERAGE, AVERAGE_AFTER, REDUCTION, FIG20, FIG25, FIG26_LOW, FIG27, FIG28_SOONER, FIG28];

/// One of the three deviations: the claim about it, its title, and the function that returns its value.
type Metric = (Spec, &'static str, fn(&Deviations) -> f64);
const METRICS: [Metric; 3] = [
    (INTRA, "range of a flow's rate in the steady state", |found| found.intra),
    (AVERAGE, "difference of the flows' mean rates in the steady state", |found| found.average),
    (AVERAGE_AFTER, "difference of the flows' mean rates after the change", |found| found.average_after),
];

/// Pairs of cases that differ only in the reduction factor `R_f`, which is 3 in the first case and 6 in the second.
const FACTORS: [[usize; 2]; 4] = [[0, 1], [5, 6], [10, 11], [12, 13]];

/// The outcomes of all runs of each case of Table 4.
type Outcomes = Vec<Vec<Outcome>>;

fn run_cases(lab: &Lab<'_>, testbed: &Testbed) -> Result<Outcomes, SimError> {
    let runs = testbed.runs(&lab.options, RUNS);
    let of_case =
        |case: &Case| run_all(lab, &testbed.of(case.scenario()), runs, |trace| Outcome::of(&trace, case.change_s()));
    CASES.iter().map(of_case).collect()
}

/// Runs Fig. 29 to 31, and adds the claims about Fig. 20 and 24 to 28.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let mut main = None;
    read_all(found, |testbed| {
        let outcomes = run_cases(lab, testbed)?;
        let claims = claims(&outcomes);
        main.get_or_insert(outcomes);
        Ok(claims)
    })?;
    found.figures.push(figure(&main.unwrap_or_default()));
    Ok(())
}

fn figure(outcomes: &Outcomes) -> Figure {
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
    for (_, title, of) in METRICS {
        let values: Vec<Vec<f64>> = outcomes.iter().map(|runs| values_of(runs, of)).collect();
        for (row, values) in rows.iter_mut().zip(&values) {
            row.push(with_interval(mean_of(values.iter().copied()), 0));
        }
        figure.charts.push(boxes(title, &values));
    }
    for (row, outcomes) in rows.iter_mut().zip(outcomes) {
        row.push(with_interval(mean_of(outcomes.iter().map(|outcome| 100.0 * outcome.unfriendly)), 1));
        row.push(outcomes.iter().filter(|outcome| outcome.is_lossy).count().to_string());
    }
    figure.tables.push(Table {
        caption: "Means over the runs with their 95 % intervals".to_owned(),
        columns: [
            "case",
            "δR_intra (kbit/s)",
            "δR_ave1 (kbit/s)",
            "δR_ave2 (kbit/s)",
            "off TCP's rate after the change (%)",
            "runs in which a report told of a loss",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    });
    figure
}

fn claims(outcomes: &Outcomes) -> Vec<Claim> {
    let mut claims: Vec<_> = METRICS.into_iter().map(|metric| comparison(metric, outcomes)).collect();
    claims.push(reduction(outcomes));
    claims.extend(snapshots(outcomes));
    let lda = || CASES.iter().zip(outcomes).filter(|(case, _)| case.scheme == Scheme::Lda);
    let cells: Vec<_> = lda().map(|(_, runs)| mean_of(runs.iter().map(|outcome| outcome.unfriendly))).collect();
    let words = lda().zip(&cells).map(|((case, _), cell)| format!("{} {}", case.name(), with_interval(*cell, 2)));
    let note = format!("{}.", words.collect::<Vec<_>>().join(", "));
    claims.push(FIG28.decide_cells(runs_of(outcomes), &whole(cells), note));
    claims
}

fn runs_of(outcomes: &Outcomes) -> u32 {
    outcomes.first().map_or(0, Vec::len) as u32
}

/// Returns the paper's claims about single cases.
fn snapshots(outcomes: &Outcomes) -> [Claim; 5] {
    let mean =
        |place: usize, of: fn(&Outcome) -> f64| outcomes.get(place).and_then(|runs| mean_of(runs.iter().map(of)));
    let apart = |one: usize, other: usize, of: fn(&Outcome) -> f64| {
        mean(one, of).zip(mean(other, of)).map(|(one, other)| difference(one, other))
    };
    let both = |one: usize, other: usize, of: fn(&Outcome) -> f64| {
        let [one, other] =
            [one, other].map(|place| format!("{} {}", CASES[place].name(), with_interval(mean(place, of), 1)));
        format!("{one}, {other}.")
    };
    let runs = runs_of(outcomes);
    let swing: fn(&Outcome) -> f64 = |outcome| outcome.swing_bps / 1e3;
    let settled: fn(&Outcome) -> f64 = |outcome| outcome.settled_s.unwrap_or(f64::NAN);
    let share: fn(&Outcome) -> f64 = |outcome| outcome.share;
    [
        FIG20.decide(
            runs,
            mean(8, |outcome| outcome.apart_bps / 1e3),
            "The largest of the means over 50 s from 50 to 200 s.",
        ),
        FIG25.decide(runs, apart(7, 5, swing), both(7, 5, swing)),
        FIG26_LOW.decide(runs, mean(10, share), "Flow 3's rate over TCP's in the 100 s before the change."),
        FIG27.decide(runs, mean(12, share), "Flow 3's rate over TCP's in the 100 s before the change."),
        FIG28_SOONER.decide(runs, apart(12, 15, settled), both(12, 15, settled)),
    ]
}

/// Returns the claim that the reduction factor `R_f` hardly matters. At a loss ratio p, the rate falls by the share
/// `p R_f`. Without losses, `R_f` has no effect, so pairs of cases without losses are left out.
fn reduction(outcomes: &Outcomes) -> Claim {
    let is_lossy = |pair: &[usize; 2]| pair.iter().any(|&place| outcomes[place].iter().any(|outcome| outcome.is_lossy));
    let pairs: Vec<_> = FACTORS.into_iter().filter(is_lossy).collect();
    let cells = pairs.iter().flat_map(|&[three, six]| {
        METRICS.map(|(_, _, of)| {
            let [three, six] = [three, six].map(|place| mean_of(values_of(&outcomes[place], of)));
            six.zip(three).map(|(six, three)| difference(six, three))
        })
    });
    let names: Vec<_> = pairs.iter().map(|&[three, _]| CASES[three].name()).collect();
    let note = format!("Of {} pairs a report told of a loss in: {}.", FACTORS.len(), names.join(", "));
    REDUCTION.decide_cells(runs_of(outcomes), &whole(cells), note)
}

/// Returns the deviation that `of` selects, in kbit/s, for each run that has a steady state.
fn values_of(runs: &[Outcome], of: fn(&Deviations) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|outcome| outcome.deviations.as_ref()).map(|found| of(found) / 1e3).collect()
}

fn comparison((spec, _, of): Metric, outcomes: &Outcomes) -> Claim {
    let cases = |scheme| CASES.iter().zip(outcomes).filter(move |(case, _)| case.scheme == scheme);
    let all = |scheme| mean_of(cases(scheme).flat_map(|(_, runs)| values_of(runs, of)).collect::<Vec<_>>());
    let means =
        |scheme| cases(scheme).filter_map(|(_, runs)| mean_of(values_of(runs, of))).map(|mean: Estimate| mean.value);
    let (tpba, lda) = (all(Scheme::Tpba), all(Scheme::Lda));
    let worst = means(Scheme::Tpba).fold(f64::MIN, f64::max);
    let best = means(Scheme::Lda).fold(f64::MAX, f64::min);
    let counted = cases(Scheme::Tpba).chain(cases(Scheme::Lda)).map(|(_, runs)| runs.len()).sum::<usize>();
    spec.decide(
        counted as u32,
        lda.zip(tpba).map(|(lda, tpba)| difference(lda, tpba)),
        format!(
            "TPBA {}, LDA {} kbit/s. The worst case of TPBA has {worst:.0}, the best of LDA {best:.0}.",
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
