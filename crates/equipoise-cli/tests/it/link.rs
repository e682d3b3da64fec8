//! Tests of `equipoise link` with traffic: UDP on the loopback interface, and any traffic between namespaces.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Capture, Folder, Running, equipoise, eventually, installed, keygen, port_of, results, run, said};

/// Timeout of reads. It is longer than any stall of the machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the command, and returns it with the line that it prints when it is ready.
pub(crate) fn start(mut command: Command) -> (Running, String) {
    let (running, line) = Running::ready(&mut command);
    assert!(line.starts_with("carrying "), "{line}");
    (running, line)
}

pub(crate) fn report_in(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).expect("written")).expect("JSON")
}

fn udp(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    socket
}

/// If this test fails, the ECN marks that the link's queue sets are missing in the results of the receiver or the
/// sender.
#[test]
fn marks_of_a_relay_come_back_to_the_sender() {
    let folder = Folder::new();
    let (report, received) = (folder.file("link.json"), folder.file("received.json"));
    let mut receiver = equipoise();
    receiver.args(["receive", "-p", "0", "-1", "--insecure", "-q", "-J", &received]);
    let mut receiver = receiver.spawn().expect("the command starts");
    let to = format!("127.0.0.1:{}", port_of(receiver.id(), "udp"));
    let mut command = equipoise();
    command.args(["link", "--listen", "127.0.0.1:0", "--to", &to, "--json", &report]);
    command.args(["--rate", "2M", "--aqm", "dualpi2"]);
    let (mut relay, line) = start(command);
    let port = line.split(' ').nth(1).and_then(|address| address.rsplit(':').next()).expect("an address");
    // The sender's rate exceeds the link's rate, so packets are queued from the start.
    let sent = ["send", "127.0.0.1", "-p", port, "--insecure", "-t", "1.5", "-b", "2.1M", "--report-interval", "200ms"];
    let sent = run(&[&sent[..], &["--ecn", "ect1", "-i", "0.5", "-J"]].concat());
    assert!(sent.status.success() && receiver.wait().expect("it ends").success(), "{}", said(&sent));
    assert_eq!(relay.interrupt(), Some(0));
    let sent = results(&String::from_utf8(sent.stdout).expect("JSON alone"));
    let shares = sent["intervals"].as_array().expect("intervals").iter().map(|interval| &interval["fraction_marked"]);
    assert!(shares.clone().any(|share| share.as_f64() > Some(0.1)), "{sent}");
    assert_eq!(sent["end"]["ecn_failed"], 0);
    let received = results(&fs::read_to_string(&received).expect("written"));
    let came = received["sessions"][0]["end"]["packets_marked"].as_u64();
    assert!(came > Some(10) && came <= report_in(&report)["forward"]["packets_marked"].as_u64(), "{received}");
}

#[test]
fn a_relay_delays_both_ways_loses_a_share_and_tells_until_it_is_interrupted() {
    let folder = Folder::new();
    let report = folder.file("link.json");
    let server = udp("127.0.0.1:0");
    let to = server.local_addr().expect("bound").to_string();
    let mut command = equipoise();
    command.args(["link", "--listen", "127.0.0.1:0", "--to", &to, "--json", &report, "--seed", "3"]);
    command.args(["--delay", "30ms", "--back-delay", "10ms", "--back-loss-burst", "100% 0%"]);
    command.args(["--rate", "8M", "--queue", "20 packets", "--duplicate", "100%", "--back-duplicate", "0%"]);
    let (mut child, line) = start(command);
    let address: SocketAddr = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("an address");
    let client = udp("127.0.0.1:0");
    let begin = Instant::now();
    client.send_to(b"first", address).expect("sent");
    let mut buffer = [0; 100];
    let (len, from) = server.recv_from(&mut buffer).expect("it comes");
    assert!(begin.elapsed() >= Duration::from_millis(30) && &buffer[..len] == b"first");
    assert_eq!(server.recv_from(&mut buffer).expect("it comes twice"), (5, from));
    // With `--back-loss-burst "100% 0%"`, the loss model forwards the first packet in the good state, and drops all
    // later packets in the bad state.
    for answer in [b"1", b"2", b"3"] {
        server.send_to(answer, from).expect("sent");
        thread::sleep(Duration::from_millis(1));
    }
    let (len, _) = client.recv_from(&mut buffer).expect("the first answer comes");
    assert!(begin.elapsed() >= Duration::from_millis(40) && &buffer[..len] == b"1");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(child.interrupt(), Some(0), "without a time, that is how it ends");
    let told = child.rest();
    assert!(told.contains("forward ") && told.contains("1 duplicated") && told.contains("late by: median"), "{told}");
    let report = report_in(&report);
    assert_eq!((&report["forward"]["packets_in"], &report["forward"]["packets_out"]), (&1.into(), &2.into()));
    assert_eq!((&report["back"]["packets_lost"], &report["back"]["packets_out"]), (&2.into(), &1.into()));
    // One datagram with 5 bytes of payload, plus 28 bytes of IPv4 and UDP headers.
    assert_eq!((&report["forward"]["bytes_in"], &report["clients"]), (&33.into(), &1.into()));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_opened() {
    let folder = Folder::new();
    let (trace, steps) = (folder.file("up.trace"), folder.file("steps.csv"));
    fs::write(&trace, "1\n2\nthree\n").expect("writable");
    fs::write(&steps, "time_s,rate_mbps\n0,15\n10,0\n").expect("writable");
    let ends = ["link", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    let refusals: &[(&[&str], i32, &str)] = &[
        (&["--rate", "15mbps"], 2, "megabytes"),
        (&["--rate", "15"], 2, "15 Mbit/s"),
        (&["--loss", "0.01"], 2, "has no unit"),
        (&["--loss", "1%", "--loss-burst", "1% 2%"], 2, "cannot be used with"),
        (&["--queue", "50 ms", "--aqm", "codel"], 2, "give packets or bytes"),
        (&["--back-delay=-1ms"], 2, "the path back cannot be built"),
        (&["--between", "a", "b"], 2, "cannot be used with"),
        (&["--rate-trace", &trace], 3, "line 3: `three`"),
        (&["--back-rate-csv", &steps], 3, "line 3: the rate ends at zero"),
        (&["--rate-csv", "/nowhere/steps.csv"], 3, "cannot be read"),
    ];
    for (arguments, code, words) in refusals {
        let output = run(&[&ends[..], arguments].concat());
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
    }
    let output = run(&["link", "--between", "lo", "lo"]);
    assert!(output.status.code() == Some(2) && said(&output).contains("two interfaces"), "{}", said(&output));
    let output = run(&["link", "--between", "equipoise-no", "lo"]);
    assert!(output.status.code() == Some(4) && said(&output).contains("there are lo"), "{}", said(&output));
}

#[test]
fn rates_come_from_files_too_and_a_time_ends_it() {
    let folder = Folder::new();
    let (trace, steps) = (folder.file("up.trace"), folder.file("steps.csv"));
    fs::write(&trace, "5\n10\n").expect("writable");
    fs::write(&steps, "time_s,rate_mbps\n0,15\n10,5\n").expect("writable");
    let output = run(&[
        "link",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "127.0.0.1:9",
        "-t",
        "50ms",
        "--json",
        "-",
        "--spin",
        "--rate-csv",
        &steps,
        "--back-rate-trace",
        &trace,
        "--jitter",
        "1ms normal",
        "--reorder",
        "1%",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert!(report["lasted_s"].as_f64().is_some_and(|lasted| lasted >= 0.05), "{report}");
    assert_eq!(report["back"]["packets_in"], 0);
    let settings = &report["settings"];
    assert_eq!((&settings["ends"]["kind"], &settings["ends"]["target"]), (&"udp".into(), &"127.0.0.1:9".into()));
    assert_eq!((&settings["seed"], &settings["spin"], &settings["time_s"]), (&1.into(), &true.into(), &0.05.into()));
    let (forward, back) = (&settings["forward"], &settings["back"]);
    let steps = json!([{ "time_s": 0.0, "rate_bps": 15_000_000 }, { "time_s": 10.0, "rate_bps": 5_000_000 }]);
    assert_eq!(forward["capacity"], json!({ "kind": "rate", "steps": steps }));
    // The trace allows two packets of 1500 bytes in 10 ms. Options that are not set for the reverse direction have the
    // values of the forward direction.
    assert_eq!(back["capacity"], json!({ "kind": "trace", "mean_rate_bps": 2_400_000, "length_s": 0.01 }));
    assert_eq!(back["jitter"], json!({ "kind": "normal", "deviation_s": 0.001 }));
    assert_eq!((&back["reorder_share"], &back["reorder_by_s"]), (&0.01.into(), &0.005.into()));
    assert_eq!((&back["queue"], &back["loss"]["kind"]), (&json!({ "packets": 1000 }), &"none".into()));
}

const ADDRESSES: [&str; 2] = ["ip -n NEAR addr add 10.9.2.1/24 dev eth0", "ip -n FAR addr add 10.9.2.2/24 dev eth0"];

pub(crate) const END: &str = "link::one_end_of_the_traffic";
pub(crate) const ROLE: &str = "EQUIPOISE_LINK";
pub(crate) const BYTES: usize = 3_000_000;
const ECHOES: u8 = 20;
/// Delay of the link in each direction.
const DELAY: Duration = Duration::from_millis(25);

/// Helper process, which does nothing in a normal test run. In a namespace, the process sends or receives the traffic
/// of the role that the environment variable `ROLE` names.
#[test]
fn one_end_of_the_traffic() {
    match env::var(ROLE).as_deref() {
        Ok("far") => far_end(),
        Ok("near") => near_end(),
        Ok("burst") => burst(),
        _ => {}
    }
}

/// Sends UDP datagrams back to their sender, then receives data over TCP, checks the data, and confirms it.
fn far_end() {
    let socket = udp("10.9.2.2:7000");
    let (mut stream, _) = TcpListener::bind("10.9.2.2:7000").expect("a free port").accept().expect("a sender");
    let mut buffer = [0; 100];
    for _ in 0..ECHOES {
        let (len, from) = socket.recv_from(&mut buffer).expect("it comes");
        socket.send_to(&buffer[..len], from).expect("sent");
    }
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("all of it");
    assert!(received.len() == BYTES && received.iter().enumerate().all(|(n, byte)| *byte == (n % 251) as u8));
    stream.write_all(b"!").expect("sent");
}

fn near_end() {
    let mut stream = TcpStream::connect("10.9.2.2:7000").expect("the far end listens");
    let socket = udp("10.9.2.1:7000");
    for number in 0..ECHOES {
        let begin = Instant::now();
        socket.send_to(&[number], "10.9.2.2:7000").expect("sent");
        assert_eq!(socket.recv(&mut [0; 100]).expect("the answer comes"), 1);
        assert!(begin.elapsed() >= 2 * DELAY, "{:?}", begin.elapsed());
    }
    let begin = Instant::now();
    let bytes: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    stream.write_all(&bytes).expect("all of it");
    stream.shutdown(std::net::Shutdown::Write).expect("open");
    assert_eq!(stream.read(&mut [0; 1]).expect("the far end is content"), 1);
    // At 20 Mbit/s, 3 MB take at least 1.2 s, even without headers.
    assert!(begin.elapsed() >= Duration::from_millis(1200), "{:?}", begin.elapsed());
}

const BURST: u8 = 200;

/// Sends IP packets of 1000 bytes: one packet, then a burst without pauses, then packets with pauses of at most 3 ms.
fn burst() {
    let socket = udp("10.9.2.1:0");
    for number in 0..BURST {
        let mut payload = [0; 972];
        payload[0] = number;
        socket.send_to(&payload, "10.9.2.2:9").expect("sent");
        match number {
            // The pause lets ARP resolve the receiver's address. Until then, the kernel queues only a limited number of
            // packets.
            0 => thread::sleep(Duration::from_millis(500)),
            _ if number > BURST / 2 => thread::sleep(Duration::from_millis(u64::from(number % 4))),
            _ => {}
        }
    }
}

/// Runs the UDP echoes and the TCP transfer between both ends. Returns whether both ends succeeded.
pub(crate) fn traffic_passes(places: &Places) -> bool {
    let mut far = Places::end(&places.far, END, (ROLE, "far"));
    // When the far end has opened its TCP port, its UDP socket is open, too.
    port_of(far.id(), "tcp");
    let near = Places::end(&places.near, END, (ROLE, "near")).wait().success();
    // If the near end failed, the far end may wait forever. The test then does not wait for the far end. Dropping `far`
    // kills the process of the far end.
    near && far.wait().success()
}

/// The fast test of a link between two network interfaces.
#[test]
fn between_two_interfaces_it_carries_udp_and_tcp_as_kernels_send_them() {
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let folder = Folder::new();
    let report = folder.file("link.json");
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--between", "near", "far", "--rate", "20M", "--delay", "25ms", "--json", &report]);
    let (mut child, _) = start(command);
    let passes = traffic_passes(&places);
    assert_eq!(child.interrupt(), Some(0));
    assert!(passes, "{}", child.rest());
    let report = report_in(&report);
    let forward = &report["forward"];
    assert!(forward["bytes_out"].as_u64().is_some_and(|bytes| bytes > BYTES as u64), "{report}");
    assert!(forward["late"]["packets"].as_u64().is_some_and(|packets| packets > 2000), "{report}");
    assert_eq!(report["sockets"]["oversize"], 0, "{report}");
    // The kernel's TCP passes segments of up to 64 kB to interfaces that support this, such as veth. The link must
    // split them.
    assert!(report["frames_taken_apart"].as_u64().is_some_and(|frames| frames > 0), "{report}");
}

/// If this test fails, the queue of the link does not set ECN marks in packets of the kernel's TCP.
#[test]
#[ignore = "real time: 10 s"]
fn queues_tell_the_kernels_tcp_of_congestion_by_marks() {
    let machine = Machine::shared();
    for aqm in ["codel", "fq_codel", "pie", "dualpi2"] {
        let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
        for place in [&places.near, &places.far] {
            let mut sysctl = Places::command(place, "sh");
            sysctl.args(["-c", "echo 1 > /proc/sys/net/ipv4/tcp_ecn"]);
            assert!(sysctl.status().expect("it starts").success());
        }
        let folder = Folder::new();
        let report = folder.file("link.json");
        let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
        command.args(["link", "--between", "near", "far", "--rate", "20M", "--delay", "25ms", "--aqm", aqm]);
        command.args(["--json", &report]);
        let (mut child, _) = start(command);
        let passes = traffic_passes(&places);
        assert_eq!(child.interrupt(), Some(0));
        let report = report_in(&report);
        assert!(passes && report["forward"]["packets_marked"].as_u64() > Some(0), "{aqm}: {report}");
        assert_eq!(report["settings"]["forward"]["discipline"]["kind"], aqm, "{report}");
    }
}

/// Returns the time, in seconds, and the number of each packet in a capture. The number is the first byte of the
/// packet's payload.
fn packets_of(capture: &str) -> Vec<(f64, u8)> {
    /// Sizes of headers in bytes: the header of the file, the header of each record, and the sum of the Ethernet, IPv4
    /// and UDP headers.
    const HEADERS: (usize, usize, usize) = (24, 16, 14 + 20 + 8);
    let bytes = fs::read(capture).expect("written");
    assert_eq!(bytes.first_chunk(), Some(&0xa1b2_3c4d_u32.to_ne_bytes()), "a pcap file in nanoseconds");
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    let (mut at, mut packets) = (HEADERS.0, Vec::new());
    while let (Some(seconds), Some(nanos), Some(length)) = (word(at), word(at + 4), word(at + 8)) {
        // The last record may be incomplete, because tcpdump may still be writing it.
        let Some(number) = bytes.get(at + HEADERS.1 + HEADERS.2) else { break };
        packets.push((f64::from(seconds) + f64::from(nanos) / 1e9, *number));
        at += HEADERS.1 + length as usize;
    }
    packets
}

/// Compares the departure times of packets with those of an ideal link. All times are from tcpdump on both interfaces
/// of the link, so the link's own statistics are not used.
#[test]
#[ignore = "real time: 4 s, alone on the machine"]
fn departures_are_those_of_the_ideal_link_in_another_s_captures() {
    if !installed("tcpdump") {
        return;
    }
    let machine = Machine::alone();
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let folder = Folder::new();
    let captures = ["near", "far"].map(|interface| (interface, folder.file(interface)));
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--between", "near", "far", "--rate", "8M", "--delay", "10ms"]);
    let (mut link, _) = start(command);
    let tcpdumps = captures.each_ref().map(|(interface, file)| {
        let mut tcpdump = Places::command(&places.middle, "tcpdump");
        tcpdump.args(["-i", interface, "--time-stamp-precision", "nano", "--immediate-mode", "-s", "128"]);
        tcpdump.args(["-U", "-w", file, "udp", "dst", "port", "9"]);
        Capture::start(&mut tcpdump, file)
    });
    Places::end(&places.near, END, (ROLE, "burst")).finish();
    let all = usize::from(BURST);
    for (_, file) in &captures {
        eventually("all packets are captured", || (packets_of(file).len() >= all).then_some(()));
    }
    tcpdumps.into_iter().for_each(Capture::stop);
    assert_eq!(link.interrupt(), Some(0));
    let [arrivals, departures] = captures.map(|(_, file)| packets_of(&file));
    assert_eq!((arrivals.len(), departures.len()), (all, all));
    let (mut free_at, mut late) = (0.0, Vec::new());
    for ((arrival, number), (departure, departed)) in arrivals.iter().zip(&departures) {
        assert_eq!(number, departed, "in order");
        // The transmission of 1000 bytes takes 1 ms at 8 Mbit/s.
        free_at = arrival.max(free_at) + 0.001;
        late.push(departure - (free_at + 0.010));
    }
    late.sort_by(f64::total_cmp);
    // Both captures use the kernel's clock. The link reads this clock some microseconds before or after tcpdump does.
    assert!(late[0] > -50e-6, "{} us early", late[0] * -1e6);
    let median = late[late.len() / 2];
    assert!(median < 2e-3, "median {} us", median * 1e6);
    println!("departures by tcpdump: median {:.0} us late, at least {:.1} us", median * 1e6, late[0] * 1e6);
}

/// Runs an encrypted session between two hosts, as in the README, over an emulated path.
#[test]
#[ignore = "real time: 4 s"]
fn an_encrypted_session_passes_through_the_link_as_the_readme_has_it() {
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let folder = Folder::new();
    let [key, stream, received, json] = ["key", "stream", "received", "sender.json"].map(|name| folder.file(name));
    keygen(&key);
    let bytes: Vec<u8> = (0..250_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&stream, &bytes).expect("written");
    let begin = |place: &str, arguments: &[&str]| {
        Running::ready(Places::command(place, env!("CARGO_BIN_EXE_equipoise")).args(arguments)).0
    };
    let path = ["--rate", "6M", "--delay", "25ms", "--queue", "400 packets", "-t", "60"];
    let _link = begin(&places.middle, &[&["link", "--between", "near", "far"][..], &path].concat());
    let mut receiver = begin(&places.far, &["receive", "--key", &key, "-1", "-o", &received]);
    let sent = ["send", "10.9.2.2", "--key", &key, "-F", &stream, "--min-rate", "2M", "--max-rate", "4M", "-J", &json];
    begin(&places.near, &sent).finish();
    receiver.finish();
    assert!(fs::read(&received).expect("received") == bytes, "the stream came out as it went in");
    let told = results(&fs::read_to_string(&json).expect("written"));
    let intervals = told["intervals"].as_array().expect("intervals");
    let round_trips: Vec<f64> = intervals.iter().filter_map(|interval| interval["round_trip_s"].as_f64()).collect();
    assert!(!round_trips.is_empty() && round_trips.iter().all(|seconds| *seconds >= 0.05), "{round_trips:?}");
    assert_eq!(told["end"]["packets_lost"], 0);
}
