//! Tests sessions between two hosts as in the README: transfers of streams, RTP from another program, and what a third
//! party on the path can read.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::Machine;
use crate::middle::{Hosts, Kind, Middle, Passing};
use crate::places::Places;
use crate::support::{Capture, Folder, Running, equipoise, eventually, installed, keygen, port_of, results, said};

const KEY: &str = "d2hhdCBvbmx5IHRoZXNlIHR3byBob3N0cyBrbm93Cg==";

/// Starts a receiver on a free port. The receiver ends after one session. Returns the process and the port.
fn receiver(arguments: &[&str]) -> (Child, String) {
    let mut command = equipoise();
    command.args(["receive", "-p", "0", "-1"]).args(arguments).env("EQUIPOISE_KEY", KEY);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let port = port_of(child.id(), "udp").to_string();
    (child, port)
}

#[test]
fn a_stream_on_standard_input_comes_out_of_the_other_ends_standard_output() {
    let (mut receiver, port) = receiver(&["--insecure", "-o", "-", "-q"]);
    let mut sender = equipoise()
        .args(["send", "127.0.0.1", "-p", &port, "--insecure", "-F", "-", "-b", "30M", "-q"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let stream: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    sender.stdin.take().expect("piped").write_all(&stream).expect("taken");
    let mut received = Vec::new();
    receiver.stdout.take().expect("piped").read_to_end(&mut received).expect("read");
    assert!(sender.wait().expect("it ends").success() && receiver.wait().expect("it ends").success());
    assert!(received == stream, "{} bytes of {}", received.len(), stream.len());
}

#[test]
fn the_key_may_come_from_the_environment_and_results_go_to_standard_output() {
    let (receiving, port) = receiver(&["-i", "0.2", "-J"]);
    let sent = equipoise()
        .args(["send", "127.0.0.1", "-p", &port, "-t", "0.6", "-b", "1M", "-l", "500", "-i", "0.2", "-J"])
        .env("EQUIPOISE_KEY", KEY)
        .output()
        .expect("the command starts");
    let received = receiving.wait_with_output().expect("it ends");
    let [sent, received]: [Value; 2] =
        [sent.stdout, received.stdout].map(|text| results(&String::from_utf8(text).expect("JSON alone")));
    for told in [&sent, &received] {
        let closed = told["intervals"].as_array().expect("intervals");
        assert!(closed.iter().all(|interval| interval["end_s"].is_number()) && !closed.is_empty(), "{told}");
    }
    assert_eq!(received["intervals"][0]["session"], 0);
    let rate = sent["end"]["rate_bps"].as_f64().expect("a rate");
    // The sender must not exceed the requested 1 Mbit/s by more than 5 %. It sends less if the machine stalls.
    assert!((0.5e6..1.05e6).contains(&rate), "{rate}");
    assert_eq!(sent["start"]["encrypted"], true);
    let end = &received["sessions"][0]["end"];
    assert_eq!(end["packets_received"], sent["end"]["packets_sent"]);
    // Every IP packet has 500 bytes, the requested size.
    assert_eq!(end["bytes_received"].as_u64(), sent["end"]["packets_sent"].as_u64().map(|packets| packets * 500));
}

/// If this test fails, the memory of a receiver whose output goes to a slow program grows at the rate of the session.
#[test]
fn a_reader_that_stands_still_costs_a_receiver_a_bounded_memory_and_learns_what_it_missed() {
    let folder = Folder::new();
    let json = folder.file("received.json");
    let (mut receiver, port) = receiver(&["--insecure", "-o", "-", "-J", &json]);
    let sent =
        ["send", "127.0.0.1", "-p", &port, "--insecure", "-F", "/dev/zero", "-b", "500M", "-l", "30000", "-t", "3"];
    let sent = equipoise().args(sent).args(["-q"]).status().expect("the command starts");
    assert!(sent.success());
    let status = fs::read_to_string(format!("/proc/{}/status", receiver.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux counts it");
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    let mut errors = receiver.stderr.take().expect("piped");
    let mut received = Vec::new();
    receiver.stdout.take().expect("piped").read_to_end(&mut received).expect("read");
    assert!(receiver.wait().expect("it ends").success());
    let told = results(&fs::read_to_string(&json).expect("written"));
    let end = &told["sessions"][0]["end"];
    let dropped = end["payload_dropped"].as_u64().expect("a count");
    // 32 MiB may be queued. The program's copies of the payload need at most another 32 MiB.
    assert!(dropped > 100 && peak_kb < 80_000, "{dropped} dropped, {peak_kb} kB at most");
    assert_eq!(end["payload_bytes"].as_u64(), Some(received.len() as u64));
    let mut warning = String::new();
    errors.read_to_string(&mut warning).expect("text");
    assert!(warning.contains(&format!("the payload of {dropped} packets was dropped")), "{warning}");
}

#[test]
fn a_new_key_is_its_owners_alone_and_another_each_time() {
    let folder = Folder::new();
    let key = folder.file("key");
    keygen(&key);
    let (mode, first) = (fs::metadata(&key).expect("there").permissions().mode(), fs::read(&key).expect("readable"));
    assert_eq!((mode & 0o777, first.len()), (0o600, 45));
    let again = equipoise().args(["keygen", "--force", &key]).output().expect("the command starts");
    assert!(again.status.success() && fs::read(&key).expect("readable") != first);
    let printed = equipoise().args(["keygen", "-"]).output().expect("the command starts");
    assert_eq!(printed.stdout.len(), 45);
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    let folder = Folder::new();
    let [short, word, open, key] = ["short", "word", "open", "key"].map(|name| folder.file(name));
    keygen(&key);
    for (file, text, mode) in
        [(&short, "Z3Vlc3M=\n", 0o600), (&word, "what only these two hosts know", 0o600), (&open, KEY, 0o640)]
    {
        fs::write(file, text).expect("written");
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("its owner");
    }
    let cases: [(&[&str], i32, &str); 11] = [
        (&["send", "127.0.0.1"], 3, "--insecure"),
        (&["receive"], 3, "equipoise keygen FILE"),
        (&["receive", "--key", &short], 3, "it needs at least 16 random bytes"),
        (&["receive", "--key", &word], 3, "not in base64"),
        (&["receive", "--insecure", "-i", "0"], 2, "must be above 0 s"),
        (&["receive", "--key", &open], 3, "others have access to the key in"),
        (&["keygen", &key], 5, "--force"),
        (&["send", "nowhere.invalid", "--insecure"], 4, "cannot find nowhere.invalid"),
        (&["send", "127.0.0.1", "--insecure", "--controller", "magic"], 2, "there are ap,"),
        (&["send", "127.0.0.1", "--insecure", "--controller", "ap", "--set", "b=fast"], 2, "1/(s·Mbit/s)"),
        (&["send", "127.0.0.1", "--insecure", "-l", "40"], 4, "a packet of 40 B cannot carry"),
    ];
    for (arguments, code, remedy) in cases {
        let output = equipoise().args(arguments).env_remove("EQUIPOISE_KEY").output().expect("the command starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(remedy), "{arguments:?}: {}", said(&output));
    }
}

/// Creates both hosts, with a path between them that forwards every datagram, and a folder with a key.
fn across(machine: &Machine) -> Option<(Hosts, Middle, Folder)> {
    let hosts = Hosts::new(machine)?;
    let middle = Middle::start(&hosts, |_| vec![0]);
    let folder = Folder::new();
    keygen(&folder.file("key"));
    Some((hosts, middle, folder))
}

/// A fast test across hosts. If this test fails, a file that is sent to another host arrives changed or not at all.
#[test]
fn a_file_comes_from_host_to_host_as_it_was() {
    let machine = Machine::shared();
    let Some((hosts, middle, folder)) = across(&machine) else { return };
    let [key, file, received] = ["key", "file", "received"].map(|name| folder.file(name));
    let bytes: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&file, &bytes).expect("written");
    let (mut receiver, _) = Running::ready(&mut hosts.equipoise(1, &["receive", "--key", &key, "-1", "-o", &received]));
    let (port, address) = (middle.port(), hosts.middle(0));
    let mut sender = hosts.equipoise(0, &["send", &address, "-p", &port, "--key", &key, "-F", &file, "-b", "4M"]);
    Running::start(&mut sender).finish();
    receiver.finish();
    assert!(fs::read(&received).expect("received") == bytes, "the bytes are those that were sent");
}

/// If this test fails, `--repair` does not work, or changes the order of the payload.
#[test]
fn a_file_comes_whole_over_a_path_that_loses_if_it_is_repaired() {
    let machine = Machine::shared();
    let Some(hosts) = Hosts::new(&machine) else { return };
    let lossy = |passing: &Passing| {
        // The first and the last packets are not dropped, because the receiver detects a gap only between two received
        // packets.
        let is_lost = passing.kind == Kind::Media && passing.number % 7 == 3 && (20..130).contains(&passing.number);
        if is_lost { vec![] } else { vec![0] }
    };
    let middle = Middle::start(&hosts, lossy);
    let folder = Folder::new();
    let [key, file, received, told, sent] = ["key", "file", "received", "told", "sent"].map(|name| folder.file(name));
    keygen(&key);
    let bytes: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&file, &bytes).expect("written");
    let receive = ["receive", "--key", &key, "-1", "-o", &received, "-J", &told, "--repair", "--hold", "400 ms"];
    let (mut receiver, _) = Running::ready(&mut hosts.equipoise(1, &receive));
    let (port, address) = (middle.port(), hosts.middle(0));
    let send = ["send", &address, "-p", &port, "--key", &key, "-F", &file, "-b", "3M", "-J", &sent];
    Running::start(&mut hosts.equipoise(0, &send)).finish();
    receiver.finish();
    let [told, sent] = [told, sent].map(|file| results(&fs::read_to_string(file).expect("written")));
    let end = &told["sessions"][0]["end"];
    assert!(fs::read(&received).expect("received") == bytes, "the bytes are those that were sent: {end}");
    let [lost, repaired] = ["packets_lost", "packets_repaired"].map(|count| end[count].as_u64().expect("a count"));
    assert!(lost >= 8 && repaired == lost && end["payload_missing"] == 0, "{end}");
    assert!(sent["end"]["packets_repeated"].as_u64() >= Some(repaired), "{sent}");
}

/// If this test fails, a third party on the path can read the text that an encrypted session transfers. To be fast, the
/// test runs only a session with a key.
#[test]
fn a_stranger_on_the_way_reads_nothing_of_a_session_with_a_key() {
    what_a_stranger_reads(&["--key"]);
}

#[test]
#[ignore = "real time: 7 s"]
fn a_stranger_on_the_way_reads_nothing_of_an_encrypted_session() {
    what_a_stranger_reads(&["--key", "--insecure"]);
}

/// Captures a session of each kind. The text that the session transfers must be visible only in a session without a
/// key.
fn what_a_stranger_reads(kinds: &[&str]) {
    if !installed("tshark") {
        return;
    }
    let machine = Machine::shared();
    let Some((hosts, middle, folder)) = across(&machine) else { return };
    let [key, text, capture] = ["key", "text", "capture.pcap"].map(|name| folder.file(name));
    fs::write(&text, "a sentence that must not be read ".repeat(3000)).expect("written");
    for kind in kinds {
        let security: &[&str] = if *kind == "--key" { &["--key", &key] } else { &["--insecure"] };
        let mut tshark = hosts.command(1, "tshark");
        let tshark = Capture::start(tshark.args(["-q", "-i", "eth0", "-w", &capture]), &capture);
        let (mut receiver, _) = Running::ready(&mut hosts.equipoise(1, &[&["receive", "-1"], security].concat()));
        let (port, address) = (middle.port(), hosts.middle(0));
        let base = ["send", &address, "-p", &port, "-F", &text, "-b", "2M"];
        Running::start(&mut hosts.equipoise(0, &[&base, security].concat())).finish();
        receiver.finish();
        tshark.stop();
        let read = |filter: &str| {
            let mut tshark = Command::new("tshark");
            let tshark = tshark.args(["-r", &capture, "-Y", filter, "-T", "fields", "-e", "frame.number"]);
            let output = tshark.output().expect("started");
            String::from_utf8_lossy(&output.stdout).lines().count()
        };
        assert!(read("udp.port == 5004") > 80, "the session was captured");
        assert_eq!(read("udp contains \"must not be read\"") > 0, *kind == "--insecure", "{kind}");
    }
}

const ROLE: &str = "EQUIPOISE_UDP_ROLE";

/// Helper process, which does nothing in a normal test run. In a namespace it records datagrams and, if an address is
/// given, forwards them to this address.
#[test]
fn one_recorder_of_datagrams() {
    let Ok(role) = env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let socket = UdpSocket::bind(words[0]).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let mut file = File::create(words[1]).expect("writable");
    let mut buffer = vec![0; 65_536];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(40) {
        let Ok((length, _)) = socket.recv_from(&mut buffer) else {
            if fs::exists(stop_file(words[1])).expect("readable") {
                break;
            }
            continue;
        };
        // RTCP packets (payload types 192 to 223) are not recorded.
        if !(192..=223).contains(&buffer[1]) {
            file.write_all(&(length as u32).to_be_bytes()).expect("written");
            file.write_all(&buffer[..length]).expect("written");
        }
        if let Some(next) = words.get(2) {
            socket.send_to(&buffer[..length], next).expect("sent");
        }
    }
}

/// Returns the path of the recorder's stop file. When this file exists, the recorder ends as soon as no more datagrams
/// arrive.
fn stop_file(recording: &str) -> String {
    format!("{recording}.stop")
}

/// Starts a recorder on host number `side`, and waits until its socket is open.
fn recorder(hosts: &Hosts, side: usize, role: &str) -> Running {
    let recorder = Places::end(hosts.name(side), "hosts::one_recorder_of_datagrams", (ROLE, role));
    port_of(recorder.id(), "udp");
    recorder
}

fn datagrams(path: &str) -> Vec<Vec<u8>> {
    let mut file = BufReader::new(File::open(path).expect("recorded"));
    let (mut all, mut length) = (Vec::new(), [0; 4]);
    while file.read_exact(&mut length).is_ok() {
        let mut datagram = vec![0; u32::from_be_bytes(length) as usize];
        file.read_exact(&mut datagram).expect("whole");
        all.push(datagram);
    }
    all
}

/// The fast test of forwarding RTP packets that another program sends.
#[test]
fn two_seconds_of_ffmpegs_rtp_pass_through_byte_by_byte() {
    the_rtp_of_ffmpeg_passes("1.5", "3", 60);
}

#[test]
#[ignore = "real time: 10 s"]
fn the_rtp_of_ffmpeg_passes_through_byte_by_byte() {
    the_rtp_of_ffmpeg_passes("5", "9", 200);
}

/// Sends `seconds` of video from ffmpeg through a session of `lasts` seconds. The session must be longer than the
/// video. More than `least` packets must arrive.
fn the_rtp_of_ffmpeg_passes(seconds: &str, lasts: &str, least: usize) {
    if !installed("ffmpeg") {
        return;
    }
    let machine = Machine::shared();
    let Some((hosts, middle, folder)) = across(&machine) else { return };
    let [key, sent, played] = ["key", "sent", "played"].map(|name| folder.file(name));
    let mut sink = recorder(&hosts, 1, &format!("127.0.0.1:5008 {played}"));
    let mut tee = recorder(&hosts, 0, &format!("127.0.0.1:5005 {sent} 127.0.0.1:5006"));
    let (mut receiver, _) = Running::ready(&mut hosts.equipoise(1, &["receive", "--key", &key, "-1", "--rtp", "5008"]));
    let (port, address) = (middle.port(), hosts.middle(0));
    let relay = ["send", &address, "-p", &port, "--key", &key, "--rtp", "5006", "--min-rate", "2M", "-t", lasts];
    let mut sender = hosts.equipoise(0, &[&relay[..], &["--report-interval", "250 ms"]].concat());
    // The sender prints no line before it receives the encoder's first packet. The encoder is not running yet.
    // Therefore the test waits for the sender's open port.
    let mut sender = Running::start(&mut sender);
    assert_eq!(port_of(sender.id(), "udp"), 5006);
    let mut ffmpeg = hosts.command(0, "ffmpeg");
    let encoded = ffmpeg
        .args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-t", seconds])
        .args(["-c:v", "mpeg2video", "-b:v", "600k", "-f", "rtp", "rtp://127.0.0.1:5005?pkt_size=1000"])
        .stdout(Stdio::null())
        .status()
        .expect("started");
    assert!(encoded.success());
    sender.finish();
    receiver.finish();
    for (recorder, recording) in [(&mut tee, &sent), (&mut sink, &played)] {
        fs::write(stop_file(recording), "").expect("written");
        recorder.finish();
    }
    let (sent, played) = (datagrams(&sent), datagrams(&played));
    assert!(sent.len() > least, "{} packets", sent.len());
    assert_eq!(sent.len(), played.len());
    assert!(sent == played, "payload type, SSRC, sequence, timestamp, payload: all as it was");
}

#[test]
fn an_encoder_is_told_its_rate_line_by_line() {
    the_rate_is_told("0.9");
}

#[test]
#[ignore = "real time: 5 s"]
fn an_encoder_is_told_its_rate_line_by_line_for_five_seconds() {
    the_rate_is_told("5");
}

fn the_rate_is_told(seconds: &str) {
    let _machine = Machine::shared();
    let folder = Folder::new();
    let path = folder.file("rate.sock");
    let mut receiver = equipoise();
    let (mut receiver, line) = Running::ready(receiver.args(["receive", "-p", "0", "-1", "--insecure"]));
    let (_, port) = line.rsplit_once(':').expect("an address");
    let mut sender = equipoise();
    sender.args(["send", "127.0.0.1", "-p", port, "--insecure", "-t", seconds, "--rate-socket", &path]);
    sender.args(["--report-interval", "250 ms", "--min-rate", "1M", "--max-rate", "8M"]);
    let mut sender = Running::start(&mut sender);
    let stream = eventually("the socket of the rates", || UnixStream::connect(&path).ok());
    let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    sender.finish();
    receiver.finish();
    let rates: Vec<u64> =
        lines.iter().filter_map(|line| line.strip_prefix("rate ")).filter_map(|rate| rate.parse().ok()).collect();
    assert_eq!(rates.len(), lines.len(), "{lines:?}");
    // Of the 1200 bytes of a packet, 56 are headers. Without the headers' share, the minimum rate is about 953 kbit/s,
    // and the maximum rate about 7627 kbit/s.
    assert!(rates.iter().all(|rate| (950_000..7_640_000).contains(rate)), "{rates:?}");
    assert!(rates.windows(2).any(|pair| pair[1] > pair[0]), "on an idle path the rate rises: {rates:?}");
    assert!(!Path::new(&path).exists(), "the socket goes with the session");
}
