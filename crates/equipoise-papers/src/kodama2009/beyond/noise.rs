use super::super::scenarios::BEYOND_NOISE;
use super::super::series::{goodput_mbps, mean_of_link};
use super::super::{Found, Lab, Options, Rule, Spec, parse_with, ratio, with_interval};
use super::laws::{BOTTLENECK, OURS};
use crate::{Figure, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, mean_95};

const RUNS: u32 = 10;
const SETTLED: (f64, f64) = (100.0, 300.0);
/// Rates of the cross traffic during its bursts, in Mbit/s. Bursts and pauses are equally long, so the mean rates are
/// half as high.
const BURSTS: [u32; 4] = [5, 10, 20, 40];

pub(in super::super) const CLAIMS: &[Spec] = &[NOISE_AWARE];
const NOISE_AWARE: Spec = Spec::new(
    "beyond.noise_aware_vegas",
    OURS,
    "Noise awareness raises the goodput of two Vegas connections in bursts of 40 Mbit/s, on 50 Mbit/s: with over without.",
    Rule::above(1.0),
)
.unit("ratio")
.ours();

/// Values from one run, for the claims and figures.
struct Outcome {
    goodput_mbps: f64,
    utilisation: f64,
    queue: f64,
    jain: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let goodputs = [1, 2].map(|flow| goodput_mbps(run, flow, SETTLED));
        Self {
            goodput_mbps: goodputs.iter().sum(),
            utilisation: mean_of_link(run, BOTTLENECK, SETTLED, |sample| sample.utilisation),
            queue: mean_of_link(run, BOTTLENECK, SETTLED, |sample| sample.queue_packets),
            jain: jain(&goodputs),
        }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * 2 * BURSTS.len() as u32
}

/// Runs two Vegas connections with cross traffic in bursts, with and without noise awareness.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mean = |outcomes: &[Outcome], number: fn(&Outcome) -> f64| -> Option<Estimate> {
        mean_95(&outcomes.iter().map(number).collect::<Vec<_>>())
    };
    let (mut rows, mut last) = (Vec::new(), [None; 4]);
    for burst in BURSTS {
        for (place, aware) in ["off", "on"].into_iter().enumerate() {
            let overrides = [
                Override::set("flow.background.source.rate", format!("{burst} Mbit/s")),
                Override::set("flow.first.window.noise_aware", aware),
                Override::set("flow.second.window.noise_aware", aware),
            ];
            let scenario = parse_with(BEYOND_NOISE, &overrides);
            let outcomes = lab.runs(&scenario, runs, Outcome::of)?;
            let (goodput, queue) =
                (mean(&outcomes, |outcome| outcome.goodput_mbps), mean(&outcomes, |outcome| outcome.queue));
            (last[place], last[2 + place]) = (goodput, queue);
            rows.push(vec![
                burst.to_string(),
                aware.to_owned(),
                with_interval(goodput, 2),
                with_interval(mean(&outcomes, |outcome| outcome.utilisation * 100.0), 1),
                with_interval(queue, 1),
                with_interval(mean(&outcomes, |outcome| outcome.jain), 3),
            ]);
        }
    }
    let [off, on, queue_off, queue_on] = last;
    let note = format!(
        "{} Mbit/s with, {} without; the queue holds {} packets with, {} without.",
        with_interval(on, 1),
        with_interval(off, 1),
        with_interval(queue_on, 0),
        with_interval(queue_off, 0),
    );
    let ours = on.zip(off).and_then(|(on, off)| ratio(on, off));
    found.claims.push(NOISE_AWARE.decide(runs, ours, note));
    found.figures.push(figure(rows));
    Ok(())
}

fn figure(rows: Vec<Vec<String>>) -> Figure {
    let columns = [
        "bursts (Mbit/s)",
        "noise awareness",
        "goodput of both (Mbit/s)",
        "utilisation (%)",
        "mean queue (packets)",
        "Jain's index of goodputs",
    ];
    Figure {
        name: "Noise-aware Vegas".to_owned(),
        title: "Vegas in bursts, with and without noise awareness".to_owned(),
        text: "50 Mbit/s, 120 ms, two connections, bursts of 100 ms with pauses as long. Vegas takes the bursts' queue for its own \
               and yields; where the measured backlog counts by 1 / (1 + l C_v) (Eq. 15), it yields less."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Means over the runs with their 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
    }
}
