//! Tests `equipoise live` with flow pairs: TCP of this machine's kernel and RTP through one emulated bottleneck.

use std::fs;

use serde_json::Value;

use crate::machine::Machine;
use crate::support::{Folder, NAMESPACES, run, said, skip};

/// Writes a scenario with a single flow pair that often changes between TCP and RTP. The TCP window fits into the
/// queue, so no packet is lost.
fn scenario(folder: &Folder, duration: &str, more: &str) -> String {
    let text = format!(
        "name = \"live-pair\"\nduration = \"{duration}\"\nwarm_up = \"2 s\"\nsample_interval = \"500 ms\"\n\
         [[link]]\nname = \"bottleneck\"\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"100 packets\"\n\
         [[flow]]\nname = \"pair\"\npath = [\"bottleneck\"]\nstart = \"300 ms\"\npacket_size = \"588 B\"\n\
         report_interval = \"200 ms\"\nwindow = {{ name = \"reno\" }}\ntcp = {{ receive_window = 20 }}\n{more}\
         [flow.pair]\nadu = \"5120 B\"\ninterval = \"400 ms\"\ntolerance = 0.2\nrunning = \"1 s\"\n"
    );
    let file = folder.file("pair.toml");
    fs::write(&file, text).expect("writable");
    file
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// If this test fails, a flow pair behaves differently in live and simulated runs, or the report lacks the pair's TCP
/// or RTP flow.
#[test]
#[ignore = "real time: 11 s"]
fn a_flow_pair_alone_has_the_link_in_both_worlds_and_one_report() {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let file = scenario(&folder, "10 s", "");
    let (json, html) = (folder.file("pair.json"), folder.file("pair.html"));
    let output = run(&["live", &file, "--namespaces", "--overlay", "--json", &json, "--report", &html]);
    if said(&output).contains("needs root and iproute2") {
        skip(NAMESPACES);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("pair: TCP of the kernel under reno"), "{}", said(&output));
    let results: Value = serde_json::from_slice(&fs::read(json).expect("written")).expect("JSON");
    let (simulated, live) = (&results["runs"][0], &results["runs"][1]);
    assert_eq!((&simulated["world"], &live["world"]), (&"sim".into(), &"live".into()));
    for run in [simulated, live] {
        let flow = &run["flows"][0];
        let pair = &flow["pair"];
        assert_eq!(flow["controller"], "tpba");
        assert!((0.75 * 4e6..1.02 * 4e6).contains(&number(&pair["received_bps"])), "{pair}");
        assert_eq!(pair["adus_missing"], 0, "{pair}");
        let periods = pair["periods"].as_array().expect("a list");
        let rtp: Vec<_> = periods.iter().filter(|period| period["transport"] == "rtp").collect();
        assert!(!rtp.is_empty(), "{pair}");
        assert!(rtp.iter().all(|period| (2.5e6..4.4e6).contains(&number(&period["rate_bps"]))), "{pair}");
        // There is one sample per 500 ms, so sample 5 covers the time from 2.5 s to 3 s. The flow starts at 0.3 s and
        // has reached a high rate before 2.5 s.
        let received = flow["received"].as_array().expect("a list");
        assert!(received.len() == 20 && number(&received[5]["rate_bps"]) > 2e6, "{flow}");
        // The delay of the RTP flow: 5 ms of propagation, 1.2 ms of transmission, and the time in a queue that contains
        // at most TCP's window.
        assert!((0.006..0.100).contains(&number(&flow["delay"]["mean_s"])), "{flow}");
        assert!(number(&flow["packets_received"]) > 500.0 && flow["tcp"].is_null(), "{flow}");
    }
    assert!(simulated["flows"][0]["pair"]["host"].is_null());
    assert_eq!(live["emulator"]["packets_foreign"], 0, "{live}");
    let host = &live["flows"][0]["pair"]["host"];
    assert_eq!(host["idle_window"], "kept over idleness");
    assert!(host["congestion_control"].as_str().is_some_and(|name| name.starts_with("reno")), "{host}");
    let page = fs::read_to_string(html).expect("written");
    for words in
        ["live: IP packets at the receiver", "simulated: IP packets at the receiver", "TCP of the kernel under"]
    {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn without_namespaces_or_its_congestion_control_a_flow_pair_is_refused() {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let output = run(&["live", &scenario(&folder, "60 s", "")]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("flow pair has TCP of the kernel"), "{}", said(&output));
    let output = run(&["live", &scenario(&folder, "60 s", "kernel = \"equipoise-no\"\n"), "--namespaces"]);
    if said(&output).contains("needs root and iproute2") {
        skip(NAMESPACES);
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("\"equipoise-no\""), "{}", said(&output));
}
