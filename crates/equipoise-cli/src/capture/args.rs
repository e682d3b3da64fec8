//! Options of `equipoise capture`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use equipoise::units::Span;

use crate::output::Results;

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
    /// Streams of RTP: loss, jitter, rate, one-way delay between two interfaces, round-trip times
    #[command(
        after_help = "Reads pcap, pcapng and rtpdump, compressed by gzip or not. Streams need no signalling to be found.

Examples:
  equipoise capture rtp call.pcap.gz
  equipoise capture rtp video.pcapng --clock-rate 90000 --json rtp.json
  equipoise sim scenarios/demo.toml --pcapng both-ends.pcapng; equipoise capture rtp both-ends.pcapng"
    )]
    Rtp(Rtp),
}

/// Options of what streams of RTP a capture has.
#[derive(Debug, Args)]
pub(crate) struct Rtp {
    /// The capture; - for standard input
    pub(crate) file: PathBuf,
    /// Ticks a second of the media clock of dynamic payload types, such as 90000 of video: jitter is not known without
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clock_rate: Option<u32>,
    /// Write all numbers as JSON, second by second; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
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
