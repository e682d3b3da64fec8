//! Tests the book's page about a camera: runs its exact commands on two hosts in network namespaces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::Machine;
use crate::page::{self, Terminal};
use crate::places::Places;
use crate::support::{Folder, eventually, installed, keygen, results, skip};

const RECEIVER: &str = "10.77.1.1";
/// Commands that set up a host at each end (NEAR and FAR), and a router between the two hosts (MIDDLE).
const ROUTED: [&str; 9] = [
    "ip -n NEAR link set lo up",
    "ip -n FAR link set lo up",
    "ip -n NEAR addr add 10.77.0.1/24 dev eth0",
    "ip -n MIDDLE addr add 10.77.0.254/24 dev near",
    "ip -n MIDDLE addr add 10.77.1.254/24 dev far",
    "ip -n FAR addr add 10.77.1.1/24 dev eth0",
    "ip -n NEAR route add default via 10.77.0.254",
    "ip -n FAR route add default via 10.77.1.254",
    "ip netns exec MIDDLE sysctl --quiet --write net.ipv4.ip_forward=1",
];

/// Returns the commands in those code blocks of the book's camera page that are marked with `kind`, with the receiver's
/// address filled in.
fn commands(kind: &str) -> String {
    format!("export RECEIVER={RECEIVER}\n{}", page::blocks("camera", &format!("sh,{kind}")))
}

/// Opens a terminal on `host` that runs those code blocks of the book's camera page that are marked with `kind`.
fn terminal(host: &str, folder: &Folder, kind: &str) -> Terminal {
    Terminal::open(host, folder, kind, &commands(kind))
}

/// Returns the number of frames that the decoder has counted so far.
fn decoded(folder: &Folder) -> u64 {
    let said = fs::read_to_string(folder.file("receiver")).unwrap_or_default();
    let counts = said.lines().filter_map(|line| line.strip_prefix("decoded (")?.split_once("): ")?.1.split(' ').next());
    counts.filter_map(|count| count.parse().ok()).next_back().unwrap_or(0)
}

/// Whether Python's GStreamer bindings are installed. If they are not, prints why the test is skipped.
fn has_gi() -> bool {
    let found = Command::new("/usr/bin/python3")
        .args(["-c", "import gi; gi.require_version('Gst', '1.0')"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skip("python3-gi and gir1.2-gstreamer-1.0: they are not installed");
    }
    found
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// If this test fails, a reader who follows the book's camera page sees no video, or a video whose bitrate exceeds the
/// path's capacity.
#[test]
#[ignore = "real time: 24 s"]
fn the_commands_of_the_page_carry_a_picture_whose_bitrate_follows_the_path() {
    const WIDE: Duration = Duration::from_secs(11);
    const NARROW: Duration = Duration::from_secs(9);
    if !installed("gst-launch-1.0") || !has_gi() {
        return;
    }
    let machine = Machine::shared();
    let Some(places) = Places::new(&machine, &ROUTED) else { return };
    let folder = Folder::new();
    keygen(&folder.file("key"));
    let receiver = terminal(&places.far, &folder, "receiver");
    let is_ready = || fs::read_to_string(folder.file("receiver")).ok().filter(|said| said.contains("receiving"));
    eventually("the receiver is there", is_ready);
    let sender = terminal(&places.near, &folder, "sender");
    let begin = Instant::now();
    eventually("the first pictures", || (decoded(&folder) > 0).then_some(()));
    thread::sleep(WIDE.saturating_sub(begin.elapsed()));
    let narrowed = terminal(&places.near, &folder, "narrow");
    thread::sleep(NARROW);
    let (lasted, pictures) = (begin.elapsed().as_secs_f64(), decoded(&folder));
    drop(narrowed);
    assert!(sender.signal("INT"));
    let sent = eventually("the sender's results", || fs::read_to_string(folder.file("sent.json")).ok());
    let received = eventually("the receiver's results", || fs::read_to_string(folder.file("received.json")).ok());
    drop((sender, receiver));
    let [sent, received] = [sent, received].map(|lines| results(&lines));
    // The camera sends 30 frames per second. The encoder skips some frames, and skips more on a busy machine, so half
    // of the frames are required. The 2 s allow for the first frame, which takes one second, and for the counter, which
    // is up to one second late.
    assert!(pictures as f64 > 0.5 * 30.0 * (lasted - 2.0), "{pictures} pictures in {lasted} s");
    let rates = |from: f64, to: f64| -> Vec<f64> {
        let all = sent["intervals"].as_array().expect("intervals").iter();
        let within = all.filter(|it| number(&it["start_s"]) >= from && number(&it["end_s"]) <= to);
        within.map(|it| number(&it["rate_bps"])).collect()
    };
    // The path becomes narrow 11 s after the sender's terminal is opened. The session starts at most 1 s after the
    // terminal is opened, so the path becomes narrow 10 s to 11 s after the session's start.
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (wide, narrow) = (mean(&rates(6.0, 9.0)), mean(&rates(14.0, 18.0)));
    assert!(wide > 1.1e6, "{wide} bit/s over a path that takes 3 Mbit/s");
    assert!((0.3e6..1.0e6).contains(&narrow), "{narrow} bit/s over a path of 1 Mbit/s");
    let end = &received["sessions"][0]["end"];
    let share = number(&end["packets_lost"]) / number(&end["packets_received"]);
    assert!(share < 0.05, "{share} of the packets were lost");
}

#[test]
fn what_the_page_has_installed_is_what_ci_installs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ci = fs::read_to_string(root.join(".ci/run")).expect("the script of CI");
    let installed = commands("install");
    let packages = installed.split_whitespace().filter(|word| word.contains("gst") || word.contains("python"));
    for package in packages {
        assert!(ci.contains(package), "{package} is not in .ci/run");
    }
}
