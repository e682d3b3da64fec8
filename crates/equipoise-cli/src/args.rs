//! What the command line can say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use equipoise::units::{Rate, Span, UnitError};
use equipoise_net::Via;

#[cfg(feature = "kernel")]
use crate::kernel::args::Kernel;
use crate::link::args::Link;
use crate::paper::args::Paper;

macro_rules! examples {
    () => {
        "Examples:
  equipoise demo                                      # live on loopback, then simulated: 40 s
  equipoise sim scenarios/demo.toml --runs 30         # thirty seeds, all cores
  equipoise live scenarios/demo.toml --report r.html  # real packets, an emulated bottleneck"
    };
}

/// End-to-end rate control for real-time media.
#[derive(Debug, Parser)]
#[command(
    name = "equipoise",
    version,
    about = "End-to-end rate control for real-time media: one scenario, simulated and on real sockets",
    after_help = examples!(),
    after_long_help = AFTER_LONG_HELP,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_LONG_HELP: &str = concat!(
    examples!(),
    "

Exit codes:
  0    all went well
  1    a run failed
  2    the command line is wrong
  3    the scenario, the capture or the file of rates cannot be read or is wrong
  4    the network, the kernel's part, or a right to use it is missing
  5    an output file cannot be written
  130  interrupted; the report of what was run is written"
);

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Hold a live session at its target delay, simulate the same, and lay the two over each other
    #[command(after_help = "Examples:
  equipoise demo
  equipoise demo --short --out /tmp/demo")]
    Demo(Demo),
    /// Run a scenario in the simulator
    #[command(after_help = "Examples:
  equipoise sim scenarios/demo.toml
  equipoise sim scenarios/demo.toml --seed 7 --runs 100 --json runs.json --quiet
  equipoise sim scenarios/demo.toml --json - --quiet | jq .runs[0].flows[0].settled_delay_s")]
    Sim(Run),
    /// Run a scenario on real sockets, through an emulated bottleneck on loopback; needs no rights
    #[command(after_help = "Examples:
  equipoise live scenarios/demo.toml
  equipoise live scenarios/demo.toml --report report.html --json report.json
  equipoise live scenarios/waki2013/ap-robust.toml --namespaces --overlay --report overlay.html
  equipoise live scenarios/kodama2009/fig5.toml --namespaces --overlay --report tcp.html")]
    Live(Live),
    /// Send to `equipoise receive` on another host, at the rate that the path takes (iperf3 -c)
    #[command(after_help = "Examples:
  equipoise send media.example.net --key secret                         # a load of zeros for 10 s
  equipoise send 192.0.2.7 --key secret --target 30ms --max-rate 8M -t 60
  ffmpeg ... -f mpegts - | equipoise send 192.0.2.7 --key secret --file -
  equipoise send 192.0.2.7 --key secret --rtp 5006                      # what GStreamer sends to 127.0.0.1:5006
  equipoise send 127.0.0.1 --insecure -b 3M -l 1000 --json -            # constant bit rate, no encryption")]
    Send(Box<Send>),
    /// Receive the sessions of `equipoise send` and report on them (iperf3 -s)
    #[command(after_help = "Examples:
  head -c 32 /dev/urandom | base64 > secret; equipoise receive --key secret
  equipoise receive --key secret --one-off --output stream.ts
  equipoise receive --key secret --rtp 127.0.0.1:5008                   # play it out to GStreamer on port 5008")]
    Receive(Receive),
    /// Run a paper's experiments again: its figures, ours with their intervals, and verdicts
    #[command(after_help = "Examples:
  equipoise paper waki2013                             # all of it, on all cores
  equipoise paper waki2013 fig7 --report fig7.html
  equipoise paper waki2013 fig12 fig14 --runs 300 --json claims.json
  equipoise paper kodama2009 fig15 --report fig15.html
  equipoise paper kodama2009 fig5 --live --report live.html   # 16 minutes, as root
  equipoise paper tobe1999 fig10 --live --report live.html    # 160 s, as root
  equipoise paper waki2013 all --quick                 # shows that it works, too few runs to judge by")]
    #[command(subcommand)]
    Paper(Paper),
    /// Analyse captures of real traffic
    #[command(
        subcommand,
        after_help = "Example:
  equipoise capture rtt transfer.pcap.gz --report rtt.html"
    )]
    Capture(Capture),
    /// An emulated path for other programs: rate, delay, loss, queue; for UDP, or between interfaces or TUN devices for any traffic
    #[command(after_help = "Examples:
  equipoise link --listen 127.0.0.1:9000 --to 127.0.0.1:5201 --rate 15M --delay 10ms
  equipoise link --listen [::1]:9000 --to [::1]:9001 --loss-burst '1% 25%' --jitter 2ms --json link.json
  equipoise link --between veth0 veth1 --rate 20M --delay 25ms --queue '50 ms' --back-rate unlimited
  equipoise link --tun here there --rate 20M --delay 25ms
  equipoise link --between veth0 veth1 --rate-trace lte-down.trace --back-rate-trace lte-up.trace --aqm codel")]
    Link(Box<Link>),
    /// TCP Symbiosis as a congestion control of this machine's kernel, for any program; needs root and Linux 6.4 or newer
    #[cfg(feature = "kernel")]
    #[command(
        subcommand,
        after_help = "Examples:
  equipoise kernel load --pin
  equipoise kernel status
  equipoise kernel unload"
    )]
    Kernel(Kernel),
    /// Parse a scenario and say what it would do, without running it
    #[command(after_help = "Example:
  equipoise check scenarios/demo.toml")]
    Check {
        /// The scenario file
        file: PathBuf,
    },
    /// List every controller with its parameters: unit, default, range, source
    Controllers,
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  equipoise completions bash > ~/.local/share/bash-completion/completions/equipoise")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Options of the demo.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Folder for report.html and report.json; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "equipoise-demo")]
    pub(crate) out: PathBuf,
    /// Ten seconds instead of forty: shows that it works, too short to judge by
    #[arg(long)]
    pub(crate) short: bool,
    /// Send live packets across three network namespaces instead of the loopback interface; needs root
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Seed of the background traffic, in both worlds [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What can be had from a capture.
#[derive(Debug, Subcommand)]
pub(crate) enum Capture {
    /// Round-trip times of TCP by connection, and how they are distributed
    #[command(
        after_help = "Reads pcap and pcapng, compressed by gzip or not, of Ethernet, VLAN, Linux cooked and raw IP.

Examples:
  equipoise capture rtt transfer.pcap.gz
  equipoise capture rtt lte.pcapng --bin 20ms --json rtt.json --report rtt.html
  tcpdump -w - -c 10000 tcp | equipoise capture rtt -"
    )]
    Rtt(Rtt),
}

/// Options of round-trip times from a capture.
#[derive(Debug, Args)]
pub(crate) struct Rtt {
    /// The capture; - for standard input
    pub(crate) file: PathBuf,
    /// Width of the histograms' bars, such as 2ms [default: from the samples]
    #[arg(long, value_name = "TIME")]
    pub(crate) bin: Option<Span>,
    /// Which acknowledgements count: those of two successive segments, or every one
    #[arg(long, value_enum, default_value_t = Acks::Pair)]
    pub(crate) acks: Acks,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Which acknowledgements give a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Acks {
    /// Of exactly two segments, which no delayed-ACK timer sent (Waki 2013)
    Pair,
    /// Every one
    Every,
}

/// Options that both ends of a session have.
#[derive(Debug, Args)]
pub(crate) struct Ends {
    /// UDP port of the receiver
    #[arg(short, long, default_value_t = 5004)]
    pub(crate) port: u16,
    /// File with what both hosts know, 16 bytes or more [default: the environment variable `EQUIPOISE_KEY`]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) key: Option<PathBuf>,
    /// Neither encrypt nor authenticate: anybody on the way may read the session, forge packets, and set its rate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Seconds between two lines
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Span,
    /// Write the results as JSON; without a file to standard output
    #[arg(short = 'J', long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of a sender.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Name or address of the receiving host
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Seconds to send for; 0 for as long as there is something to send [default: 10, or as long as the payload lasts]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// The controller; `equipoise controllers` lists them
    #[arg(long, value_name = "NAME", default_value = "ap")]
    pub(crate) controller: String,
    /// Delay to hold
    #[arg(long, value_name = "TIME", default_value = "20 ms")]
    pub(crate) target: Span,
    /// What that delay is
    #[arg(long, value_enum, default_value_t = DelayKind::Queueing)]
    pub(crate) delay: DelayKind,
    /// Lowest rate, at which the session starts, such as 500k
    #[arg(long, value_name = "RATE", default_value = "100k")]
    pub(crate) min_rate: Rate,
    /// Highest rate
    #[arg(long, value_name = "RATE", default_value = "15M")]
    pub(crate) max_rate: Rate,
    /// A constant rate instead of a controller's, such as 3M
    #[arg(short, long, value_name = "RATE", conflicts_with_all = ["controller", "set"])]
    pub(crate) bitrate: Option<Rate>,
    /// Set a parameter of the controller
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Size of IP packets in bytes, headers included; of the largest, where there is a payload
    #[arg(short, long, value_name = "BYTES", default_value_t = 1200)]
    pub(crate) length: u16,
    /// Time between two reports of the receiver
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    pub(crate) report_interval: Span,
    /// Send this file's bytes, - for standard input, instead of zeros
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "rtp")]
    pub(crate) file: Option<PathBuf>,
    /// Send the RTP packets that another program sends to this local address or port
    #[arg(long, value_name = "ADDRESS", value_parser = local)]
    pub(crate) rtp: Option<SocketAddr>,
    /// Offer the rate to an encoder: a Unix socket that gives a line `rate BITS_PER_SECOND` whenever it changes
    #[arg(long, value_name = "PATH")]
    pub(crate) rate_socket: Option<PathBuf>,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS", conflicts_with = "path")]
    pub(crate) bind: Option<IpAddr>,
    /// Network interface to send by, or the address of one; once for each path of a session over several
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) path: Vec<Via>,
    /// What divides the rate among the paths; `equipoise controllers` lists them
    #[arg(long, value_name = "NAME", default_value = "ap", requires = "path")]
    pub(crate) split: String,
    /// Set a parameter of what divides the rate
    #[arg(long, value_name = "NAME=VALUE", requires = "path")]
    pub(crate) split_set: Vec<String>,
    /// Time between two divisions, a report interval or more [default: 5 s, or the report interval]
    #[arg(long, value_name = "TIME", requires = "path")]
    pub(crate) split_period: Option<Span>,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "six")]
    pub(crate) four: bool,
    /// Only IPv6
    #[arg(short = '6')]
    pub(crate) six: bool,
}

/// What a target delay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DelayKind {
    /// Beyond the least delay of the path; needs no clock
    Queueing,
    /// One-way; the clocks of both hosts are synchronised, you say
    OneWay,
    /// One-way, with the clocks compared by round trips: off by up to half of the shortest
    Estimated,
}

/// Options of a receiver.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Local address to receive at [default: all]
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Seconds to run for [default: until Ctrl-C]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// End with the first session
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Write the first session's payload to this file, - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Send the RTP packets of sessions that carry them to this address or local port
    #[arg(long, value_name = "ADDRESS", value_parser = local)]
    pub(crate) rtp: Option<SocketAddr>,
    /// How long a missing packet is waited for before the next is given out
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub(crate) hold: Span,
    /// Seconds after which a silent session is given up
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) idle: Span,
    /// Sessions at once
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) most_sessions: usize,
}

/// Seconds as people write them: 10, 0.5, or a time with its unit.
pub(crate) fn seconds(text: &str) -> Result<Span, String> {
    let bare = text.parse().ok().filter(|seconds: &f64| *seconds >= 0.0).and_then(Span::from_secs_f64);
    bare.map_or_else(|| text.parse().map_err(|error: UnitError| error.to_string()), Ok)
}

/// An address with a port, or a port of this host.
fn local(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = port.or_else(|| text.parse().ok());
    address.ok_or_else(|| "it is to be a port, such as 5006, or an address with one, such as 127.0.0.1:5006".to_owned())
}

/// Options of a live run.
#[derive(Debug, Args)]
pub(crate) struct Live {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Across three network namespaces instead of the loopback interface, which TCP flows need; needs root
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Simulate the same seeds too, and lay the two worlds over each other
    #[arg(long)]
    pub(crate) overlay: bool,
}

/// Options of a run in either world.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario file
    pub(crate) file: PathBuf,
    /// Seed of the first run; further runs count on from it [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How many runs, each with its own seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Threads for simulated runs; the results do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write every event of the run as a line of CSV; for a single run
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// Write the results as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
