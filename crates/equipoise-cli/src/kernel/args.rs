//! Options of `equipoise kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with the kernel's congestion control.
#[derive(Debug, Subcommand)]
pub(crate) enum Kernel {
    /// Register `symbiosis` with the kernel until Ctrl-C or, with --pin, until `unload` or the next boot
    #[command(after_help = "Examples:
  equipoise kernel load --pin; iperf3 -c 192.0.2.7 -C symbiosis
  sysctl net.ipv4.tcp_congestion_control=symbiosis        # for all new connections of this network namespace")]
    Load(Load),
    /// Print the parameters, and the state of each connection
    Status(Status),
    /// Change parameters, also those of running connections
    #[command(after_help = "Example:
  equipoise kernel set --gamma 0.5 --oscillation 0.3")]
    Set(Set),
    /// Unregister a pinned `symbiosis`; existing connections keep it until they end
    Unload,
}

/// Options of loading.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Keep `symbiosis` registered after this command ends, until `unload` or the next boot
    #[arg(long)]
    pub(crate) pin: bool,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
}

/// Options of setting.
#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) parameters: Parameters,
}

/// Options of the status.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Write the status as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// The parameters; each is optional.
#[derive(Debug, Args)]
pub(crate) struct Parameters {
    /// Weight of the other connections, 0.01 to 0.99; a smaller value gives a steadier rate and a longer queue
    /// [initial value: 0.95]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) gamma: Option<f64>,
    /// Speed of convergence in 1/s, 0.01 to 100 [initial value: 1.95]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) epsilon: Option<f64>,
    /// How strongly measurement noise lowers gamma, 0 to 100 [initial value: 4]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) noise_weight: Option<f64>,
    /// Strength of the added noise that keeps the window moving, in 1/√s, 0 to 1 [initial value: 0]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) oscillation: Option<f64>,
}

impl Parameters {
    /// Returns these parameters. A parameter that the user does not set keeps its value from `before`.
    pub(crate) fn over(&self, before: equipoise_kernel::Parameters) -> equipoise_kernel::Parameters {
        equipoise_kernel::Parameters {
            gamma: self.gamma.unwrap_or(before.gamma),
            epsilon_per_s: self.epsilon.unwrap_or(before.epsilon_per_s),
            noise_weight: self.noise_weight.unwrap_or(before.noise_weight),
            oscillation: self.oscillation.unwrap_or(before.oscillation),
        }
    }
}
