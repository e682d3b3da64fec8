//! Compares round-trip times that `equipoise capture rtt` and tshark find in the same captures: in published captures,
//! and in a capture of the kernel's TCP.

use std::collections::BTreeMap;
use std::env;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Capture, Folder, installed, port_of, run, said, skip};

/// For each pair of sender and receiver of data: the times, in seconds, from a data segment to its acknowledgement, and
/// whether any data was retransmitted.
type Times = BTreeMap<(String, String), (Vec<f64>, bool)>;

fn tshark(capture: &str) -> Times {
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", capture, "-Y", "tcp", "-T", "fields", "-E", "separator=,"]);
    for field in ["frame.number", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.len"] {
        tshark.args(["-e", field]);
    }
    for field in ["tcp.analysis.acks_frame", "tcp.analysis.ack_rtt", "tcp.analysis.retransmission"] {
        tshark.args(["-e", field]);
    }
    let output = tshark.stderr(Stdio::null()).output().expect("tshark was there a moment ago");
    assert!(output.status.success(), "tshark cannot read {capture}");
    let lines: Vec<Vec<String>> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect();
    let carries: BTreeMap<&str, bool> = lines.iter().map(|line| (line[0].as_str(), line[5] != "0")).collect();
    let mut times = Times::new();
    for line in &lines {
        let (from, to) = (format!("{}:{}", line[1], line[2]), format!("{}:{}", line[3], line[4]));
        if !line[8].is_empty() {
            times.entry((from.clone(), to.clone())).or_default().1 = true;
        }
        // Only segments with data give a round-trip time. The acknowledgement of a SYN or FIN without data is ignored.
        if carries.get(line[6].as_str()) == Some(&true)
            && let Ok(rtt) = line[7].parse()
        {
            times.entry((to, from)).or_default().0.push(rtt);
        }
    }
    times
}

fn analysis(capture: &str) -> Value {
    let output = run(&["capture", "rtt", capture, "--acks", "every", "--json", "-", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said(&output)).expect("JSON")
}

/// Compares the results of tshark and of `equipoise capture` for a capture: number, minimum, maximum and mean of the
/// samples. Returns the number of compared samples. Samples of a direction with retransmissions do not count.
fn compare(capture: &str) -> u64 {
    let mut theirs = tshark(capture);
    let ours = analysis(capture);
    let mut compared = 0;
    for direction in
        ours["connections"].as_array().expect("a list").iter().filter_map(|c| c["directions"].as_array()).flatten()
    {
        let ends = |key: &str| direction[key].as_str().expect("an address").to_owned();
        let (times, repeated) = theirs.remove(&(ends("from"), ends("to"))).unwrap_or_default();
        let Some(samples) = direction["rtt"]["samples"].as_u64() else { continue };
        let number = |key: &str| direction["rtt"][key].as_f64().expect("a number");
        let (least, largest) =
            times.iter().fold((f64::INFINITY, 0f64), |(low, high), time| (low.min(*time), high.max(*time)));
        // tshark measures round-trip times of retransmitted segments, but `equipoise capture` does not. Therefore, if
        // there were retransmissions, the samples of tshark are only bounds for the samples of `equipoise capture`.
        // tshark's times are rounded to nanoseconds.
        if repeated {
            assert!(
                samples <= times.len() as u64 && number("min_s") >= least - 1e-9 && number("max_s") <= largest + 1e-9
            );
            continue;
        }
        let context = format!("{capture} {}: {} of {}", ends("from"), samples, times.len());
        // The two programs treat merged segments and keep-alives differently, so the numbers of samples may differ
        // slightly.
        assert!((times.len() as u64).abs_diff(samples) <= 2 + samples / 100, "{context}");
        assert!((number("min_s") - least).abs() < 2e-9 && (number("max_s") - largest).abs() < 2e-9, "{context}");
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((number("mean_s") / mean - 1.0).abs() < 2e-3, "{context}: mean {} and {mean}", number("mean_s"));
        compared += samples;
    }
    compared
}

/// The fast test of published captures. It uses only captures below 0.5 MB.
#[test]
fn small_captures_of_others_give_what_tshark_finds_in_them() {
    let Some(folder) = captures() else { return };
    let (files, compared) = compare_all(&folder, |name| !name.starts_with("l4s") && !name.starts_with("spindump"));
    assert!(files >= 4 && compared > 300, "{compared} samples in {files} captures");
    let receiver = analysis(folder.join("zeek-ftp-receiver-side.pcap.gz").to_str().expect("a plain name"));
    let sides =
        receiver["connections"].as_array().expect("a list").iter().filter_map(|c| c["directions"].as_array()).flatten();
    let bulk = sides.max_by_key(|direction| direction["data_bytes"].as_u64()).expect("a transfer");
    assert_eq!(bulk["side"], "receiver", "the receiver's own delay is not the path's");
}

#[test]
#[ignore = "long analysis: 20 s of processor time"]
fn captures_of_others_give_what_tshark_finds_in_them() {
    let _machine = Machine::shared();
    let Some(folder) = captures() else { return };
    let (files, compared) = compare_all(&folder, |_| true);
    assert!(files >= 8 && compared > 90_000, "{compared} samples in {files} captures");
}

/// Returns the folder of published captures. If the captures or tshark are missing, prints the reason and returns
/// `None`.
fn captures() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = env::var_os("EQUIPOISE_TEST_DATA").map_or(default, PathBuf::from).join("rtt/tcp");
    if !folder.is_dir() {
        skip("test data (EQUIPOISE_TEST_DATA): captures of others, rtt/tcp");
        return None;
    }
    installed("tshark").then_some(folder)
}

/// Compares our analysis with tshark's for all captures whose names are wanted. Returns the number of these captures
/// and the number of compared samples.
fn compare_all(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> (u64, u64) {
    let paths = folder.read_dir().expect("a folder").map(|entry| entry.expect("readable").path());
    let wanted = paths.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_wanted));
    let compared = wanted.map(|path| compare(path.to_str().expect("a plain name")));
    compared.fold((0, 0), |(files, samples), compared| (files + 1, samples + compared))
}

/// Commands that set up a router of 20 Mbit/s. To avoid losses, its queue holds 2 MB, which is 0.8 s of traffic. The
/// capture is made at the sender, before the packets reach the queue.
const ROUTER: [&str; 9] = [
    // Without this command, the capture would contain merged segments, and tshark would treat each as one segment.
    "ip -n NEAR link set dev eth0 gso_max_segs 1",
    "ip -n NEAR addr add 10.9.0.1/24 dev eth0",
    "ip -n MIDDLE addr add 10.9.0.254/24 dev near",
    "ip -n MIDDLE addr add 10.9.1.254/24 dev far",
    "ip -n FAR addr add 10.9.1.2/24 dev eth0",
    "ip -n NEAR route add default via 10.9.0.254",
    "ip -n FAR route add default via 10.9.1.254",
    "ip netns exec MIDDLE sysctl -qw net.ipv4.ip_forward=1",
    "tc -n MIDDLE qdisc add dev far root tbf rate 20mbit burst 16kb limit 2mb",
];

const END: &str = "rtt::one_end_of_a_transfer";
const ROLE: &str = "EQUIPOISE_TRANSFER";
const BYTES: usize = 6_000_000;

/// Helper process, which does nothing in a normal test run. In a namespace it is one end of a TCP transfer.
#[test]
fn one_end_of_a_transfer() {
    match env::var(ROLE).as_deref() {
        Ok("receive") => {
            let (mut stream, _) = TcpListener::bind("10.9.1.2:7000").expect("a free port").accept().expect("a sender");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("all of it");
            assert_eq!(received.len(), BYTES);
        }
        Ok("send") => {
            let mut stream = TcpStream::connect("10.9.1.2:7000").expect("the receiver listens");
            stream.write_all(&vec![7; BYTES]).expect("all of it");
        }
        _ => {}
    }
}

/// If this test fails, the round-trip times that are measured for the kernel's TCP through a queue differ from those of
/// tshark.
#[test]
#[ignore = "real time: 6 s"]
fn the_kernels_own_transfer_gives_its_queue_and_what_tshark_finds() {
    if !installed("tcpdump") || !installed("tshark") {
        return;
    }
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &ROUTER) else { return };
    let folder = Folder::new();
    let capture = folder.file("transfer.pcap");
    let mut tcpdump = Places::command(&places.near, "tcpdump");
    tcpdump.args(["-i", "eth0", "-s", "128", "-U", "-B", "16384", "--immediate-mode", "-w", &capture, "tcp"]);
    let tcpdump = Capture::start(&mut tcpdump, &capture);
    let mut receiver = Places::end(&places.far, END, (ROLE, "receive"));
    port_of(receiver.id(), "tcp");
    Places::end(&places.near, END, (ROLE, "send")).finish();
    receiver.finish();
    tcpdump.stop();

    let found = analysis(&capture);
    let all =
        found["connections"].as_array().expect("a list").iter().filter_map(|c| c["directions"].as_array()).flatten();
    let direction = all.max_by_key(|direction| direction["data_bytes"].as_u64()).expect("a transfer");
    // The capture was made at the sender. The analysis derives this from the round-trip times to the two hosts in the
    // handshake. On a link without delay, these times may be too similar. Then the result is that the side is unknown.
    assert_ne!(direction["side"], "receiver");
    assert!(direction["from"].as_str().is_some_and(|from| from.starts_with("10.9.0.1:")), "{direction}");
    let bytes = direction["data_bytes"].as_u64().expect("a count");
    assert!(bytes >= BYTES as u64 && bytes < 2 * BYTES as u64, "{bytes} of {BYTES}");
    let number = |key: &str| direction["rtt"][key].as_f64().expect("a number");
    // The segments wait in the queue that the transfer itself fills. Their delay is at most the length of the queue,
    // 0.8 s, plus stalls of the machine.
    assert!((0.001..1.5).contains(&number("p50_s")), "median {}", number("p50_s"));
    assert!(number("min_s") < number("p50_s") && number("min_s") > 0.0);
    assert!(direction["rtt"]["samples"].as_u64().is_some_and(|samples| samples > 200), "{direction}");
    let times = tshark(&capture);
    let ends = |key: &str| direction[key].as_str().expect("an address").to_owned();
    let (theirs, _) = &times[&(ends("from"), ends("to"))];
    let mut sorted = theirs.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    // tshark also measures retransmitted segments, so the medians are compared only without retransmissions.
    if direction["retransmitted"] == 0 {
        assert!((number("p50_s") / median - 1.0).abs() < 0.05, "median {}, by tshark {median}", number("p50_s"));
    }
}
