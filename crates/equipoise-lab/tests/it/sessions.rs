//! Tests of every controller in every kind of session and together with TCP: whether the controller runs or is refused,
//! and what rate TCP receives.

use equipoise::control::{Entry, entries};
use equipoise_lab::result::{FlowResult, Run};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim;

/// A link of 8 Mbit/s with a propagation delay of 20 ms in each direction.
const LINK: &str = r#"name = "sessions"
duration = "60 s"
warm_up = "20 s"
seed = 1

[[link]]
name = "shared"
rate = "8 Mbit/s"
delay = "20 ms"
queue = "100 ms"
"#;

/// A second link, of 2 Mbit/s, and two paths, one over each link.
const PATHS: &str = r#"
[[link]]
name = "other"
rate = "2 Mbit/s"
delay = "30 ms"
queue = "100 ms"

[[path]]
name = "a"
links = ["shared"]

[[path]]
name = "b"
links = ["other"]
"#;

const TCP: &str = r#"
[[flow]]
name = "tcp"
path = ["shared"]
packet_size = "1500 B"
window = { name = "cubic" }
"#;

/// Returns a session with the controller `entry`. `what` describes the kind of session.
fn session(entry: &Entry, what: &str) -> String {
    let given = [
        ("target", "\"60 ms\""),
        ("rate", "\"1 Mbit/s\""),
        ("min_rate", "\"100 kbit/s\""),
        ("max_rate", "\"20 Mbit/s\""),
        ("increase", "\"100 kbit/s\""),
        ("gain", "0.5"),
        ("occupancy", "5"),
    ];
    let known = |name: &str| entry.parameters.iter().any(|parameter| parameter.name == name);
    let given = given.iter().filter(|(name, _)| known(name));
    let parameters: String = given.map(|(name, value)| format!(", {name} = {value}")).collect();
    let name = entry.name;
    format!(
        "\n[[flow]]\nname = \"media\"\npacket_size = \"1000 B\"\nreport_interval = \"500 ms\"\n\
         controller = {{ name = \"{name}\"{parameters} }}\n{what}\n"
    )
}

const ONE_PATH: &str = "path = [\"shared\"]";
const PLAYOUT: &str = "path = [\"shared\", \"other\"]\nplayout = \"other\"";
const TWO_PATHS: &str = "paths = [\"a\", \"b\"]\nperiod = \"1 s\"\nscheduler = { name = \"ap\" }";

fn simulate(text: &str) -> Result<Run, String> {
    let scenario = Scenario::parse(text).map_err(|error| error.to_string())?;
    Ok(sim::simulate(&scenario, 1, &mut |_| {}).expect("it runs"))
}

/// If this test fails, a controller without the feedback that it needs is accepted, and sends at its initial or its
/// maximum rate forever.
#[test]
fn every_controller_runs_in_every_kind_of_session_or_is_refused_by_what_it_lacks() {
    for entry in entries() {
        let lacks = match entry.name {
            "lda" | "ldaf" => [None, None, Some("packet pairs")],
            "tq" => [Some("the receiver's playout buffer"), None, Some("the receiver's playout buffer")],
            _ => [None; 3],
        };
        for (what, lacks) in [ONE_PATH, PLAYOUT, TWO_PATHS].into_iter().zip(lacks) {
            let text = format!("{LINK}{PATHS}{}", session(entry, what)).replace("60 s", "15 s").replace("20 s", "5 s");
            match (simulate(&text), lacks) {
                (Ok(run), None) => assert!(run.flows[0].packets_received > 100, "{} by {what}", entry.name),
                (Err(refusal), Some(lacks)) => {
                    assert!(refusal.contains("needs") && refusal.contains(lacks), "{refusal}");
                }
                (found, _) => panic!("{} by {what}: {found:?}", entry.name),
            }
        }
    }
}

/// Returns the longest time, in seconds, in which every interval had an excess of packets, and the mean sending rate
/// after the warm-up, in Mbit/s. An interval has an excess if the number of packets sent is more than 10 plus twice the
/// number of these packets that arrived.
fn harm(flow: &FlowResult) -> (f64, f64) {
    let (mut longest, mut present) = (0.0_f64, 0.0);
    for interval in &flow.intervals {
        let is_over = interval.packets > 2 * (interval.packets - interval.packets_lost) + 10;
        present = if is_over { present + interval.end_s - interval.start_s } else { 0.0 };
        longest = longest.max(present);
    }
    (longest, flow.mean_rate_bps.unwrap_or(0.0) / 1e6)
}

/// If this test fails, a controller whose target delay is below the delay of a full queue does not yield to TCP, or a
/// controller that reacts to losses gets no share of the capacity.
#[test]
fn beside_tcp_every_adaptive_controller_leaves_tcp_its_part_and_those_that_go_by_losses_have_one() {
    for (entry, what) in entries().iter().flat_map(|entry| [ONE_PATH, TWO_PATHS].map(|what| (entry, what))) {
        // A controller without its required feedback is refused. The test above checks this refusal.
        let Ok(run) = simulate(&format!("{LINK}{PATHS}{}{TCP}", session(entry, what))) else { continue };
        let (excess, rate) = harm(&run.flows[0]);
        let tcp = run.flows[1].tcp.as_ref().and_then(|tcp| tcp.goodput_bps).expect("it has one") / 1e6;
        let name = entry.name;
        // After losses, NADA counts long queueing delays as shorter (RFC 8698, Sec. 4.2). Therefore NADA does not yield
        // to TCP, and takes about half of the capacity.
        let least = if name == "nada" { 3.0 } else { 4.0 };
        assert!(tcp > least, "{name}: {tcp} Mbit/s are left to TCP");
        assert!(excess <= 2.0, "{name}: for {excess} s");
        if ["lda", "ldaf", "rap", "tfrc"].contains(&name) {
            assert!(rate > 0.3, "{name}: {rate} Mbit/s");
        }
    }
}

#[test]
fn beside_tcp_a_flow_pair_has_its_part_and_leaves_it_the_other() {
    let pair = r#"
[[flow]]
name = "media"
path = ["shared"]
packet_size = "1000 B"
report_interval = "500 ms"
window = { name = "reno" }
pair = { adu = "5120 B" }
"#;
    let run = simulate(&format!("{LINK}{pair}{TCP}")).expect("right");
    let (excess, _) = harm(&run.flows[0]);
    let pair = run.flows[0].pair.as_ref().and_then(|pair| pair.received_bps).expect("it has one") / 1e6;
    let tcp = run.flows[1].tcp.as_ref().and_then(|tcp| tcp.goodput_bps).expect("it has one") / 1e6;
    assert!(pair > 1.0 && tcp > 2.0 && excess <= 2.0, "{pair} and {tcp} Mbit/s, {excess} s");
}
