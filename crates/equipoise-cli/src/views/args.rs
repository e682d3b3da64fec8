//! Options of the commands that can be monitored while they run.

use std::path::PathBuf;

use clap::Args;

/// The views of a run in progress.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Monitoring the run")]
pub(crate) struct Viewing {
    /// Draw the run on the terminal; q ends the run. Without a terminal, lines are printed
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) ui: bool,
    /// Serve a page with live charts of the run, at a port such as 8080, or an address such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS", value_parser = place)]
    pub(crate) serve: Option<String>,
    /// Serve metrics for Prometheus in the `OpenMetrics` format, at /metrics of a port such as 9100, or of an
    /// address such as 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS", value_parser = place)]
    pub(crate) metrics: Option<String>,
    /// Write the events of the run as lines of JSON while it runs, to FILE, or to standard output if no FILE is given;
    /// the format is the same for all commands
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json_stream: Option<PathBuf>,
}

/// Parses the address of a server: a port, or a name or address with a port. A port alone means the loopback address,
/// which other hosts cannot reach.
fn place(text: &str) -> Result<String, String> {
    if text.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{text}"));
    }
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let has_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    has_port.then(|| text.to_owned()).ok_or_else(|| {
        "it must be a port, such as 8080, or an address with a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}
