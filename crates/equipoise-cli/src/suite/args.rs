//! What `equipoise suite` can be told.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use equipoise::units::{Rate, Span};
use equipoise_lab::suite::{Aqm, CONTROLLERS, bars, paths, rfc8867};

use crate::output::Results;

/// The suites.
#[derive(Debug, Subcommand)]
pub(crate) enum Suite {
    /// The cases of RFC 8867, Sec. 5 and 6, with all their variants
    #[command(after_help = "Examples:
  equipoise suite rfc8867 --report rfc8867.html    # all cases and variants, 10 seeds
  equipoise suite rfc8867 --quick                  # first variant of each case, 3 seeds
  equipoise suite rfc8867 5.1 5.6 --controllers ap,tfrc --json suite.json
  equipoise suite rfc8867 5.1/100ms-udp --runs 50 --aqm fq_codel
  equipoise suite rfc8867 5.1/50ms-link --live --report live.html", after_long_help = long_help())]
    Rfc8867(Rfc8867),
    /// The bars by which our own law is judged, beside the other laws in the same runs: met or not
    #[command(after_help = "Examples:
  equipoise suite bars --report bars.html    # all cases, 10 seeds
  equipoise suite bars --quick               # first variant of each case, 3 seeds
  equipoise suite bars 5.1 start/10M-20ms --controllers equipoise,gcc --seed 2001", after_long_help = bars_help())]
    Bars(Bars),
    /// Media over each recorded link of a folder, in Mahimahi's format or as CSV of times and rates
    #[command(after_help = "Examples:
  equipoise suite traces traces/ --report traces.html
  equipoise suite traces traces/ --duration 120s --max-rate 8M --controllers ap,tfrc")]
    Traces(Traces),
    /// Random paths, one a seed, under one controller: which runs are bad, and why
    #[command(after_help = "Examples:
  equipoise suite paths --runs 10000 --check --json paths.json
  equipoise suite paths --first-seed 4711 --runs 1
  equipoise suite paths --first-seed 4711 --scenario 4711.toml; equipoise sim 4711.toml --report 4711.html")]
    Paths(Paths),
}

/// Options of the cases.
#[derive(Debug, Args)]
pub(crate) struct Rfc8867 {
    /// Cases, such as 5.1, or single variants, such as 5.1/50ms-link [default: all]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Fewer seeds and variants: 3 runs of the first variant of each case, none of them shorter; --help lists them
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs of each [default: 10, 3 with --quick; 1 of live runs]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: Option<u32>,
    /// Run all of it over real sockets, too, in network namespaces and one after another; needs root, and as long as
    /// all runs together
    #[cfg(feature = "live")]
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the bars.
#[derive(Debug, Args)]
pub(crate) struct Bars {
    /// Cases, such as 5.1 or loss, or single variants, such as 5.1/50ms-link [default: all]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Fewer seeds and variants: 3 runs of the first variant of each case, none of them shorter; --help lists them
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs of each [default: 10, 3 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the traces.
#[derive(Debug, Args)]
pub(crate) struct Traces {
    /// The folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// How long a run is; a trace of Mahimahi's that is shorter begins again
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub(crate) duration: Span,
    /// The greatest rate of the media
    #[arg(long, value_name = "RATE", default_value = "5 Mbit/s")]
    pub(crate) max_rate: Rate,
    /// How many runs of each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the random paths.
#[derive(Debug, Args)]
pub(crate) struct Paths {
    /// The law of all flows
    #[arg(long, value_name = "NAME", default_value = paths::CONTROLLER)]
    pub(crate) controller: String,
    /// How many seeds
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) runs: u32,
    /// The first seed; further ones count on from it
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) first_seed: u64,
    /// Threads; the results do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// End with exit code 6 if more than 0.5 % of the runs are bad; for CI
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the first seed's path as a scenario for `equipoise sim` and `compare`, and run nothing; - for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "threads", "check", "json"])]
    pub(crate) scenario: Option<PathBuf>,
    /// Write all runs as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of all suites of cases.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Controllers to compare [default: those of gcc, nada, scream, ap and equipoise that exist; bars without ap]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// What the queues of all narrow links are, in place of what the scenarios say
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Aqm::ALL.map(Aqm::name)))]
    pub(crate) aqm: Option<String>,
    /// Seed of the first run of each; further runs count on from it [default: 1; 2001 of bars]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Threads; the results do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write the results as CSV, a line a metric; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// What --live takes.
#[cfg(feature = "live")]
const LIVE_HELP: &str = "\nA live run takes as long as the case, 100 to 300 s, and a few seconds more; --live says before how long all of them \
take: for --quick with four controllers about two hours, for all variants eight. The kernel has to have reno and cubic.\n";
#[cfg(not(feature = "live"))]
const LIVE_HELP: &str = "";

/// All cases with their variants.
fn long_help() -> String {
    let mut text = "Examples:
  equipoise suite rfc8867 --report rfc8867.html    # all cases and variants, 10 seeds
  equipoise suite rfc8867 --quick                  # first variant of each case, 3 seeds
  equipoise suite rfc8867 5.1 5.6 --controllers ap,tfrc --json suite.json
  equipoise suite rfc8867 5.1/100ms-udp --runs 50 --aqm fq_codel
  equipoise suite rfc8867 5.1/50ms-link --live     # simulated and over real sockets

Cases and their variants, of which --quick has the first:
"
    .to_owned();
    for case in rfc8867::CASES {
        let names: Vec<_> = case.variants.iter().map(|variant| variant.name).collect();
        text.push_str(&format!("  {}  {}\n       {}\n", case.number, case.title, names.join(", ")));
    }
    text.push_str(LIVE_HELP);
    text.push_str(&format!(
        "\nFull runs have {} seeds, quick ones {}. Without --controllers: {}.",
        rfc8867::RUNS,
        rfc8867::QUICK_RUNS,
        CONTROLLERS.join(", ")
    ));
    text
}

/// All cases of the bars with their variants.
fn bars_help() -> String {
    let mut text = "Examples:
  equipoise suite bars --report bars.html --json bars.json --csv bars.csv
  equipoise suite bars --quick
  equipoise suite bars 5.1 start/10M-20ms --controllers equipoise,gcc --seed 2001

Cases and their variants, of which --quick has the first:
"
    .to_owned();
    for case in bars::cases() {
        let names: Vec<_> = case.variants.iter().map(|variant| variant.item.variant.as_str()).collect();
        text.push_str(&format!("  {}  {}\n       {}\n", case.name, case.title, names.join(", ")));
    }
    text.push_str(&format!(
        "\nFull runs have {} seeds, quick ones {}. Without --controllers: {}. Judged is {} alone.",
        bars::RUNS,
        bars::QUICK_RUNS,
        bars::CONTROLLERS.join(", "),
        bars::JUDGED
    ));
    text
}
