//! Options of `equipoise compare`.

use std::path::PathBuf;

use clap::Args;

use crate::args::Changes;
use crate::output::Results;

/// Options of a comparison.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Scenario files: one with --controller, or several; each further scenario is compared with the first
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Controllers to use for the flow instead of the scenario's; each further controller is compared with the first
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) controller: Vec<String>,
    /// Flow to compare [default: the only session]
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Seed of the first run of each variant; each further run adds 1 [default: the first scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of runs of each variant
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) runs: u32,
    /// Number of threads; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) results: Results,
}
