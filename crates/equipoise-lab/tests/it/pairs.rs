//! Tests of flow pairs in scenarios: valid and invalid settings, and the results of a flow pair that is alone on the
//! link.

use equipoise::units::{Rate, Size, Span};
use equipoise_lab::result::{FlowResult, PairTransport, Report, Run};
use equipoise_lab::scenario::{FlowKind, PairFlow, RunningLaw, Scenario};
use equipoise_lab::sim;
use equipoise_pair::tpba::{EarlyReturn, ProbeInterval, RunningConfig, Tolerance, TpbaConfig};

use crate::scenario::refusal;

/// The queue is larger than TCP's window, so the network loses nothing.
const ALONE: &str = r#"name = "alone"
duration = "100 s"
warm_up = "20 s"
sample_interval = "1 s"

[[link]]
name = "bottleneck"
rate = "1.2 Mbit/s"
delay = "6 ms"
queue = "10000 packets"

[[link]]
name = "back"
rate = "100 Mbit/s"
delay = "6 ms"
queue = "1000 packets"

[[flow]]
name = "pair"
path = ["bottleneck"]
back = ["back"]
packet_size = "588 B"
report_interval = "1 s"
window = { name = "reno", initial_window = 2 }
tcp = { receive_window = 30 }
pair = { adu = "5120 B" }
"#;

fn pair_of(scenario: &Scenario) -> &PairFlow {
    let FlowKind::Pair(pair) = &scenario.flows[0].kind else { panic!("a flow pair") };
    pair
}

fn simulated(text: &str) -> (Scenario, Run) {
    let scenario = Scenario::parse(text).expect("right");
    let run = sim::simulate(&scenario, 1, &mut |_| {}).expect("it runs");
    (scenario, run)
}

#[test]
fn what_is_left_out_is_the_papers() {
    let scenario = Scenario::parse(ALONE).expect("right");
    let pair = pair_of(&scenario);
    assert_eq!((pair.adu, pair.segment), (Size::from_bytes(5120), Size::from_bytes(1500)));
    assert_eq!((pair.tpba, pair.law), (TpbaConfig::PAPER, RunningLaw::Loss(RunningConfig::PAPER)));
    assert_eq!((pair.report_interval, pair.tcp.receive_window), (Span::from_secs(1), Some(30)));
    assert!(!pair.tcp.idle_restart, "the window outlasts a running period");
    assert_eq!(scenario.flows[0].back.as_deref(), Some(&[1][..]));
    let explained = scenario.explain();
    for words in ["ADUs of 5120 B", "differ by less than 30 kbit/s", "runs for 10 s", "back over back"] {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
}

#[test]
fn every_parameter_can_be_written() {
    let text = ALONE.replace(
        "pair = { adu = \"5120 B\" }",
        r#"pair = { adu = "64 B", segment = "1000 B", between_reductions = { at_least = "600 ms", at_most = "1 s" }, tolerance = 0.05, running = "30 s", early_return = { reductions = 2, share = 0.25 }, law = { name = "ap", target = "50 ms", min_rate = "20 kbit/s" } }"#,
    );
    let scenario = Scenario::parse(&text).expect("right");
    let pair = pair_of(&scenario);
    let tpba = TpbaConfig {
        interval: ProbeInterval::BetweenReductions { at_least: Span::from_millis(600), at_most: Span::from_secs(1) },
        tolerance: Tolerance::PROPORTIONAL,
        running: Span::from_secs(30),
        early_return: Some(EarlyReturn::STANDARD),
    };
    let law = RunningLaw::Ap { target: Span::from_millis(50), min_rate: Rate::from_bps(20_000) };
    assert_eq!((pair.tpba, pair.law), (tpba, law));
    assert_eq!((pair.adu, pair.segment), (Size::from_bytes(64), Size::from_bytes(1000)));
    assert_eq!(scenario.flows[0].target(), Some(Span::from_millis(50)));
}

/// Each item is a part of the file, the text that replaces it, and texts that the error message must contain: line,
/// key, value and remedy.
const WRONG: &[(&str, &str, &[&str])] = &[
    ("adu = \"5120 B\"", "adu = \"0 B\"", &["line 26", "adu = \"0 B\"", "between 1 B and"]),
    ("adu = \"5120 B\"", "adu = 5120", &["line 26", "adu = 5120", "has no unit"]),
    ("{ adu = \"5120 B\" }", "{}", &["missing field `adu`"]),
    ("B\" }\n", "B\", probe = \"1 s\" }\n", &["line 26", "unknown field `probe`"]),
    ("B\" }\n", "B\", segment = \"40 B\" }\n", &["line 26", "segment = \"40 B\"", "between 100 B"]),
    ("B\" }\n", "B\", tolerance = 2.0 }\n", &["line 19", "as a share at most 1"]),
    ("B\" }\n", "B\", tolerance = \"30\" }\n", &["line 26", "tolerance = \"30\"", "has no unit"]),
    ("B\" }\n", "B\", running = \"0 s\" }\n", &["line 26", "running = \"0 s\"", "above zero"]),
    (
        "B\" }\n",
        "B\", interval = \"1 s\", between_reductions = { at_least = \"1 s\", at_most = \"2 s\" } }\n",
        &["line 26", "either `interval` or `between_reductions`"],
    ),
    ("B\" }\n", "B\", law = { name = \"aimd\" } }\n", &["line 26", "use loss or ap"]),
    ("B\" }\n", "B\", law = { name = \"ap\" } }\n", &["line 26", "ap has a `target`"]),
    (
        "B\" }\n",
        "B\", law = { name = \"ap\", target = \"6 ms\" } }\n",
        &["line 26", "target = \"6 ms\"", "propagation delay of 6 ms"],
    ),
    ("window = { name = \"reno\", initial_window = 2 }\n", "", &["line 19", "`window` or `kernel`"]),
    ("report_interval = \"1 s\"\n", "", &["line 19", "a `report_interval`"]),
    ("report_interval", "controller = { name = \"cbr\", rate = \"1M\" }\nreport_interval", &["no `controller`"]),
    ("report_interval", "stop = \"9 s\"\nreport_interval", &["stop = \"9 s\"", "TCP half"]),
    ("window = 30", "window = 30, idle_restart = \"on\"", &["idle_restart", "keeps its window"]),
    ("window = 30", "window = 30, transfer = \"1 MB\"", &["transfer = \"1 MB\"", "what the pair writes"]),
    ("back = [\"back\"]", "back = [\"forth\"]", &["line 21", "back = \"forth\"", "there are: bottleneck, back"]),
    ("warm_up", "receiver_rates = \"yes\"\nwarm_up", &["receiver_rates = \"yes\"", "on or off"]),
];

#[test]
fn a_wrong_pair_is_refused_with_what_would_be_right() {
    for (right, wrong, expected) in WRONG {
        assert!(ALONE.contains(right), "{right} does not stand in the scenario");
        let message = refusal(&ALONE.replacen(right, wrong, 1));
        for words in *expected {
            assert!(message.contains(words), "`{wrong}` gives `{message}`, without `{words}`");
        }
    }
}

/// If this test fails, a flow pair that is alone on a link loses packets, or gets less than the capacity of the link.
#[test]
fn alone_it_runs_at_the_links_rate_and_loses_nothing() {
    let (_, run) = simulated(ALONE);
    let flow = &run.flows[0];
    let pair = flow.pair.as_ref().expect("a flow pair");
    let rate = pair.received_bps.expect("it lasted longer than the warm-up");
    assert!((1.12e6..1.2e6).contains(&rate), "{rate}");
    assert_eq!((pair.adus_missing, flow.packets_lost), (0, 0));
    // 1.2 Mbit/s for 100 s are 2700 application data units (ADUs), if the headers of their packets are included.
    assert!((2400..2700).contains(&pair.adus), "{}", pair.adus);
    let running: Vec<_> = pair.periods.iter().filter(|period| period.transport == PairTransport::Rtp).collect();
    assert!(running.len() >= 5, "{:?}", pair.periods);
    assert!(running.iter().all(|period| (1.1e6..1.21e6).contains(&period.rate_bps)), "{:?}", pair.periods);
    assert!(pair.periods.iter().all(|period| period.at_s <= run.lasted_s));
    assert!(pair.periods.windows(2).all(|two| two[0].transport != two[1].transport && two[0].at_s < two[1].at_s));
}

/// All packets to the receivers cross the link once. If the test fails, the sampled rates at the receivers do not add
/// up to the traffic on the link.
#[test]
fn the_rates_at_the_receivers_are_those_of_the_packets_that_crossed_the_link() {
    let text = ALONE.replacen("warm_up", "receiver_rates = \"on\"\nwarm_up", 1)
        + r#"
[[flow]]
name = "tcp"
path = ["bottleneck"]
packet_size = "1500 B"
window = { name = "reno" }
tcp = { receive_window = 5 }

[[flow]]
name = "noise"
path = ["bottleneck"]
packet_size = "64 B"
source = { kind = "poisson", rate = "12 kbit/s" }
"#;
    let (_, run) = simulated(&text);
    let bits = |flow: &FlowResult| flow.received.iter().map(|sample| sample.rate_bps).sum::<f64>();
    assert!(run.flows.iter().all(|flow| flow.received.len() == 100 && bits(flow) > 0.0));
    let utilisation = run.links[0].utilisation.expect("time passed");
    let received = run.flows.iter().map(bits).sum::<f64>() / 1.2e8;
    // The utilisation differs a little from the received rate, for two reasons. RTCP packets count only in the
    // utilisation. Packets that are being transmitted at the end of the run have not arrived.
    assert!((utilisation - received).abs() < 0.004, "{received} of {utilisation}");
}

/// If this test fails, a report with a flow pair cannot be read again, or a report without one contains keys of flow
/// pairs.
#[test]
fn only_a_pair_has_the_keys_of_a_pair() {
    let (scenario, run) = simulated(&ALONE.replace("100 s", "30 s"));
    let report = Report::new(&scenario, 1, vec![run]);
    let again: Report = serde_json::from_str(&report.to_json()).expect("its own form");
    // Floating-point numbers are not compared, because their last bit may change when they are written and read.
    let said = |report: &Report| {
        let flow = &report.runs[0].flows[0];
        let pair = flow.pair.as_ref().expect("a flow pair");
        let periods: Vec<_> = pair.periods.iter().map(|period| (period.transport, period.first_adu)).collect();
        (pair.adus, pair.adus_missing, periods, flow.received.len())
    };
    assert_eq!(said(&again), said(&report));
    assert!(report.to_json().contains("\"transport\": \"rtp\""));
    let page = equipoise_lab::report::html(&report);
    assert!(page.contains("pair: rate at the receiver over time") && page.contains("ADUs delivered"));
    let (scenario, run) = simulated(equipoise_lab::DEMO_SHORT);
    let json = Report::new(&scenario, 1, vec![run]).to_json();
    assert!(!json.contains("\"pair\"") && !json.contains("\"received\""));
}
