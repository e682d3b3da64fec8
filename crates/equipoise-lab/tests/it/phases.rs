//! Tests of queueing delays and of the metrics of phases, compared with values computed by hand.

use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_lab::record::Recorder;
use equipoise_lab::result::{MediaResult, Report, Run};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::{self, simulate_many};
use equipoise_session::{Ecn, Event};

const CALL: &str = include_str!("../../../../scenarios/call.toml");

/// Returns a scenario with two sessions, each at a constant rate. The second session stops at 10 s.
fn two(rates: [&str; 2], link: &str) -> String {
    let flow = |name: &str, rate: &str, keys: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\npath = [\"way\"]\npacket_size = \"1000 B\"\nreport_interval = \"1 s\"\n\
             controller = {{ name = \"cbr\", rate = \"{rate}\" }}\n{keys}"
        )
    };
    let [one, other] = rates;
    format!(
        "name = \"two\"\nduration = \"20 s\"\n[[link]]\nname = \"way\"\ndelay = \"10 ms\"\nqueue = \"10 s\"\n{link}\n{}{}",
        flow("one", one, ""),
        flow("other", other, "pause = [{ at = \"10 s\" }]\n")
    )
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str) -> Run {
    sim::simulate(&scenario(text), 1, &mut |_| {}).expect("it can be simulated")
}

fn media(run: &Run) -> &MediaResult {
    run.media.as_ref().expect("media")
}

fn near(found: Option<f64>, expected: f64, within: f64) {
    let found = found.expect("measured");
    assert!((found - expected).abs() <= within, "{found} is not {expected}");
}

/// Two flows of 1 and 3 Mbit/s share a link of 8 Mbit/s. Jain's index is (1 + 3)² / (2 (1² + 3²)) = 16 / 20. The
/// utilisation is 1, because it refers to the sum of the maximum rates of the flows, which is 4 Mbit/s.
#[test]
fn known_shares_have_their_index_of_fairness() {
    let run = run(&two(["1 Mbit/s", "3 Mbit/s"], "rate = \"8 Mbit/s\""));
    let [both, alone] = media(&run).phases.as_slice() else { panic!("two phases") };
    near(both.jain, 0.8, 0.01);
    near(both.capacity_bps, 8e6, 1e-6);
    near(both.utilisation, 1.0, 0.02);
    for fairness in &both.fairness {
        assert!((fairness.ratio - 1.0 / 3.0).abs() < 0.02 && (fairness.jain - 0.8).abs() < 0.01, "{fairness:?}");
    }
    let windows: Vec<_> =
        both.fairness.iter().map(|fairness| (fairness.window_s.round() as u32, fairness.windows)).collect();
    assert_eq!(windows, [(1, 10), (5, 2)], "no window of 20 s fits");
    assert_eq!((alone.flows.len(), alone.jain), (1, None));
    near(alone.convergence_s, 0.0, 0.2);
    near(alone.flows[0].settled_bps, 1e6, 3e4);
}

/// 6 Mbit/s are sent over a link of 4 Mbit/s, so the queueing delay grows by 0.5 s per second. At 10 s, the queue
/// contains 5 s of transmission time, and from then on only 1 Mbit/s is sent.
#[test]
fn a_queue_that_grows_and_shrinks_is_seen_in_the_waits_of_phases() {
    let run = run(&two(["1 Mbit/s", "5 Mbit/s"], "rate = \"4 Mbit/s\""));
    let [full, after] = media(&run).phases.as_slice() else { panic!("two phases") };
    // The packet that arrives at 10 s was sent at about 6.67 s, and has waited for 10 / 3 s. The delay grows linearly
    // up to this value, so its mean is 10 / 6 s.
    near(full.queueing.expect("simulated").mean_s, 10.0 / 6.0, 0.05);
    near(full.queueing.expect("simulated").p95_s, 0.95 * 10.0 / 3.0, 0.1);
    near(full.utilisation, 1.0, 0.01);
    // At 10 s, the queue contains 20 Mbit. One sixth of it belongs to the flow that continues, and this flow sends
    // 10 Mbit more. So 13.3 Mbit arrive in 10 s. The usable capacity is the maximum rate of this flow, 1 Mbit/s.
    near(after.utilisation, 4.0 / 3.0, 0.01);
    let flow = run.flows[0].queueing.expect("simulated");
    assert!(flow.mean_s < flow.p95_s && flow.p95_s <= flow.p99_s, "{flow:?}");
}

/// If this test fails, the calm queueing delays include delays from the first second after a fall of the capacity.
#[test]
fn calm_leaves_out_the_second_after_a_fall() {
    // For 0.5 s, 2 Mbit/s arrive at a link of 1 Mbit/s. The resulting queue is empty after another 0.25 s at 4 Mbit/s.
    let link =
        "rate = \"4 Mbit/s\"\nsteps = [{ at = \"5 s\", rate = \"1 Mbit/s\" }, { at = \"5.5 s\", rate = \"4 Mbit/s\" }]";
    let run = run(&two(["1 Mbit/s", "1 Mbit/s"], link));
    let media = media(&run);
    assert_eq!(media.phases.len(), 4);
    let [all, calm] = [media.queueing, media.calm_queueing].map(|waits| waits.expect("simulated"));
    assert!(all.mean_s.expect("packets") > 4.0 * calm.mean_s.expect("packets"), "{all:?} {calm:?}");
    assert!(calm.p99_s.expect("packets") < 0.01, "{calm:?}");
    near(media.loss, 0.0, 0.0);
    assert!(media.feedback_share.is_some_and(|share| share > 0.0 && share < 0.02), "{:?}", media.feedback_share);
}

#[test]
fn jitter_is_no_wait_in_a_queue() {
    let run = run(&two(["1 Mbit/s", "1 Mbit/s"], "rate = \"100 Mbit/s\"\njitter = \"5 ms half-normal\""));
    assert!(run.flows[0].delay.p95_s.expect("packets") > 0.015, "there is jitter");
    // In the second phase, only one flow sends. Its packets wait at most for the flow's own RTCP packets.
    let found = media(&run).phases[1].queueing.expect("simulated");
    assert_eq!(found.p95_s, Some(0.0));
    assert!(found.mean_s.expect("packets") < 1e-6, "{found:?}");
}

/// Two media flows of 1 Mbit/s each share a link of 3 Mbit/s with a TCP connection that uses the remaining capacity.
/// The second media flow stops at 10 s.
#[test]
fn throughput_is_set_against_that_of_tcp() {
    let tcp = "[[flow]]\nname = \"tcp\"\npath = [\"way\"]\npacket_size = \"1500 B\"\nwindow = { name = \"reno\" }\n";
    let text = two(["1 Mbit/s", "1 Mbit/s"], "rate = \"3 Mbit/s\"").replace("queue = \"10 s\"", "queue = \"100 ms\"");
    let run = run(&format!("{text}{tcp}"));
    let [beside_both, beside_one] = media(&run).phases.as_slice() else { panic!("two phases") };
    near(beside_both.tcp_ratio, 1.0, 0.15);
    near(beside_one.tcp_ratio, 0.5, 0.1);
    let tcp = run.flows[2].queueing.expect("simulated");
    assert!(tcp.p95_s.expect("segments") > 0.05 && tcp.p99_s.expect("segments") < 0.102, "{tcp:?}");
}

/// If this test fails, results other than queueing delays are missing when no queueing delays are recorded.
#[test]
fn without_arrivals_the_waits_are_unknown() {
    let scenario = scenario(&two(["1 Mbit/s", "1 Mbit/s"], "rate = \"8 Mbit/s\""));
    let origin: Instant<SenderClock> = Instant::from_nanos(1_000_000_000);
    let mut recorder = Recorder::new(&scenario, origin);
    let size = Size::from_bytes(1000);
    for packet in 0..1500 {
        let (at, delay) = (Span::from_millis(10 * packet), Span::from_millis(20));
        recorder.on_event(at, 0, &Event::MediaSent { sequence: 0, size, waited: Span::ZERO, fragment: None });
        let received = Event::MediaReceived { sequence: 0, sent: origin + at, delay, size, ecn: Ecn::NotCapable };
        recorder.on_event(at + delay, 0, &received);
    }
    let media = recorder.media(Span::from_secs(15)).expect("media");
    assert_eq!((media.queueing, media.calm_queueing, media.feedback_share), (None, None, None));
    let ends: Vec<_> = media.phases.iter().map(|phase| phase.end_s).collect();
    assert_eq!(ends, [10.0, 15.0], "cut where the run ended");
    near(Some(media.phases[1].flows[0].received_bps), 800e3, 5e3);
    assert_eq!(media.phases[1].flows[0].convergence_s, Some(0.0));
    near(media.phases[1].utilisation, 0.8, 0.005);
    assert_eq!(recorder.finish(Span::from_secs(15), &[])[0].queueing, None);
}

/// RFC 8867, Sec. 5.1, with a pause of the media. If the test fails, a run does not have its six phases, a summary has
/// no confidence interval, or the results depend on the number of threads.
#[test]
fn a_call_has_its_phases_in_every_run_and_the_same_bytes_for_any_number_of_threads() {
    let scenario = scenario(CALL);
    let report = |threads| {
        let runs = simulate_many(&scenario, (1, 3), Some(threads), |run| run, &|_| {}).expect("it can be simulated");
        Report::new(&scenario, 1, runs)
    };
    let (one, three) = (report(1), report(3));
    assert!(one.to_json() == three.to_json());
    for run in &one.runs {
        let starts: Vec<_> = media(run).phases.iter().map(|phase| phase.start_s).collect();
        assert_eq!(starts, [0.0, 40.0, 60.0, 80.0, 90.0, 95.0]);
        let used = media(run).utilisation.expect("a bottleneck");
        assert!((0.4..1.0).contains(&used), "{used}");
        assert!(media(run).phases[4].flows.is_empty(), "on hold");
    }
    let [summary] = one.summary.as_slice() else { panic!("one world") };
    for key in ["utilisation", "queueing_mean_s", "queueing_calm_p95_s", "loss", "feedback_share"] {
        assert!(summary.media[key].ci95.is_some() && summary.media[key].runs == 3, "{key}");
    }
    assert_eq!(summary.phases.len(), 6);
    assert!(summary.phases[0].metrics.contains_key("queueing_p95_s"));
    assert!(summary.flows[0].metrics.contains_key("queueing_p99_s"));
}
