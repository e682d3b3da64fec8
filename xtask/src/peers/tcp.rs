//! Runs bulk TCP flows over a dumbbell network in other simulators (peers), to validate Equipoise's TCP. There is
//! one run for each combination of a network setting, a selected TCP variant, a selected number of flows and a seed.
//! The results are written to one CSV file.

use std::path::PathBuf;

use super::peer::{Peer, peers};
use super::sheet::{Run, Sheet, prepared};
use crate::error::Error;
use crate::workspace::Workspace;

/// The columns of the CSV file. A peer prints all columns except the last. This program measures the last column, which
/// is the wall-clock time of the peer's process.
const COLUMNS: &str = "tool,variant,rate_mbps,rtt_ms,queue_packets,flows,seed,seconds,goodput_mbps,loss_ratio,timeouts,\
    fast_retransmits,retransmitted,mean_queue_packets,jain,delayed_acks,steady_goodput_mbps,steady_loss_ratio,\
    steady_timeouts,steady_fast_retransmits,steady_retransmitted,steady_mean_queue_packets,steady_jain,wall_s";

/// Name, without the extension, of the programs in `bench/peers/` for the other simulators (ns-2 and ns-3).
const SCENARIO: &str = "tcp";

/// The network settings: rate in Mbit/s, round-trip propagation time in ms, queue length in packets, simulated time in
/// s. Our choice: bandwidth-delay products of 4 to 1000 packets, and queues of 0.3 to 2.5 bandwidth-delay products.
const SETTINGS: [[u32; 4]; 6] = [
    [2, 24, 10, 100],
    [10, 40, 50, 100],
    [10, 100, 25, 100],
    [50, 60, 300, 100],
    [100, 120, 1000, 200],
    [100, 30, 100, 100],
];

/// Runs the peers with the options in `words`. Writes the CSV file, whose rows are sorted by peer, network setting,
/// variant, number of flows and seed.
pub(super) fn run(workspace: &Workspace, words: &[&str]) -> Result<(), Error> {
    let options = Options::parse(words)?;
    let mut sheet = Sheet::new(COLUMNS);
    for (peer, command) in prepared(workspace, &options.peers, SCENARIO, &mut sheet)? {
        for setting in SETTINGS {
            for arguments in options.arguments(setting) {
                let keys = &arguments[..arguments.len() - 1];
                let start = format!("{},{}", peer.name(), keys.join(","));
                sheet.runs.push(Run { peer, command: command.clone(), arguments, start, columns: COLUMNS });
            }
        }
    }
    let path = options.out.clone().unwrap_or_else(|| workspace.target("peers-tcp.csv"));
    sheet.write(&path, &format!("cargo xtask peers tcp {}", words.join(" ")), options.jobs)
}

/// The options of `xtask peers tcp`, which select the runs.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    peers: Vec<Peer>,
    variants: Vec<String>,
    flows: Vec<u32>,
    seeds: u32,
    delayed_acks: String,
    out: Option<PathBuf>,
    jobs: u32,
}

impl Default for Options {
    /// All runs of the validation of Equipoise's TCP, one process at a time.
    fn default() -> Self {
        Self {
            peers: Peer::ALL.to_vec(),
            variants: vec!["newreno".to_string(), "sack".to_string()],
            flows: vec![1, 4],
            seeds: 5,
            delayed_acks: "on".to_string(),
            out: None,
            jobs: 1,
        }
    }
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, Error> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            let (option, value) = (pair[0], pair.get(1).copied().unwrap_or_default());
            let wrong = |want| Error::Option { option: option.to_string(), found: value.to_string(), want };
            let whole = |value: &str| match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(wrong("a whole number of at least 1")),
            };
            match option {
                "--peers" => options.peers = peers(value).ok_or_else(|| wrong("`ns-2`, `ns-3` or `ns-2,ns-3`"))?,
                "--variants" if !value.is_empty() => {
                    options.variants = value.split(',').map(str::to_string).collect();
                }
                "--variants" => return Err(wrong("`newreno`, `sack`, of ns-3 also `sack-prr`, with commas between")),
                "--flows" => options.flows = value.split(',').map(whole).collect::<Result<_, _>>()?,
                "--seeds" => options.seeds = whole(value)?,
                "--delayed-acks" if matches!(value, "on" | "off") => options.delayed_acks = value.to_string(),
                "--delayed-acks" => return Err(wrong("`on` or `off`")),
                "--jobs" => options.jobs = whole(value)?,
                "--out" if !value.is_empty() => options.out = Some(PathBuf::from(value)),
                "--out" => return Err(wrong("a file")),
                _ => return Err(wrong("--peers, --variants, --flows, --seeds, --delayed-acks, --jobs or --out")),
            }
        }
        Ok(options)
    }

    /// Returns all runs with one network setting. A run is the list of arguments for a peer's program.
    fn arguments(&self, [rate, rtt, queue, seconds]: [u32; 4]) -> Vec<Vec<String>> {
        let mut runs = Vec::new();
        for variant in &self.variants {
            for flows in &self.flows {
                for seed in 1..=self.seeds {
                    let numbers = [rate, rtt, queue, *flows, seed, seconds].map(|number| number.to_string());
                    let mut words = vec![variant.clone()];
                    words.extend(numbers);
                    words.push(self.delayed_acks.clone());
                    runs.push(words);
                }
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order_and_the_rest_keeps_its_defaults() {
        let words = ["--flows", "1,2,8", "--variants", "sack-prr", "--delayed-acks", "off", "--peers", "ns-3"];
        let want = Options {
            peers: vec![Peer::Ns3],
            variants: vec!["sack-prr".to_string()],
            flows: vec![1, 2, 8],
            seeds: 5,
            delayed_acks: "off".to_string(),
            out: None,
            jobs: 1,
        };
        assert_eq!(Options::parse(&words).unwrap(), want);
    }

    #[test]
    fn a_wrong_option_is_named() {
        for words in [
            ["--peers", "ns-4"],
            ["--variants", ""],
            ["--flows", "1,0"],
            ["--flows", ""],
            ["--seeds", "0"],
            ["--delayed-acks", "yes"],
            ["--out", ""],
            ["--rates", "1"],
        ] {
            let error = Options::parse(&words).unwrap_err();
            assert!(matches!(&error, Error::Option { option, .. } if option == words[0]), "{words:?}: {error}");
        }
    }

    #[test]
    fn every_seed_of_every_number_of_flows_of_every_variant_runs_once() {
        let options = Options { seeds: 2, ..Options::default() };
        let runs = options.arguments([10, 40, 50, 100]);
        assert_eq!(runs.len(), 2 * 2 * 2);
        assert_eq!(runs[0].join(" "), "newreno 10 40 50 1 1 100 on");
        assert_eq!(runs[7].join(" "), "sack 10 40 50 4 2 100 on");
    }
}
