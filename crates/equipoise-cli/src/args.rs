//! What the command line can say.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use equipoise::units::Span;

use crate::link::args::Link;

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
  4    the network or a right to use it is missing
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
  equipoise live scenarios/demo.toml --report report.html --json report.json")]
    Live(Run),
    /// Run a paper's experiments again: its figures, ours with their intervals, and verdicts
    #[command(after_help = "Examples:
  equipoise paper waki2013                             # all of it, on all cores
  equipoise paper waki2013 fig7 --report fig7.html
  equipoise paper waki2013 fig12 fig14 --runs 300 --json claims.json
  equipoise paper waki2013 all --quick                 # shows that it works, too few runs to judge by")]
    Paper(Paper),
    /// Analyse captures of real traffic
    #[command(
        subcommand,
        after_help = "Example:
  equipoise capture rtt transfer.pcap.gz --report rtt.html"
    )]
    Capture(Capture),
    /// An emulated path for other programs: rate, delay, loss, queue; for UDP, or between two interfaces for any traffic
    #[command(after_help = "Examples:
  equipoise link --listen 127.0.0.1:9000 --to 127.0.0.1:5201 --rate 15M --delay 10ms
  equipoise link --listen [::1]:9000 --to [::1]:9001 --loss-burst '1% 25%' --jitter 2ms --json link.json
  equipoise link --between veth0 veth1 --rate 20M --delay 25ms --queue '50 ms' --back-rate unlimited
  equipoise link --between veth0 veth1 --rate-trace lte-down.trace --back-rate-trace lte-up.trace --aqm codel")]
    Link(Box<Link>),
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
    /// Seed of the background traffic, in both worlds [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of a paper's experiments.
#[derive(Debug, Args)]
pub(crate) struct Paper {
    /// The paper
    #[arg(value_name = "PAPER")]
    pub(crate) name: PaperName,
    /// Which of its figures, and what is beyond them
    #[arg(value_name = "PART", default_value = "all")]
    pub(crate) parts: Vec<PaperPart>,
    /// Runs of every experiment [default: as many as in the paper, and up to 10000 for rare events]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "quick")]
    pub(crate) runs: Option<u32>,
    /// Few runs: shows that it works, too few to judge by
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of the first run of each experiment
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads; the results do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write the claims with their verdicts as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The papers that can be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperName {
    /// Attractor-perturbation rate control
    Waki2013,
}

/// A part of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperPart {
    /// b over the load
    Fig5,
    /// The linear relation of variance and response
    Fig7,
    /// Delay and rate over time, with Fig. 11
    Fig10,
    /// Criteria of AP and CBR
    Fig12,
    /// Criteria of AP and AIMD
    Fig13,
    /// Sending rates of AP and AIMD
    Fig14,
    /// Beyond the paper: how often the printed law runs away, and the robust law beside it
    Runaway,
    /// The paper's future work: b learned instead of given
    Learning,
    /// All of these
    All,
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
    /// Write the analysis as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Which acknowledgements give a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Acks {
    /// Of exactly two segments, which no delayed-ACK timer sent (Waki 2013)
    Pair,
    /// Every one
    Every,
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
    /// Write the results as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write every event of the run as a line of CSV; for a single run
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) trace: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
