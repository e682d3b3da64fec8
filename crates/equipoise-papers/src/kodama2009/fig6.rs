use super::scenarios::FIG6;
use super::series::{mean_of, mean_of_link, samples};
use super::{Found, Lab, Options, drafts, parse_with, ratio, with_interval};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::{Run, TcpSample};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, mean_95};

/// The thesis shows one run.
const RUNS: u32 = 20;
/// How much of a stage of 100 s is left out: what came before dies out with a time of about 10 s.
const SETTLE_S: f64 = 20.0;
/// Noise of each stage of 100 s, in per cent of what others use.
const NOISE: [&str; 5] = ["2.5", "5", "10", "20", "40"];
/// Stages of which the thesis says that the noise is small.
const SMALL: usize = 2;
const BOTTLENECK: &str = "E0-E1";

/// One of the three figures.
struct Setting {
    name: &'static str,
    title: &'static str,
    /// What is set for both connections.
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

/// What counts of a stage of a run.
#[derive(Clone, Copy)]
struct Stage {
    /// Standard deviation over mean of a window, averaged over both connections.
    variation: f64,
    /// Jain's index of both windows, averaged over time.
    jain: f64,
    queue: f64,
    /// Standard deviation of the queue, in packets.
    queue_deviation: f64,
    utilisation: f64,
    gamma: f64,
}

type Outcome = [Stage; NOISE.len()];

fn outcome(run: &Run) -> Outcome {
    std::array::from_fn(|stage| {
        let begin = 100.0 * stage as f64;
        let stretch = (begin + SETTLE_S, begin + 100.0);
        let window = |flow| mean_of(run, flow, stretch, |sample| Some(sample.window_segments));
        let squares = |flow| mean_of(run, flow, stretch, |sample| Some(sample.window_segments.powi(2)));
        let variation = |flow| deviation(window(flow), squares(flow)) / window(flow);
        let pairs = samples(run, 0).iter().zip(samples(run, 1));
        let (count, sum) = pairs
            .filter(|(sample, _)| sample.at_s > stretch.0 && sample.at_s <= stretch.1)
            .map(|(first, second)| jain(&[first.window_segments, second.window_segments]))
            .fold((0u32, 0.0), |(count, sum), index| (count + 1, sum + index));
        let queue = mean_of_link(run, BOTTLENECK, stretch, |sample| sample.queue_packets);
        let queue_squares =
            mean_of_link(run, BOTTLENECK, stretch, |sample| sample.queue_packets.map(|queue| queue * queue));
        Stage {
            variation: f64::midpoint(variation(0), variation(1)),
            jain: sum / f64::from(count),
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

/// Fig. 6, 7 and 8: noise in the measurement, with two values of γ and with one that heeds the noise.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut outcomes = Vec::new();
    for Setting { name, title, change } in settings() {
        let scenario = parse_with(FIG6, &[change]);
        outcomes.push(lab.runs(&scenario, runs, outcome)?);
        found.figures.extend(lab.runs(&scenario, 1, |run| figure(run, name, title))?);
    }
    if let [gamma95, gamma50, aware] = &outcomes[..] {
        found.claims.extend(of_gamma95(gamma95, gamma50));
        found.claims.extend(of_gamma50(gamma95, gamma50));
        found.claims.extend(of_aware(gamma95, gamma50, aware));
    }
    if let Some(figure) = found.figures.last_mut() {
        figure.tables.push(table(&outcomes));
    }
    Ok(())
}

/// The mean over all runs of a number of the last stage.
fn last(outcomes: &[Outcome], number: fn(&Stage) -> f64) -> Option<Estimate> {
    at(outcomes, NOISE.len() - 1, number)
}

fn at(outcomes: &[Outcome], stage: usize, number: fn(&Stage) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(|stages| number(&stages[stage])).collect::<Vec<_>>())
}

fn over(first: Option<Estimate>, second: Option<Estimate>) -> Option<Estimate> {
    first.zip(second).and_then(|(first, second)| ratio(first, second))
}

fn of_gamma95(gamma95: &[Outcome], gamma50: &[Outcome]) -> [Claim; 3] {
    let draft = drafts("Fig. 6", gamma95.len() as u32);
    let variation = |outcomes| last(outcomes, |stage| stage.variation);
    [
        draft(
            "fig6.gamma95_unstable",
            "With γ = 0.95 the windows become unstable in large noise. Rule: in the last 100 s a window varies at least \
             twice as much, relative to its mean, as with γ = 0.5.",
            None,
            "ratio",
        )
        .decide(over(variation(gamma95), variation(gamma50)), |ours| ours.ci95[0] > 2.0, ""),
        draft(
            "fig6.gamma95_unfair",
            "With γ = 0.95 large noise makes the connections unfair to each other. Rule: Jain's index of both windows, moment \
             by moment, is below 0.99 in the last 100 s.",
            None,
            "Jain's index",
        )
        .decide(
            last(gamma95, |stage| stage.jain),
            |ours| ours.ci95[1] < 0.99,
            "Neither connection stays ahead: what one is ahead dies out within some ten seconds.",
        ),
        draft(
            "fig6.gamma95_utilisation",
            "With γ = 0.95 large noise leaves part of the link unused. Rule: below 99 % used in the last 100 s.",
            None,
            "share",
        )
        .decide(last(gamma95, |stage| stage.utilisation), |ours| ours.ci95[1] < 0.99, ""),
    ]
}

fn of_gamma50(gamma95: &[Outcome], gamma50: &[Outcome]) -> [Claim; 3] {
    let draft = drafts("Fig. 7", gamma50.len() as u32);
    let queue = |outcomes| at(outcomes, 0, |stage| stage.queue);
    let note = format!(
        "{} packets, and {} with γ = 0.95.",
        with_interval(queue(gamma50), 0),
        with_interval(queue(gamma95), 0)
    );
    [
        draft(
            "fig7.gamma50_stable",
            "With γ = 0.5 the windows are steady whatever the noise. Rule: in the last 100 s a window's standard deviation is \
             below 10 % of its mean.",
            None,
            "deviation over mean",
        )
        .decide(last(gamma50, |stage| stage.variation), |ours| ours.ci95[1] < 0.1, ""),
        draft(
            "fig7.gamma50_utilisation",
            "With γ = 0.5 the link stays full. Rule: above 99 % used in the last 100 s.",
            None,
            "share",
        )
        .decide(last(gamma50, |stage| stage.utilisation), |ours| ours.ci95[0] > 0.99, ""),
        draft(
            "fig7.gamma50_queue",
            "With γ = 0.5 the queue is longer than with γ = 0.95. Rule: at least twice as long while the noise is least.",
            None,
            "ratio",
        )
        .decide(
            over(queue(gamma50), queue(gamma95)),
            |ours| ours.ci95[0] > 2.0,
            format!("{note} Two connections that share a full link rest at (1 - γ) K τ packets in the queue, which follows from Eq. 9: 250 and 25."),
        ),
    ]
}

fn of_aware(gamma95: &[Outcome], gamma50: &[Outcome], aware: &[Outcome]) -> [Claim; 4] {
    let draft = drafts("Fig. 8", aware.len() as u32);
    let variation = |outcomes| last(outcomes, |stage| stage.variation);
    let least = aware.iter().map(|stages| stages.iter().map(|stage| stage.utilisation).fold(1.0, f64::min));
    let queue = |outcomes: &[Outcome]| {
        let mean = |stages: &Outcome| stages[..SMALL].iter().map(|stage| stage.queue).sum::<f64>() / SMALL as f64;
        mean_95(&outcomes.iter().map(mean).collect::<Vec<_>>())
    };
    let queue_last = |outcomes| last(outcomes, |stage| stage.queue);
    [
        draft(
            "fig8.stable",
            "With a γ that heeds noise the windows are steady whatever the noise. Rule: in the last 100 s a window varies at \
             most half as much, relative to its mean, as with γ = 0.95.",
            None,
            "ratio",
        )
        .decide(over(variation(aware), variation(gamma95)), |ours| ours.ci95[1] < 0.5, ""),
        drafts("Fig. 8, abstract", aware.len() as u32)(
            "fig8.utilisation",
            "With a γ that heeds noise the link stays full, close to 100 % whatever the noise. Rule: above 99 % used in each \
             stage; ours is the least of the five.",
            None,
            "share",
        )
        .decide(mean_95(&least.collect::<Vec<_>>()), |ours| ours.ci95[0] > 0.99, ""),
        draft(
            "fig8.queue_below_fig7",
            "While the noise is small the queue is shorter than with γ = 0.5. Rule: in the first 200 s, 2.5 and 5 % of noise.",
            None,
            "ratio",
        )
        .decide(over(queue(aware), queue(gamma50)), |ours| ours.ci95[1] < 1.0, ""),
        draft(
            "fig8.queue_below_fig7_large",
            "The queue is shorter than with γ = 0.5 whatever the noise. Rule: in the last 100 s, too.",
            None,
            "ratio",
        )
        .decide(
            over(queue_last(aware), queue_last(gamma50)),
            |ours| ours.ci95[1] < 1.0,
            "By Eq. 15 γ falls below 0.5 where C_v is above 0.225, a normal noise of 28 %; the queue of (1 - γ) K τ packets is \
             then longer than with γ = 0.5. Our noise ends at 40 %; the thesis does not print its sizes and may end below.",
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
    let columns: [Column; 6] = [
        ("window's deviation over mean", |stage| stage.variation, 3),
        ("Jain's index of the windows", |stage| stage.jain, 3),
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
