//! The options and subcommands of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use equipoise_lab::scenario::Override;

#[cfg(feature = "papers")]
use crate::capture::args::Capture;
use crate::compare::args::Compare;
#[cfg(feature = "live")]
use crate::hosts::args::{Keygen, Receive, Send};
#[cfg(feature = "kernel")]
use crate::kernel::args::Kernel;
#[cfg(feature = "live")]
use crate::link::args::Link;
use crate::output::Results;
#[cfg(feature = "papers")]
use crate::paper::args::Paper;
use crate::suite::args::Suite;
use crate::sweep::args::Sweep;
#[cfg(feature = "live")]
use crate::views::args::Viewing;

macro_rules! examples {
    () => {
        "Examples:
  equipoise demo                                      # live on loopback, then simulated: a minute
  equipoise sim scenarios/demo.toml --runs 30         # thirty seeds, all cores
  equipoise compare scenarios/demo.toml --controller ap,aimd,tfrc
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
  0    success
  1    a run failed, or a sweep to merge lacks runs
  2    the command line is invalid
  3    an input (scenario, capture, file of rates, folder of a sweep) cannot be read, is invalid or needs too many resources
  4    an operation of the network or the kernel fails, or a required congestion control or permission is missing
  5    an output file cannot be written
  6    with --check: a session did not hold its target, or too many runs of `suite paths` were bad
  130  interrupted; the report on the completed part is written
  141  standard output was closed before the results were written"
);

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a session with a target delay, and then a session with video under our own control law; run both live and
    /// simulated, and compare the results in one report
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise demo
  equipoise demo --short --out /tmp/demo")]
    Demo(Demo),
    /// Run scenarios in the simulator
    #[command(after_help = "Examples:
  equipoise sim scenarios/demo.toml
  equipoise sim scenarios/demo.toml --set duration=120s --set 'link.bottleneck.rate=10 Mbit/s'
  equipoise sim scenarios/demo.toml --set flow.media.controller.b=600 --runs 20 --report r.html
  equipoise sim scenarios/demo.toml scenarios/idle.toml --report both.html
  equipoise sim scenarios/demo.toml --seed 7 --runs 100 --json runs.json --quiet
  equipoise sim scenarios/demo.toml --pcapng demo.pcapng --log - | jq .reason
  equipoise sim scenarios/demo.toml --qlog demo-qlog
  equipoise sim scenarios/demo.toml --runs 20 --intervals-csv intervals.csv
  equipoise sim scenarios/demo.toml --json - --quiet | jq .runs[0].flows[0].settled_delay_s
  equipoise sim scenarios/demo.toml --runs 20 --check             # exit code 6 if the target was not held")]
    Sim(Sim),
    /// Compare controllers or scenarios on the same seeds: paired differences, and a chart of delay against rate
    #[command(after_help = "Examples:
  equipoise compare scenarios/demo.toml --controller ap,aimd,tfrc
  equipoise compare scenarios/demo.toml --controller ap,cbr --set 'flow.media.controller.rate=3 Mbit/s'
  equipoise compare scenarios/lte.toml --controller ap,tfrc --runs 50 --report compare.html
  equipoise compare one.toml other.toml --flow media --json compare.json

Parameters of the file's controller also apply to the other controllers, if these have a parameter of the same name and kind.
Values of --set apply to all controllers that have the parameter. Differences are calculated seed by seed.")]
    Compare(Compare),
    /// Run a suite of cases under several controllers: one table, report, JSON and CSV
    #[command(
        subcommand,
        after_help = "Examples:
  equipoise suite rfc8867 --quick --report rfc8867.html
  equipoise suite traces traces/
  equipoise suite paths --runs 1000"
    )]
    Suite(Suite),
    /// Run all combinations and random draws of a scenario's values on all cores, and write one table: Parquet, CSV
    #[command(after_help = "Examples:
  equipoise sweep scenarios/demo.toml --vary link.bottleneck.rate=12M,15M,20M --runs 20 --out rates --csv rates.csv
  equipoise sweep scenarios/demo.toml --vary flow.media.controller.b=150,300,600 \\
    --draw 'link.bottleneck.delay=uniform(2 ms, 8 ms)' --points 100 --out b
  equipoise sweep --out b                                  # continue the sweep, on this or another machine
  equipoise sweep --out b --shard $SLURM_ARRAY_TASK_ID/16  # one of sixteen jobs
  equipoise sweep --out b --merge b.parquet                # all rows in one file

The book's chapter on sweeps describes the columns. If the command is killed, completed runs are kept.")]
    Sweep(Sweep),
    /// Run a scenario on real sockets, through an emulated bottleneck on loopback; needs no special permissions
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise live scenarios/demo.toml
  equipoise live scenarios/demo.toml --report report.html --json report.json
  equipoise live scenarios/waki2013/ap-robust.toml --namespaces --overlay --report overlay.html
  equipoise live scenarios/kodama2009/fig5.toml --namespaces --overlay --report tcp.html
  equipoise live scenarios/tobe1999/fig10.toml --namespaces --overlay --report pair.html")]
    Live(Live),
    /// Send to `equipoise receive` on another host, at the rate that the path can carry (like iperf3 -c)
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise send media.example.net --key secret                         # zeros for 10 s, to load the path
  equipoise send 192.0.2.7 --key secret --target 30ms --max-rate 8M -t 60
  equipoise send 192.0.2.7 --key secret -R                              # the receiver sends
  equipoise send 192.0.2.7 --key secret --bidir -P 4                    # four sessions each way at once
  ffmpeg ... -f mpegts - | equipoise send 192.0.2.7 --key secret --file -
  equipoise send 192.0.2.7 --key secret --rtp 5006                      # the RTP that GStreamer sends to 127.0.0.1:5006
  equipoise send 127.0.0.1 --insecure -b 3M -l 1000 --json -            # constant bit rate, no encryption")]
    Send(Box<Send>),
    /// Receive sessions of `equipoise send` and report on them (like iperf3 -s)
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise keygen secret; equipoise receive --key secret
  equipoise receive --key secret --one-off --output stream.ts
  equipoise receive --key secret --rtp 127.0.0.1:5008                   # forward the RTP to GStreamer on port 5008")]
    Receive(Receive),
    /// Generate a random key for `send` and `receive`, and write it to a file that only the owner can read
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise keygen secret; scp -p secret other-host:
  EQUIPOISE_KEY=$(equipoise keygen -) equipoise receive")]
    Keygen(Keygen),
    /// Repeat a paper's experiments: print the paper's values, our values with confidence intervals, and verdicts
    #[cfg(feature = "papers")]
    #[command(after_help = "Examples:
  equipoise paper waki2013                             # all experiments, on all cores
  equipoise paper waki2013 fig7 --report fig7.html
  equipoise paper waki2013 fig12 fig14 --runs 300 --json claims.json
  equipoise paper kodama2009 fig15 --report fig15.html
  equipoise paper kodama2009 fig5 --live --report live.html   # 16 minutes, as root
  equipoise paper tobe1999 fig10 --live --report live.html    # 240 s, as root
  equipoise paper waki2013 all --quick                 # test that the command works; too few runs for a verdict")]
    #[command(subcommand)]
    Paper(Paper),
    /// Analyse captures of real traffic
    #[cfg(feature = "papers")]
    #[command(
        subcommand,
        after_help = "Examples:
  equipoise capture rtt transfer.pcap.gz --report rtt.html
  equipoise capture rtp call.pcap.gz"
    )]
    Capture(Capture),
    /// Emulate a path (rate, delay, loss, queue) for other programs: for UDP, or for any traffic between interfaces or
    /// TUN devices
    #[cfg(feature = "live")]
    #[command(after_help = "Examples:
  equipoise link --listen 127.0.0.1:9000 --to 127.0.0.1:5201 --rate 15M --delay 10ms
  equipoise link --listen [::1]:9000 --to [::1]:9001 --loss-burst '1% 25%' --jitter 2ms --json link.json
  equipoise link --between veth0 veth1 --rate 20M --delay 25ms --queue '50 ms' --back-rate unlimited
  equipoise link --tun here there --rate 20M --delay 25ms
  equipoise link --between veth0 veth1 --rate-trace lte-down.trace --back-rate-trace lte-up.trace --aqm codel")]
    Link(Box<Link>),
    /// Load TCP Symbiosis as a congestion control of this machine's kernel, for any program; needs root and Linux 6.4
    /// or newer
    #[cfg(feature = "kernel")]
    #[command(
        subcommand,
        after_help = "Examples:
  equipoise kernel load --pin
  equipoise kernel status
  equipoise kernel unload"
    )]
    Kernel(Kernel),
    /// Parse a scenario and describe it, without running it
    #[command(after_help = "Examples:
  equipoise check scenarios/demo.toml
  equipoise check scenarios/demo.toml --set link.bottleneck.rate=10M")]
    Check {
        /// The scenario file
        file: PathBuf,
        #[command(flatten)]
        changes: Changes,
    },
    /// List all controllers and traffic models with their parameters: unit, default, range, reference
    Controllers,
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  equipoise completions bash > ~/.local/share/bash-completion/completions/equipoise")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a manual page for each command into a folder
    #[command(after_help = "Example:
  equipoise man ~/.local/share/man/man1; man equipoise-send")]
    Man {
        /// The folder for the manual pages; it is created if it does not exist
        folder: PathBuf,
    },
}

/// Options of the demo.
#[cfg(feature = "live")]
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Folder for report.html and report.json; it is created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "equipoise-demo")]
    pub(crate) out: PathBuf,
    /// Run for 30 s instead of 60 s: enough to test that the demo works, too short for conclusions
    #[arg(long)]
    pub(crate) short: bool,
    /// Send live packets across three network namespaces instead of the loopback interface; needs root
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Seed of the background traffic, live and simulated [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of a simulated run.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Scenario files; several run one after another, with one report and one list in JSON
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write all datagrams of the run as a capture for Wireshark and similar programs, with one interface for the
    /// senders and one for the receivers; single run only
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) pcapng: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// Options of a live run.
#[cfg(feature = "live")]
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// The scenario file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) run: Run,
    /// Run across three network namespaces instead of the loopback interface; required for TCP flows and flow pairs;
    /// needs root
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Also simulate the runs with the same seeds, and draw both results in the same charts
    #[arg(long)]
    pub(crate) overlay: bool,
    #[command(flatten)]
    pub(crate) viewing: Viewing,
}

/// Changes to a scenario.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Set a key of the scenario: duration=30s, link.NAME.rate=10M, flow.NAME.controller.b=2; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Override>,
}

/// Options of a run in either world.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Seed of the first run; each further run adds 1 [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of runs, each with its own seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Number of threads for simulated runs; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write every event of the run as a line of CSV; single run only
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) trace: Option<PathBuf>,
    /// Write every rate decision and its reason as a line of JSON; single run only
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) log: Option<PathBuf>,
    /// Write every packet, including lost ones, with its times and its delay as CSV; single run only
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) packets_csv: Option<PathBuf>,
    /// Write the events at both ends of each session and flow pair as qlog, in files NUMBER-FLOW-sender.sqlog and
    /// NUMBER-FLOW-receiver.sqlog, where NUMBER is the flow's number in the scenario; single run only
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    pub(crate) qlog: Option<PathBuf>,
    /// Write the control intervals of all runs as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) intervals_csv: Option<PathBuf>,
    /// Exit with code 6 if a session missed its target in at least one run; for CI
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) results: Results,
}
