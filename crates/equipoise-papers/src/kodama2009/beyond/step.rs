use super::super::scenarios::BEYOND_STEP;
use super::super::series::{goodput_mbps, mean_of_link, samples, tcp};
use super::super::{Found, Lab, Options, Rule, Spec, parse_with, ratio, scaled, with_interval};
use super::laws::{BOTTLENECK, LAWS, Law, OURS};
use crate::{Claim, Figure, Plot, PlotData, PlotLayer, Table};
use equipoise_lab::result::{LinkSample, Run};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// Number of runs. It is large enough to estimate the share of runs with a timeout.
const RUNS: u32 = 70;
const WHOLE: (f64, f64) = (0.0, 60.0);
/// Strengths m of the self-induced oscillation: no oscillation, and the value of the thesis (Sec. 4.3).
const STRENGTHS: [&str; 2] = ["0", "0.3"];
/// One claim for each control law, in the order of [`LAWS`].
pub(in super::super) const CLAIMS: &[Spec] = &[
    gains(
        "beyond.oscillation_symbiosis",
        "Oscillation of m = 0.3 raises the goodput of Symbiosis through the load step of Fig. 10: with over without.",
    ),
    gains(
        "beyond.oscillation_reno",
        "Oscillation of m = 0.3 raises the goodput of Reno through the load step of Fig. 10: with over without.",
    ),
    gains(
        "beyond.oscillation_cubic",
        "Oscillation of m = 0.3 raises the goodput of CUBIC through the load step of Fig. 10: with over without.",
    ),
    gains(
        "beyond.oscillation_vegas",
        "Oscillation of m = 0.3 raises the goodput of Vegas through the load step of Fig. 10: with over without.",
    ),
];

const fn gains(id: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, OURS, statement, Rule::above(1.0)).unit("ratio").ours()
}

/// Values from one run, for the claims and figures.
struct Outcome {
    goodput_mbps: f64,
    utilisation: f64,
    queue: f64,
    dropped: f64,
    timeouts: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let link = |of: fn(&LinkSample) -> Option<f64>| mean_of_link(run, BOTTLENECK, WHOLE, of);
        let dropped = run.links.iter().find(|link| link.name == BOTTLENECK).map_or(0, |link| link.packets_dropped);
        Self {
            goodput_mbps: goodput_mbps(run, 1, WHOLE),
            utilisation: link(|sample| sample.utilisation),
            queue: link(|sample| sample.queue_packets),
            dropped: dropped as f64,
            timeouts: tcp(run, 1).and_then(|tcp| tcp.timeouts).unwrap_or(0) as f64,
        }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    (options.runs(RUNS, 2) + 1) * (LAWS.len() * STRENGTHS.len()) as u32
}

/// Runs four control laws through the load step of Fig. 10, each without and with self-induced oscillation.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let (mut rows, mut charts) = (Vec::new(), Vec::new());
    for (law, spec) in LAWS.iter().zip(CLAIMS) {
        let (mut goodputs, mut timeouts, mut layers) = (Vec::new(), Vec::new(), Vec::new());
        for strength in STRENGTHS {
            let mut overrides: Vec<_> = law.of_flow("tcp").into_iter().collect();
            overrides.push(Override::set("flow.tcp.window.oscillation", strength));
            let scenario = parse_with(BEYOND_STEP, &overrides);
            let outcomes = lab.runs(&scenario, runs, Outcome::of)?;
            goodputs.push(mean(&outcomes, |outcome| outcome.goodput_mbps));
            timeouts.push(with_a_timeout(&outcomes));
            rows.push(row(law, strength, &outcomes));
            layers.extend(lab.runs(&scenario, 1, |run| line(run, strength))?);
        }
        if let ([without, with], [few, many]) = (&goodputs[..], &timeouts[..]) {
            found.claims.push(claim(spec, runs, [*without, *with], [*few, *many]));
        }
        charts.push(Plot {
            title: format!("Congestion window of {}", law.name),
            x: "time (s)",
            y: "window (packets)",
            y_limits: Some((0.0, 2000.0)),
            layers,
            marks: Vec::new(),
        });
    }
    found.figures.push(figure(charts, rows));
    Ok(())
}

fn mean(outcomes: &[Outcome], number: fn(&Outcome) -> f64) -> Option<Estimate> {
    mean_95(&outcomes.iter().map(number).collect::<Vec<_>>())
}

/// Returns the share of runs with a timeout, in percent.
fn with_a_timeout(outcomes: &[Outcome]) -> Option<Estimate> {
    let hit = outcomes.iter().filter(|outcome| outcome.timeouts > 0.0).count();
    share_95(hit, outcomes.len()).map(|share| scaled(share, 100.0))
}

fn claim(spec: &Spec, runs: u32, [without, with]: [Option<Estimate>; 2], [few, many]: [Option<Estimate>; 2]) -> Claim {
    let note = format!(
        "{} Mbit/s with, {} without; a timeout in {} % of the runs with, {} % without.",
        with_interval(with, 2),
        with_interval(without, 2),
        with_interval(many, 0),
        with_interval(few, 0),
    );
    spec.decide(runs, with.zip(without).and_then(|(with, without)| ratio(with, without)), note)
}

fn row(law: &Law, strength: &str, outcomes: &[Outcome]) -> Vec<String> {
    vec![
        law.name.to_owned(),
        strength.to_owned(),
        with_interval(mean(outcomes, |outcome| outcome.goodput_mbps), 2),
        with_interval(mean(outcomes, |outcome| outcome.utilisation * 100.0), 1),
        with_interval(mean(outcomes, |outcome| outcome.queue), 0),
        with_interval(mean(outcomes, |outcome| outcome.dropped), 0),
        mean(outcomes, |outcome| outcome.timeouts).map_or("–".to_owned(), |mean| format!("{:.2}", mean.value)),
        with_interval(with_a_timeout(outcomes), 0),
    ]
}

fn line(run: &Run, strength: &str) -> PlotLayer {
    let points = samples(run, 1).iter().map(|sample| (sample.at_s, sample.window_segments)).collect();
    PlotLayer { name: format!("m = {strength}"), data: PlotData::Line(points) }
}

fn figure(charts: Vec<Plot>, rows: Vec<Vec<String>>) -> Figure {
    let columns =
        ["law", "m", "goodput (Mbit/s)", "used (%)", "queue (packets)", "dropped", "timeouts", "runs with one (%)"];
    Figure {
        name: "Load step".to_owned(),
        title: "Other laws through the load step of Fig. 10, with and without oscillation".to_owned(),
        text: "100 Mbit/s, 120 ms, a buffer of 1000 packets, SACK; Poisson background leaves 80, 20 and 80 Mbit/s, 20 s each. \
               Packets dropped are those of the background, too; timeouts are a run's. White noise in the growth leaves the \
               mean of a window but draws its median down by m² / 2, 4.5 % a second. Symbiosis and CUBIC pull a window back in \
               proportion; Reno and Vegas by a segment a round trip, which balances it near 185 segments, far below the path."
            .to_owned(),
        charts,
        tables: vec![Table {
            caption: "Means over the runs with their 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
    }
}
