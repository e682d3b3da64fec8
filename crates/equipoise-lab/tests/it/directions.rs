//! Tests of flows in opposite directions. Each kind of flow runs in either direction. Feedback and acknowledgements
//! wait in the same queue as the data that is sent in their direction.

use equipoise::units::Span;
use equipoise_lab::Event;
use equipoise_lab::result::{FlowResult, Run};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::{RunObserver, simulate_each_observed, simulate_many};

use crate::scenario::refusal;

/// A link of 4 Mbit/s with a propagation delay of 20 ms in each direction.
const LINK: &str = "name = \"directions\"\nduration = \"60 s\"\nwarm_up = \"10 s\"\n[[link]]\nname = \"way\"\nrate = \"4 Mbit/s\"\n\
                    delay = \"20 ms\"\nqueue = \"60 packets\"\n";

const MEDIA: &str = "report_interval = \"500 ms\"\ncontroller = { name = \"ap\", target = \"40 ms\" }";
const TCP: &str = "window = { name = \"cubic\" }";
const PAIR: &str = "report_interval = \"500 ms\"\nwindow = { name = \"reno\" }\npair = { adu = \"5120 B\" }";

fn flow(name: &str, direction: &str, what: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\npath = [\"way\"]\ndirection = \"{direction}\"\npacket_size = \"1000 B\"\n{what}\n"
    )
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the received rate of a flow, in Mbit/s.
fn brought(flow: &FlowResult) -> f64 {
    let pair = flow.pair.as_ref().and_then(|pair| pair.received_bps);
    let tcp = flow.tcp.as_ref().and_then(|tcp| tcp.goodput_bps);
    pair.or(tcp).or(flow.delivered_rate_bps).expect("something came") / 1e6
}

/// If this test fails, the simulated network behaves differently in its two directions.
#[test]
fn in_a_symmetric_network_flows_of_one_kind_fare_alike_in_both_directions() {
    for what in [MEDIA, TCP, PAIR] {
        let others = "source = { kind = \"poisson\", rate = \"1 Mbit/s\" }";
        let both = |name: &str, what: &str| {
            ["forward", "back"].map(|direction| flow(&format!("{name} {direction}"), direction, what)).concat()
        };
        let scenario = parse(&format!("{LINK}{}{}", both("own", what), both("others", others)));
        let keep = |run: Run| [brought(&run.flows[0]), brought(&run.flows[1])];
        let runs = simulate_many(&scenario, (1, 8), None, keep, &|_| {}).expect("it can be simulated");
        let mean = |place: usize| runs.iter().map(|run| run[place]).sum::<f64>() / runs.len() as f64;
        let [forward, back] = [mean(0), mean(1)];
        assert!((0.7..4.0).contains(&forward) && (forward / back - 1.0).abs() < 0.05, "{what}: {forward} and {back}");
    }
}

/// The round-trip times that the reports of flow number 0 measured, in ms.
#[derive(Default)]
struct RoundTrips(Vec<f64>);

impl RunObserver for RoundTrips {
    fn on_event(&mut self, _: Span, flow: usize, event: &Event) {
        if let (0, Event::ReportApplied { round_trip, .. }) = (flow, event) {
            self.0.push(round_trip.as_secs_f64() * 1e3);
        }
    }
}

/// Returns the result of the run, and the median round-trip time of the reports of flow number 0 in ms.
fn with_reports(text: &str) -> (Run, f64) {
    let keep = |run, RoundTrips(mut trips)| {
        trips.sort_by(f64::total_cmp);
        (run, trips[trips.len() / 2])
    };
    let runs = simulate_each_observed(&[(parse(text), 1)], Some(1), RoundTrips::default, keep);
    runs.expect("it can be simulated").remove(0)
}

/// If this test fails, data in the reverse direction does not fill the queue that the media's reports pass, or fills
/// the queue of the media.
#[test]
fn a_connection_that_goes_back_delays_the_reports_of_media_and_not_the_media() {
    let media =
        flow("media", "forward", "report_interval = \"500 ms\"\ncontroller = { name = \"cbr\", rate = \"1 Mbit/s\" }");
    let (alone, idle_ms) = with_reports(&format!("{LINK}{media}"));
    let (run, busy_ms) = with_reports(&format!("{LINK}{media}{}", flow("tcp", "back", TCP)));
    let [forward, back] = &run.links[..] else { panic!("{:?}", run.links) };
    assert_eq!((forward.name.as_str(), back.name.as_str()), ("way", "way (back)"));
    let queue = back.mean_queue_packets.expect("a queue");
    assert!(queue > 15.0 && forward.mean_queue_packets < Some(1.0), "{:?}", run.links);
    // The idle round-trip time is twice the propagation delay plus the transmission of two packets. With TCP, a report
    // also waits for the queued packets. Their mean number is `queue`, and each takes 2 ms.
    assert!((40.0..46.0).contains(&idle_ms), "{idle_ms} ms");
    let waits_ms = busy_ms - idle_ms;
    assert!((0.6 * queue * 2.0..1.4 * queue * 2.0).contains(&waits_ms), "{waits_ms} ms behind {queue} packets");
    let delay = |run: &Run| run.flows[0].delay.p50_s.expect("delays") * 1e3;
    assert!((delay(&run) - delay(&alone)).abs() < 2.0, "{} and {} ms", delay(&run), delay(&alone));
    // The TCP connection's segments share the reverse direction with the reports, and its acknowledgements share the
    // forward direction with the media.
    assert!(back.utilisation > Some(0.9) && brought(&run.flows[1]) > 3.3, "{run:?}");
}

/// RFC 8867, Sec. 5.3: one media flow in each direction. The reports of each flow wait behind the media of the other
/// flow. If the reverse direction has a rate of 1 Gbit/s, the reports do not wait.
#[test]
fn media_in_both_directions_meet_each_others_reports() {
    let media = |name, direction| {
        flow(name, direction, "report_interval = \"100 ms\"\ncontroller = { name = \"cbr\", rate = \"4.2 Mbit/s\" }")
    };
    let text = format!("{LINK}{}{}", media("there", "forward"), media("here", "back"));
    let (run, limited_ms) = with_reports(&text);
    let free = text.replace("queue = \"60 packets\"\n", "queue = \"60 packets\"\nback = { rate = \"1 Gbit/s\" }\n");
    let (_, free_ms) = with_reports(&free);
    // A full queue delays a packet by 120 ms. Requests for reports wait in the forward queue in both runs. The reports
    // themselves wait only if the reverse direction is also limited to 4 Mbit/s.
    assert!(limited_ms > free_ms + 60.0, "{limited_ms} and {free_ms} ms");
    assert!(run.links.iter().all(|link| link.packets_forwarded > 28_000), "{:?}", run.links);
}

#[test]
fn what_cannot_go_back_is_refused_by_its_key() {
    let text = format!("{LINK}[[link]]\nname = \"more\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n");
    let playout = flow("media", "back", MEDIA).replace("[\"way\"]", "[\"way\", \"more\"]\nplayout = \"more\"");
    let refused = refusal(&format!("{text}{playout}"));
    for words in ["direction", "one `path`", "`playout`"] {
        assert!(refused.contains(words), "{words} is missing from {refused}");
    }
    let refused = refusal(&format!("{LINK}{}", flow("tcp", "backwards", TCP)));
    assert!(refused.contains("direction") && refused.contains("forward or back"), "{refused}");
}
