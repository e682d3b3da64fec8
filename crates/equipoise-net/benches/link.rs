//! Punctuality of a bridge: actual minus ideal departure times of packets at 15, 100 and 1000 Mbit/s. The bridge runs
//! between network interfaces or as a UDP relay, with and without busy-waiting.
//!
//! Run it with `cargo bench -p equipoise-net --bench link`. Append `-- SECONDS` for longer or shorter runs, `-- SECONDS
//! MBPS` for one rate, or `-- SECONDS MBPS interfaces spin` for one row of the table. Bridging interfaces needs the
//! right to create network namespaces.
#![expect(clippy::print_stdout, reason = "a bench prints what it found")]

use std::env;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};

use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_net::{Bridge, BridgeConfig, BridgeReport, Clock, Lateness, Time};
use equipoise_path::link::{Capacity, PipeConfig};
use equipoise_path::source::{Source, Traffic};

/// Size of the IP packets that the load generator sends.
const PACKET: Size = Size::from_bytes(1200);
/// The sending rate of the load generator as a share of the link's rate.
const LOAD: f64 = 0.9;
const RATES_MBPS: [u64; 3] = [15, 100, 1000];
const SECONDS: i64 = 10;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words.as_slice() {
        ["send", to, mbps, seconds] => send(to.parse()?, mbps.parse()?, seconds.parse()?),
        ["between", mbps, spin, seconds] => {
            let config = config(mbps.parse()?, spin == "spin");
            let bridge = Bridge::between(&Clock::new(), &config, "near", "far")?;
            print_row("interfaces", mbps.parse()?, config.spin, &finish(bridge, seconds.parse()?)?);
            Ok(())
        }
        [] => all(SECONDS, &RATES_MBPS, &[]),
        [seconds] => all(seconds.parse()?, &RATES_MBPS, &[]),
        [seconds, mbps, ref only @ ..] => all(seconds.parse()?, &[mbps.parse()?], only),
    }
}

/// Measures and prints the rows whose names contain all words of `only`.
fn all(seconds: i64, rates_mbps: &[u64], only: &[&str]) -> Outcome {
    println!("lateness of departures in us, without windows of 100 ms with a stall; {seconds} s each");
    println!(
        "ends        Mbit/s  wait      packets    p50     p99   p99.9      max   all: p99   p99.9  stalls  dropped"
    );
    let places = Places::new();
    if places.is_none() {
        println!("skipped: interfaces, because the right to make network namespaces is missing");
    }
    for &mbps in rates_mbps {
        for spin in [false, true] {
            let wanted = |ends| only.iter().all(|word| [ends, wait(spin)].contains(word));
            if let Some(places) = places.as_ref().filter(|_| wanted("interfaces")) {
                places.run(mbps, spin, seconds)?;
            }
            if wanted("relay") {
                relay(mbps, spin, seconds)?;
            }
        }
    }
    Ok(())
}

/// A bridge with a delay of 5 ms in each direction. The forward direction also has a bottleneck with a queue of 1000
/// packets.
fn config(mbps: u64, spin: bool) -> BridgeConfig {
    let capacity = Capacity::Rate(Schedule::constant(Rate::from_bps(mbps * 1_000_000)));
    let forward = PipeConfig { capacity, delay: Span::from_millis(5).into(), ..PipeConfig::default() };
    let back = PipeConfig { delay: Span::from_millis(5).into(), ..PipeConfig::default() };
    BridgeConfig { forward, back, spin, ..BridgeConfig::default() }
}

fn wait(spin: bool) -> &'static str {
    if spin { "spin" } else { "sleep" }
}

fn relay(mbps: u64, spin: bool, seconds: i64) -> Outcome {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // The sink reads nothing. Datagrams that overflow its buffer have already left the bridge, so they do not change
    // the results.
    let sink = UdpSocket::bind(any)?;
    let config = config(mbps, spin);
    let bridge = Bridge::relay(&Clock::new(), &config, any, sink.local_addr()?)?;
    let to = bridge.address().ok_or("a relay has an address")?;
    let program = env::current_exe()?;
    let mut sender = load(Command::new(program), &to.to_string(), mbps, seconds)?;
    let report = finish(bridge, seconds)?;
    sender.wait()?;
    print_row("UDP relay", mbps, spin, &report);
    Ok(())
}

/// Waits for `seconds` plus 0.5 s, then stops the bridge. The load generator sends for `seconds`, and starts about
/// 0.2 s after the bridge. So the load generator stops before the bridge.
fn finish(bridge: Bridge, seconds: i64) -> Outcome<BridgeReport> {
    let clock = Clock::new();
    clock.sleep_until(clock.now() + Span::from_secs(seconds) + Span::from_millis(500));
    Ok(bridge.stop()?)
}

fn load(mut program: Command, to: &str, mbps: u64, seconds: i64) -> Outcome<Child> {
    Ok(program.args(["send", to, &mbps.to_string(), &seconds.to_string()]).spawn()?)
}

/// Sends a Poisson stream to `to`: each packet at its scheduled time, or at once if this time has passed.
fn send(to: SocketAddr, mbps: u64, seconds: i64) -> Outcome {
    /// If a packet is due within this time, the thread spins instead of sleeping.
    const SPIN: Span = Span::from_micros(200);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let clock = Clock::new();
    // The bridge gets 200 ms to start.
    let start = clock.now() + Span::from_millis(200);
    let rate = Rate::from_bps_f64(mbps as f64 * 1e6 * LOAD).ok_or("a rate")?;
    let mut source: Source<_> = Source::new(Traffic::Poisson, Schedule::constant(rate), PACKET, start, (1, 0));
    let payload = vec![0; (PACKET - Size::IPV4_UDP).as_bytes() as usize];
    while let Some(at) = source.next_departure().filter(|at: &Time| *at < start + Span::from_secs(seconds)) {
        if at - clock.now() > SPIN {
            clock.sleep_until(at - SPIN);
        }
        while clock.now() < at {
            std::hint::spin_loop();
        }
        // A packet that the kernel refuses counts as lost.
        let _ = socket.send_to(&payload, to);
        source.advance();
    }
    Ok(())
}

fn print_row(ends: &str, mbps: u64, spin: bool, report: &BridgeReport) {
    let forward = &report.forward;
    let punctuality = &forward.punctuality;
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    let of = |which: Option<Lateness>, value: fn(Lateness) -> Span| which.map_or(f64::NAN, |late| micros(value(late)));
    let (quiet, all) = (punctuality.quiet, punctuality.all);
    println!(
        "{ends:10}  {mbps:6}  {:5} {:9}/{:<9} {:6.0} {:7.0} {:7.0} {:8.0}   {:8.0} {:7.0}  {:6}  {:7}",
        wait(spin),
        punctuality.quiet_packets,
        punctuality.packets,
        of(quiet, |late| late.p50),
        of(quiet, |late| late.p99),
        of(quiet, |late| late.p999),
        of(quiet, |late| late.max),
        of(all, |late| late.p99),
        of(all, |late| late.p999),
        report.stalls.list.len(),
        report.ports.overflowed + report.ports.unsent + forward.path.dropped_full,
    );
}

/// The network namespaces of a sender, a bridge and a receiver. They are removed on drop.
struct Places([String; 3]);

impl Places {
    fn new() -> Option<Self> {
        let places = Self(["near", "middle", "far"].map(|end| format!("equipoise-bench-{end}-{}", std::process::id())));
        let [near, middle, far] = &places.0;
        let commands = [
            format!("ip netns add {near}"),
            format!("ip netns add {middle}"),
            format!("ip netns add {far}"),
            format!("ip -n {near} link add eth0 type veth peer name near netns {middle}"),
            format!("ip -n {far} link add eth0 type veth peer name far netns {middle}"),
            format!("ip -n {near} addr add 10.9.3.1/24 dev eth0"),
            format!("ip -n {far} addr add 10.9.3.2/24 dev eth0"),
            format!("ip -n {near} link set eth0 up"),
            format!("ip -n {middle} link set near up"),
            format!("ip -n {middle} link set far up"),
            format!("ip -n {far} link set eth0 up"),
        ];
        let done = |command: &String| {
            let mut words = command.split(' ');
            let program = words.next().unwrap_or_default();
            Command::new(program).args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        commands.iter().all(done).then_some(places)
    }

    fn run(&self, mbps: u64, spin: bool, seconds: i64) -> Outcome {
        let [near, middle, _] = &self.0;
        let program = env::current_exe()?;
        let within = |place: &String| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", place]).arg(&program);
            command
        };
        let mut bridge =
            within(middle).args(["between", &mbps.to_string(), wait(spin), &seconds.to_string()]).spawn()?;
        // No socket listens at this port. The receiver's kernel limits the rate of its ICMP errors, so they are few.
        let mut sender = load(within(near), "10.9.3.2:9", mbps, seconds)?;
        sender.wait()?;
        bridge.wait()?;
        Ok(())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for place in &self.0 {
            // If a namespace cannot be removed, it stays until the next boot.
            let _ = Command::new("ip").args(["netns", "delete", place]).status();
        }
    }
}
