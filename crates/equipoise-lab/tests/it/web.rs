//! Tests of web traffic: valid and invalid settings, and the traffic that crosses the link.

use equipoise_lab::report;
use equipoise_lab::result::{FlowResult, Report, Run, WebResult};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::simulate_many;

use crate::scenario::refusal;

/// Returns a scenario whose only flow is web traffic with the settings `web`. The path has a propagation delay of 50 ms
/// in each direction.
fn over(rate: &str, duration: &str, web: &str) -> String {
    format!(
        "name = \"web\"\nduration = \"{duration}\"\nwarm_up = \"10 s\"\nsample_interval = \"1 s\"\n[[link]]\nname = \"way\"\n\
         rate = \"{rate}\"\ndelay = \"50 ms\"\nqueue = \"300 ms\"\n[[flow]]\nname = \"web\"\npath = [\"way\"]\n\
         packet_size = \"1500 B\"\nwindow = {{ name = \"cubic\" }}\nweb = {web}\n"
    )
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str) -> Run {
    simulate_many(&parse(text), (1, 1), Some(1), |run| run, &|_| {}).expect("it can be simulated").remove(0)
}

fn web(flow: &FlowResult) -> WebResult {
    flow.tcp.as_ref().and_then(|tcp| tcp.web).expect("web traffic")
}

/// Returns the goodput of a flow, in Mbit/s.
fn goodput(flow: &FlowResult) -> f64 {
    flow.tcp.as_ref().and_then(|tcp| tcp.goodput_bps).expect("something came") / 1e6
}

/// Checks both readings of RFC 8868, Sec. 5.1: a burst of a flow is one connection, or 30 connections that start
/// together. A connection fetches 40 kB on average. A burst takes about 0.3 s, and then the flow is idle for 10 s on
/// average. Therefore ten flows have a load of 0.31 Mbit/s with one connection per burst, and about 30 times this load
/// with 30 connections.
#[test]
fn ten_flows_offer_the_load_of_both_readings_on_a_path_that_is_wide_enough() {
    for (connections, duration, load, on) in
        [(1, "10000 s", 0.30..0.32, 0.02..0.06), (30, "1000 s", 8.6..9.6, 0.025..0.08)]
    {
        let run = run(&over("1 Gbit/s", duration, &format!("{{ connections = {connections} }}")));
        let (flow, found) = (&run.flows[0], web(&run.flows[0]));
        assert!(load.contains(&goodput(flow)), "{connections}: {} Mbit/s", goodput(flow));
        assert!(on.contains(&found.on_share.expect("it lasted")), "{connections}: {found:?}");
        // The initial window is 10 segments. These segments cause five acknowledgements, and each acknowledgement lets
        // three more segments leave. Therefore a fetch of up to 25 segments takes 2.5 round trips of 100 ms, including
        // the handshake. A fetch of 26 to 35 segments takes 3.5 round trips.
        let (p50, p95) = (found.time.p50_s.expect("times"), found.time.p95_s.expect("times"));
        assert!((0.34..0.36).contains(&p50) && (p50..0.36).contains(&p95), "{found:?}");
        let (short, of_25) = ((0.35 - found.time.mean_s.expect("times")) / 0.1, (25.0 * 1460.0 - 30e3) / 20e3);
        assert!((short - of_25).abs() < 0.05, "{short} and {of_25}");
        assert!(found.fetches_begun - found.fetches <= 10 * connections, "{found:?}");
        let mean = flow.tcp.as_ref().map_or(0, |tcp| tcp.delivered_bytes) as f64 / found.fetches as f64;
        assert!((mean / 40e3 - 1.0).abs() < 0.02, "{connections}: {mean} bytes a fetch");
    }
}

#[test]
fn without_keys_it_is_that_of_the_rfcs_and_sizes_of_one_kind_come_to_the_byte() {
    let explicit = "{ flows = 10, on = 2, connections = 1, size = [\"30 kB\", \"50 kB\"], idle = \"10 s\" }";
    let [usual, same] = ["{}", explicit].map(|web| run(&over("2 Mbit/s", "60 s", web)).flows);
    assert_eq!(usual, same);
    let found = run(&over("2 Mbit/s", "200 s", "{ flows = 1, on = 1, size = [\"7 kB\", \"7 kB\"] }"));
    let tcp = found.flows[0].tcp.as_ref().expect("connections");
    let fetched = 7000 * tcp.web.expect("web").fetches;
    assert!(fetched > 70_000 && (fetched..fetched + 7000).contains(&tcp.delivered_bytes), "{tcp:?}");
    // The single flow in the run above starts ON. A flow that starts OFF sends nothing before the end of its idle time.
    assert_eq!(run(&over("2 Mbit/s", "20 s", "{ flows = 1, on = 0, idle = \"1 h\" }")).flows[0].packets_sent, 0);
}

/// If this test fails, media and web traffic in the same direction do not share a queue, or media starve web traffic.
#[test]
fn media_beside_web_traffic_wait_in_one_queue_with_it_and_both_come_through() {
    let media = |direction| {
        format!(
            "[[flow]]\nname = \"media\"\npath = [\"way\"]\ndirection = \"{direction}\"\npacket_size = \"1000 B\"\n\
             report_interval = \"500 ms\"\ncontroller = {{ name = \"cbr\", rate = \"1.5 Mbit/s\" }}\n"
        )
    };
    let text = |web| over("2 Mbit/s", "300 s", &format!("{{}}\ndirection = \"{web}\""));
    let tail = |run: &Run| run.flows[1].delay.p95_s.expect("delays");
    let with = |web, of_media| run(&(text(web) + &media(of_media)));
    let [together, apart, back] = [with("forward", "forward"), with("back", "forward"), with("back", "back")];
    assert!(tail(&together) > tail(&apart) + 0.03, "{} and {}", tail(&together), tail(&apart));
    // The network is symmetric, so the results are the same if all directions are exchanged.
    assert_eq!(together.flows[0].tcp, back.flows[0].tcp);
    let [alone, beside] = [&apart, &together].map(|run| web(&run.flows[0]));
    assert!(beside.time.p95_s > alone.time.p95_s, "{beside:?} and {alone:?}");
    assert!(beside.fetches > 200 && goodput(&together.flows[0]) > 0.25, "{beside:?}");
}

/// If this test fails, results of web traffic are missing in the report page, or their keys in the JSON have changed.
#[test]
fn what_was_fetched_stands_in_the_page_and_in_json() {
    let scenario = parse(&over("2 Mbit/s", "60 s", "{}"));
    let runs = simulate_many(&scenario, (1, 2), Some(1), |run| run, &|_| {}).expect("it can be simulated");
    let results = Report::new(&scenario, 1, runs);
    let page = report::html(&results);
    for words in ["fetches complete, half of them in", "time of a fetch: median (s)", "time ON (%)"] {
        assert!(page.contains(words), "{words} is missing");
    }
    let json: serde_json::Value = serde_json::from_str(&results.to_json()).expect("JSON");
    let web = &json["runs"][0]["flows"][0]["tcp"]["web"];
    assert!(web["fetches"].as_u64() > Some(30) && web["time"]["p95_s"].as_f64() > Some(0.2), "{web}");
    assert!(web["fetches_begun"].is_u64() && web["on_share"].is_f64(), "{web}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads() {
    let scenario = parse(&over("2 Mbit/s", "60 s", "{ connections = 5 }"));
    let runs = |threads| {
        let keep = |run| serde_json::to_string(&run).expect("plain numbers");
        simulate_many(&scenario, (1, 4), Some(threads), keep, &|_| {}).expect("it can be simulated")
    };
    let one = runs(1);
    assert_eq!(one, runs(3));
    assert_ne!(one[0], one[1], "another seed is other traffic");
}

#[test]
fn it_is_told_in_words_and_set_from_the_command_line() {
    let text = over("2 Mbit/s", "60 s", "{}");
    let explained = parse(&text).explain();
    for words in ["10 on/off flows, 2 of them ON at first, one connection a burst", "30000 B to 50000 B", "0.32 Mbit/s"]
    {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
    let overrides = ["flow.web.web.connections=30", "flow.web.web.size.1=60 kB", "flow.web.web.idle=5 s"];
    let overrides = overrides.map(|given| given.parse::<Override>().expect("a key and a value"));
    let text = text.replace("{}", "{ size = [\"30 kB\", \"50 kB\"] }");
    let explained = Scenario::parse_with(&text, &overrides).expect("right").explain();
    for words in ["30 connections a burst", "30000 B to 60000 B", "idle between bursts for 5 s"] {
        assert!(explained.contains(words), "{words} is missing from {explained}");
    }
    let wrong = Scenario::parse_with(&text, &["flow.web.web.connection=30".parse().expect("a key and a value")]);
    let wrong = wrong.expect_err("no such key").to_string();
    assert!(wrong.contains("connections"), "{wrong}");
}

#[test]
fn what_no_web_traffic_can_be_is_refused_by_its_key_with_what_would_be_right() {
    for (web, words) in [
        ("{ flows = 0 }", &["line 15", "flows", "1 or more"][..]),
        ("{ on = 11 }", &["line 15", "on", "11", "at most all 10 flows"]),
        ("{ connections = 0 }", &["connections", "1 or more"]),
        ("{ flows = 100, connections = 30 }", &["connections", "more than 1000 connections"]),
        ("{ flows = 2000 }", &["connections", "2000", "more than 1000 connections"]),
        ("{ size = [\"50 kB\", \"30 kB\"] }", &["size", "smaller size stands first"]),
        ("{ size = [\"50 kB\"] }", &["size", "smallest and the largest", "[\"30 kB\", \"50 kB\"]"]),
        ("{ size = [\"0 B\", \"1 kB\"] }", &["size", "1 B to"]),
        ("{ size = [30, 50] }", &["size", "unit"]),
        ("{ idle = \"0 s\" }", &["idle", "above zero"]),
        ("{ idle = \"-1 s\" }", &["idle", "above zero"]),
        ("{ idel = \"1 s\" }", &["idel", "idle"]),
        ("{}\ntcp = { transfer = \"1 MB\" }", &["transfer", "for each fetch"]),
        ("{}\ntcp = { rate = \"1 Mbit/s\" }", &["rate", "for each fetch"]),
        ("{}\ntcp = { handshake = \"off\" }", &["handshake", "for each fetch"]),
        ("{}\nbandwidth = { kind = \"inline\" }", &["inline", "for each fetch"]),
        (
            "{}\nsource = { kind = \"constant\", rate = \"1 Mbit/s\", length = \"1 s\" }",
            &["constant", "for each fetch"],
        ),
        ("{}\nreport_interval = \"1 s\"\npair = { adu = \"5120 B\" }", &["5120 B", "for each fetch"]),
    ] {
        let refused = refusal(&over("2 Mbit/s", "60 s", web));
        for words in words {
            assert!(refused.contains(words), "{web}: {words} is missing from {refused}");
        }
    }
    let no_tcp = over("2 Mbit/s", "60 s", "{}").replace(
        "window = { name = \"cubic\" }",
        "report_interval = \"1 s\"\ncontroller = { name = \"cbr\", rate = \"1 Mbit/s\" }",
    );
    assert!(refusal(&no_tcp).contains("only a TCP connection"), "{}", refusal(&no_tcp));
}
