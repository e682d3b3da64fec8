//! Tests of `equipoise link --tun`: traffic between the two TUN devices that the link creates, and errors for devices
//! that the link cannot create.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::link::{BYTES, report_in, start, traffic_passes};
use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Folder, run, said, skip};

/// Commands that move the two TUN devices from the middle namespace to the end namespaces, and set the devices up.
const MOVES: [&str; 6] = [
    "ip -n MIDDLE link set one netns NEAR",
    "ip -n MIDDLE link set two netns FAR",
    "ip -n NEAR addr add 10.9.2.1/24 dev one",
    "ip -n FAR addr add 10.9.2.2/24 dev two",
    "ip -n NEAR link set one up",
    "ip -n FAR link set two up",
];

/// Whether the kernel has TUN devices. If not, prints that the test is skipped.
fn is_there() -> bool {
    let there = Path::new("/dev/net/tun").exists();
    if !there {
        skip("/dev/net/tun: the kernel has no TUN devices");
    }
    there
}

/// The fast test of a link between TUN devices.
///
/// The near end checks that each echo takes at least twice the link's delay, and that the transfer of the data takes at
/// least 1.2 s, the time for 3 MB at 20 Mbit/s.
#[test]
fn between_two_tun_devices_it_carries_udp_and_tcp_wherever_they_are_moved() {
    if !is_there() {
        return;
    }
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &[]) else { return };
    let folder = Folder::new();
    let report = folder.file("link.json");
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--tun", "one", "two", "--rate", "20M", "--delay", "25ms", "--json", &report]);
    let (mut child, line) = start(command);
    assert!(line.contains("one and two"), "{line}");
    for command in MOVES {
        assert!(places.done(command), "{command}");
    }
    let begin = Instant::now();
    let passes = traffic_passes(&places);
    let took = begin.elapsed();
    assert_eq!(child.interrupt(), Some(0));
    assert!(passes, "{}", child.rest());
    let report = report_in(&report);
    let forward = &report["forward"];
    assert!(forward["bytes_out"].as_u64().is_some_and(|bytes| bytes > BYTES as u64), "{report}");
    // The kernel splits large TCP segments before it passes them to a TUN device, so 3 MB arrive in packets of at most
    // 1500 bytes.
    assert!(forward["packets_out"].as_u64().is_some_and(|packets| packets > 2000), "{report}");
    assert_eq!(
        (&report["frames_taken_apart"], &report["timestamps"]),
        (&0.into(), &"user-space receive times".into()),
        "{report}"
    );
    // The echoes take 1 s. The 3 MB take 1.2 s, plus TCP's slow start. Without stalls of the machine, the sum is less
    // than 10 s.
    let stood = |stall: &serde_json::Value| stall["end_s"].as_f64().zip(stall["start_s"].as_f64()).map(|(e, s)| e - s);
    let stood: f64 = report["stalls"].as_array().expect("a list").iter().filter_map(stood).sum();
    assert!(took < Duration::from_secs(10) || stood > 0.5, "{took:?}, {report}");
}

/// If this test fails, a link continues to run without traffic after its devices were removed.
#[test]
fn a_device_that_is_taken_away_ends_it_and_those_it_made_go_with_it() {
    if !is_there() {
        return;
    }
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &[]) else { return };
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--tun", "one", "two"]).stderr(Stdio::piped());
    let (mut child, _) = start(command);
    let mut second = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    let refused = second.args(["link", "--tun", "three", "two"]).output().expect("ip was there a moment ago");
    assert!(refused.status.code() == Some(4) && said(&refused).contains("\"two\" is taken"), "{}", said(&refused));
    assert!(places.done("ip -n MIDDLE link delete one"));
    let (code, complaint) = child.complaint();
    assert!(code == Some(4) && complaint.contains("cannot receive from"), "{complaint}");
    assert!(!places.done("ip -n MIDDLE link show two"));
}

#[test]
fn names_that_no_device_can_have_are_refused() {
    for (names, code, words) in [
        (["a", "a"], 2, "two interfaces"),
        (["a", "equipoise-device"], 2, "1 to 15 characters"),
        (["tun%d", "a"], 2, "1 to 15 characters"),
        (["", "a"], 2, "1 to 15 characters"),
        (["lo", "a"], 4, "choose another name"),
    ] {
        if names[0] == "lo" && !is_there() {
            continue;
        }
        let output = run(&["link", "--tun", names[0], names[1]]);
        if said(&output).contains("CAP_NET_ADMIN") {
            skip("/dev/net/tun: CAP_NET_ADMIN");
            return;
        }
        assert_eq!(output.status.code(), Some(code), "{names:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{names:?}: {}", said(&output));
    }
}

/// If this test fails, a user who lacks the capability `CAP_NET_ADMIN`, or whose kernel lacks the TUN driver, is not
/// told so and sees only an error number.
#[test]
fn without_the_right_or_the_driver_it_says_what_would_help() {
    if !is_there() {
        return;
    }
    let equipoise = env!("CARGO_BIN_EXE_equipoise");
    let hide = format!("mount -t tmpfs -o ro none /dev/net && exec {equipoise} link --tun one two");
    for (arguments, words) in [
        (&["--user", equipoise, "link", "--tun", "one", "two"][..], "CAP_NET_ADMIN"),
        (&["--mount", "sh", "-c", &hide], "modprobe tun"),
    ] {
        let able = Command::new("unshare").args([arguments[0], "true"]).output();
        if !able.is_ok_and(|output| output.status.success()) {
            skip("user and mount namespaces: unshare cannot make them");
            continue;
        }
        let output = Command::new("unshare").args(arguments).output().expect("unshare was there a moment ago");
        assert!(output.status.code() == Some(4) && said(&output).contains(words), "{}", said(&output));
    }
}
