//! Options of `equipoise link`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::hosts::args::{interval, seconds};
use crate::views::args::Viewing;
use clap::{Args, ValueEnum};
use equipoise::units::{Rate, Share, Size, Span, UnitError};
use equipoise_path::link::{GilbertElliott, Jitter, QueueLimit};

/// Options of the emulated path.
#[derive(Debug, Args)]
pub(crate) struct Link {
    /// Relay UDP: where clients send to; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", requires = "to", required_unless_present_any = ["between", "tun"])]
    pub(crate) listen: Option<SocketAddr>,
    /// Relay UDP: where their datagrams go
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    pub(crate) to: Option<SocketAddr>,
    /// Bridge any traffic between two Ethernet interfaces, such as veth ends; needs the right `CAP_NET_RAW`
    #[arg(long, num_args = 2, value_names = ["IF1", "IF2"], conflicts_with_all = ["listen", "to"])]
    pub(crate) between: Option<Vec<String>>,
    /// Make two TUN devices: any IP traffic that is routed into one comes out of the other; needs the right `CAP_NET_ADMIN`
    #[arg(long, num_args = 2, value_names = ["TUN1", "TUN2"], conflicts_with_all = ["listen", "to", "between"])]
    pub(crate) tun: Option<Vec<String>>,
    /// Seconds to run for [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// Seed of loss, jitter, reordering and duplication
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stay awake before departures: more punctual, takes up to a whole processor
    #[arg(long)]
    pub(crate) spin: bool,
    /// Write the statistics as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Seconds between two intervals of what is told while it runs
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Span,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) viewing: Viewing,
    /// The path, both ways.
    #[command(flatten)]
    pub(crate) path: Path,
    /// Where the way back differs.
    #[command(flatten)]
    pub(crate) back: Back,
}

/// A rate of IP packets, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateLimit {
    /// Everything at once.
    Unlimited,
    /// So fast.
    Rate(Rate),
}

/// Reads a rate, or `unlimited`.
impl FromStr for RateLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text == "unlimited" { Ok(Self::Unlimited) } else { text.parse().map(Self::Rate) }
    }
}

/// What a queue drops; all but the first mark packets in place of that, where their ends understand marks (ECN).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Aqm {
    /// What comes when it is full
    Droptail,
    /// That, and at its head what keeps the delay standing (RFC 8289)
    Codel,
    /// The same for each flow in a queue of its own (RFC 8290)
    #[value(name = "fq_codel")]
    FqCodel,
    /// What comes while the delay is long, by chance (RFC 8033)
    Pie,
    /// Two queues, one of low latency for traffic marked ECT(1) (RFC 9332)
    Dualpi2,
}

/// The same options twice: for both ways, and for the way back.
macro_rules! path_options {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $heading:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Args)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            /// Rate of the bottleneck in IP packets, such as 15M, 15mbit or "15 Mbit/s"; or unlimited [default]
            #[arg(long = concat!($prefix, "rate"), id = concat!($prefix, "rate"), value_name = "RATE")]
            pub(crate) rate: Option<RateLimit>,
            /// Its delivery opportunities: a trace in Mahimahi's format, repeated
            #[arg(long = concat!($prefix, "rate-trace"), id = concat!($prefix, "rate-trace"), value_name = "FILE",
                group = concat!($prefix, "rate-file"), conflicts_with = concat!($prefix, "rate"))]
            pub(crate) rate_trace: Option<PathBuf>,
            /// Its rate in steps: lines of `time_s,rate_mbps`
            #[arg(long = concat!($prefix, "rate-csv"), id = concat!($prefix, "rate-csv"), value_name = "FILE",
                group = concat!($prefix, "rate-file"), conflicts_with = concat!($prefix, "rate"))]
            pub(crate) rate_csv: Option<PathBuf>,
            /// Where in that file it begins, such as 30s [default: 0s]
            #[arg(long = concat!($prefix, "rate-offset"), id = concat!($prefix, "rate-offset"), value_name = "TIME",
                requires = concat!($prefix, "rate-file"))]
            pub(crate) rate_offset: Option<Span>,
            /// What may pass at once beyond --rate, such as "15 kB": a token bucket (shaper)
            #[arg(long = concat!($prefix, "rate-burst"), id = concat!($prefix, "rate-burst"), value_name = "SIZE",
                requires = concat!($prefix, "rate"))]
            pub(crate) rate_burst: Option<Size>,
            /// Drop what exceeds this rate and its burst, without a queue (policer)
            #[arg(long = concat!($prefix, "police"), id = concat!($prefix, "police"), value_name = "RATE")]
            pub(crate) police: Option<Rate>,
            /// What a policer lets pass at once [default: 100 ms of its rate]
            #[arg(long = concat!($prefix, "police-burst"), id = concat!($prefix, "police-burst"), value_name = "SIZE",
                requires = concat!($prefix, "police"))]
            pub(crate) police_burst: Option<Size>,
            /// Propagation delay, such as 10ms
            #[arg(long = concat!($prefix, "delay"), id = concat!($prefix, "delay"), value_name = "TIME")]
            pub(crate) delay: Option<Span>,
            /// By how much it varies at most, such as 2ms; "2ms normal" for a deviation, "5ms half-normal" for RFC 8868's. Keeps the order
            #[arg(long = concat!($prefix, "jitter"), id = concat!($prefix, "jitter"), value_name = "TIME")]
            pub(crate) jitter: Option<Jitter>,
            /// Random loss, such as 1%
            #[arg(long = concat!($prefix, "loss"), id = concat!($prefix, "loss"), value_name = "SHARE")]
            pub(crate) loss: Option<Share>,
            /// Loss in bursts (Gilbert-Elliott): "p r", such as "1% 25%", or "p r good bad" with either state's loss
            #[arg(long = concat!($prefix, "loss-burst"), id = concat!($prefix, "loss-burst"), value_name = "SHARES",
                conflicts_with = concat!($prefix, "loss"))]
            pub(crate) loss_burst: Option<GilbertElliott>,
            /// Share of the packets that leave the order, such as 1%
            #[arg(long = concat!($prefix, "reorder"), id = concat!($prefix, "reorder"), value_name = "SHARE")]
            pub(crate) reorder: Option<Share>,
            /// How much later these arrive; negative for sooner [default: 5ms]
            #[arg(long = concat!($prefix, "reorder-by"), id = concat!($prefix, "reorder-by"), value_name = "TIME",
                allow_hyphen_values = true)]
            pub(crate) reorder_by: Option<Span>,
            /// Share of the packets that come twice, such as 0.1%
            #[arg(long = concat!($prefix, "duplicate"), id = concat!($prefix, "duplicate"), value_name = "SHARE")]
            pub(crate) duplicate: Option<Share>,
            /// Room for waiting packets: "1000 packets", "64 kB" or "50 ms" [default: 1000 packets]
            #[arg(long = concat!($prefix, "queue"), id = concat!($prefix, "queue"), value_name = "LIMIT")]
            pub(crate) queue: Option<QueueLimit>,
            /// What the queue drops [default: droptail]
            #[arg(long = concat!($prefix, "aqm"), id = concat!($prefix, "aqm"), value_enum, value_name = "NAME")]
            pub(crate) aqm: Option<Aqm>,
        }
    };
}

path_options! {
    /// The path, both ways.
    Path, "", "The path, each way"
}
path_options! {
    /// Where the way back differs.
    Back, "back-", "The way back, where it differs"
}

impl Back {
    /// The options of the way back: these, and those of both ways where there are none here.
    pub(crate) fn over(&self, path: &Path) -> Path {
        let Self { delay, jitter, loss, loss_burst, reorder, reorder_by, duplicate, queue, aqm, .. } = *self;
        // One way of saying the same takes the place of another.
        let has_rate = self.rate.is_some() || self.rate_trace.is_some() || self.rate_csv.is_some();
        let (loss, loss_burst) =
            if loss.is_some() || loss_burst.is_some() { (loss, loss_burst) } else { (path.loss, path.loss_burst) };
        let has_police = self.police.is_some();
        Path {
            rate: if has_rate { self.rate } else { path.rate },
            rate_trace: if has_rate { self.rate_trace.clone() } else { path.rate_trace.clone() },
            rate_csv: if has_rate { self.rate_csv.clone() } else { path.rate_csv.clone() },
            rate_offset: if has_rate { self.rate_offset } else { path.rate_offset },
            rate_burst: if has_rate { self.rate_burst } else { path.rate_burst },
            police: if has_police { self.police } else { path.police },
            police_burst: if has_police { self.police_burst } else { path.police_burst },
            delay: delay.or(path.delay),
            jitter: jitter.or(path.jitter),
            loss,
            loss_burst,
            reorder: reorder.or(path.reorder),
            reorder_by: reorder_by.or(path.reorder_by),
            duplicate: duplicate.or(path.duplicate),
            queue: queue.or(path.queue),
            aqm: aqm.or(path.aqm),
        }
    }
}
