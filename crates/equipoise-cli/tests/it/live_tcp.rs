//! Tests `equipoise live` with TCP flows: connections of the kernel and a media session share one emulated bottleneck.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::machine::Machine;
use crate::support::{Folder, NAMESPACES, run, said, skip};

/// Writes a scenario with one link of 20 Mbit/s, which has a delay of 10 ms and a queue of 50 packets. A session of
/// 3 Mbit/s and the flows in `flows` use the link.
fn scenario(folder: &Folder, duration: &str, flows: &[&str]) -> String {
    let mut text = format!(
        "name = \"live-tcp\"\nduration = \"{duration}\"\nwarm_up = \"2 s\"\nsample_interval = \"100 ms\"\n\
         [[link]]\nname = \"bottleneck\"\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"50 packets\"\n\
         [[flow]]\nname = \"media\"\npath = [\"bottleneck\"]\npacket_size = \"1000 B\"\nreport_interval = \"500 ms\"\n\
         controller = {{ name = \"cbr\", rate = \"3 Mbit/s\" }}\n"
    );
    for (number, flow) in flows.iter().enumerate() {
        text += &format!("[[flow]]\nname = \"tcp {number}\"\npath = [\"bottleneck\"]\n{flow}\n");
    }
    let file = folder.file("live.toml");
    fs::write(&file, text).expect("writable");
    file
}

/// Runs a scenario live between namespaces, and returns the results. If namespaces cannot be created, prints the reason
/// and returns `None`.
fn across_namespaces(folder: &Folder, file: &str, more: &[&str]) -> Option<Value> {
    let _machine = Machine::shared();
    let json = folder.file("live.json");
    let output = run(&[&["live", file, "--namespaces", "--quiet", "--json", &json], more].concat());
    if said(&output).contains("needs root and iproute2") {
        skip(NAMESPACES);
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    Some(serde_json::from_slice(&fs::read(json).expect("written")).expect("JSON"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The only live run of this file that is not ignored. A TCP connection and a session share the link for a warm-up of
/// one second and two measured seconds.
#[test]
fn a_connection_of_the_kernel_takes_what_a_session_leaves_of_the_link() {
    let folder = Folder::new();
    let file = scenario(&folder, "3 s", &["packet_size = \"1500 B\"\nkernel = \"reno\""]);
    let text = fs::read_to_string(&file).expect("written").replace("warm_up = \"2 s\"", "warm_up = \"1 s\"");
    fs::write(&file, text).expect("writable");
    let Some(results) = across_namespaces(&folder, &file, &[]) else { return };
    let [media, connection] = [0, 1].map(|flow: usize| &results["runs"][0]["flows"][flow]);
    let media = number(&media["mean_rate_bps"]);
    // The session sends 3 Mbit/s, but some of its packets are dropped when TCP has filled the queue.
    assert!((2.5e6..3.3e6).contains(&media), "{results}");
    let tcp = &connection["tcp"];
    // Of the 1500 bytes of a packet, 1448 are data. If the queue of 50 packets drains within the two measured seconds,
    // these packets add to the received data.
    let most = (20e6 - media) * 1448.0 / 1500.0 + 50.0 * 1500.0 * 8.0 / 2.0;
    assert!((0.5 * most..most).contains(&number(&tcp["goodput_bps"])), "{results}");
    // The round-trip time of the path is 20 ms. The queue adds at most 30 ms.
    assert!((0.020..0.050).contains(&number(&tcp["min_round_trip_s"])), "{results}");
}

/// Two connections, with packets of 1500 and of 1000 bytes, share the link with the session. The delay of a full queue
/// of 50 packets is about 25 ms.
#[test]
#[ignore = "real time: 11 s"]
fn reno_and_cubic_share_a_bottleneck_with_a_session_and_lie_over_their_simulation() {
    let folder = Folder::new();
    let reno = "packet_size = \"1500 B\"\nstart = \"500 ms\"\nwindow = { name = \"reno\" }";
    let cubic = "packet_size = \"1000 B\"\nstart = \"1 s\"\nwindow = { name = \"reno\" }\nkernel = \"cubic\"";
    let file = scenario(&folder, "10 s", &[reno, cubic]);
    let html = folder.file("live.html");
    let Some(results) = across_namespaces(&folder, &file, &["--overlay", "--report", &html]) else { return };
    let (simulated, live) = (&results["runs"][0], &results["runs"][1]);
    assert_eq!((&simulated["world"], &live["world"]), (&"sim".into(), &"live".into()));
    let names = |run: &Value| [1, 2].map(|flow: usize| run["flows"][flow]["controller"].clone());
    assert_eq!(
        (names(simulated), names(live)),
        (["reno", "reno"].map(Value::from), ["reno", "cubic"].map(Value::from))
    );
    for run in [simulated, live] {
        let mut sum = 0.0;
        for flow in [1, 2] {
            let tcp = &run["flows"][flow]["tcp"];
            let goodput = number(&tcp["goodput_bps"]);
            assert!(goodput > 1e6, "{goodput}: {run}");
            sum += goodput;
            // The round-trip time of the path is 20 ms. The queue adds at most 30 ms.
            assert!((0.020..0.050).contains(&number(&tcp["min_round_trip_s"])), "{run}");
            let samples = tcp["samples"].as_array().expect("a list");
            assert!((85..=96).contains(&samples.len()), "{}", samples.len());
            assert!(samples[20..].iter().all(|sample| number(&sample["window_segments"]) >= 1.0), "{run}");
            // Reno and Cubic fill the queue until it drops packets, so both must retransmit.
            assert!(number(&tcp["retransmissions"]) > 0.0 && (tcp["timeouts"].is_u64() || run == live), "{run}");
        }
        // The session uses 3 of the link's 20 Mbit/s. The other 17 Mbit/s are for TCP, including headers.
        assert!((10e6..16.6e6).contains(&sum), "{sum}: {run}");
        let media = &run["flows"][0];
        assert!((2.7e6..3.3e6).contains(&number(&media["mean_rate_bps"])), "{run}");
        assert!((0.010..0.060).contains(&number(&media["delay"]["mean_s"])), "{run}");
        let link = &run["links"][0];
        assert!(number(&link["utilisation"]) > 0.6 && number(&link["packets_dropped"]) > 0.0, "{run}");
        let samples = link["samples"].as_array().expect("a list");
        assert!(samples.iter().any(|sample| number(&sample["queue_packets"]) > 10.0), "{run}");
    }
    assert_eq!(live["emulator"]["packets_foreign"], 0, "{live}");
    let page = fs::read_to_string(html).expect("written");
    assert!(page.contains("live: congestion window") && page.contains("simulated: congestion window"));
}

/// A media session uses 0.1 of the link's 20 Mbit/s. Of the 1500 bytes of a TCP packet, 1448 are data. The goodput of
/// TCP is therefore at most 19.21 Mbit/s. A higher goodput shows that packets bypass the link. A far lower goodput
/// shows that something other than the link limits TCP.
#[test]
#[ignore = "real time: 7 s"]
fn alone_it_has_the_whole_link_but_for_its_headers_and_no_more() {
    let folder = Folder::new();
    let file = scenario(&folder, "6 s", &["packet_size = \"1500 B\"\nkernel = \"reno\""]);
    let text = fs::read_to_string(&file).expect("written");
    // The queue can contain several bandwidth-delay products, and the session uses only 0.1 Mbit/s.
    let text = text.replace("50 packets", "300 packets").replace("rate = \"3 Mbit/s\"", "rate = \"100 kbit/s\"");
    fs::write(&file, text).expect("writable");
    let Some(results) = across_namespaces(&folder, &file, &[]) else { return };
    let goodput = number(&results["runs"][0]["flows"][1]["tcp"]["goodput_bps"]);
    let most = (20e6 - 0.1e6) * 1448.0 / 1500.0;
    assert!((0.7 * most..1.02 * most).contains(&goodput), "{goodput} of {most}: {results}");
}

#[test]
#[ignore = "real time: 9 s"]
fn a_transfer_ends_a_rate_is_kept_and_a_stop_is_heard() {
    let folder = Folder::new();
    let transfer = "packet_size = \"1500 B\"\nkernel = \"reno\"\ntcp = { transfer = \"1 MB\" }";
    let rate = "packet_size = \"700 B\"\nkernel = \"reno\"\ntcp = { rate = \"2 Mbit/s\" }";
    let stopped = "packet_size = \"1500 B\"\nkernel = \"reno\"\nstart = \"4 s\"\nstop = \"5 s\"";
    let file = scenario(&folder, "8 s", &[transfer, rate, stopped]);
    let Some(results) = across_namespaces(&folder, &file, &[]) else { return };
    let [transfer, rate, stopped] = [1, 2, 3].map(|flow: usize| &results["runs"][0]["flows"][flow]["tcp"]);
    // 8 Mbit take 0.5 s at the 15 Mbit/s that the other flows leave, plus some round trips of slow start.
    assert!((0.5..4.0).contains(&number(&transfer["finished_s"])), "{transfer}");
    assert_eq!(transfer["delivered_bytes"], 1_000_000);
    assert!((1.7e6..2.1e6).contains(&number(&rate["goodput_bps"])) && rate["finished_s"].is_null(), "{rate}");
    let samples = stopped["samples"].as_array().expect("a list");
    let at = |sample: &Value| number(&sample["at_s"]);
    let came = |from: f64, to: f64| {
        let within = samples.iter().filter(|sample| at(sample) > from && at(sample) < to);
        within.map(|sample| number(&sample["goodput_bps"])).fold(0.0, f64::max)
    };
    assert!(samples.iter().all(|sample| at(sample) > 3.9), "{stopped}");
    // Data that the kernel had accepted before the stop at 5 s is still sent afterwards, so the check begins at 6.5 s.
    assert!(came(4.0, 5.0) > 3e6 && came(6.5, 8.0) < 1.0, "{stopped}");
}

fn refused(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    for words in words {
        assert!(said(output).contains(words), "{words} is missing from {}", said(output));
    }
}

#[test]
fn what_one_world_cannot_do_is_said_before_anything_runs() {
    let folder = Folder::new();
    let kernel_only = "packet_size = \"1500 B\"\nkernel = \"bbr\"";
    let file = scenario(&folder, "60 s", &[kernel_only]);
    let explained = run(&["check", &file]);
    refused(&explained, 0, &["under the kernel's `bbr`, live only"]);
    let words = ["flow tcp 0", "`kernel = \"bbr\"` alone", "`equipoise live`", "window = { name = \"reno\" }"];
    refused(&run(&["sim", &file]), 1, &words);
    refused(&run(&["live", &file, "--namespaces", "--overlay"]), 1, &words);
    refused(&run(&["live", &file]), 4, &["flow tcp 0", "--namespaces, as root", "hint: network namespaces need root"]);
    for (flow, words) in [
        ("packet_size = \"1500 B\"\nkernel = \"a b\"", "1 to 15 characters"),
        ("packet_size = \"1500 B\"\nkernel = \"sixteen-letters-\"", "1 to 15 characters"),
        (
            "packet_size = \"1500 B\"\nsource = { kind = \"poisson\", rate = \"1 Mbit/s\" }\nkernel = \"bbr\"",
            "a `window` or a `kernel` has to send is constant or video",
        ),
        (
            "packet_size = \"1500 B\"\nsource = { kind = \"poisson\", rate = \"1 Mbit/s\" }\nstop = \"1 s\"",
            "`window` or `kernel`",
        ),
    ] {
        refused(&run(&["check", &scenario(&folder, "60 s", &[flow])]), 3, &[words]);
    }
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_named_with_those_it_has() {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let file = scenario(&folder, "60 s", &["packet_size = \"1500 B\"\nkernel = \"equipoise-no\""]);
    let output = run(&["live", &file, "--namespaces"]);
    if said(&output).contains("needs root and iproute2") {
        skip(NAMESPACES);
        return;
    }
    refused(&output, 4, &["\"equipoise-no\"", "there are ", "reno", "modprobe tcp_"]);
}

/// The scenario has one connection in each direction, and a session whose reports wait in the queue behind packets of
/// the reverse connection.
#[test]
#[ignore = "real time: 7 s"]
fn a_connection_that_goes_back_has_the_other_direction_of_the_link() {
    let folder = Folder::new();
    let flow = "packet_size = \"1500 B\"\nkernel = \"reno\"";
    let file = scenario(&folder, "6 s", &[flow, &format!("direction = \"back\"\n{flow}")]);
    let Some(results) = across_namespaces(&folder, &file, &[]) else { return };
    let run = &results["runs"][0];
    let [forward, back] = [1, 2].map(|flow: usize| number(&run["flows"][flow]["tcp"]["goodput_bps"]));
    // In the forward direction, the session leaves 17 of the 20 Mbit/s to the first connection. In the backward
    // direction, only acknowledgements and reports share the 20 Mbit/s with the second connection.
    assert!((5e6..17e6).contains(&forward) && (8e6..19.5e6).contains(&back), "{results}");
    let link = &run["links"][1];
    assert_eq!(link["name"], "bottleneck (back)");
    assert!(number(&link["mean_queue_packets"]) > 1.0 && number(&link["utilisation"]) > 0.5, "{results}");
    assert_eq!(run["emulator"]["packets_foreign"], 0, "{results}");
}

/// Tests web traffic in both directions over connections of the kernel. The simulation uses the same seed, so its
/// fetches have the same sizes and idle times.
#[test]
#[ignore = "real time: 21 s"]
fn web_traffic_fetches_the_same_live_as_simulated() {
    let folder = Folder::new();
    let flow = "packet_size = \"1500 B\"\nwindow = { name = \"cubic\" }\n\
                web = { flows = 5, on = 2, connections = 4, idle = \"1 s\" }";
    let file = scenario(&folder, "20 s", &[flow, &format!("direction = \"back\"\n{flow}")]);
    let Some(results) = across_namespaces(&folder, &file, &["--overlay"]) else { return };
    let (simulated, live) = (&results["runs"][0], &results["runs"][1]);
    for flow in [1, 2] {
        let [simulated, live] = [simulated, live].map(|run| &run["flows"][flow]["tcp"]);
        let count = |tcp: &Value, what: &str| number(&tcp["web"][what]);
        // There are 5 web flows. Each flow begins a burst of 4 fetches every 1.2 s on average. So there are about 330
        // fetches in 20 s.
        assert!((150.0..600.0).contains(&count(simulated, "fetches")), "{simulated}");
        let ratio = count(live, "fetches") / count(simulated, "fetches");
        assert!((0.6..1.4).contains(&ratio), "{ratio}: {results}");
        assert!(count(live, "fetches_begun") - count(live, "fetches") <= 20.0, "{results}");
        let time = |tcp: &Value| number(&tcp["web"]["time"]["p50_s"]);
        // A fetch takes a handshake and slow start from 10 segments, with a round-trip time of 20 ms plus the time in
        // queues.
        assert!((0.03..0.5).contains(&time(live)) && (0.03..0.5).contains(&time(simulated)), "{results}");
        assert!((0.01..0.8).contains(&count(live, "on_share")), "{results}");
        let bytes = number(&live["delivered_bytes"]) / count(live, "fetches");
        assert!((35e3..47e3).contains(&bytes), "{bytes}: {results}");
        assert!((0.020..0.060).contains(&number(&live["min_round_trip_s"])), "{results}");
    }
    assert_eq!(live["emulator"]["packets_foreign"], 0, "{results}");
}
