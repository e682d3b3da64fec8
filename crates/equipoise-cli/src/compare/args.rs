//! What `equipoise compare` can be told.

use std::path::PathBuf;

use clap::Args;

use crate::args::Changes;
use crate::output::Results;

/// Options of a comparison.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The scenario files: several, or one with --controller; the others are compared with the first
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Controllers to put in the place of the one of --flow; the others are compared with the first
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) controller: Vec<String>,
    /// The flow to compare [default: the only session]
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Seed of the first run of each variant; further runs count on from it [default: the first scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How many runs of each variant
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) runs: u32,
    /// Threads; the results do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) results: Results,
}
