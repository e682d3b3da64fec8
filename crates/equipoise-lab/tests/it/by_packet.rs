//! Tests of per-packet feedback in scenarios: which flows get this feedback, and how control laws behave with it.

use equipoise_lab::result::Run;
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::simulate_many;

use crate::scenario::refusal;

const LINK: &str = "name = \"by packet\"\nduration = \"60 s\"\nwarm_up = \"20 s\"\n[[link]]\nname = \"way\"\nrate = \"1 Mbit/s\"\n\
                    delay = \"50 ms\"\nqueue = \"300 ms\"\n";

fn media(controller: &str, more: &str) -> String {
    format!(
        "{LINK}[[flow]]\nname = \"media\"\npath = [\"way\"]\npacket_size = \"1200 B\"\nreport_interval = \"200 ms\"\n\
         controller = {{ {controller}, max_rate = \"1.5 Mbit/s\" }}\nsource = {{ kind = \"encoder\" }}\n{more}\n"
    )
}

fn explained(text: &str) -> String {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).explain()
}

fn run(text: &str) -> Run {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    simulate_many(&scenario, (1, 1), None, |run| run, &|_| {}).expect("it can be simulated").remove(0)
}

/// A video of at most 1.5 Mbit/s on a path of 1 Mbit/s. The bounds allow for these properties: Google's law reacts
/// to a growing delay, NADA keeps about 15 ms of queue, and `SCReAM` leaves a fifth of the capacity unused.
#[test]
fn laws_by_packet_use_a_path_and_leave_its_queue_nearly_empty() {
    for (controller, feedback) in [
        ("name = \"gcc\"", ""),
        ("name = \"gcc\"", "feedback = { format = \"rfc8888\", interval = \"100 ms\" }"),
        ("name = \"nada\"", "feedback = { interval = \"100 ms\" }"),
        ("name = \"nada\"", "feedback = { format = \"rfc8888\" }"),
        ("name = \"scream\"", ""),
        ("name = \"scream\"", "feedback = { interval = \"20 ms\", format = \"rfc8888\" }"),
    ] {
        let run = run(&media(controller, feedback));
        let flow = &run.flows[0];
        let (rate, delay) = (flow.delivered_rate_bps.expect("media came"), flow.settled_delay_s.expect("media came"));
        assert!((0.7e6..1.0e6).contains(&rate), "{controller} {feedback}: {rate}");
        assert!(delay < 0.1, "{controller} {feedback}: {delay}");
        assert!(flow.ignored.is_empty() && flow.circuit_broken.is_empty(), "{controller}: {:?}", flow.ignored);
    }
}

/// Returns the rates in Mbit/s of two flows of our own control law on a path of 12 Mbit/s. The second flow starts 10 s
/// after the first.
fn shares(keys: [&str; 2]) -> [f64; 2] {
    let flow = |number: usize, keys: &str| {
        format!(
            "[[flow]]\nname = \"F{number}\"\npath = [\"way\"]\npacket_size = \"1200 B\"\nreport_interval = \"100 ms\"\n\
             start = \"{} s\"\ncontroller = {{ name = \"equipoise\", max_rate = \"20 Mbit/s\"{keys} }}\n\
             source = {{ kind = \"encoder\", max_rate = \"20 Mbit/s\" }}\n",
            number * 10
        )
    };
    let link = LINK.replace("rate = \"1 Mbit/s\"", "rate = \"12 Mbit/s\"").replace("\"20 s\"", "\"30 s\"");
    let run = run(&format!("{link}{}{}", flow(0, keys[0]), flow(1, keys[1])));
    [0, 1].map(|flow: usize| run.flows[flow].delivered_rate_bps.expect("media came") / 1e6)
}

/// If this test fails, a flow that starts later does not reach its share, the shares ignore the priorities, or the
/// flows leave capacity unused.
#[test]
fn flows_of_our_own_law_have_rates_in_the_ratio_of_their_priorities() {
    for (keys, wanted) in [(["", ""], 1.0), ([", priority = 2", ""], 2.0), (["", ", priority = 2"], 0.5)] {
        let [first, second] = shares(keys);
        assert!((0.8..1.25).contains(&(first / second / wanted)), "{keys:?}: {first} and {second} Mbit/s");
        assert!(first + second > 11.0, "{keys:?}: {first} and {second} Mbit/s");
    }
}

/// If this test fails, a comparison runs a control law with a kind of feedback that it was not designed for.
#[test]
fn feedback_by_packet_is_there_where_it_is_needed_or_asked_for() {
    let told = |text: &str| {
        let explained = explained(text);
        explained.lines().find_map(|line| line.trim().strip_prefix("feedback by packet every ").map(str::to_owned))
    };
    assert_eq!(told(&media("name = \"ap\", target = \"90 ms\"", "")), None);
    let asked = "feedback = { interval = \"20 ms\" }";
    let transport = "transport-wide numbers";
    assert_eq!(told(&media("name = \"ap\", target = \"90 ms\"", asked)), Some(format!("20 ms: {transport}")));
    assert_eq!(told(&media("name = \"gcc\"", "")), Some(format!("50 ms: {transport}")));
    assert_eq!(told(&media("name = \"scream\"", "ecn = \"ect1\"")), Some("50 ms: RFC 8888".to_owned()));
    let both = "ecn = \"ect1\"\nfeedback = { format = \"twcc\" }";
    assert_eq!(told(&media("name = \"scream\"", both)), Some(format!("50 ms: {transport}")));
}

#[test]
fn what_is_wrong_with_feedback_is_said_at_its_line() {
    for (more, words) in [
        ("feedback = { interval = \"2 ms\" }", &["interval", "\"2 ms\"", "must be 5 ms to 500 ms"][..]),
        ("feedback = { interval = \"1 s\" }", &["must be 5 ms to 500 ms"]),
        ("feedback = { interval = 50 }", &["interval"]),
        ("feedback = { format = \"rfc8889\" }", &["format", "rfc8888", "twcc"]),
        ("feedback = { formt = \"twcc\" }", &["formt"]),
        ("feedback = {}\nmedia_back = {}", &["without `media_back`"]),
    ] {
        let refused = refusal(&media("name = \"ap\", target = \"90 ms\"", more));
        for word in words {
            assert!(refused.contains(word), "{more}: {word} is missing from {refused}");
        }
    }
    let background = "[[flow]]\nname = \"others\"\npath = [\"way\"]\npacket_size = \"1000 B\"\nfeedback = {}\n\
                      source = { kind = \"poisson\", rate = \"1 Mbit/s\" }\n";
    assert!(refusal(&format!("{LINK}{background}")).contains("only a flow with a `controller`"));
    let both_ways = refusal(&media("name = \"gcc\"", "media_back = {}"));
    assert!(both_ways.contains("without `media_back`"), "{both_ways}");
}
