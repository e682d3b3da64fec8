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
    /// Relay UDP: address that clients send to; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", requires = "to", required_unless_present_any = ["between", "tun"])]
    pub(crate) listen: Option<SocketAddr>,
    /// Relay UDP: address that the clients' datagrams are forwarded to
    #[arg(long, value_name = "ADDRESS:PORT", requires = "listen")]
    pub(crate) to: Option<SocketAddr>,
    /// Bridge any traffic between two Ethernet interfaces, such as veth ends; needs the capability `CAP_NET_RAW`
    #[arg(long, num_args = 2, value_names = ["IF1", "IF2"], conflicts_with_all = ["listen", "to"])]
    pub(crate) between: Option<Vec<String>>,
    /// Create two TUN devices: IP traffic that is routed into one comes out of the other; needs the capability
    /// `CAP_NET_ADMIN`
    #[arg(long, num_args = 2, value_names = ["TUN1", "TUN2"], conflicts_with_all = ["listen", "to", "between"])]
    pub(crate) tun: Option<Vec<String>>,
    /// Seconds to run for [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Span>,
    /// Seed of loss, jitter, reordering and duplication
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Busy-wait before departures: more precise timing, but uses up to one whole processor core
    #[arg(long)]
    pub(crate) spin: bool,
    /// Write the statistics as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Length in seconds of the intervals that are reported while the link runs
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Span,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) viewing: Viewing,
    /// The path, in both directions.
    #[command(flatten)]
    pub(crate) path: Path,
    /// The reverse direction, if it differs.
    #[command(flatten)]
    pub(crate) back: Back,
}

/// A rate of IP packets, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateLimit {
    /// No limit.
    Unlimited,
    /// This rate.
    Rate(Rate),
}

/// Parses a rate, or the word `unlimited`.
impl FromStr for RateLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text == "unlimited" { Ok(Self::Unlimited) } else { text.parse().map(Self::Rate) }
    }
}

/// Which packets a queue drops. If both ends support ECN, all kinds except `Droptail` mark packets instead of dropping
/// them. They still drop packets if the queue is full. PIE and DualPI2 also drop packets if their drop or marking
/// probability is high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Aqm {
    /// Drops packets that arrive at a full queue
    Droptail,
    /// Drops packets that arrive at a full queue, and packets at its head while the delay stays high (RFC 8289)
    Codel,
    /// As codel, with a separate queue for each flow (RFC 8290)
    #[value(name = "fq_codel")]
    FqCodel,
    /// Drops arriving packets at random, more often the longer the delay is (RFC 8033)
    Pie,
    /// Drops packets at random, more often the longer the delay is, and has a second queue of low latency for traffic
    /// marked ECT(1) (RFC 9332)
    Dualpi2,
}

/// Defines the options of a path. The macro is used twice: for both directions, and for the reverse direction only.
macro_rules! path_options {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $heading:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Args)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            /// Rate of the bottleneck for IP packets, such as 15M, 15mbit or "15 Mbit/s"; or unlimited
            /// [default: unlimited]
            #[arg(long = concat!($prefix, "rate"), id = concat!($prefix, "rate"), value_name = "RATE")]
            pub(crate) rate: Option<RateLimit>,
            /// Delivery opportunities of the bottleneck: a trace in Mahimahi's format, repeated
            #[arg(long = concat!($prefix, "rate-trace"), id = concat!($prefix, "rate-trace"), value_name = "FILE",
                group = concat!($prefix, "rate-file"), conflicts_with = concat!($prefix, "rate"))]
            pub(crate) rate_trace: Option<PathBuf>,
            /// Rate of the bottleneck in steps: lines of `time_s,rate_mbps`
            #[arg(long = concat!($prefix, "rate-csv"), id = concat!($prefix, "rate-csv"), value_name = "FILE",
                group = concat!($prefix, "rate-file"), conflicts_with = concat!($prefix, "rate"))]
            pub(crate) rate_csv: Option<PathBuf>,
            /// Position in the trace or CSV file at which the link starts, such as 30s [default: 0s]
            #[arg(long = concat!($prefix, "rate-offset"), id = concat!($prefix, "rate-offset"), value_name = "TIME",
                requires = concat!($prefix, "rate-file"))]
            pub(crate) rate_offset: Option<Span>,
            /// Burst that may pass above the rate of the bottleneck, such as "15 kB": a token bucket (shaper)
            #[arg(long = concat!($prefix, "rate-burst"), id = concat!($prefix, "rate-burst"), value_name = "SIZE",
                requires = concat!($prefix, "rate"))]
            pub(crate) rate_burst: Option<Size>,
            /// Drop traffic above this rate, except a permitted burst, without a queue (policer)
            #[arg(long = concat!($prefix, "police"), id = concat!($prefix, "police"), value_name = "RATE")]
            pub(crate) police: Option<Rate>,
            /// Burst that the policer lets pass [default: 100 ms of its rate]
            #[arg(long = concat!($prefix, "police-burst"), id = concat!($prefix, "police-burst"), value_name = "SIZE",
                requires = concat!($prefix, "police"))]
            pub(crate) police_burst: Option<Size>,
            /// Propagation delay, such as 10ms
            #[arg(long = concat!($prefix, "delay"), id = concat!($prefix, "delay"), value_name = "TIME")]
            pub(crate) delay: Option<Span>,
            /// Random variation of the delay: "2ms" is the maximum variation, "2ms normal" the standard deviation, and
            /// "5ms half-normal" the standard deviation for the jitter of RFC 8868. Jitter does not reorder packets
            #[arg(long = concat!($prefix, "jitter"), id = concat!($prefix, "jitter"), value_name = "TIME")]
            pub(crate) jitter: Option<Jitter>,
            /// Share of packets that are lost at random, such as 1%
            #[arg(long = concat!($prefix, "loss"), id = concat!($prefix, "loss"), value_name = "SHARE")]
            pub(crate) loss: Option<Share>,
            /// Loss in bursts (Gilbert-Elliott): "p r", such as "1% 25%", with the probabilities p that a burst begins
            /// and r that it ends; or "p r good bad", with the loss in the good and in the bad state too
            #[arg(long = concat!($prefix, "loss-burst"), id = concat!($prefix, "loss-burst"), value_name = "SHARES",
                conflicts_with = concat!($prefix, "loss"))]
            pub(crate) loss_burst: Option<GilbertElliott>,
            /// Share of packets that are reordered, such as 1%
            #[arg(long = concat!($prefix, "reorder"), id = concat!($prefix, "reorder"), value_name = "SHARE")]
            pub(crate) reorder: Option<Share>,
            /// How much later reordered packets arrive; negative for earlier [default: 5ms]
            #[arg(long = concat!($prefix, "reorder-by"), id = concat!($prefix, "reorder-by"), value_name = "TIME",
                allow_hyphen_values = true)]
            pub(crate) reorder_by: Option<Span>,
            /// Share of packets that are duplicated, such as 0.1%
            #[arg(long = concat!($prefix, "duplicate"), id = concat!($prefix, "duplicate"), value_name = "SHARE")]
            pub(crate) duplicate: Option<Share>,
            /// Size of the queue: "1000 packets", "64 kB" or "50 ms" [default: 1000 packets]
            #[arg(long = concat!($prefix, "queue"), id = concat!($prefix, "queue"), value_name = "LIMIT")]
            pub(crate) queue: Option<QueueLimit>,
            /// How the queue drops packets [default: droptail]
            #[arg(long = concat!($prefix, "aqm"), id = concat!($prefix, "aqm"), value_enum, value_name = "NAME")]
            pub(crate) aqm: Option<Aqm>,
        }
    };
}

path_options! {
    /// The path, in both directions.
    Path, "", "The path, in each direction"
}
path_options! {
    /// The reverse direction, if it differs.
    Back, "back-", "The reverse direction. Without one of these options, the forward direction's value applies, if it is set"
}

impl Back {
    /// Returns the options of the reverse direction. Options that the user does not set for this direction are copied
    /// from `path`.
    pub(crate) fn over(&self, path: &Path) -> Path {
        let Self { delay, jitter, loss, loss_burst, reorder, reorder_by, duplicate, queue, aqm, .. } = *self;
        // If the user sets an option for this direction, the alternatives of the option are not copied from the forward
        // direction. For example, a rate of this direction also replaces a trace of the forward direction.
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
