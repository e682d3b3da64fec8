use super::scenarios::FIG6;
use super::series::{jain_of_means, jain_of_moments, mean_of, mean_of_link, samples, variation};
use super::{Found, Lab, Options, Rule, Spec, parse_with, ratio, read, with_interval};
use crate::experiment::difference;
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::{Run, TcpSample};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

/// Number of runs. The thesis shows one run.
const RUNS: u32 = 20;
/// Each stage lasts 100 s. The first `SETTLE_S` seconds of each stage are not evaluated, because the effect of the
/// previous stage decays with a time constant of about 10 s.
const SETTLE_S: f64 = 20.0;
/// Strength of the measurement noise in each stage of 100 s, in percent of the cross traffic.
const NOISE: [&str; 5] = ["2.5", "5", "10", "20", "40"];
/// In this number of stages at the start of a run, the noise counts as small. Our choice, because the thesis does not
/// state which noise is small.
const SMALL: usize = 2;
const BOTTLENECK: &str = "E0-E1";
/// Index of the last stage with noise. The thesis does not state which stage this is. In the main interpretation, the
/// last stage of the run has noise. In the other interpretations, the noise ends earlier.
const LAST: usize = NOISE.len() - 1;
const EARLIER_ENDS: [usize; 2] = [LAST - 2, LAST - 1];

pub(super) const CLAIMS: &[Spec] = &[
    UNSTABLE,
    UNFAIR,
    QUEUE_UNSTABLE,
    UTILISATION_95,
    STABLE_50,
    UTILISATION_50,
    QUEUE_50,
    STABLE,
    UTILISATION,
    GAMMA_FALLS,
    QUEUE_SMALL,
    QUEUE_LARGE,
];
const UNSTABLE: Spec = Spec::new(
    "fig6.gamma95_unstable",
    "Fig. 6",
    "With γ = 0.95 the windows become unstable in large noise: in the last stage a window varies at least twice as much, relative \
     to its mean, as with γ = 0.5.",
    Rule::above(2.0),
)
.unit("ratio of variations");
const UNFAIR: Spec = Spec::new(
    "fig6.gamma95_unfair",
    "Fig. 6",
    "With γ = 0.95 large noise makes the connections unfair to each other: Jain's index of the mean windows of the last stage.",
    Rule::below(0.95),
)
.unit("Jain's index");
const QUEUE_UNSTABLE: Spec = Spec::new(
    "fig6.gamma95_queue_unstable",
    "Fig. 6(c)",
    "With γ = 0.95 the queue becomes unstable in large noise: in the last stage it varies at least twice as much, in packets, as in \
     the first.",
    Rule::above(2.0),
)
.unit("ratio of deviations");
const UTILISATION_95: Spec = Spec::new(
    "fig6.gamma95_utilisation",
    "Fig. 6",
    "With γ = 0.95 large noise leaves part of the link unused in the last stage.",
    Rule::below(0.99),
)
.unit("share of the capacity");
const STABLE_50: Spec = Spec::new(
    "fig7.gamma50_stable",
    "Fig. 7",
    "With γ = 0.5 the windows are steady whatever the noise: a window's standard deviation over its mean in the last stage.",
    Rule::below(0.1),
)
.unit("deviation over mean");
const UTILISATION_50: Spec = Spec::new(
    "fig7.gamma50_utilisation",
    "Fig. 7",
    "With γ = 0.5 the link stays full in the last stage.",
    Rule::above(0.99),
)
.unit("share of the capacity");
const QUEUE_50: Spec = Spec::new(
    "fig7.gamma50_queue",
    "Fig. 7",
    "With γ = 0.5 the queue is longer than with γ = 0.95, at least twice as long while the noise is least.",
    Rule::above(2.0),
)
.unit("ratio of mean queues");
const STABLE: Spec = Spec::new(
    "fig8.stable",
    "Fig. 8",
    "With a γ that heeds noise the windows are steady whatever the noise: in the last stage a window varies at most half as much, \
     relative to its mean, as with γ = 0.95.",
    Rule::below(0.5),
)
.unit("ratio of variations");
const UTILISATION: Spec = Spec::new(
    "fig8.utilisation",
    "Fig. 8, abstract",
    "With a γ that heeds noise the link stays full, close to 100 % whatever the noise: the least of all stages.",
    Rule::above(0.99),
)
.unit("share of the capacity");
const GAMMA_FALLS: Spec = Spec::new(
    "fig8.gamma_falls",
    "Fig. 8(e)",
    "γ follows the noise: its mean falls from each stage to the next.",
    Rule::below(0.0).in_every_cell(),
)
.unit("difference of γ");
const QUEUE_SMALL: Spec = Spec::new(
    "fig8.queue_below_fig7",
    "Fig. 8",
    "While the noise is small, in the first two stages, the queue is shorter than with γ = 0.5.",
    Rule::below(1.0),
)
.unit("ratio of mean queues");
const QUEUE_LARGE: Spec = Spec::new(
    "fig8.queue_below_fig7_large",
    "Fig. 8",
    "The queue is shorter than with γ = 0.5 whatever the noise, in the last stage, too.",
    Rule::below(1.0),
)
.unit("ratio of mean queues");

/// The setting of one of the three figures, Fig. 6, 7 or 8.
struct Setting {
    name: &'static str,
    title: &'static str,
    /// The override for γ (weight of cross traffic) of both connections. The override sets a constant, or makes γ
    /// depend on the noise.
    change: Override,
}

fn settings() -> [Setting; 3] {
    let gamma = |gamma: f64| Override::set("flow.*.window.gamma", gamma);
    let aware = Override::set("flow.*.window.noise_aware", "on");
    [
        Setting { name: "Fig. 6", title: "Noise in the measurement, γ = 0.95", change: gamma(0.95) },
        Setting { name: "Fig. 7", title: "Noise in the measurement, γ = 0.5", change: gamma(0.5) },
        Setting { name: "Fig. 8", title: "Noise in the measurement, γ that heeds it", change: aware },
    ]
}

/// The results of one stage of a run.
#[derive(Clone, Copy)]
struct Stage {
    /// Standard deviation of the window divided by its mean, averaged over both connections.
    variation: f64,
    /// Jain's index of the mean windows of both connections. The claims use this index.
    jain: f64,
    /// Mean over time of Jain's index at each sampling time. Notes show this mean in addition to `jain`.
    jain_of_moments: f64,
    queue: f64,
    /// Standard deviation of the queue length, in packets.
    queue_deviation: f64,
    utilisation: f64,
    gamma: f64,
}

type Outcome = [Stage; NOISE.len()];

fn outcome(run: &Run) -> Outcome {
    std::array::from_fn(|stage| {
        let begin = 100.0 * stage as f64;
        let stretch = (begin + SETTLE_S, begin + 100.0);
        let queue = mean_of_link(run, BOTTLENECK, stretch, |sample| sample.queue_packets);
        let queue_squares =
            mean_of_link(run, BOTTLENECK, stretch, |sample| sample.queue_packets.map(|queue| queue * queue));
        Stage {
            variation: f64::midpoint(variation(run, 0, stretch), variation(run, 1, stretch)),
            jain: jain_of_means(run, 0..2, stretch),
            jain_of_moments: jain_of_moments(run, 0..2, stretch),
            queue,
            queue_deviation: deviation(queue, queue_squares),
            utilisation: mean_of_link(run, BOTTLENECK, stretch, |sample| sample.utilisation),
            gamma: mean_of(run, 0, stretch, |sample| sample.gamma),
        }
    })
}

fn deviation(mean: f64, mean_of_squares: f64) -> f64 {
    (mean_of_squares - mean * mean).max(0.0).sqrt()
}

pub(super) fn planned(options: &Options) -> u32 {
    (options.runs(RUNS, 2) + 1) * settings().len() as u32
}

/// Runs Fig. 6, 7 and 8, in which the bandwidth measurement is noisy. γ, the weight of cross traffic, has a constant
/// value in Fig. 6 and another in Fig. 7, and depends on the noise in Fig. 8.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut outcomes = Vec::new();
    for Setting { name, title, change } in settings() {
        let scenario = parse_with(FIG6, &[change]);
        outcomes.push(lab.runs(&scenario, runs, outcome)?);
        found.figures.extend(lab.runs(&scenario, 1, |run| figure(run, name, title))?);
    }
    found.claims.extend(claims(&outcomes, LAST));
    for end in EARLIER_ENDS {
        read(found, &format!("Fig. 6 to 8: the noise ends at {} %", NOISE[end]), claims(&outcomes, end));
    }
    if let Some(figure) = found.figures.last_mut() {
        figure.tables.push(table(&outcomes));
    }
    Ok(())
}

fn at(outcomes: &[Outcome], stage: usize, number: fn(&Stage) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(|stages| number(&stages[stage])).collect::<Vec<_>>())
}

fn over(first: Option<Estimate>, second: Option<Estimate>) -> Option<Estimate> {
    first.zip(second).and_then(|(first, second)| ratio(first, second))
}

/// Returns the claims of all three figures, for the interpretation that `last` is the last stage with noise.
fn claims(outcomes: &[Vec<Outcome>], last: usize) -> Vec<Claim> {
    let [gamma95, gamma50, aware] = outcomes else { return Vec::new() };
    let mut claims = of_gamma95(gamma95, gamma50, last);
    claims.extend(of_gamma50(gamma95, gamma50, last));
    claims.extend(of_aware([gamma95, gamma50, aware], last));
    claims
}

fn of_gamma95(gamma95: &[Outcome], gamma50: &[Outcome], last: usize) -> Vec<Claim> {
    let runs = gamma95.len() as u32;
    let variation = |outcomes| at(outcomes, last, |stage| stage.variation);
    let queue = |stage| at(gamma95, stage, |stage| stage.queue_deviation);
    let moments = with_interval(at(gamma95, last, |stage| stage.jain_of_moments), 3);
    vec![
        UNSTABLE.decide(runs, over(variation(gamma95), variation(gamma50)), ""),
        UNFAIR.decide(runs, at(gamma95, last, |stage| stage.jain), format!("Moment by moment the index is {moments}.")),
        QUEUE_UNSTABLE.decide(runs, over(queue(last), queue(0)), ""),
        UTILISATION_95.decide(runs, at(gamma95, last, |stage| stage.utilisation), ""),
    ]
}

fn of_gamma50(gamma95: &[Outcome], gamma50: &[Outcome], last: usize) -> Vec<Claim> {
    let runs = gamma50.len() as u32;
    let queue = |outcomes| at(outcomes, 0, |stage| stage.queue);
    let note = format!(
        "{} packets, and {} with γ = 0.95. Two connections that share a full link rest at (1 - γ) K τ packets in the queue, which \
         follows from Eq. 9: 250 and 25.",
        with_interval(queue(gamma50), 0),
        with_interval(queue(gamma95), 0)
    );
    vec![
        STABLE_50.decide(runs, at(gamma50, last, |stage| stage.variation), ""),
        UTILISATION_50.decide(runs, at(gamma50, last, |stage| stage.utilisation), ""),
        QUEUE_50.decide(runs, over(queue(gamma50), queue(gamma95)), note),
    ]
}

fn of_aware([gamma95, gamma50, aware]: [&[Outcome]; 3], last: usize) -> Vec<Claim> {
    let runs = aware.len() as u32;
    let variation = |outcomes| at(outcomes, last, |stage| stage.variation);
    let least = aware.iter().map(|stages| stages[..=last].iter().map(|stage| stage.utilisation).fold(1.0, f64::min));
    let queue = |outcomes: &[Outcome]| {
        let mean = |stages: &Outcome| stages[..SMALL].iter().map(|stage| stage.queue).sum::<f64>() / SMALL as f64;
        mean_95(&outcomes.iter().map(mean).collect::<Vec<_>>())
    };
    let queue_last = |outcomes| at(outcomes, last, |stage| stage.queue);
    let gamma = |stage| at(aware, stage, |stage| stage.gamma);
    let falls = (0..last).filter_map(|stage| Some(difference(gamma(stage + 1)?, gamma(stage)?)));
    vec![
        STABLE.decide(runs, over(variation(aware), variation(gamma95)), ""),
        UTILISATION.decide(runs, mean_95(&least.collect::<Vec<_>>()), ""),
        GAMMA_FALLS.decide_cells(runs, &falls.collect::<Vec<_>>(), "The step that falls least is shown."),
        QUEUE_SMALL.decide(runs, over(queue(aware), queue(gamma50)), ""),
        QUEUE_LARGE.decide(
            runs,
            over(queue_last(aware), queue_last(gamma50)),
            "By Eq. 15 γ falls below 0.5 where C_v is above 0.225, a normal noise of 28 %; the queue of (1 - γ) K τ packets is \
             then longer than with γ = 0.5. The thesis does not print the sizes of its noise, and says that the queue is shorter \
             especially when the noise is small.",
        ),
    ]
}

fn figure(run: &Run, name: &str, title: &str) -> Figure {
    let of = |value: fn(&TcpSample) -> Option<f64>| {
        ["connection 1", "connection 2"].iter().enumerate().map(move |(flow, &name)| {
            let points = samples(run, flow).iter().filter_map(|sample| Some((sample.at_s, value(sample)?))).collect();
            PlotLayer { name: name.to_owned(), data: PlotData::Line(points) }
        })
    };
    let link = run.links.iter().find(|link| link.name == BOTTLENECK);
    let link = link.map(|link| link.samples.as_slice()).unwrap_or_default();
    let queue = link.iter().filter_map(|sample| Some((sample.at_s, sample.queue_packets?))).collect();
    let used = link.iter().filter_map(|sample| Some((sample.at_s, sample.utilisation? * 100.0))).collect();
    let plot = |title: &str, y, top, layers| Plot {
        title: title.to_owned(),
        x: "time (s)",
        y,
        y_limits: Some((0.0, top)),
        layers,
        marks: Vec::new(),
    };
    let one = |name: &str, points| vec![PlotLayer { name: name.to_owned(), data: PlotData::Line(points) }];
    let mut charts = vec![
        plot("Congestion windows", "window (packets)", 600.0, of(|sample| Some(sample.window_segments)).collect()),
        plot("Queue of the bottleneck", "queue (packets)", 400.0, one("queue", queue)),
        plot("Use of the bottleneck", "utilisation (%)", 110.0, one("utilisation", used)),
    ];
    if name == "Fig. 8" {
        charts.push(plot("γ as noise leaves it", "γ", 1.0, of(|sample| sample.gamma).collect()));
    }
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        text: "50 Mbit/s, 120 ms; 500 packets fill the path. Noise of 2.5, 5, 10, 20 and 40 %, 100 s each.".to_owned(),
        charts,
        tables: Vec::new(),
    }
}

fn table(settings: &[Vec<Outcome>]) -> Table {
    type Column = (&'static str, fn(&Stage) -> f64, usize);
    let columns: [Column; 7] = [
        ("window's deviation over mean", |stage| stage.variation, 3),
        ("Jain's index of the mean windows", |stage| stage.jain, 3),
        ("moment by moment", |stage| stage.jain_of_moments, 3),
        ("queue (packets)", |stage| stage.queue, 0),
        ("queue's deviation (packets)", |stage| stage.queue_deviation, 0),
        ("utilisation (%)", |stage| stage.utilisation * 100.0, 2),
        ("γ", |stage| stage.gamma, 2),
    ];
    let mut rows = Vec::new();
    for (name, outcomes) in ["0.95", "0.5", "heeds noise"].iter().zip(settings) {
        for (stage, noise) in NOISE.iter().enumerate() {
            let cells =
                columns.iter().map(|(_, number, decimals)| with_interval(at(outcomes, stage, *number), *decimals));
            rows.push([(*name).to_owned(), (*noise).to_owned()].into_iter().chain(cells).collect());
        }
    }
    let heads = ["setting of γ", "noise (%)"].into_iter().chain(columns.iter().map(|(head, ..)| *head));
    Table {
        caption: "Fig. 6, 7 and 8 by noise: means over the runs with their 95 % intervals".to_owned(),
        columns: heads.map(str::to_owned).collect(),
        rows,
    }
}
