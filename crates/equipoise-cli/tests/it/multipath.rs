//! Tests sessions over two interfaces, between two hosts in namespaces. The two links have different delays. In some
//! tests, their rates differ, too.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::link::start;
use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Folder, Running, keygen, results, run, said};

/// The receiver's address, which the sender can reach over both links.
const FAR: &str = "198.18.9.9";

/// A link: its rate in kbit/s, its delay in ms, and its maximum queueing delay in ms.
#[derive(Clone, Copy)]
struct Line {
    rate: u64,
    delay: u64,
    queue: u64,
}

/// Two hosts, each with the interfaces `eth0` and `eth1`, and the two links between the hosts.
struct TwoLinks {
    /// The processes of the links. They are dropped first, because they must end before their interfaces are removed.
    _links: Vec<Running>,
    places: Places,
    folder: Folder,
    /// The lock on the machine. It is the last field, so that it is released last.
    _machine: Machine,
}

impl TwoLinks {
    fn new(machine: Machine, lines: [Line; 2]) -> Option<Self> {
        let far_address = format!("ip -n FAR addr add {FAR}/32 dev lo");
        let route =
            |path: u32| format!("ip -n NEAR route add {FAR} via 198.18.{path}.2 dev eth{path} metric {}", path + 1);
        let places = Places::new(
            &machine,
            &[
                "ip -n NEAR link add eth1 type veth peer name near1 netns MIDDLE",
                "ip -n FAR link add eth1 type veth peer name far1 netns MIDDLE",
                "ip -n MIDDLE link set near1 up",
                "ip -n MIDDLE link set far1 up",
                "ip -n NEAR addr add 198.18.0.1/24 dev eth0",
                "ip -n NEAR addr add 198.18.1.1/24 dev eth1",
                "ip -n FAR addr add 198.18.0.2/24 dev eth0",
                "ip -n FAR addr add 198.18.1.2/24 dev eth1",
                &far_address,
                "ip -n NEAR link set eth1 up",
                "ip -n FAR link set eth1 up",
                "ip -n FAR link set lo up",
                &route(0),
                &route(1),
            ],
        )?;
        let links = lines.iter().zip([["near", "far"], ["near1", "far1"]]).map(|(line, ends)| {
            let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
            command.args(["link", "--between", ends[0], ends[1], "--rate", &format!("{}k", line.rate)]);
            command.args(["--delay", &format!("{}ms", line.delay), "--queue", &format!("{} ms", line.queue)]);
            start(command).0
        });
        let links = links.collect();
        let folder = Folder::new();
        keygen(&folder.file("key"));
        Some(Self { _links: links, places, folder, _machine: machine })
    }

    /// Starts the command, and waits until it receives or sends.
    fn equipoise(&self, namespace: &str, arguments: &[&str]) -> Running {
        let mut command = Places::command(namespace, env!("CARGO_BIN_EXE_equipoise"));
        Running::ready(command.args(arguments).args(["--key", &self.folder.file("key")])).0
    }

    fn receiver(&self, more: &[&str]) -> Running {
        let json = self.folder.file("receiver.json");
        self.equipoise(&self.places.far, &[&["receive", "-B", FAR, "-1", "-J", &json], more].concat())
    }

    /// Starts a sender, and waits until its session is open.
    fn sender(&self, more: &[&str]) -> Running {
        let json = self.folder.file("sender.json");
        let base = ["send", FAR, "--path", "eth0", "--path", "198.18.1.1", "-J", &json, "--report-interval", "250 ms"];
        self.equipoise(&self.places.near, &[&base, more].concat())
    }

    /// Waits until the sender and the receiver have ended, and returns the results of both.
    fn told(&self, mut ends: [Running; 2]) -> [Value; 2] {
        ends.iter_mut().for_each(Running::finish);
        ["sender.json", "receiver.json"]
            .map(|name| results(&fs::read_to_string(self.folder.file(name)).expect("the results are written")))
    }
}

/// If this test fails, a sender still uses an interface that is down, or does not use the interface again after it is
/// up.
#[test]
#[ignore = "real time: 31 s"]
fn a_session_outlives_one_of_its_interfaces_and_takes_it_up_again() {
    // When an interface goes down, its routes are removed but its addresses stay. The last command adds the route
    // again.
    let back = format!("ip -n NEAR route add {FAR} via 198.18.1.2 dev eth1 metric 2");
    let outage = ["ip -n NEAR link set eth1 down", "ip -n NEAR link set eth1 up", &back];
    let Some(down) = goes_on_through(Machine::shared(), &outage, 0) else { return };
    assert_eq!(down, 1);
}

/// If the receiver's interface goes down, the sender is not notified. It stops using the path after three report
/// intervals without a report. The test allows four, because the machine may be busy.
#[test]
#[ignore = "real time: 31 s, on a quiet machine"]
fn a_session_outlives_one_of_its_receivers_interfaces_and_takes_it_up_again() {
    let outage = ["ip -n FAR link set eth1 down", "ip -n FAR link set eth1 up"];
    let Some(down) = goes_on_through(Machine::half(), &outage, 4 * 250) else { return };
    assert_eq!(down, 0);
}

/// Runs a session whose second path is down for 10 s. The first command of `outage` starts the outage, and the other
/// commands end the outage. Packets sent in the first `unnoticed` ms of the outage may be lost. Returns how often the
/// sender's interface of the second path went down.
#[expect(clippy::print_stdout, reason = "what was measured is of interest")]
fn goes_on_through(machine: Machine, outage: &[&str], unnoticed: u64) -> Option<u64> {
    let lines = [Line { rate: 4_000, delay: 10, queue: 200 }, Line { rate: 2_000, delay: 40, queue: 200 }];
    let hosts = TwoLinks::new(machine, lines)?;
    let receiver = hosts.receiver(&[]);
    let sender = hosts.sender(&["-b", "2500k", "--scheduler", "equal", "-t", "30", "-l", "1000"]);
    thread::sleep(Duration::from_secs(4));
    for (at, command) in outage.iter().enumerate() {
        assert!(hosts.places.done(command), "{command}");
        thread::sleep(Duration::from_secs(if at == 0 { 10 } else { 0 }));
    }
    let [sent, received] = hosts.told([sender, receiver]);
    let sessions = received["sessions"].as_array().expect("sessions");
    assert_eq!((sessions.len(), &sessions[0]["ended"]), (1, &"the sender said goodbye".into()));
    assert_eq!(sessions[0]["is_multipath"], true);
    // Returns the number of packets that arrived over a path in a given second.
    let intervals = received["intervals"].as_array().expect("intervals");
    let came = |second: usize, path: &str| intervals[second]["paths"][path]["packets"].as_u64().unwrap_or(0);
    assert!((0..29).all(|second| came(second, "0") > 0), "the session goes on");
    assert!((7..13).all(|second| came(second, "1") == 0 && came(second, "0") > 250), "all on the first path");
    let back = (14..29).find(|second| came(*second, "1") > 0).expect("the path is used within 15 s of its return");
    let number = |value: &Value| value.as_u64().expect("a count");
    let lost = number(&sent["end"]["packets_sent"]) - number(&sessions[0]["end"]["packets_received"]);
    // Maximum number of packets that the outage can lose: those on the link and in its queue, and those that the sender
    // sends over the path before it detects the outage.
    let on_the_way = (2_000 * (lines[1].delay + lines[1].queue) + 1_250 * unnoticed) / 8 / 1_000;
    println!("{lost} packets lost, where {on_the_way} may be on the way; used again in second {back}");
    assert!(lost <= on_the_way, "{lost} lost");
    Some(number(&sent["end"]["paths"][1]["times_down"]))
}

/// The fast test of sessions over several paths.
#[test]
fn a_short_file_comes_out_as_it_went_in_over_paths_of_10_and_50_ms() {
    a_file_comes_out_as_it_went_in([10, 50], 100_000, 100);
}

#[test]
#[ignore = "real time: 5 s"]
fn a_file_comes_out_as_it_went_in_over_paths_of_10_and_200_ms() {
    a_file_comes_out_as_it_went_in([10, 200], 500_000, 300);
}

/// Sends a file of `numbers` numbers, each of four bytes, over two paths with the delays `delays` in ms. Each path must
/// carry more than `least` packets.
fn a_file_comes_out_as_it_went_in(delays: [u64; 2], numbers: u32, least: u64) {
    let lines = delays.map(|delay| Line { rate: 5_000, delay, queue: 100 });
    let Some(hosts) = TwoLinks::new(Machine::shared(), lines) else { return };
    let file: Vec<u8> = (0..numbers).flat_map(|number| number.wrapping_mul(0x9E37_79B1).to_le_bytes()).collect();
    let (before, after) = (hosts.folder.file("before"), hosts.folder.file("after"));
    fs::write(&before, &file).expect("written");
    let receiver = hosts.receiver(&["--hold", "1 s", "-o", &after]);
    let sender = hosts.sender(&["-b", "5M", "--scheduler", "equal", "-F", &before]);
    let [sent, received] = hosts.told([sender, receiver]);
    let end = &received["sessions"][0]["end"];
    assert_eq!(end["payload_missing"], 0);
    for path in ["0", "1"] {
        assert!(end["packets_by_path"][path].as_u64().is_some_and(|packets| packets > least), "{end}");
    }
    assert!(sent["end"]["paths"][1]["packets_sent"].as_u64().is_some_and(|packets| packets > least));
    let came = fs::read(&after).expect("written");
    assert!(came == file, "{} bytes of {}", came.len(), file.len());
}

#[test]
fn a_path_that_cannot_be_is_named_with_what_could() {
    let send = |more: &[&str]| run(&[&["send", "127.0.0.1", "--insecure"], more].concat());
    let by_packet = ["--path", "lo", "--controller", "equipoise", "--feedback", "twcc"];
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--path", "nosuch0"], 4, "there is no network interface \"nosuch0\" here; there are"),
        (&["--path", "192.0.2.77"], 4, "no interface here has the IPv4 address 192.0.2.77"),
        (&["--path", "lo", "--path", "127.0.0.1"], 2, "path 127.0.0.1 is path lo; name each path once"),
        (&["--path", "lo", "--scheduler", "magic"], 2, "there are ap, single, equal, min-delay"),
        (&["--scheduler", "equal"], 2, "--path"),
        (&["--path", "lo", "--scheduler", "single"], 2, "single needs `path`"),
        (&["--path", "lo", "--scheduler-set", "longest_step=2"], 2, "`longest_step` is 2"),
        (&["--path", "lo", "--scheduler-period", "10 ms"], 4, "must be a report interval, 1 s, or more"),
        (&["--path", "lo", "-B", "127.0.0.1"], 2, "cannot be used with"),
        (&["--path", "lo", "--feedback", "rfc8888"], 4, "over several with a law for each"),
        (&by_packet, 4, "feedback of RFC 8888 works with any"),
    ];
    for (arguments, code, words) in cases {
        let output = send(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
    }
    // The peer has an IPv4 address, but the interface of the path has none.
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &[]) else { return };
    let mut command = Places::command(&places.near, env!("CARGO_BIN_EXE_equipoise"));
    let output = command.args(["send", "198.18.0.2", "--insecure", "--path", "eth0"]).output().expect("it starts");
    assert!(said(&output).contains("interface \"eth0\" has no IPv4 address"), "{}", said(&output));
}
