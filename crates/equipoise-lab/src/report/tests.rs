//! Tests of pages that are made from handmade results. No run of a valid scenario produces these results.

use std::collections::BTreeMap;

use super::html;
use crate::result::{
    DelayResult, DelayShare, FlowResult, IntervalResult, LinkResult, MediaResult, OutageResult, PhaseResult, Report,
    Run, Step, StepKind, World,
};

/// Returns a flow with a target, three decisions and a delay distribution, but no other results. Each item of `shares`
/// is a share of packets, and the delay in milliseconds that these packets reached or exceeded.
pub(crate) fn flow(shares: &[(f64, f64)]) -> FlowResult {
    let point = |&(share, delay_ms): &(f64, f64)| DelayShare { delay_s: delay_ms / 1e3, share };
    FlowResult {
        playout: None,
        queueing: None,
        beliefs: Vec::new(),
        video: None,
        audio: None,
        tcp: None,
        pair: None,
        received: Vec::new(),
        split: None,
        paths: Vec::new(),
        name: "media".to_owned(),
        controller: Some("ap".to_owned()),
        packets_sent: 0,
        packets_received: 0,
        packets_lost: 0,
        packets_marked: None,
        mean_rate_bps: None,
        delivered_rate_bps: None,
        delay: DelayResult::default(),
        target_s: Some(0.0082),
        mse_s2: None,
        cv: None,
        jitter_s: None,
        settled_delay_s: None,
        excursions: None,
        limited_share: None,
        ignored: BTreeMap::new(),
        pacing_resets: 0,
        reports_missing: 0,
        circuit_broken: BTreeMap::new(),
        circuit_strained: 0,
        response: None,
        decisions: BTreeMap::from([("law".to_owned(), 3)]),
        intervals: Vec::new(),
        distribution: shares.iter().map(point).collect(),
    }
}

pub(super) fn run(world: World, seed: u64, settled_s: f64) -> Run {
    let flow = FlowResult { settled_delay_s: Some(settled_s), ..flow(&[(1.0, 5.0), (0.5, 6.0), (0.01, 8.0)]) };
    Run {
        world,
        seed,
        lasted_s: 40.0,
        complete: true,
        clock: "simulated time".to_owned(),
        stalls: Vec::new(),
        emulator: None,
        flows: vec![flow],
        links: Vec::new(),
        media: None,
    }
}

fn report(runs: Vec<Run>) -> Report {
    Report {
        scenario: "by hand".to_owned(),
        seed: 1,
        version: "0.0.0".to_owned(),
        description: String::new(),
        scenario_text: String::new(),
        warm_up_s: 10.0,
        duration_s: 40.0,
        steps: Vec::new(),
        outages: Vec::new(),
        summary: Vec::new(),
        runs,
    }
}

#[test]
fn several_runs_of_a_world_share_one_verdict() {
    let runs = [0.0082, 0.0080, 0.0200].iter().zip(1..).map(|(settled, seed)| run(World::Sim, seed, *settled));
    let page = html(&report(runs.chain([run(World::Live, 1, 0.0083)]).collect()));
    assert_eq!(page.matches("<p class=\"verdict").count(), 2, "one a world");
    // 12.07 ms is the mean of the settled delays 8.2, 8.0 and 20 ms.
    assert!(page.contains("settled at 12.07 ms on average against a target of 8.20 ms (+47.2 %): held in 2 of 3 runs"));
    assert!(page.contains("settled at 8.30 ms against a target of 8.20 ms (+1.2 %): held within 15 %."));
    assert!(
        page.contains(
            "decided by law</td><td data-label=\"simulated, total of 3 runs\">9</td><td data-label=\"live\">3</td>"
        ),
        "counters are totals"
    );
}

/// If this test fails, runs without time series do not count for the means, or the page does not say that charts show
/// only the first runs.
#[test]
fn runs_without_series_count_for_the_means_and_not_for_the_charts() {
    let interval = |start_s: f64| IntervalResult {
        start_s,
        end_s: start_s + 1.0,
        rate_bps: 1e6,
        delay_mean_s: Some(0.008),
        delay_variance_s2: None,
        delay_p50_s: None,
        delay_p95_s: None,
        delay_p99_s: None,
        delay_max_s: None,
        packets: 1,
        packets_lost: 0,
        stalled: false,
    };
    let runs = (1..=4u8).map(|seed| {
        let mut run = run(World::Sim, seed.into(), f64::from(seed) / 1e3);
        run.flows.iter_mut().for_each(|flow| flow.intervals = vec![interval(0.0), interval(1.0)]);
        if seed > 3 { run.without_series() } else { run }
    });
    let page = html(&report(runs.collect()));
    assert!(page.contains("the median of the first 3 of 4 runs") && page.contains("10 % to 90 % of 3 runs"), "{page}");
    assert!(page.contains("settled at 2.50 ms on average"), "the mean of 1, 2, 3 and 4 ms");
}

#[test]
fn steps_are_labelled_within_the_run_and_stay_text() {
    let mut results = report(vec![run(World::Sim, 1, 0.0082)]);
    let step = |at_s| Step { at_s, name: "<b>".to_owned(), kind: StepKind::Load, rate_bps: 9_500_000 };
    results.steps = vec![step(0.0), step(20.0), step(60.0)];
    let page = html(&results);
    assert_eq!(
        page.matches(">&lt;b&gt; 9.5 Mbit/s</text>").count(),
        4,
        "over delay and rate, on a desktop and on a phone"
    );
    assert!(page.contains("20 s: &lt;b&gt; to 9.5 Mbit/s") && !page.contains("60 s:") && !page.contains("<b>"));
}

/// If this test fails, the report says that a flow comes or goes where a phase begins with the outage of a path.
#[test]
fn a_phase_that_begins_with_an_outage_says_so() {
    let phase = |start_s: f64, end_s: f64| PhaseResult {
        start_s,
        end_s,
        capacity_bps: None,
        utilisation: None,
        queueing: None,
        convergence_s: None,
        jain: None,
        tcp_ratio: None,
        bottlenecks: Vec::new(),
        fairness: Vec::new(),
        flows: Vec::new(),
    };
    let media = MediaResult {
        utilisation: None,
        queueing: None,
        calm_queueing: None,
        loss: None,
        tcp_ratio: None,
        feedback_share: None,
        phases: vec![phase(0.0, 10.0), phase(10.0, 20.0), phase(20.0, 30.0), phase(30.0, 40.0)],
    };
    let mut results = report(vec![Run { media: Some(media), ..run(World::Sim, 1, 0.0082) }]);
    results.outages = vec![OutageResult { path: "lte".to_owned(), start_s: 10.0, end_s: 20.0 }];
    let page = html(&results);
    for said in [
        "10 s: a path is taken away or is back (phase 2)",
        "20 s: a path is taken away or is back (phase 3)",
        "30 s: a flow comes, pauses or goes (phase 4)",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.matches("a flow comes").count(), page.matches("(phase 4)").count());
}

/// If this test fails, a result with unusual numbers cannot be shown. Results can be read from JSON, so any number is
/// possible.
#[test]
fn no_number_is_too_strange_for_a_page() {
    for strange in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let interval = IntervalResult {
            start_s: strange,
            end_s: strange,
            rate_bps: strange,
            delay_mean_s: Some(strange),
            delay_variance_s2: None,
            delay_p50_s: Some(strange),
            delay_p95_s: Some(strange),
            delay_p99_s: None,
            delay_max_s: None,
            packets: u64::MAX,
            packets_lost: 0,
            stalled: true,
        };
        let mut odd = run(World::Live, u64::MAX, strange);
        for flow in &mut odd.flows {
            flow.target_s = Some(strange);
            flow.intervals = vec![interval; 3];
            flow.distribution = vec![DelayShare { delay_s: strange, share: strange }; 2];
            flow.distribution.push(DelayShare { delay_s: 0.005, share: 0.5 });
        }
        odd.links = vec![LinkResult {
            samples: Vec::new(),
            name: String::new(),
            utilisation: Some(strange),
            packets_dropped: u64::MAX,
            packets_forwarded: u64::MAX,
            packets_lost: u64::MAX,
            packets_marked: u64::MAX,
            packets_duplicated: 0,
            packets_reordered: 0,
            mean_queue_packets: None,
            max_queue_packets: 0,
        }];
        let step = Step { at_s: strange, name: String::new(), kind: StepKind::Capacity, rate_bps: u64::MAX };
        let mut results = report(vec![odd]);
        (results.duration_s, results.warm_up_s, results.steps) = (strange, strange, vec![step; 2]);
        assert!(html(&results).ends_with("</html>\n"), "{strange}");
    }
}
