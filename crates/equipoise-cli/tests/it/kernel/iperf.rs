//! Tests the kernel's congestion control `symbiosis` with iperf3: many connections, losses, reloading of the BPF
//! program during transfers, and oscillation.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{ADDRESSES, goes, load, status};
use crate::link::start;
use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Running, installed, port_of, run, said};

/// Starts `equipoise link` between the two ends, with 20 Mbit/s, a delay of 20 ms in each direction, and the options in
/// `more`.
fn link(places: &Places, more: &[&str]) -> Running {
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--between", "near", "far", "--rate", "20M", "--delay", "20ms", "--queue", "1000 packets"]);
    command.args(more);
    start(command).0
}

/// The iperf3 server and the iperf3 client of one transfer.
struct Transfer {
    server: Running,
    client: Child,
}

impl Transfer {
    fn start(places: &Places, port: &str, arguments: &[&str]) -> Self {
        let mut server = Places::command(&places.far, "iperf3");
        let server = Running::start(server.args(["--server", "--port", port]));
        assert_eq!(port_of(server.id(), "tcp").to_string(), port);
        let client = Places::command(&places.near, "iperf3")
            .args(["--client", "10.9.3.2", "--port", port, "--congestion", "symbiosis", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("iperf3 is there");
        Self { server, client }
    }

    /// Waits until the transfer has ended, and returns the final results of iperf3.
    fn end(self) -> Value {
        let output = self.client.wait_with_output().expect("a child of ours");
        assert!(output.status.success(), "{}", said(&output));
        drop(self.server);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// Returns the rate at which the iperf3 server received data, in bit/s.
fn received_bps(told: &Value) -> f64 {
    assert_eq!(told["end"]["sender_tcp_congestion"], "symbiosis", "{told}");
    told["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate")
}

/// If this test fails, connections are interrupted when the BPF program is unloaded and loaded again.
#[test]
#[ignore = "real time: 17 s, alone on the machine"]
fn many_connections_over_a_lossy_path_go_on_while_it_is_unloaded_and_loaded_again() {
    if !installed("iperf3") {
        return;
    }
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let mut link = link(&places, &["--loss", "2%"]);
    let many = Transfer::start(&places, "7001", &["--parallel", "32", "--time", "14"]);
    sleep(Duration::from_secs(5));
    child.kill();
    goes();
    let mut child = load(&machine).expect("it was loaded a moment ago");
    let new = Transfer::start(&places, "7002", &["--time", "4"]);
    let (many, new) = (many.end(), new.end());
    assert_eq!(child.interrupt(), Some(0));
    assert_eq!(link.interrupt(), Some(0));
    let (many, new) = (received_bps(&many), received_bps(&new));
    // With a loss of 2 %, one connection reaches about 2 Mbit/s, so 32 connections can fill the link of 20 Mbit/s.
    assert!(many > 8e6, "32 connections: {many} bit/s");
    assert!(new > 0.1e6, "one over the reloaded program: {new} bit/s");
}

/// Takes 40 samples, at least 50 ms apart. A sample is the largest of the congestion windows of all connections.
/// Returns the standard deviation of the samples divided by their mean.
fn unrest() -> f64 {
    let windows: Vec<f64> = (0..40)
        .filter_map(|_| {
            sleep(Duration::from_millis(50));
            let told = status();
            let largest =
                |list: &Vec<Value>| list.iter().filter_map(|c| c["window_segments"].as_f64()).fold(0.0, f64::max);
            told["connections"].as_array().map(largest).filter(|window| *window > 0.0)
        })
        .collect();
    let count = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / count;
    (windows.iter().map(|window| (window - mean).powi(2)).sum::<f64>() / count).sqrt() / mean
}

/// Tests self-induced oscillation (Kodama 2009, Eq. 18). With a strength m of 1, in the unit 1/√s, the window varies by
/// tens of per cent within a second.
#[test]
#[ignore = "real time: 18 s, alone on the machine"]
fn a_window_that_oscillates_wanders_and_the_connection_still_gets_its_link() {
    if !installed("iperf3") {
        return;
    }
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let mut link = link(&places, &[]);
    let transfer = Transfer::start(&places, "7001", &["--time", "16"]);
    sleep(Duration::from_secs(7));
    let still = unrest();
    let set = run(&["kernel", "set", "--oscillation", "1"]);
    assert!(set.status.success(), "{}", said(&set));
    let wandering = unrest();
    let received = received_bps(&transfer.end());
    assert_eq!(child.interrupt(), Some(0));
    assert_eq!(link.interrupt(), Some(0));
    assert!(wandering > 0.15 && wandering > 1.5 * still, "window: {still} without, {wandering} with oscillation");
    assert!(received > 8e6, "{received} bit/s");
}
