//! Tests of a session over several paths, from the scenario file to the report page.

use std::sync::atomic::AtomicBool;

use equipoise_lab::result::{PathResult, Report};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::{Progress, live, report, sim, trace};

const TWO_PATHS: &str = include_str!("../../../../scenarios/two-paths.toml");
const TWO_LAWS: &str = include_str!("../../../../scenarios/two-laws.toml");

fn results() -> Report {
    let scenario = Scenario::parse(TWO_PATHS).expect("a right scenario");
    let runs = sim::simulate_many(&scenario, (1, 2), Some(2), |run| run, &|_| {}).expect("a scenario that was parsed");
    Report::new(&scenario, 1, runs)
}

/// Returns the number of packets sent on a path between two times, in seconds since the run's start.
fn sent(path: &PathResult, from: f64, to: f64) -> u64 {
    let within = path.intervals.iter().filter(|interval| interval.start_s >= from && interval.end_s <= to);
    within.map(|interval| interval.packets).sum()
}

#[test]
fn the_paths_add_up_to_the_flow_and_nothing_leaves_on_one_that_is_taken_away() {
    for run in results().runs {
        let flow = &run.flows[0];
        let [wide, narrow] = flow.paths.as_slice() else { panic!("two paths") };
        assert_eq!(flow.packets_sent, wide.packets_sent + narrow.packets_sent);
        assert_eq!(flow.packets_received, wide.packets_received + narrow.packets_received);
        assert_eq!(flow.reports_missing, wide.reports_missing + narrow.reports_missing);
        // Both paths together carry 375 packets/s, except for some time after 140 s. From 140 s to 150 s, the wide path
        // delivers nothing. All packets then overload the narrow path, so the session's circuit breaker reduces the
        // rate.
        let together = |from: u32, to: u32| {
            let (from, to) = (f64::from(from), f64::from(to));
            (sent(wide, from, to) + sent(narrow, from, to)) as f64 / (375.0 * (to - from))
        };
        for (from, to, is_whole) in [(20, 65, true), (66, 71, true), (90, 140, true), (151, 156, false)] {
            let share = together(from, to);
            assert_eq!((share - 1.0).abs() < 0.02, is_whole, "{share} from {from} s to {to} s");
        }
        // The circuit breaker of the narrow path triggers after the capacity of this path has halved. The wide path
        // carries all packets until the session tries the narrow path again.
        assert!((1..=2).contains(&narrow.circuit_broken["congestion"]) && flow.circuit_strained == 1);
        assert!(flow.circuit_broken.is_empty() && wide.circuit_broken.is_empty());
        assert!(sent(narrow, 64.0, 68.0) < 100, "left to the other");
        assert_eq!(sent(narrow, 100.5, 110.0), 0, "taken away");
        // A path without reports carries only probe packets, unless the other path has no reports either.
        assert!(sent(wide, 142.5, 150.0) < 100, "dead: the probe at most");
        assert!(sent(wide, 101.0, 110.0).abs_diff(9 * 375) < 10, "the other carries all");
        assert!(sent(narrow, 110.0, 130.0) > 500, "and is used again");
        // Until its queue is full, the narrow path has a shorter delay than the wide path.
        let mean = |path: &PathResult, at: usize| path.intervals[at].delay_mean_s.expect("something came");
        assert!(mean(narrow, 100) < mean(wide, 100) && mean(narrow, 125) > 0.5, "50 s, and 62.5 s");
        assert!(wide.decisions.contains_key("law") && !flow.decisions.contains_key("law"), "shares are the paths'");
    }
}

#[test]
fn the_page_and_the_trace_tell_the_paths_apart() {
    let results = results();
    let page = report::html(&results);
    for words in [
        "call (cbr, split by ap)",
        "sending rate of each path",
        "simulated: narrow",
        "Paths of call",
        "wide: decided by law",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("a path is taken away") && !page.contains("NaN"));
    let again: Report = serde_json::from_str(&results.to_json()).expect("its own form");
    let narrow = |results: &Report| (results.outages.clone(), results.runs[0].flows[0].paths[1].packets_sent);
    assert_eq!(narrow(&again), narrow(&results));
    let scenario = Scenario::parse(&TWO_PATHS.replace("\"180 s\"", "\"151 s\"")).expect("a right scenario");
    let mut lines = Vec::new();
    let mut tell = |progress: Progress| {
        if let Progress::Event { at, origin, flow: 0, path, event, .. } = progress {
            let name = path.map(|path| ["wide", "narrow"][usize::from(path.0)]);
            lines.push(trace::line(at, ("call", name), origin, &event));
        }
    };
    sim::simulate(&scenario, 1, &mut tell).expect("a scenario that was parsed");
    let of = |event: &str, path: &str| {
        lines.iter().filter(|line| line.contains(event) && line.ends_with(&format!(",{path}\n"))).count()
    };
    assert!(of("media-sent", "wide") > 1000 && of("media-sent", "narrow") > 1000 && of("media-sent", "") == 0);
    assert!(of("rate-decided", "") > 20, "the total is of no path");
}

/// Returns the rate, in Mbit/s, of the packets that were sent on a path from second `from` to second `to`, and the mean
/// delay of these packets, in ms.
fn carried(path: &PathResult, from: f64, to: f64) -> (f64, f64) {
    let within = path.intervals.iter().filter(|interval| interval.start_s >= from && interval.end_s <= to);
    let delays = within.filter_map(|interval| Some((interval.delay_mean_s?, interval.packets as f64)));
    let (sum, packets) = delays.fold((0.0, 0.0), |(sum, all), (mean, packets)| (sum + mean * packets, all + packets));
    (sent(path, from, to) as f64 * 8e-3 / (to - from), 1e3 * sum / f64::max(packets, 1.0))
}

/// If this test fails, a control law with per-packet feedback does not control each path, or a failure of one path
/// affects the other path.
#[test]
fn with_a_law_each_both_paths_are_full_and_one_that_fails_leaves_the_other_alone() {
    let scenario = Scenario::parse(TWO_LAWS).expect("a right scenario");
    let run = sim::simulate(&scenario, 1, &mut |_| {}).expect("a scenario that was parsed");
    let [near, far] = run.flows[0].paths.as_slice() else { panic!("two paths") };
    for (from, to) in [(20.0, 40.0), (65.0, 80.0), (100.0, 110.0)] {
        let both = [carried(near, from, to), carried(far, from, to)];
        assert!(both[0].0 + both[1].0 > 9.0, "{both:?} from {from} s to {to} s");
        assert!(both[0].1 < 25.0 && both[1].1 < 55.0, "short queues: {both:?} from {from} s to {to} s");
    }
    assert!((1.7..2.05).contains(&carried(near, 45.0, 60.0).0), "its law goes down");
    assert!(carried(far, 40.0, 60.0).0 > 3.4, "the other one's does not");
    assert!(
        carried(far, 81.0, 90.0).0 < 0.05 && carried(near, 80.0, 90.0).0 > 5.7,
        "one is dead, the other one goes on"
    );
    assert!(run.flows[0].circuit_broken.is_empty() && near.circuit_broken.is_empty());
}

#[test]
fn what_cannot_be_reported_on_paths_is_said_at_its_line() {
    let wrong =
        |from: &str, to: &str| Scenario::parse(&TWO_LAWS.replace(from, to)).expect_err("a wrong scenario").to_string();
    let with = |feedback: &str| format!("period = \"1 s\"\n{feedback}");
    let formats = wrong("period = \"1 s\"", &with("feedback = { format = \"twcc\" }"));
    assert!(formats.contains("must be \"rfc8888\" for a flow over several `paths`"), "{formats}");
    let text = TWO_LAWS.replace("period = \"1 s\"", &with("feedback = { interval = \"20 ms\" }"));
    assert!(Scenario::parse(&text).is_ok());
    let pooled = text.replace("{ name = \"equipoise\" }", "{ name = \"cbr\", rate = \"5 Mbit/s\" }");
    let pooled = Scenario::parse(&pooled).expect_err("a wrong scenario").to_string();
    assert!(pooled.contains("over several `paths` whose controller uses it"), "{pooled}");
}

#[test]
#[ignore = "real time: 13 s"]
fn live_either_path_is_used_and_one_is_taken_away_and_comes_back() {
    let times = [
        ("180 s", "12 s"),
        ("warm_up = \"20 s\"", "warm_up = \"1 s\""),
        ("\"60 s\"", "\"3 s\""),
        ("\"100 s\"", "\"5 s\""),
        ("\"110 s\"", "\"8 s\""),
        ("\"140 s\"", "\"10.5 s\""),
        ("\"150 s\"", "\"11 s\""),
    ];
    let short = times.iter().fold(TWO_PATHS.to_owned(), |text, (from, to)| text.replace(from, to));
    let scenario = Scenario::parse(&short).expect("a right scenario");
    let run = live::run(&scenario, &live::Setup::new(1, live::Stage::Loopback), &AtomicBool::new(false), &mut |_| {});
    let run = run.expect("sockets on loopback");
    let flow = &run.flows[0];
    let [wide, narrow] = flow.paths.as_slice() else { panic!("two paths") };
    assert_eq!(flow.packets_sent, wide.packets_sent + narrow.packets_sent);
    assert!(sent(wide, 0.0, 5.0) > 500 && sent(narrow, 0.0, 5.0) > 500, "both, by halves at first");
    assert_eq!(sent(narrow, 5.5, 8.0), 0, "taken away");
    assert!(sent(wide, 5.5, 8.0) > 700, "the other carries all");
    assert!(sent(narrow, 8.0, 12.0) > 20, "and is used again");
    assert!(wide.packets_received > 500 && narrow.packets_received > 500, "and what is sent arrives");
}
