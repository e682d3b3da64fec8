//! Runs other simulators (*peers*) with scenarios that Equipoise also simulates. The peers' programs are in
//! `bench/peers/`. Options select the runs. The results are written to one CSV file.

mod peer;
mod sheet;
mod tcp;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::error::Error;
use crate::workspace::Workspace;
use peer::{Peer, peers};
use sheet::{Run, Sheet, prepared};

/// The columns of the CSV file. Each simulator (peer) prints all columns except the last. The last is the wall-clock
/// time of the simulator's process, which this program measures.
const COLUMNS: &str = "peer,rate_mbps,seed,packets,mean_s,variance_s2,wall_s";

/// File name of the peers' programs in `bench/peers/`, without the extension: `.tcl` for ns-2, `.cc` for ns-3.
const SCENARIO: &str = "waki2013-fig7";
/// Runs other simulators (peers) with the options in `words`. Writes the CSV file, whose rows are sorted by peer, rate
/// and seed.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<(), Error> {
    if let ["tcp", words @ ..] = words {
        return tcp::run(workspace, words);
    }
    let options = Options::parse(words)?;
    let mut sheet = Sheet::new(COLUMNS);
    for (peer, command) in prepared(workspace, &options.peers, SCENARIO, &mut sheet)? {
        for rate in options.rates.clone() {
            sheet.runs.extend((1..=options.seeds).map(|seed| {
                let arguments = vec![mbps(rate), seed.to_string(), options.seconds.to_string()];
                let start = format!("{},{},{seed}", peer.name(), mbps(rate));
                Run { peer, command: command.clone(), arguments, start, columns: COLUMNS }
            }));
        }
    }
    let path = options.out.clone().unwrap_or_else(|| workspace.target("peers.csv"));
    sheet.write(&path, &format!("cargo xtask peers {}", words.join(" ")), options.jobs)
}

/// A rate in units of 0.1 Mbit/s. It is an integer, so that the ends of a range are exact.
type Tenths = u32;

fn mbps(rate: Tenths) -> String {
    format!("{}.{}", rate / 10, rate % 10)
}

/// The options of `xtask peers`, which select the runs.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    peers: Vec<Peer>,
    rates: RangeInclusive<Tenths>,
    seeds: u32,
    seconds: u32,
    out: Option<PathBuf>,
    jobs: u32,
}

impl Default for Options {
    /// All runs of Waki 2013, Fig. 7, one process at a time.
    fn default() -> Self {
        Self { peers: Peer::ALL.to_vec(), rates: 1..=45, seeds: 10, seconds: 400, out: None, jobs: 1 }
    }
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, Error> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            let (option, value) = (pair[0], pair.get(1).copied().unwrap_or_default());
            let wrong = |want| Error::Option { option: option.to_string(), found: value.to_string(), want };
            let whole = || match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(wrong("a whole number of at least 1")),
            };
            match option {
                "--peers" => options.peers = peers(value).ok_or_else(|| wrong("`ns-2`, `ns-3` or `ns-2,ns-3`"))?,
                "--rates" => {
                    options.rates =
                        rates(value).ok_or_else(|| wrong("Mbit/s in steps of 0.1, as `3.0` or `0.1..4.5`"))?;
                }
                "--seeds" => options.seeds = whole()?,
                "--seconds" => options.seconds = whole()?,
                "--jobs" => options.jobs = whole()?,
                "--out" if !value.is_empty() => options.out = Some(PathBuf::from(value)),
                "--out" => return Err(wrong("a file")),
                _ => return Err(wrong("--peers, --rates, --seeds, --seconds, --out or --jobs")),
            }
        }
        Ok(options)
    }
}

fn rates(value: &str) -> Option<RangeInclusive<Tenths>> {
    let (first, last) = value.split_once("..").unwrap_or((value, value));
    let (first, last) = (tenths(first)?, tenths(last)?);
    (0 < first && first <= last).then_some(first..=last)
}

/// Parses a rate in Mbit/s: a decimal number without a point, or with exactly one digit after the point.
fn tenths(value: &str) -> Option<Tenths> {
    let (whole, tenth) = value.split_once('.').unwrap_or((value, "0"));
    let is_one_digit = tenth.len() == 1 && tenth.bytes().all(|digit| digit.is_ascii_digit());
    let whole: Tenths = whole.parse().ok()?;
    let tenth: Tenths = tenth.parse().ok().filter(|_| is_one_digit)?;
    whole.checked_mul(10)?.checked_add(tenth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order_and_the_rest_keeps_its_defaults() {
        let words = ["--rates", "0.3..12", "--peers", "ns-3", "--out", "a.csv", "--seeds", "5"];
        let read = Options::parse(&words).unwrap();
        let want = Options {
            peers: vec![Peer::Ns3],
            rates: 3..=120,
            seeds: 5,
            seconds: 400,
            out: Some(PathBuf::from("a.csv")),
            jobs: 1,
        };
        assert_eq!(read, want);
        assert_eq!(mbps(*read.rates.start()), "0.3");
        assert_eq!(mbps(*read.rates.end()), "12.0");
    }

    #[test]
    fn a_wrong_option_is_named() {
        for words in [
            ["--rates", "0"],
            ["--rates", "4.5..0.1"],
            ["--rates", "0.15"],
            ["--rates", "1.+"],
            ["--rates", "429496730"],
            ["--peers", "ns-4"],
            ["--jobs", "0"],
            ["--seeds", "many"],
            ["--out", ""],
            ["--speed", "1"],
        ] {
            let error = Options::parse(&words).unwrap_err();
            assert!(matches!(&error, Error::Option { option, .. } if option == words[0]), "{words:?}: {error}");
        }
        assert!(matches!(Options::parse(&["--seeds"]), Err(Error::Option { .. })));
    }
}
