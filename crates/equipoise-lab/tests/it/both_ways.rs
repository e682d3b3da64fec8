//! Tests of media in both directions of one session. Each direction must behave as in a separate session.

use equipoise::units::Span;
use equipoise_lab::Event;
use equipoise_lab::result::Run;
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::{RunObserver, simulate_each_observed, simulate_many};

use crate::scenario::refusal;

/// The queue of the link is so long that no control law in these tests fills it. Therefore no packet is lost.
const LINK: &str = "name = \"both ways\"\nduration = \"60 s\"\nwarm_up = \"10 s\"\n[[link]]\nname = \"way\"\nrate = \"4 Mbit/s\"\n\
                    delay = \"20 ms\"\nqueue = \"600 packets\"\n";
const OTHERS: &str = "[[flow]]\nname = \"others\"\npath = [\"way\"]\npacket_size = \"1000 B\"\n\
                      source = { kind = \"poisson\", rate = \"1 Mbit/s\" }\n\
                      [[flow]]\nname = \"others back\"\npath = [\"way\"]\ndirection = \"back\"\npacket_size = \"1000 B\"\n\
                      source = { kind = \"poisson\", rate = \"1 Mbit/s\" }\n";

fn media(name: &str, more: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\npath = [\"way\"]\npacket_size = \"1000 B\"\nreport_interval = \"500 ms\"\n\
         controller = {{ name = \"ap\", target = \"40 ms\" }}\n{more}\n"
    )
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the mean rate (Mbit/s) and delay (ms) of the first two flows over 24 runs.
fn means(text: &str) -> [[f64; 2]; 2] {
    let scenario = parse(&format!("{LINK}{text}{OTHERS}"));
    let keep = |run: Run| {
        [0, 1].map(|flow| {
            let flow = &run.flows[flow];
            let delay = flow.settled_delay_s.expect("media came") * 1e3;
            [flow.delivered_rate_bps.expect("media came") / 1e6, delay]
        })
    };
    let runs = simulate_many(&scenario, (1, 24), None, keep, &|_| {}).expect("it can be simulated");
    [0, 1].map(|flow| [0, 1].map(|what| runs.iter().map(|run| run[flow][what]).sum::<f64>() / runs.len() as f64))
}

/// If this test fails, a session with media in both directions has other rates or delays than two sessions with one
/// direction each. The rate of a single run has a standard deviation of 6 %, so means over 24 runs are compared.
#[test]
fn both_directions_fare_as_two_sessions_one_way_do() {
    let one_way = means(&(media("media", "") + &media("media back", "direction = \"back\"")));
    let both = means(&media("media", "media_back = {}"));
    for (flow, (one_way, both)) in one_way.into_iter().zip(both).enumerate() {
        let [[rate, delay], [joint_rate, joint_delay]] = [one_way, both];
        assert!((1.0..3.0).contains(&rate), "{rate} Mbit/s");
        assert!((joint_rate / rate - 1.0).abs() < 0.05, "flow {flow}: {joint_rate} and {rate} Mbit/s");
        assert!((joint_delay / delay - 1.0).abs() < 0.05, "flow {flow}: {joint_delay} and {delay} ms");
    }
}

#[test]
fn each_direction_has_its_own_controller_and_results() {
    let back = "media_back = { controller = { name = \"cbr\", rate = \"500 kbit/s\" }, report_interval = \"1 s\", \
                packet_size = \"500 B\", start = \"5 s\", pause = [{ at = \"20 s\", until = \"30 s\" }] }";
    let scenario = parse(&format!("{LINK}{}", media("media", back)));
    let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["media", "media (back)"]);
    assert!(scenario.explain().contains("in the session of the flow before it"), "{}", scenario.explain());
    let runs = simulate_many(&scenario, (3, 1), None, |run| run, &|_| {}).expect("it can be simulated");
    let [there, back] = &runs[0].flows[..] else { panic!("two flows") };
    assert_eq!([there.controller.as_deref(), back.controller.as_deref()], [Some("ap"), Some("cbr")]);
    // The reverse media are sent from 5 to 20 s and from 30 to 60 s, at 125 packets/s.
    assert!((5620..=5630).contains(&back.packets_sent), "{}", back.packets_sent);
    assert_eq!((there.packets_sent, back.packets_sent), (there.packets_received, back.packets_received));
    assert!(there.delivered_rate_bps.expect("media came") > 3e6, "the whole link except for reports");
    assert_eq!([there.reports_missing, back.reports_missing], [0, 0]);
    assert!(there.ignored.is_empty() && back.ignored.is_empty());
}

/// Numbers of reports that were requested, sent and applied, for each of the two flows.
#[derive(Default)]
struct Asked([[u64; 3]; 2]);

impl RunObserver for Asked {
    fn on_event(&mut self, _: Span, flow: usize, event: &Event) {
        let what = match event {
            Event::ReportRequested { .. } => 0,
            Event::ReportSent { .. } => 1,
            Event::ReportApplied { .. } => 2,
            _ => return,
        };
        self.0[flow][what] += 1;
    }
}

#[test]
fn requests_and_answers_count_for_the_direction_that_they_are_about() {
    let scenario = parse(&format!("{LINK}{}", media("media", "media_back = { report_interval = \"2 s\" }")));
    let runs = simulate_each_observed(&[(scenario, 1)], Some(1), Asked::default, |_, Asked(asked)| asked);
    let [there, back] = runs.expect("it can be simulated")[0];
    // Only the answer to the last request may be missing, because that request is sent near the end of the run.
    assert!((119..=120).contains(&there[0]) && (29..=30).contains(&back[0]), "{there:?} {back:?}");
    for [requested, sent, applied] in [there, back] {
        assert!(requested - sent <= 1 && sent - applied <= 1, "{requested}, {sent}, {applied}");
    }
}

#[test]
fn what_cannot_have_media_back_is_refused_by_its_key() {
    let others = OTHERS.replace("1 Mbit/s\" }\n[[flow]]", "1 Mbit/s\" }\nmedia_back = {}\n[[flow]]");
    let own_way = media("media", "back = [\"way\"]\nmedia_back = {}");
    for text in [others, own_way] {
        let refused = refusal(&format!("{LINK}{text}"));
        for words in ["media_back", "`controller`", "one `path`"] {
            assert!(refused.contains(words), "{words} is missing from {refused}");
        }
    }
    let taken = media("media", "media_back = {}") + &media("media (back)", "");
    assert!(refusal(&format!("{LINK}{taken}")).contains("media (back)"));
    let unknown = refusal(&format!("{LINK}{}", media("media", "media_back = { contoller = {} }")));
    assert!(unknown.contains("contoller"), "{unknown}");
}
