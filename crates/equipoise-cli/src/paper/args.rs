//! Options of `equipoise paper`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::output::Results;

/// The papers whose experiments can be repeated.
#[derive(Debug, Subcommand)]
pub(crate) enum Paper {
    /// Repeat Waki 2013: attractor-perturbation rate control
    Waki2013(PaperRun<WakiPart>),
    /// Repeat Kodama 2009: TCP Symbiosis
    #[command(
        after_help = "With --live: fig5, with TCP of the kernel; 16 minutes per run [default: 1 run], a tenth of that with --quick"
    )]
    Kodama2009(EitherWorld<KodamaPart>),
    /// Repeat Subramanya 2003: TQ explicit rate control
    #[command(
        after_help = "With --live: table1, table4 and table6; 3, 2 and 3 minutes per run [default: 3 runs]; 1 run with --quick"
    )]
    Subramanya2003(EitherWorld<SubramanyaPart>),
    /// Repeat Tobe 1999: TCP-rate probing with a UDP/TCP flow pair
    #[command(
        after_help = "With --live: fig10, a flow pair on sockets next to TCP of the kernel, over the short and the long path; 240 s per run [default: 1 run], 48 s with --quick"
    )]
    Tobe1999(EitherWorld<TobePart>),
    /// Repeat Asvarujanon 2014: one session over several paths
    #[command(
        after_help = "With --live: fig3 and fig4; 17 minutes per run of both [default: 1 run], 4 minutes with --quick"
    )]
    Asvarujanon2014(AsvarujanonRun),
}

impl Paper {
    /// Whether the user requested that the experiments run in real time.
    pub(crate) const fn is_live(&self) -> bool {
        match self {
            Self::Waki2013(_) => false,
            Self::Kodama2009(EitherWorld { live, .. })
            | Self::Subramanya2003(EitherWorld { live, .. })
            | Self::Tobe1999(EitherWorld { live, .. })
            | Self::Asvarujanon2014(AsvarujanonRun { run: EitherWorld { live, .. }, .. }) => *live,
        }
    }
}

/// What to run of Asvarujanon 2014.
#[derive(Debug, Args)]
pub(crate) struct AsvarujanonRun {
    #[command(flatten)]
    pub(crate) run: EitherWorld<AsvarujanonPart>,
    /// Folder of measured capacities for the parts `pairs` and `all`: files `NAME_wifi.csv` and `NAME_cellular.csv`
    /// that were measured at the same time, with a line `SECOND,BYTES` for each second
    #[arg(long, value_name = "DIR")]
    pub(crate) pairs: Option<PathBuf>,
}

/// A part of Asvarujanon 2014.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AsvarujanonPart {
    /// Delay of five methods that divide a session between two paths
    Fig3,
    /// Throughput of these methods
    Fig4,
    /// Beyond the paper: measured capacities of Wi-Fi and cellular networks
    Pairs,
    /// Beyond the paper: more paths, paths that fail, and what affects the split
    Beyond,
    /// All of these
    All,
}

/// What to run of a paper, if some of its experiments can also run live.
#[derive(Debug, Args)]
pub(crate) struct EitherWorld<P: ValueEnum + std::marker::Send + Sync + 'static> {
    #[command(flatten)]
    pub(crate) run: PaperRun<P>,
    /// Run in real time across network namespaces of this machine, and compare with the simulated results; needs root;
    /// only for the parts named below
    #[arg(long)]
    pub(crate) live: bool,
}

/// What to run of a paper.
#[derive(Debug, Args)]
pub(crate) struct PaperRun<P: ValueEnum + std::marker::Send + Sync + 'static> {
    /// Figures and other parts to run
    #[arg(value_name = "PART", default_value = "all")]
    pub(crate) parts: Vec<P>,
    /// Number of runs of every experiment [default: its own number for each experiment, up to 4000 for rare events]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "quick")]
    pub(crate) runs: Option<u32>,
    /// Do only a few runs, to test that the experiment works; they are too few for a verdict, so no verdict is given
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of the first run of each experiment
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of threads; it does not affect the results [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// A part of Waki 2013.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WakiPart {
    /// The coefficient b of AP's law as a function of the load
    Fig5,
    /// The increase of the mean delay with the rate, as a function of the variance of the delay
    Fig7,
    /// Delay and rate over time, with Fig. 11
    Fig10,
    /// Squared error, coefficient of variation and jitter with AP and CBR
    Fig12,
    /// Squared error, coefficient of variation and jitter with AP and AIMD
    Fig13,
    /// Sending rates of AP and AIMD
    Fig14,
    /// Beyond the paper: how often the law as printed in the paper diverges, compared with our robust form of it
    Runaway,
    /// The paper's future work: the coefficient b learned instead of given
    Learning,
    /// All of these
    All,
}

/// A part of Subramanya 2003.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubramanyaPart {
    /// One source whose bottleneck is cut to a quarter, with Fig. 3 and 4
    #[value(aliases = ["fig3", "fig4"])]
    Table1,
    /// Six sources over one bottleneck, with Fig. 5
    #[value(alias = "fig5")]
    Table4,
    /// Four bottlenecks in series, with Fig. 10
    #[value(alias = "fig10")]
    Table6,
    /// The buffer's size, with Fig. 7 and 8
    #[value(aliases = ["fig7", "fig8"])]
    Fig6,
    /// All of these
    All,
}

/// A part of Kodama 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KodamaPart {
    /// Two connections, the second of which starts later
    Fig3,
    /// Symbiosis and Reno while the available bandwidth changes, over a short and a long path
    Fig5,
    /// Noise in the measurement, and a parameter γ that adapts to this noise, with Fig. 7 and 8
    #[value(aliases = ["fig7", "fig8"])]
    Fig6,
    /// A drop and a rise of the available bandwidth, with Fig. 14
    #[value(alias = "fig14")]
    Fig10,
    /// Fairness of one to ten connections, with Fig. 17
    #[value(alias = "fig17")]
    Fig11,
    /// The cost of oscillation, with Fig. 13
    #[value(alias = "fig13")]
    Fig12,
    /// How often a drop of the available bandwidth ends in a timeout, with Fig. 16
    #[value(alias = "fig16")]
    Fig15,
    /// Errors and cost of the bandwidth measurement with the connection's own segments
    Inline,
    /// Beyond the thesis: the mechanisms of Symbiosis in other laws, other laws in the thesis's scenarios, and other
    /// laws next to Symbiosis
    Beyond,
    /// All of these
    All,
}

/// A part of Tobe 1999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TobePart {
    /// LDA next to two TCP flows
    Fig3,
    /// Rates and fairness of TPBA, with Fig. 11, 14, 15, 17 and 18
    #[value(aliases = ["fig11", "fig14", "fig15", "fig17", "fig18"])]
    Fig10,
    /// Inter-arrival times of application data units (ADUs), with Fig. 16
    #[value(alias = "fig16")]
    Fig12,
    /// Fairness as a function of the number of TCP connections
    Fig19,
    /// Time until the rate of a flow pair is stable after another flow starts or ends
    Table3,
    /// Rates of TPBA, LDAF and LDA, with Fig. 20 and 23 to 28
    #[value(aliases = ["fig20", "fig23", "fig24", "fig25", "fig26", "fig27"])]
    Fig22,
    /// The 16 cases of Table 4 by three metrics, with Fig. 28, 30 and 31
    #[value(aliases = ["fig28", "fig30", "fig31"])]
    Fig29,
    /// Beyond the paper: many flows, RAP and TFRC instead of TPBA, and AP limited to the rate that TPBA's probing finds
    Beyond,
    /// All of these
    All,
}
