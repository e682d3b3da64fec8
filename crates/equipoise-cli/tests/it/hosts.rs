//! Sessions between two hosts as the README has them: streams, another program's RTP, what a stranger on the way sees.

use std::env;
use std::fs::{self, File};
use std::io::{BufReader, Read as _, Write as _};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::middle::{Hosts, Middle};
use crate::support::{Capture, Folder, equipoise, said};

const KEY: &str = "what only these two hosts know";

/// A receiver on this host's loopback, as a person starts it.
fn receiver(port: &str, arguments: &[&str]) -> Child {
    let child = equipoise().args(["receive", "-p", port, "-1"]).args(arguments).stdout(Stdio::piped()).spawn();
    thread::sleep(Duration::from_millis(300));
    child.expect("the command starts")
}

#[test]
fn a_stream_on_standard_input_comes_out_of_the_other_ends_standard_output() {
    let mut receiver = receiver("6101", &["--insecure", "-o", "-", "-q"]);
    let mut sender = equipoise()
        .args(["send", "127.0.0.1", "-p", "6101", "--insecure", "-F", "-", "-b", "30M", "-q"])
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
    let mut receiving = equipoise();
    let receiving =
        receiving.args(["receive", "-p", "6102", "-1", "-J"]).env("EQUIPOISE_KEY", KEY).stdout(Stdio::piped());
    let receiving = receiving.spawn().expect("the command starts");
    thread::sleep(Duration::from_millis(300));
    let sent = equipoise()
        .args(["send", "127.0.0.1", "-p", "6102", "-t", "2", "-b", "1M", "-l", "500", "-J"])
        .env("EQUIPOISE_KEY", KEY)
        .output()
        .expect("the command starts");
    let received = receiving.wait_with_output().expect("it ends");
    let [sent, received]: [Value; 2] =
        [sent.stdout, received.stdout].map(|text| serde_json::from_slice(&text).expect("JSON alone"));
    let rate = sent["end"]["rate_bps"].as_f64().expect("a rate");
    // A machine that stands still for a while sends less, never more.
    assert!((0.5e6..1.05e6).contains(&rate), "{rate}");
    assert_eq!(sent["start"]["encrypted"], true);
    let end = &received["sessions"][0]["end"];
    assert_eq!(end["packets_received"], sent["end"]["packets_sent"]);
    // Every IP packet has the size that was asked for.
    assert_eq!(end["bytes_received"].as_u64(), sent["end"]["packets_sent"].as_u64().map(|packets| packets * 500));
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    let folder = Folder::new();
    fs::write(folder.file("short"), "guess\n").expect("written");
    let short = folder.file("short");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["send", "127.0.0.1"], 3, "--insecure"),
        (&["receive"], 3, "head -c 32 /dev/urandom"),
        (&["receive", "--key", &short], 3, "it needs 16 or more"),
        (&["send", "nowhere.invalid", "--insecure"], 4, "cannot find nowhere.invalid"),
        (&["send", "127.0.0.1", "--insecure", "--controller", "magic"], 2, "there are ap,"),
        (&["send", "127.0.0.1", "--insecure", "--set", "b=fast"], 2, "1/(s·Mbit/s)"),
        (&["send", "127.0.0.1", "--insecure", "-l", "40"], 4, "a packet of 40 B cannot carry"),
    ];
    for (arguments, code, remedy) in cases {
        let output = equipoise().args(arguments).env_remove("EQUIPOISE_KEY").output().expect("the command starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(remedy), "{arguments:?}: {}", said(&output));
    }
}

/// Both hosts, and a middle that lets everything pass.
fn across() -> Option<(Hosts, Middle, Folder)> {
    let hosts = Hosts::new()?;
    let middle = Middle::start(&hosts, |_| vec![0]);
    let folder = Folder::new();
    fs::write(folder.file("key"), KEY).expect("written");
    Some((hosts, middle, folder))
}

#[test]
fn a_stranger_on_the_way_reads_nothing_of_an_encrypted_session() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: no tshark here");
        return;
    }
    let Some((hosts, middle, folder)) = across() else { return };
    fs::write(folder.file("text"), "a sentence that must not be read ".repeat(3000)).expect("written");
    let (key, text) = (folder.file("key"), folder.file("text"));
    for (security, seen) in [(["--key", &key], false), (["--insecure", "-q"], true)] {
        let capture = folder.file("capture.pcap");
        let mut tshark = hosts.command(1, "tshark");
        let tshark = Capture::start(tshark.args(["-q", "-i", "eth0", "-w", &capture]), &capture);
        let mut receiver = hosts
            .equipoise(1, &[&["receive", "-1", "-q"][..], &security[..security.len() - usize::from(seen)]].concat());
        thread::sleep(Duration::from_millis(300));
        let (port, address) = (middle.port(), hosts.middle(0));
        let base = ["send", &address, "-p", &port, "-F", &text, "-b", "2M", "-q"];
        let mut sender = hosts.equipoise(0, &[&base[..], &security[..security.len() - usize::from(seen)]].concat());
        assert!(sender.wait().expect("it ends").success() && receiver.wait().expect("it ends").success());
        tshark.stop();
        let read = |filter: &str| {
            let mut tshark = Command::new("tshark");
            let tshark = tshark.args(["-r", &capture, "-Y", filter, "-T", "fields", "-e", "frame.number"]);
            let output = tshark.output().expect("started");
            String::from_utf8_lossy(&output.stdout).lines().count()
        };
        assert!(read("udp.port == 5004") > 80, "the session was captured");
        assert_eq!(read("udp contains \"must not be read\"") > 0, seen, "{security:?}");
    }
}

const ROLE: &str = "EQUIPOISE_UDP_ROLE";

/// Nothing on its own; within a namespace, a recorder of datagrams that forwards them where it is told.
#[test]
fn one_recorder_of_datagrams() {
    let Ok(role) = env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let socket = UdpSocket::bind(words[0]).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(4))).expect("a timeout");
    let mut file = File::create(words[1]).expect("writable");
    let mut buffer = vec![0; 65_536];
    let start = Instant::now();
    let mut seen = false;
    while start.elapsed() < Duration::from_secs(40) {
        let Ok((length, _)) = socket.recv_from(&mut buffer) else {
            if seen {
                break;
            }
            continue;
        };
        seen = true;
        // RTCP of the same program is not relayed.
        if !(192..=223).contains(&buffer[1]) {
            file.write_all(&(length as u32).to_be_bytes()).expect("written");
            file.write_all(&buffer[..length]).expect("written");
        }
        if let Some(next) = words.get(2) {
            socket.send_to(&buffer[..length], next).expect("sent");
        }
    }
}

fn recorder(hosts: &Hosts, side: usize, role: &str) -> Child {
    let program = env::current_exe().expect("a test has a program");
    hosts
        .command(side, program.to_str().expect("a plain name"))
        .args(["hosts::one_recorder_of_datagrams", "--exact", "--quiet"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .spawn()
        .expect("ip was there a moment ago")
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

#[test]
fn the_rtp_of_ffmpeg_passes_through_byte_by_byte() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("skipped: no ffmpeg here");
        return;
    }
    let Some((hosts, middle, folder)) = across() else { return };
    let (key, sent, played) = (folder.file("key"), folder.file("sent"), folder.file("played"));
    let mut sink = recorder(&hosts, 1, &format!("127.0.0.1:5008 {played}"));
    let mut tee = recorder(&hosts, 0, &format!("127.0.0.1:5005 {sent} 127.0.0.1:5006"));
    let mut receiver = hosts.equipoise(1, &["receive", "--key", &key, "-1", "-q", "--rtp", "5008"]);
    let (port, address) = (middle.port(), hosts.middle(0));
    let relay = ["send", &address, "-p", &port, "--key", &key, "--rtp", "5006", "--min-rate", "2M", "-t", "9", "-q"];
    let mut sender = hosts.equipoise(0, &[&relay[..], &["--report-interval", "250 ms"]].concat());
    thread::sleep(Duration::from_millis(500));
    let mut ffmpeg = hosts.command(0, "ffmpeg");
    let encoded = ffmpeg
        .args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-t", "5"])
        .args(["-c:v", "mpeg2video", "-b:v", "600k", "-f", "rtp", "rtp://127.0.0.1:5005?pkt_size=1000"])
        .stdout(Stdio::null())
        .status()
        .expect("started");
    assert!(encoded.success());
    for child in [&mut sender, &mut receiver, &mut tee, &mut sink] {
        assert!(child.wait().expect("it ends").success());
    }
    let (sent, played) = (datagrams(&sent), datagrams(&played));
    assert!(sent.len() > 200, "{} packets", sent.len());
    assert_eq!(sent.len(), played.len());
    assert!(sent == played, "payload type, SSRC, sequence, timestamp, payload: all as it was");
}

#[test]
fn an_encoder_is_told_its_rate_line_by_line() {
    use std::io::BufRead as _;
    use std::os::unix::net::UnixStream;

    let folder = Folder::new();
    let path = folder.file("rate.sock");
    let mut receiver = receiver("6103", &["--insecure", "-q"]);
    let mut sender = equipoise()
        .args(["send", "127.0.0.1", "-p", "6103", "--insecure", "-t", "5", "--rate-socket", &path, "-q"])
        .args(["--report-interval", "250 ms", "--min-rate", "1M", "--max-rate", "8M"])
        .spawn()
        .expect("the command starts");
    let start = Instant::now();
    let stream = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(5), "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    assert!(sender.wait().expect("it ends").success() && receiver.wait().expect("it ends").success());
    let rates: Vec<u64> =
        lines.iter().filter_map(|line| line.strip_prefix("rate ")).filter_map(|rate| rate.parse().ok()).collect();
    assert_eq!(rates.len(), lines.len(), "{lines:?}");
    // Of 1200 bytes 56 are headers: the payload's share of the limits.
    assert!(rates.iter().all(|rate| (950_000..7_640_000).contains(rate)), "{rates:?}");
    assert!(rates.windows(2).any(|pair| pair[1] > pair[0]), "on an idle path the rate rises: {rates:?}");
    assert!(!std::path::Path::new(&path).exists(), "the socket goes with the session");
}
