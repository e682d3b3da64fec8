//! Options of `equipoise suite`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use equipoise::units::{Rate, Span};
use equipoise_lab::suite::{Aqm, CONTROLLERS, bars, paths, rfc8867};

use crate::output::Results;

/// The suites.
#[derive(Debug, Subcommand)]
pub(crate) enum Suite {
    /// Run the cases of RFC 8867, Sec. 5 and 6, with all their variants
    #[command(after_help = "Examples:
  equipoise suite rfc8867 --report rfc8867.html    # all cases and variants, 10 seeds
  equipoise suite rfc8867 --quick                  # first variant of each case, 3 seeds
  equipoise suite rfc8867 5.1 5.6 --controllers ap,tfrc --json suite.json
  equipoise suite rfc8867 5.1/100ms-udp --runs 50 --aqm fq_codel
  equipoise suite rfc8867 5.1/50ms-link --live --report live.html", after_long_help = long_help())]
    Rfc8867(Rfc8867),
    /// Test whether our own control law meets its performance targets (bars); run the same cases with other laws for
    /// comparison
    #[command(after_help = "Examples:
  equipoise suite bars --report bars.html    # all cases, 10 seeds
  equipoise suite bars --quick               # first variant of each case, 3 seeds
  equipoise suite bars 5.1 start/10M-20ms --controllers equipoise,gcc --seed 2001", after_long_help = bars_help())]
    Bars(Bars),
    /// Run media over each recorded link in a folder; a recording is a trace in Mahimahi's format, or CSV of times and
    /// rates
    #[command(after_help = "Examples:
  equipoise suite traces traces/ --report traces.html
  equipoise suite traces traces/ --duration 120s --max-rate 8M --controllers ap,tfrc")]
    Traces(Traces),
    /// Run one controller over random paths, one for each seed, and list the bad runs: overload, a standing queue,
    /// unequal shares, or a rate outside its limits
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
    /// Run only the first variant of each case, 3 times; runs are not shorter; --help lists the variants
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of runs of each variant [default: 10, 3 with --quick; 1 for live runs]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: Option<u32>,
    /// Also run everything in real time over real sockets in network namespaces, one run after another; needs root
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
    /// Run only the first variant of each case, 3 times; runs are not shorter; --help lists the variants
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of runs of each variant [default: 10, 3 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the traces.
#[derive(Debug, Args)]
pub(crate) struct Traces {
    /// Folder of the recorded links
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Length of a run; a shorter trace in Mahimahi's format is repeated
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub(crate) duration: Span,
    /// Highest rate of the media
    #[arg(long, value_name = "RATE", default_value = "5 Mbit/s")]
    pub(crate) max_rate: Rate,
    /// Number of runs of each link
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the random paths.
#[derive(Debug, Args)]
pub(crate) struct Paths {
    /// Controller of all flows
    #[arg(long, value_name = "NAME", default_value = paths::CONTROLLER)]
    pub(crate) controller: String,
    /// Number of runs, each with its own seed
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) runs: u32,
    /// Seed of the first run; each further run adds 1
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) first_seed: u64,
    /// Number of threads; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Exit with code 6 if more than 0.5 % of the runs are bad; for CI
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the path of the first seed as a scenario for `equipoise sim` and `compare`, without running
    /// it; - for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "threads", "check", "json"])]
    pub(crate) scenario: Option<PathBuf>,
    /// Write the results of all runs as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of all suites of cases.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Controllers to compare [default: gcc, nada, scream, ap and equipoise, as far as this build has them; in
    /// `suite bars`: equipoise, gcc, nada and scream]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Queue discipline of all links with a rate limit, instead of the scenarios' queue disciplines
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Aqm::ALL.map(Aqm::name)))]
    pub(crate) aqm: Option<String>,
    /// Seed of the first run of each variant; each further run adds 1 [default: 1; in `suite bars`: 2001]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of threads; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write the results as CSV, one line for each metric; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// The part of the help about `--live`: its duration, and its requirements.
#[cfg(feature = "live")]
const LIVE_HELP: &str = "\nA case lasts 100 to 300 s, and its live run a few seconds longer. --live first prints the \
total time of all live runs: with four controllers, about 2 hours for --quick, and 8 hours for all variants. The \
kernel must have reno and cubic.\n";
#[cfg(not(feature = "live"))]
const LIVE_HELP: &str = "";

/// Returns the long help of `equipoise suite rfc8867`, which lists all cases with their variants.
fn long_help() -> String {
    let mut text = "Examples:
  equipoise suite rfc8867 --report rfc8867.html    # all cases and variants, 10 seeds
  equipoise suite rfc8867 --quick                  # first variant of each case, 3 seeds
  equipoise suite rfc8867 5.1 5.6 --controllers ap,tfrc --json suite.json
  equipoise suite rfc8867 5.1/100ms-udp --runs 50 --aqm fq_codel
  equipoise suite rfc8867 5.1/50ms-link --live     # simulated and over real sockets

Cases and their variants; --quick runs the first variant of each:
"
    .to_owned();
    for case in rfc8867::CASES {
        let names: Vec<_> = case.variants.iter().map(|variant| variant.name).collect();
        text.push_str(&format!("  {}  {}\n       {}\n", case.number, case.title, names.join(", ")));
    }
    text.push_str(LIVE_HELP);
    text.push_str(&format!(
        "\nEach variant has {} runs, with --quick {}. Default of --controllers: {}.",
        rfc8867::RUNS,
        rfc8867::QUICK_RUNS,
        CONTROLLERS.join(", ")
    ));
    text
}

/// Returns the long help of `equipoise suite bars`, which lists all cases with their variants.
fn bars_help() -> String {
    let mut text = "Examples:
  equipoise suite bars --report bars.html --json bars.json --csv bars.csv
  equipoise suite bars --quick
  equipoise suite bars 5.1 start/10M-20ms --controllers equipoise,gcc --seed 2001

Cases and their variants; --quick runs the first variant of each:
"
    .to_owned();
    for case in bars::cases() {
        let names: Vec<_> = case.variants.iter().map(|variant| variant.item.variant.as_str()).collect();
        text.push_str(&format!("  {}  {}\n       {}\n", case.name, case.title, names.join(", ")));
    }
    text.push_str(&format!(
        "\nEach variant has {} runs, with --quick {}. Default of --controllers: {}. Only {} is judged.",
        bars::RUNS,
        bars::QUICK_RUNS,
        bars::CONTROLLERS.join(", "),
        bars::JUDGED
    ));
    text
}
