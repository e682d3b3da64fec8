//! Tests of `equipoise kernel`: a congestion control is loaded, carries traffic between namespaces, and is removed
//! completely.

mod iperf;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::link::start;
use crate::machine::Machine;
use crate::places::Places;
use crate::support::{Folder, NAMESPACES, Running, equipoise, eventually, port_of, run, said, skip};

const ADDRESSES: [&str; 2] = ["ip -n NEAR addr add 10.9.3.1/24 dev eth0", "ip -n FAR addr add 10.9.3.2/24 dev eth0"];

fn is_registered() -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().any(|name| name == "symbiosis")
}

/// Waits until `symbiosis` is unregistered. This happens shortly after the loading process or `kernel unload` has
/// ended.
fn goes() {
    eventually("symbiosis is gone", || (!is_registered()).then_some(()));
}

/// Starts `kernel load`. The test must run alone, because a machine can have only one congestion control with this
/// name. If the congestion control cannot be loaded, prints the reason and returns `None`.
fn load(_machine: &Machine) -> Option<Running> {
    let mut child = Running::start(equipoise().args(["kernel", "load"]).stderr(Stdio::piped()));
    if child.line().is_some_and(|line| line.contains("until Ctrl-C")) {
        return Some(child);
    }
    let (code, reason) = child.complaint();
    let lacks = ["CAP_BPF", "BTF", "struct_ops", "loaded already"].into_iter().find(|word| reason.contains(word));
    assert!(lacks.is_some() && code == Some(4), "{reason}");
    skip(&format!("kernel congestion control: {}", lacks.unwrap_or_default()));
    None
}

fn status() -> Value {
    let output = run(&["kernel", "status", "--json", "-"]);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn connections(status: &Value) -> &[Value] {
    status["connections"].as_array().expect("a list")
}

/// Returns the local addresses of all connections in the output of `kernel status`.
fn ends(status: &Value) -> Vec<Value> {
    connections(status).iter().map(|connection| connection["local"].clone()).collect()
}

/// The fast test of `equipoise kernel`. If this test fails, the congestion control stays in the kernel after the
/// process that loaded it has ended.
#[test]
fn it_is_loaded_once_set_and_gone_with_its_loader_however_that_ends() {
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    let again = run(&["kernel", "load"]);
    assert!(again.status.code() == Some(4) && said(&again).contains("loaded already"), "{}", said(&again));
    let held = run(&["kernel", "unload"]);
    assert!(held.status.code() == Some(4) && said(&held).contains("Ctrl-C"), "{}", said(&held));
    let wrong = run(&["kernel", "set", "--gamma", "1"]);
    assert!(wrong.status.code() == Some(2) && said(&wrong).contains("between 0.01 and 0.99"), "{}", said(&wrong));
    let set = run(&["kernel", "set", "--gamma", "0.5"]);
    assert!(set.status.success() && said(&set).contains("gamma 0.500, epsilon 1.950"), "{}", said(&set));
    let status = status();
    assert!(status["loaded"] == true && status["gamma"].as_f64().is_some_and(|gamma| (gamma - 0.5).abs() < 1e-5));
    assert_eq!(child.interrupt(), Some(0));
    goes();
    let gone = run(&["kernel", "set", "--gamma", "0.5"]);
    assert!(gone.status.code() == Some(4) && said(&gone).contains("kernel load"), "{}", said(&gone));
    // If the loading process is killed, the congestion control must be removed, too.
    let mut child = load(&machine).expect("it was loaded a moment ago");
    assert!(is_registered());
    child.kill();
    goes();
}

/// The BPF file system is mounted in a separate mount namespace. So the test needs no BPF file system on the host, and
/// leaves no pinned objects on the host.
#[test]
fn a_pinned_one_outlives_its_loader_and_is_unloaded_by_name() {
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    assert_eq!(child.interrupt(), Some(0));
    goes();
    let equipoise = env!("CARGO_BIN_EXE_equipoise");
    let script = format!(
        "umount /sys/fs/bpf 2>/dev/null; mount -t tmpfs none /sys/fs/bpf && {equipoise} kernel load --pin; \
         echo without $?; umount /sys/fs/bpf; mount -t bpf bpf /sys/fs/bpf && {equipoise} kernel load --pin && \
         {equipoise} kernel status; {equipoise} kernel load --pin; echo again $?; {equipoise} kernel unload; \
         echo unloaded $?; {equipoise} kernel unload; echo nothing $?"
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().expect("unshare is there");
    let told = said(&output);
    for words in [
        "`mount -t bpf bpf /sys/fs/bpf` makes one",
        "without 4",
        "until `equipoise kernel unload`",
        "symbiosis is loaded: gamma 0.950",
        "again 4",
        "unloaded 0",
        "nothing 4",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    goes();
}

/// If `symbiosis` is not loaded, a live run must load it at its start and unload it at its end.
#[test]
#[ignore = "real time: 5 s, alone on the machine"]
fn a_live_run_that_wants_it_loads_it_and_takes_it_away_again() {
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    assert_eq!(child.interrupt(), Some(0));
    goes();
    let folder = Folder::new();
    let (file, json) = (folder.file("live.toml"), folder.file("live.json"));
    let text = "name = \"live\"\nduration = \"4 s\"\nsample_interval = \"100 ms\"\n[[link]]\nname = \"link\"\n\
         rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"500 packets\"\n[[flow]]\nname = \"tcp\"\npath = [\"link\"]\n\
         packet_size = \"1500 B\"\nwindow = { name = \"symbiosis\" }\nbandwidth = { kind = \"inline\" }\n";
    fs::write(&file, text).expect("writable");
    let output = run(&["live", &file, "--namespaces", "--quiet", "--json", &json]);
    if said(&output).contains("needs root and iproute2") {
        skip(NAMESPACES);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    goes();
    let results: Value = serde_json::from_slice(&fs::read(json).expect("written")).expect("JSON");
    let flow = &results["runs"][0]["flows"][0];
    assert_eq!(flow["controller"], "symbiosis");
    let goodput = flow["tcp"]["goodput_bps"].as_f64().unwrap_or(f64::NAN);
    assert!((0.2 * LINK_BPS..LINK_BPS).contains(&goodput), "{flow}");
}

/// If this test fails, users who are not root, or whose kernel has no type information (BTF), see only an error number.
#[test]
fn what_is_missing_is_named_with_the_way_out() {
    let _machine = Machine::alone();
    let equipoise = env!("CARGO_BIN_EXE_equipoise");
    let hide = format!("mount -t tmpfs none /sys/kernel/btf && exec {equipoise} kernel load");
    for (arguments, words) in [
        (&["--user", equipoise, "kernel", "load"][..], "run it as root"),
        (&["--user", equipoise, "kernel", "status"], "run it as root"),
        (&["--mount", "sh", "-c", &hide], "CONFIG_DEBUG_INFO_BTF=y"),
    ] {
        let able = Command::new("unshare").args([arguments[0], "true"]).output();
        if !able.is_ok_and(|output| output.status.success()) {
            skip("user and mount namespaces: unshare cannot make them");
            continue;
        }
        if is_registered() {
            skip("kernel congestion control: loaded already");
            continue;
        }
        let output = Command::new("unshare").args(arguments).output().expect("unshare was there a moment ago");
        let told = said(&output);
        assert_eq!(output.status.code(), Some(4), "{told}");
        let lacks_btf = !fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) && told.contains("BTF");
        assert!(told.contains(words) || lacks_btf, "{words}: {told}");
    }
}

const END: &str = "kernel::one_end_of_a_transfer";
const ROLE: &str = "EQUIPOISE_KERNEL";
/// The second connection starts this long after the first one. Both connections end at the same time.
const JOIN: Duration = Duration::from_secs(10);
/// The rates of both connections are measured from this time until both end. The time counts from the start of the
/// first connection.
const COUNTED_FROM: Duration = Duration::from_secs(22);
const END_OF_BOTH: Duration = Duration::from_secs(30);
const COUNTED_S: f64 = 8.0;
const LINK_BPS: f64 = 20e6;

/// Helper process, which does nothing in a normal test run. In a namespace it is one end of a TCP transfer.
#[test]
fn one_end_of_a_transfer() {
    match std::env::var(ROLE).as_deref() {
        Ok("near") => near_end(),
        Ok(file) if !file.is_empty() => far_end(file),
        _ => {}
    }
}

/// Sends over two connections as fast as possible. The second connection starts later.
fn near_end() {
    let begin = Instant::now();
    let senders = [Duration::ZERO, JOIN].map(|wait| {
        thread::spawn(move || {
            sleep(wait);
            let mut stream = TcpStream::connect("10.9.3.2:7000").expect("somebody listens");
            while begin.elapsed() < END_OF_BOTH {
                stream.write_all(&[0; 16384]).expect("somebody reads");
            }
        })
    });
    for sender in senders {
        sender.join().expect("it was sent");
    }
}

/// Accepts two connections, and writes three received rates in bit/s to `file`: the rate of the first connection while
/// it is alone, and the rate of each connection while both are active.
fn far_end(file: &str) {
    let listener = TcpListener::bind("10.9.3.2:7000").expect("a free port");
    let (first, _) = listener.accept().expect("a sender");
    let begin = Instant::now();
    let receivers = [Some(first), None].map(|stream| {
        let stream = stream.unwrap_or_else(|| listener.accept().expect("a second one").0);
        thread::spawn(move || received(stream, begin))
    });
    let [(alone, first), (_, second)] = receivers.map(|receiver| receiver.join().expect("it came"));
    fs::write(file, format!("[{alone}, {first}, {second}]")).expect("writable");
}

/// Returns the received rates of a connection in bit/s: in the 5 s before the second connection starts, and in the last
/// 8 s before both connections end.
fn received(mut stream: TcpStream, begin: Instant) -> (f64, f64) {
    let (mut buffer, mut alone, mut together) = (vec![0; 65536], 0, 0);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        let at = begin.elapsed();
        if (JOIN / 2..JOIN).contains(&at) {
            alone += length;
        } else if (COUNTED_FROM..END_OF_BOTH).contains(&at) {
            together += length;
        }
    }
    (alone as f64 * 8.0 / (JOIN / 2).as_secs_f64(), together as f64 * 8.0 / COUNTED_S)
}

/// If this test fails, Symbiosis does not keep the queue of the link short. The queue has room for 1000 packets, whose
/// transmission takes 600 ms. Reno would fill the queue.
#[test]
#[ignore = "real time: 31 s, alone on the machine"]
fn a_connection_fills_the_link_and_not_the_queue_and_a_second_one_finds_its_place() {
    let machine = Machine::alone();
    let Some(mut child) = load(&machine) else { return };
    // Connections of an earlier test may still be closing, so their addresses are excluded.
    let earlier = ends(&status());
    let Some(places) = Places::new(&machine, &ADDRESSES) else { return };
    let sysctl = "ip netns exec NEAR sysctl -q -w net.ipv4.tcp_congestion_control=symbiosis";
    assert!(places.done(sysctl), "{sysctl}");
    let folder = Folder::new();
    let results = folder.file("received");
    let mut command = Places::command(&places.middle, env!("CARGO_BIN_EXE_equipoise"));
    command.args(["link", "--between", "near", "far", "--rate", "20M", "--delay", "20ms", "--queue", "1000 packets"]);
    let (mut link, _) = start(command);
    let mut far = Places::end(&places.far, END, (ROLE, &results));
    port_of(far.id(), "tcp");
    let mut near = Places::end(&places.near, END, (ROLE, "near"));
    sleep(Duration::from_secs(8));
    let alone = status();
    sleep(Duration::from_secs(3));
    // The congestion control is unregistered while connections use it. The kernel keeps the BPF program for these
    // connections.
    child.kill();
    goes();
    sleep(Duration::from_secs(16));
    let both = status();
    near.finish();
    far.finish();
    assert_eq!(link.interrupt(), Some(0));
    let received: Vec<f64> = serde_json::from_slice(&fs::read(&results).expect("written")).expect("three numbers");

    let is_ours = |connection: &&Value| !earlier.contains(&connection["local"]);
    let connection = connections(&alone).iter().find(is_ours).expect("the first connection");
    let value = |name: &str| connection[name].as_f64().unwrap_or(f64::NAN);
    // Of the 1500 bytes of a packet, 1448 are payload.
    let capacity = value("capacity_bps") / (LINK_BPS * 1448.0 / 1500.0);
    assert!((0.75..1.33).contains(&capacity), "K is {capacity} of the link: {alone}");
    assert!((0.0395..0.045).contains(&value("min_round_trip_s")), "{alone}");
    assert!(value("round_trip_s") < 0.140, "{alone}");
    assert!(received[0] > 0.6 * LINK_BPS && received[0] < LINK_BPS, "alone: {received:?}, {alone}");
    let shares = [received[1] / LINK_BPS, received[2] / LINK_BPS];
    assert!(shares.iter().all(|share| (0.2..0.8).contains(share)), "{shares:?}: {both}");
    assert!(shares[0] + shares[1] > 0.6, "{shares:?}: {both}");
    assert_eq!(both["loaded"], false);
    assert!(ends(&both).iter().filter(|end| !earlier.contains(end)).count() >= 2, "{both}");
}
