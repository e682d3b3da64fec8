//! Tests a session between two hosts over hostile and broken networks. Each test states what must hold. Most rows of
//! the book's table of faults are made from the output of these tests.

use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::clocks::Clocks;
use crate::machine::Machine;
use crate::middle::{Hosts, Kind, Middle, NEW_ADDRESS, Passing};
use crate::support::{Folder, Running, keygen, results};

const MIN: f64 = 500e3;
const MAX: f64 = 4e6;
/// The beginning of the first line that the sender prints, and of the first line that the receiver prints.
const WORDS: [&str; 2] = ["sending ", "receiving "];

/// Two hosts, and a path between them that damages traffic.
pub(crate) struct Bench {
    hosts: Hosts,
    middle: Middle,
    folder: Folder,
    /// Clocks that a test can set, for the hosts; `None` if the hosts use the machine's clocks.
    clocks: Option<Clocks>,
    /// The lock on the machine. It is the last field, so that it is released last.
    _machine: Machine,
}

/// The results of the sender and the receiver, and the path's counts of media packets.
pub(crate) struct Told {
    pub(crate) sender: Value,
    pub(crate) receiver: Value,
    media: u64,
    passed: u64,
}

impl Bench {
    pub(crate) fn new(machine: Machine, fate: impl FnMut(&Passing) -> Vec<u64> + Send + 'static) -> Option<Self> {
        let hosts = Hosts::new(&machine)?;
        let folder = Folder::new();
        keygen(&folder.file("key"));
        let middle = Middle::start(&hosts, fate);
        Some(Self { hosts, middle, folder, clocks: None, _machine: machine })
    }

    /// Provides each host with clocks that the test can set. If this is not possible, prints the reason and returns
    /// false.
    pub(crate) fn give_clocks(&mut self) -> bool {
        self.clocks = Clocks::new(&self.folder);
        self.clocks.is_some()
    }

    pub(crate) fn clocks(&self) -> &Clocks {
        self.clocks.as_ref().expect("they were given")
    }

    /// Starts the command on host number `side`, and waits for the line that says that the command sends or receives.
    fn start(&self, side: usize, arguments: &[&str]) -> Running {
        let mut command = self.hosts.equipoise(side, arguments);
        if let Some(clocks) = &self.clocks {
            clocks.apply(side, &mut command);
        }
        let (running, line) = Running::ready(&mut command);
        assert!(line.starts_with(WORDS[side]), "{line}");
        running
    }

    pub(crate) fn receiver(&self, name: &str, more: &[&str]) -> Running {
        let (key, json) = (self.folder.file("key"), self.folder.file(name));
        self.start(1, &[&["receive", "--key", &key, "--json", &json], more].concat())
    }

    /// Starts a sender, and waits until its session is open.
    pub(crate) fn sender(&self, seconds: u32, more: &[&str]) -> Running {
        let (key, json, seconds) = (self.folder.file("key"), self.folder.file("sender.json"), seconds.to_string());
        let (port, middle) = (self.middle.port(), self.hosts.middle(0));
        let base = ["send", &middle, "-p", &port, "--key", &key, "--json", &json, "-t", &seconds, "-i", "0.5"];
        let law = [
            "--report-interval",
            "250 ms",
            "--min-rate",
            "500k",
            "--max-rate",
            "4M",
            "--target",
            "20 ms",
            "-l",
            "1000",
        ];
        self.start(0, &[&base[..], &law, more].concat())
    }

    fn read(&self, name: &str) -> Value {
        results(&fs::read_to_string(self.folder.file(name)).expect("the results are written"))
    }

    /// Runs a whole session whose payload is zeros, and returns the results.
    fn run(self, seconds: u32) -> Told {
        let mut receiver = self.receiver("receiver.json", &["--one-off"]);
        let mut sender = self.sender(seconds, &[]);
        sender.finish();
        receiver.finish();
        self.told()
    }

    /// Returns the final results of both ends.
    pub(crate) fn told(&self) -> Told {
        let counted = self.middle.counted();
        Told {
            sender: self.read("sender.json"),
            receiver: self.read("receiver.json"),
            media: counted.media,
            passed: counted.media_passed,
        }
    }
}

impl Told {
    /// Returns the allowed rate at the end of each interval of half a second, in bit/s.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let intervals = self.sender["intervals"].as_array().expect("intervals");
        intervals.iter().filter_map(|interval| interval["target_rate_bps"].as_f64()).collect()
    }

    fn session(&self) -> &Value {
        &self.receiver["sessions"][0]["end"]
    }

    /// Checks what must hold with any fault: the rate is within its limits, and the packet counters of sender, path and
    /// receiver agree.
    #[expect(clippy::print_stdout, reason = "the book's table is made of it")]
    pub(crate) fn hold(&self, what: &str) {
        let rates = self.rates();
        assert!(rates.iter().all(|rate| (MIN..=MAX).contains(rate)), "{what}: {rates:?}");
        let sent = self.sender["end"]["packets_sent"].as_u64().expect("a count");
        let received = self.session()["packets_received"].as_u64().expect("a count");
        assert_eq!(sent, self.media, "{what}: every packet that was sent came to the middle");
        assert_eq!(received, self.passed, "{what}: every packet that was let through was received, once");
        println!(
            "{what}: sent {sent}, received {received}, lost {}, rates {:.2} to {:.2} Mbit/s, in the end {:.2}; sender {}, receiver {}",
            sent - received,
            rates.iter().copied().fold(f64::MAX, f64::min) / 1e6,
            rates.iter().copied().fold(0.0, f64::max) / 1e6,
            rates.last().copied().unwrap_or_default() / 1e6,
            self.sender["end"]["ignored"],
            self.session()["ignored"],
        );
    }

    /// Returns how many intervals of half a second the rate needs to recover, counted from interval `from`. The rate
    /// has recovered when it is at least `share` times its average over the 8 intervals before `from`. The first 4
    /// intervals from `from` on are not checked.
    fn recovery(&self, from: usize, share: f64) -> Option<usize> {
        let rates = self.rates();
        let before = &rates[from.saturating_sub(8)..from];
        let level = share * before.iter().sum::<f64>() / before.len() as f64;
        rates[from..].iter().skip(4).position(|rate| *rate >= level).map(|at| at + 4)
    }
}

/// Returns a pseudo-random number from 0 to 1 that depends only on the packet's number and on `salt`.
fn chance(number: u64, salt: u64) -> f64 {
    let mut x = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt;
    x = (x ^ (x >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn lossy(share: f64) -> impl FnMut(&Passing) -> Vec<u64> + Send {
    move |passing| {
        let lost = passing.kind != Kind::Handshake && chance(passing.number, u64::from(passing.to_receiver)) < share;
        if lost { vec![] } else { vec![0] }
    }
}

/// The fast test of this file. Packets are lost and duplicated on the path. The checks of [`Told::hold`] must pass, and
/// the session's rate must rise.
#[test]
fn a_session_goes_on_through_a_middle_that_loses_and_doubles_packets() {
    let mut lose = lossy(0.1);
    let fate = move |passing: &Passing| match lose(passing) {
        passed if passed.is_empty() || !passing.number.is_multiple_of(3) => passed,
        _ => vec![0, 7],
    };
    let Some(bench) = Bench::new(Machine::shared(), fate) else { return };
    let told = bench.run(3);
    told.hold("10 % lost and a third doubled each way");
    let lost = 1.0 - told.passed as f64 / told.media as f64;
    assert!((0.02..0.2).contains(&lost), "{lost}");
    let doubled = told.session()["ignored"]["forged"].as_u64().unwrap_or(0);
    assert!(doubled > 30, "{doubled} packets that came twice");
    assert!(told.rates().iter().copied().fold(0.0, f64::max) > MIN, "{:?}", told.rates());
}

#[test]
#[ignore = "real time: 38 s"]
fn up_to_a_third_of_all_packets_may_be_lost_each_way() {
    for share in [0.02, 0.05, 0.3] {
        let Some(bench) = Bench::new(Machine::shared(), lossy(share)) else { return };
        let told = bench.run(12);
        told.hold(&format!("{:.0} % lost each way", share * 100.0));
        let lost = 1.0 - told.passed as f64 / told.media as f64;
        assert!((lost - share).abs() < 0.1, "{lost}");
        // A sender cannot know whether losses are random or caused by a policer. Therefore the sender ignores losses if
        // few packets are lost, and lowers its rate if many packets are lost.
        let last = told.rates().last().copied().unwrap_or(0.0);
        assert_eq!(last > 1.5 * MIN, share < 0.3, "{last} with {share}");
    }
}

/// Drops all datagrams of one kind from 8 s to 12 s after the first datagram.
fn lost_for_four_seconds(kind: Kind) -> impl FnMut(&Passing) -> Vec<u64> + Send {
    move |passing| {
        let lost = passing.kind == kind && (8..12).contains(&passing.at.as_secs());
        if lost { vec![] } else { vec![0] }
    }
}

#[test]
#[ignore = "real time: 49 s"]
fn lost_requests_and_lost_reports_slow_the_session_down_and_nothing_more() {
    for (kind, what) in [(Kind::SenderReport, "requests lost for 4 s"), (Kind::ReceiverReport, "reports lost for 4 s")]
    {
        let Some(bench) = Bench::new(Machine::shared(), lost_for_four_seconds(kind)) else { return };
        let told = bench.run(24);
        told.hold(what);
        let rates = told.rates();
        let lowest = rates[16..26].iter().copied().fold(f64::MAX, f64::min);
        assert!(lowest < 0.6 * rates[15], "{what}: from {} to {lowest}", rates[15]);
        let back = told.recovery(16, 0.6).expect("it recovers");
        println!("{what}: back after {:.1} s", back as f64 / 2.0);
        assert!(back <= 24, "{what}: {rates:?}");
    }
}

#[test]
#[ignore = "real time: 17 s"]
fn packets_that_overtake_each_other_by_50_ms_are_put_into_order() {
    intact("50 ms of reordering", |passing| vec![if passing.number % 6 == 5 { 50 } else { 0 }], "forged", 0);
}

#[test]
#[ignore = "real time: 7 s"]
fn packets_that_come_twice_count_once() {
    intact(
        "every third packet doubled",
        |passing| if passing.number % 3 == 0 { vec![0, 7] } else { vec![0] },
        "forged",
        100,
    );
}

/// Transfers a stream over a path without losses. If this test fails, the stream does not arrive complete and
/// unchanged.
fn intact(what: &str, fate: impl FnMut(&Passing) -> Vec<u64> + Send + 'static, counter: &str, at_least: u64) {
    let Some(bench) = Bench::new(Machine::shared(), fate) else { return };
    let (from, to) = (bench.folder.file("stream"), bench.folder.file("received"));
    let stream: Vec<u8> = (0..500_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&from, &stream).expect("written");
    // The hold time is long, so that packets do not come too late if the machine stalls.
    let mut receiver = bench.receiver("receiver.json", &["--one-off", "--hold", "500 ms", "--output", &to]);
    let mut sender = bench.sender(0, &["--file", &from]);
    sender.finish();
    receiver.finish();
    let told = bench.told();
    told.hold(what);
    assert_eq!(told.media, told.passed, "{what}: 4 Mbit/s through 5 Mbit/s, nothing may be dropped");
    assert_eq!(told.session()["payload_missing"].as_u64(), Some(0), "{what}");
    assert!(fs::read(&to).expect("received") == stream, "{what}: the bytes are those that were sent");
    let found = told.session()["ignored"][counter].as_u64().unwrap_or(0);
    assert!(found >= at_least, "{what}: {found} as {counter}");
}

#[test]
#[ignore = "real time: 35 s"]
fn an_outage_of_ten_seconds_ends_no_session() {
    let outage = |passing: &Passing| if (8..18).contains(&passing.at.as_secs()) { vec![] } else { vec![0] };
    let Some(bench) = Bench::new(Machine::shared(), outage) else { return };
    let told = bench.run(34);
    told.hold("an outage of 10 s");
    let rates = told.rates();
    // The outage lasts from 8 s to 18 s after the sender's first datagram: intervals 16 to 35, of 0.5 s each.
    assert!(rates[24..33].iter().all(|rate| *rate <= MIN * 1.01), "at the lowest rate before it ends: {rates:?}");
    let high = rates[34..].iter().position(|rate| *rate > 2.0 * MIN).expect("it recovers");
    println!("an outage of 10 s: above twice the lowest rate {:.1} s after its end", high as f64 / 2.0);
    assert!(high <= 20, "{rates:?}");
    assert_eq!(told.receiver["sessions"].as_array().map(Vec::len), Some(1), "it is the same session");
}

#[test]
#[ignore = "real time: 21 s"]
fn a_receiver_that_is_killed_and_started_again_gets_the_session_again() {
    let Some(bench) = Bench::new(Machine::shared(), |_: &Passing| vec![0]) else { return };
    let mut first = bench.receiver("first.json", &[]);
    let mut sender = bench.sender(20, &[]);
    thread::sleep(Duration::from_secs(6));
    // SIGKILL reaches the `equipoise` process, because `ip netns exec` has replaced itself with this process.
    first.kill();
    thread::sleep(Duration::from_secs(2));
    let mut second = bench.receiver("receiver.json", &["--one-off"]);
    sender.finish();
    second.finish();
    let (sent, received) = (bench.read("sender.json"), bench.read("receiver.json"));
    let again = received["sessions"][0]["end"]["duration_s"].as_f64().expect("a session");
    println!("receiver killed for 2 s: the session goes on, {again:.1} s of the last 11.7");
    assert!(again > 8.0, "{received}");
    let rates: Vec<f64> =
        sent["intervals"].as_array().expect("intervals").iter().filter_map(|i| i["target_rate_bps"].as_f64()).collect();
    assert!(rates.iter().all(|rate| (MIN..=MAX).contains(rate)));
    assert!(rates.last().is_some_and(|rate| *rate > 2.0 * MIN), "{rates:?}");
}

#[test]
#[ignore = "real time: 8 s"]
fn a_sender_that_is_killed_is_given_up_after_a_while() {
    let Some(bench) = Bench::new(Machine::shared(), |_: &Passing| vec![0]) else { return };
    let mut receiver = bench.receiver("receiver.json", &["--one-off", "--idle", "3"]);
    let mut sender = bench.sender(20, &[]);
    thread::sleep(Duration::from_secs(4));
    sender.kill();
    receiver.finish();
    let told = bench.read("receiver.json");
    assert_eq!(told["sessions"][0]["ended"], "the sender fell silent");
    println!("sender killed: given up after {} s", told["sessions"][0]["end"]["duration_s"]);
}

#[test]
#[ignore = "real time: 15 s"]
fn an_address_that_changes_ends_no_session() {
    let mut changed = 0;
    let fate = move |passing: &Passing| {
        // The sender's address changes at 5 s and at 9 s, as it does if a home router restarts.
        let due = u64::from(passing.at.as_secs() >= 5) + u64::from(passing.at.as_secs() >= 9);
        let now = passing.to_receiver && due > changed;
        changed = changed.max(due);
        vec![if now { NEW_ADDRESS } else { 0 }]
    };
    let Some(bench) = Bench::new(Machine::shared(), fate) else { return };
    let told = bench.run(14);
    told.hold("two changes of address");
    assert_eq!(told.receiver["sessions"].as_array().map(Vec::len), Some(1), "it is the same session");
    assert_eq!(told.sender["end"]["circuit_broken"], serde_json::json!({}));
}

/// Returns the resident memory of a process, in bytes.
fn memory(process: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).expect("running");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says so");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
#[ignore = "real time: 15 s, alone on the machine"]
fn floods_of_garbage_and_of_made_up_reports_change_nothing() {
    let Some(bench) = Bench::new(Machine::alone(), |_: &Passing| vec![0]) else { return };
    let mut receiver = bench.receiver("receiver.json", &["--one-off"]);
    let mut sender = bench.sender(14, &[]);
    thread::sleep(Duration::from_secs(4));
    let before = [memory(&sender), memory(&receiver)];
    let stop = Arc::new(AtomicBool::new(false));
    let target = format!("{}:5004", bench.hosts.address(1));
    let flood = {
        let stop = stop.clone();
        thread::spawn(move || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
            socket.connect(target).expect("an address");
            let mut count = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let mut datagram = vec![0u8; 60 + (count % 100) as usize];
                for (at, byte) in datagram.iter_mut().enumerate() {
                    *byte = (chance(count, at as u64) * 256.0) as u8;
                }
                // Every second datagram has the header of a media packet, a request or a report, with a random SSRC.
                // Anyone can forge such a datagram.
                if count.is_multiple_of(2) {
                    datagram[0] = 0x80 | u8::from(count.is_multiple_of(4));
                    datagram[1] = [96, 200, 201][(count / 2 % 3) as usize];
                    let words = (datagram.len() / 4 - 1) as u16;
                    datagram[2..4].copy_from_slice(&words.to_be_bytes());
                }
                // Errors are ignored, because the test does not need every datagram of the flood.
                let _ = socket.send(&datagram);
                count += 1;
                if count.is_multiple_of(200) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            count
        })
    };
    thread::sleep(Duration::from_secs(5));
    stop.store(true, Ordering::Relaxed);
    let count = flood.join().expect("no panic");
    let after = [memory(&sender), memory(&receiver)];
    sender.finish();
    receiver.finish();
    let told = bench.told();
    let rates = told.rates();
    assert!(rates.iter().all(|rate| (MIN..=MAX).contains(rate)), "{rates:?}");
    let grown = after.iter().zip(before).map(|(after, before)| after.saturating_sub(before)).max().unwrap_or(0);
    println!(
        "a flood of {:.0} datagrams/s for 5 s: memory grew by {} kB; ignored {}",
        count as f64 / 5.0,
        grown / 1024,
        told.receiver["ignored"]
    );
    assert!(grown < 32 << 20, "{before:?} to {after:?}");
    assert_eq!(told.receiver["sessions"].as_array().map(Vec::len), Some(1), "nobody else got a session");
    assert!(count > 50_000, "a flood: {count}");
}
