//! Options of `equipoise capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use equipoise::units::Span;

use crate::output::Results;

/// What can be measured from a capture.
#[derive(Debug, Subcommand)]
pub(crate) enum Capture {
    /// Measure the round-trip times of TCP connections and their distribution
    #[command(
        after_help = "Reads pcap and pcapng, also compressed by gzip, with Ethernet, VLAN, Linux cooked or raw IP.

Examples:
  equipoise capture rtt transfer.pcap.gz
  equipoise capture rtt lte.pcapng --bin 20ms --json rtt.json --report rtt.html
  tcpdump -w - -c 10000 tcp | equipoise capture rtt -"
    )]
    Rtt(Rtt),
    /// Measure RTP streams: loss, jitter, rate, one-way delay between two interfaces, round-trip times
    #[command(
        after_help = "Reads pcap, pcapng and rtpdump, also compressed by gzip. Needs no signalling (such as SDP).

Examples:
  equipoise capture rtp call.pcap.gz
  equipoise capture rtp video.pcapng --clock-rate 90000 --json rtp.json
  equipoise sim scenarios/demo.toml --pcapng both-ends.pcapng; equipoise capture rtp both-ends.pcapng"
    )]
    Rtp(Rtp),
}

/// Options for RTP streams from a capture.
#[derive(Debug, Args)]
pub(crate) struct Rtp {
    /// Capture file; - for standard input
    pub(crate) file: PathBuf,
    /// Clock rate of dynamic payload types in Hz, such as 90000 for video; without it, their jitter is unknown
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clock_rate: Option<u32>,
    /// Write all results, with the values of each second, as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options for round-trip times from a capture.
#[derive(Debug, Args)]
pub(crate) struct Rtt {
    /// Capture file; - for standard input
    pub(crate) file: PathBuf,
    /// Width of the histogram bins, such as 2ms [default: chosen from the samples]
    #[arg(long, value_name = "TIME")]
    pub(crate) bin: Option<Span>,
    /// Acknowledgements to use
    #[arg(long, value_enum, default_value_t = Acks::Pair)]
    pub(crate) acks: Acks,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Which acknowledgements are samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Acks {
    /// Only acknowledgements of exactly two segments, because the delayed-ACK timer does not trigger these (Waki 2013)
    Pair,
    /// Every acknowledgement of new data
    Every,
}
