//! Options of `equipoise send` and `equipoise receive`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use equipoise::units::{Rate, Span, UnitError};
use equipoise_net::{Dscp, Via};

use crate::views::args::Viewing;

/// Options that both ends of a session have.
#[derive(Debug, Args)]
pub(crate) struct Ends {
    /// UDP port of the receiver
    #[arg(short, long, default_value_t = 5004)]
    pub(crate) port: u16,
    /// File with the shared key, as `equipoise keygen` writes it [default: the key in the environment variable
    /// `EQUIPOISE_KEY`]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) key: Option<PathBuf>,
    /// Neither encrypt nor authenticate: anyone on the path can read the session, forge packets, and change its rate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// DSCP of the IP headers: a number from 0 to 63, or a name such as ef or af41
    #[arg(long, value_name = "CLASS", default_value_t)]
    pub(crate) dscp: Dscp,
    /// Seconds between two printed lines
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Span,
    /// Write the results as lines of JSON, one for each interval and one for the total, to FILE, or to standard output
    /// if no FILE is given
    #[arg(short = 'J', long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of `equipoise keygen`.
#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// File for the key, which only its owner can read; - for standard output
    pub(crate) file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// The direction of media, and the number of sessions.
#[derive(Debug, Args)]
pub(crate) struct Ways {
    /// Let the receiver send and this end receive, with the controller equipoise or at --bitrate (like iperf3 -R)
    #[arg(short = 'R', long, conflicts_with_all = ["controller", "set", "target", "delay", "file", "rtp", "rate_socket", "path"])]
    pub(crate) reverse: bool,
    /// Send and receive at the same time, with one session in each direction
    #[arg(long, conflicts_with_all = ["reverse", "file", "rtp", "rate_socket", "path"])]
    pub(crate) bidir: bool,
    /// Number of parallel sessions in each direction, 1 to 128; all rates are per session
    #[arg(short = 'P', long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) parallel: u8,
}

/// Options of a sender.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Name or address of the receiving host
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) ends: Ends,
    /// Seconds to send for; 0 to send until the file ends or until Ctrl-C [default: 10; 0 with --file or --rtp]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// Controller; in a multipath session with per-packet feedback, each path has its own; `equipoise controllers`
    /// lists all controllers [default: equipoise; ap with --target or --path]
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Target delay, for controllers that have one [default: 20 ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) target: Option<Span>,
    /// Kind of delay that --target refers to
    #[arg(long, value_enum, default_value_t = DelayKind::Queueing)]
    pub(crate) delay: DelayKind,
    /// Lowest rate, such as 500k
    #[arg(long, value_name = "RATE", default_value = "100k")]
    pub(crate) min_rate: Rate,
    /// Initial rate of a session [default: the controller's own]
    #[arg(long, value_name = "RATE")]
    pub(crate) start_rate: Option<Rate>,
    /// Highest rate, in total over all paths
    #[arg(long, value_name = "RATE", default_value = "15M")]
    pub(crate) max_rate: Rate,
    /// Send at this constant rate, such as 3M, instead of at a controller's rate
    #[arg(short, long, value_name = "RATE", conflicts_with_all = ["controller", "set"])]
    pub(crate) bitrate: Option<Rate>,
    /// Set a parameter of the controller
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) ways: Ways,
    /// Size of IP packets in bytes, including headers; with --file or --rtp, the largest size
    #[arg(short, long, value_name = "BYTES", default_value_t = 1200)]
    pub(crate) length: u16,
    /// Time between two reports of the receiver
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    pub(crate) report_interval: Span,
    /// Let the receiver report on each packet, by RFC 8888 or with transport-wide sequence numbers [default: only if
    /// the controller needs it]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) feedback: Option<FeedbackFormat>,
    /// Time between two reports of --feedback, 5 to 500 ms
    #[arg(long, value_name = "TIME", default_value = "50 ms", requires = "feedback")]
    pub(crate) feedback_interval: Span,
    /// ECN field of IP headers: whether queues may mark packets instead of dropping them
    #[arg(long, value_enum, value_name = "FIELD", default_value_t = EcnField::Off)]
    pub(crate) ecn: EcnField,
    /// Send the content of this file instead of zeros; - for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "rtp")]
    pub(crate) file: Option<PathBuf>,
    /// Relay the RTP packets that another program sends to this local address or port
    #[arg(long, value_name = "ADDRESS", value_parser = local)]
    pub(crate) rtp: Option<SocketAddr>,
    /// Also relay the RTP packets that an audio encoder sends to this local address or port, with priority over those
    /// of --rtp
    #[arg(long, value_name = "ADDRESS", value_parser = local, requires = "rtp", conflicts_with = "path")]
    pub(crate) audio: Option<SocketAddr>,
    /// Send the receiver's requests for key frames as RTCP to this address or local port [default: where the RTP comes
    /// from]
    #[arg(long, value_name = "ADDRESS", value_parser = local, requires = "rtp")]
    pub(crate) rtcp: Option<SocketAddr>,
    /// Control an encoder: write a line `rate BITS_PER_SECOND` to this Unix socket after each change of the payload
    /// rate, and a line `keyframe` if a key frame is needed
    #[arg(long, value_name = "PATH")]
    pub(crate) rate_socket: Option<PathBuf>,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS", conflicts_with = "path")]
    pub(crate) bind: Option<IpAddr>,
    /// Network interface to send from, or its address; repeat it for each path of a multipath session
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) path: Vec<Via>,
    /// Scheduler that divides the rate among the paths; `equipoise controllers` lists them
    #[arg(long, value_name = "NAME", default_value = "ap", requires = "path")]
    pub(crate) scheduler: String,
    /// Set a parameter of the scheduler
    #[arg(long, value_name = "NAME=VALUE", requires = "path")]
    pub(crate) scheduler_set: Vec<String>,
    /// Time between two decisions of the scheduler, at least one report interval [default: 5 s, or the report interval
    /// if longer]
    #[arg(long, value_name = "TIME", requires = "path")]
    pub(crate) scheduler_period: Option<Span>,
    /// Use only IPv4
    #[arg(short = '4', conflicts_with = "six")]
    pub(crate) four: bool,
    /// Use only IPv6
    #[arg(short = '6')]
    pub(crate) six: bool,
    #[command(flatten)]
    pub(crate) viewing: Viewing,
}

impl Send {
    /// Returns the name of the controller. If the user names no controller, it is our own control law `equipoise`, or
    /// `ap` if the user sets a target or a path.
    pub(crate) fn controller(&self) -> &str {
        let is_held = self.target.is_some() || !self.path.is_empty();
        self.controller.as_deref().unwrap_or(if is_held { "ap" } else { "equipoise" })
    }
}

/// The ECN field in the IP headers of media packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EcnField {
    /// Packets must not be marked
    Off,
    /// Packets may be marked instead of dropped (RFC 3168)
    Ect0,
    /// Packets may be marked early and often, for controllers that support this (L4S, RFC 9331)
    Ect1,
}

/// A format of per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackFormat {
    /// Congestion control feedback, with ECN marks, and times in units of 1/1024 s
    Rfc8888,
    /// Transport-wide sequence numbers, with times in units of 250 µs; not with --file, --rtp or --path
    Twcc,
}

/// The kind of a target delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DelayKind {
    /// Delay above the minimum of the path; needs no synchronised clocks
    Queueing,
    /// One-way delay; the clocks of both hosts must be synchronised
    OneWay,
    /// One-way delay with an estimated clock offset; its error is up to half of the shortest round-trip time
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
    /// Exit after the first session
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Write the first session's payload to this file; - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Forward received RTP packets to this address or local port
    #[arg(long, value_name = "ADDRESS", value_parser = local)]
    pub(crate) rtp: Option<SocketAddr>,
    /// Forward the packets of `send --audio` to this address or local port [default: that of --rtp]
    #[arg(long, value_name = "ADDRESS", value_parser = local, requires = "rtp")]
    pub(crate) audio: Option<SocketAddr>,
    /// Local address or port from which RTP is forwarded and at which RTCP arrives; requests for key frames go to the
    /// sender [default: any free port]
    #[arg(long, value_name = "ADDRESS", value_parser = local, requires = "rtp")]
    pub(crate) rtcp: Option<SocketAddr>,
    /// Time to wait for a missing packet before the next one is delivered
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub(crate) hold: Span,
    /// Let the sender retransmit missing packets that can still arrive within --hold; not possible if the sender sends
    /// zeros or uses several paths
    #[arg(long)]
    pub(crate) repair: bool,
    /// Seconds without a packet after which a session ends
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) idle: Span,
    /// Maximum number of concurrent sessions
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) most_sessions: usize,
    /// Highest total rate that this host sends in the sessions of `send -R` and `send --bidir`; 0 to refuse these
    /// sessions [default: 500M; 0 with --insecure]
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    pub(crate) reverse_limit: Option<Rate>,
    #[command(flatten)]
    pub(crate) viewing: Viewing,
}

impl Receive {
    /// Returns the maximum total rate of the sessions in which this host sends on request. If the user gave no limit,
    /// the maximum is `USUAL` with a key and zero without a key.
    pub(crate) fn reverse_limit(&self) -> Rate {
        /// Our choice: a small server can send at this rate, which is enough for thirty sessions at the default maximum
        /// rate.
        const USUAL: Rate = Rate::from_bps(500_000_000);
        self.reverse_limit.unwrap_or(if self.ends.insecure { Rate::ZERO } else { USUAL })
    }
}

/// Parses a number of seconds without a unit, such as 10 or 0.5, or a time with its unit.
pub(crate) fn seconds(text: &str) -> Result<Span, String> {
    let bare = text.parse().ok().filter(|seconds: &f64| *seconds >= 0.0).and_then(Span::from_secs_f64);
    bare.map_or_else(|| text.parse().map_err(|error: UnitError| error.to_string()), Ok)
}

/// Parses the time between two result lines. Zero is refused, because there would be infinitely many lines.
pub(crate) fn interval(text: &str) -> Result<Span, String> {
    let interval = seconds(text)?;
    if interval > Span::ZERO { Ok(interval) } else { Err("an interval must be above 0 s".to_owned()) }
}

/// Parses a rate with its unit, or `0`.
fn rate_or_none(text: &str) -> Result<Rate, UnitError> {
    if text == "0" { Ok(Rate::ZERO) } else { text.parse() }
}

/// Parses a port of this host, or an address with a port.
fn local(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = port.or_else(|| text.parse().ok());
    address
        .ok_or_else(|| "it must be a port, such as 5006, or an address with a port, such as 127.0.0.1:5006".to_owned())
}
