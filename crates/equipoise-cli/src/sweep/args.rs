//! Options of `equipoise sweep`.

use std::path::PathBuf;

use clap::Args;
use equipoise_lab::sweep::Shard;

/// Options of a sweep.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Scenario files; without one, the sweep in --out is continued or merged
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Folder of the sweep; it is created if it does not exist, and a sweep in it is continued
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Set a key of all scenarios, as `equipoise sim` does; repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "files")]
    pub(crate) set: Vec<String>,
    /// Values of a key, such as link.NAME.rate=5M,10M; repeatable; every combination is a point
    #[arg(long, value_name = "KEY=V1,V2,...", requires = "files")]
    pub(crate) vary: Vec<String>,
    /// Draw the value of a key at random for each random point (--points): 'link.NAME.rate=loguniform(1M, 50M)',
    /// uniform(A, B), integer(A, B), choice(V1, V2, ...); repeatable
    #[arg(long, value_name = "KEY=DISTRIBUTION", requires = "files", requires = "points")]
    pub(crate) draw: Vec<String>,
    /// Number of random points, for each combination of --vary
    #[arg(long, value_name = "N", requires = "draw", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) points: Option<u32>,
    /// Seed of the first run of each point and of the draws; each further run adds 1 [default: the first scenario's]
    #[arg(long, requires = "files")]
    pub(crate) seed: Option<u64>,
    /// Number of runs of each point, each with its own seed [default: 1]
    #[arg(long, requires = "files", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Run only share I of N, with I from 1 to N or from 0 to N-1 (0 means N); shares may run at the same time on any
    /// machines
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Write the rows of all runs to one Parquet file; without scenario files, nothing is run
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    pub(crate) merge: Option<PathBuf>,
    /// Write the rows of all runs as CSV; - for standard output; without scenario files, nothing is run
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    pub(crate) csv: Option<PathBuf>,
    /// Number of threads; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
