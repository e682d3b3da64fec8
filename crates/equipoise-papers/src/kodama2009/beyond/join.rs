use super::super::fig3::joins;
use super::super::series::{dropped, goodput_mbps, mean_of_link, tcp};
use super::super::{Found, Lab, Options, Rule, Spec, with_interval};
use super::laws::{BOTTLENECK, LAWS, OURS};
use crate::{Figure, Table};
use equipoise_lab::result::{LinkSample, Run};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, jain, mean_95};

/// Number of runs, as in Fig. 3.
const RUNS: u32 = 10;
/// The part of the run that is evaluated, in seconds. The second connection joins at 50 s, so both connections are
/// active.
const BOTH: (f64, f64) = (100.0, 200.0);
/// One claim for each control law in [`LAWS`], in this order.
pub(in super::super) const CLAIMS: &[Spec] = &[
    fair(
        "beyond.join_symbiosis",
        "Two connections of Symbiosis share fairly in the scenario of Fig. 3, from 100 s on.",
    ),
    fair("beyond.join_reno", "Two connections of Reno share fairly in the scenario of Fig. 3, from 100 s on."),
    fair("beyond.join_cubic", "Two connections of CUBIC share fairly in the scenario of Fig. 3, from 100 s on."),
    fair("beyond.join_vegas", "Two connections of Vegas share fairly in the scenario of Fig. 3, from 100 s on."),
];

const fn fair(id: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, OURS, statement, Rule::above(0.95)).unit("Jain's index of goodputs").ours()
}

/// Values from one run, for the claims and figures.
struct Outcome {
    goodput_mbps: f64,
    utilisation: f64,
    queue: f64,
    dropped: f64,
    timeouts: f64,
    jain: f64,
}

impl Outcome {
    fn of(run: &Run) -> Self {
        let goodputs = [0, 1].map(|flow| goodput_mbps(run, flow, BOTH));
        let link = |of: fn(&LinkSample) -> Option<f64>| mean_of_link(run, BOTTLENECK, BOTH, of);
        Self {
            goodput_mbps: goodputs.iter().sum(),
            utilisation: link(|sample| sample.utilisation),
            queue: link(|sample| sample.queue_packets),
            dropped: dropped(run) as f64,
            timeouts: [0, 1].map(|flow| tcp(run, flow).and_then(|tcp| tcp.timeouts).unwrap_or(0)).iter().sum::<u64>()
                as f64,
            jain: jain(&goodputs),
        }
    }
}

pub(super) fn planned(options: &Options) -> u32 {
    options.runs(RUNS, 2) * LAWS.len() as u32
}

/// Runs two connections of each control law. The second connection joins later, as in Fig. 3.
pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    let runs = lab.options.runs(RUNS, 2);
    let mut rows = Vec::new();
    for (law, claim) in LAWS.into_iter().zip(CLAIMS) {
        let name = law.name;
        let outcomes = joins(lab, runs, law.of_flow("*").as_slice(), Outcome::of)?;
        let mean = |number: fn(&Outcome) -> f64| -> Option<Estimate> {
            mean_95(&outcomes.iter().map(number).collect::<Vec<_>>())
        };
        let note = format!(
            "{} Mbit/s of data together, {} packets in the queue, {} dropped in the run.",
            with_interval(mean(|outcome| outcome.goodput_mbps), 1),
            with_interval(mean(|outcome| outcome.queue), 0),
            with_interval(mean(|outcome| outcome.dropped), 0),
        );
        found.claims.push(claim.decide(runs, mean(|outcome| outcome.jain), note));
        rows.push(vec![
            name.to_owned(),
            with_interval(mean(|outcome| outcome.goodput_mbps), 1),
            with_interval(mean(|outcome| outcome.utilisation * 100.0), 0),
            with_interval(mean(|outcome| outcome.queue), 0),
            with_interval(mean(|outcome| outcome.dropped), 0),
            with_interval(mean(|outcome| outcome.timeouts), 1),
            with_interval(mean(|outcome| outcome.jain), 3),
        ]);
    }
    found.figures.push(figure(rows));
    Ok(())
}

fn figure(rows: Vec<Vec<String>>) -> Figure {
    let columns =
        ["law", "goodput of both (Mbit/s)", "used (%)", "queue (packets)", "dropped", "timeouts", "Jain's index"];
    Figure {
        name: "Second connection".to_owned(),
        title: "Other laws where a second connection joins, as in Fig. 3".to_owned(),
        text: "100 Mbit/s, 120 ms, a buffer of 1000 packets, SACK. Means from 100 s on; packets dropped and timeouts are those \
               of the whole run, the slow start of the first connection among them."
            .to_owned(),
        charts: Vec::new(),
        tables: vec![Table {
            caption: "Means over the runs with their 95 % intervals".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
    }
}
