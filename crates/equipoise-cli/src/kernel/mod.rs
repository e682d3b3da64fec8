//! `equipoise kernel`: TCP Symbiosis as a congestion control of this machine's kernel.

pub(crate) mod args;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use equipoise_kernel::{Flow, KernelError, Loaded, Parameters, PresetWindow};
use equipoise_lab::live::WindowControl;
use serde::Serialize;

use crate::error::CliError;
use crate::outcome::{Outcome, catch_interrupt};
use crate::output::{Output, say};
use args::{Kernel, Load, Set, Status};

/// Interval at which the command checks whether Ctrl-C was pressed. Our choice: short enough to seem immediate.
const LISTEN: Duration = Duration::from_millis(50);

/// Runs `equipoise kernel`.
pub(crate) fn run(command: &Kernel) -> Result<Outcome, CliError> {
    match command {
        Kernel::Load(options) => load(options),
        Kernel::Status(options) => status(options),
        Kernel::Set(options) => set(options),
        Kernel::Unload => {
            equipoise_kernel::unload()?;
            say(false, "symbiosis is unloaded; connections that use it keep it until they end\n");
            Ok(Outcome::Complete)
        }
    }
}

/// Loads the congestion control into the kernel if it is `wanted` and not loaded yet. Dropping the returned value
/// unloads the congestion control.
pub(crate) fn lend(wanted: bool) -> Result<Option<Loaded>, CliError> {
    if !wanted || equipoise_kernel::is_loaded() {
        return Ok(None);
    }
    match equipoise_kernel::load(Parameters::default()) {
        Ok(loaded) => Ok(Some(loaded)),
        // Another process has loaded the congestion control since the check at the beginning of this function.
        Err(KernelError::Loaded) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Registers a variant of the congestion control `control` whose congestion window can be set. Returns the variant's
/// name and the function that sets the window of a connection.
///
/// Returns `None` if `control` is neither `reno` nor `cubic`, if the kernel does not support the variant, or if this
/// process lacks a privilege.
pub(crate) fn window_control(control: &str) -> Option<WindowControl> {
    let preset = PresetWindow::load(control).ok().flatten()?;
    let name = preset.name();
    let set = move |connection: BorrowedFd<'_>, segments| preset.set(connection, segments).map_err(io::Error::other);
    Some(WindowControl::new(name, set))
}

fn load(options: &Load) -> Result<Outcome, CliError> {
    let stop = catch_interrupt()?;
    let loaded = equipoise_kernel::load(options.parameters.over(Parameters::default()))?;
    if options.pin {
        loaded.pin()?;
        say(false, "symbiosis is loaded until `equipoise kernel unload`\n");
        return Ok(Outcome::Complete);
    }
    say(false, "symbiosis is loaded until Ctrl-C\n");
    while !stop.load(Ordering::Relaxed) {
        sleep(LISTEN);
    }
    drop(loaded);
    // Ctrl-C is the normal way to end `kernel load`, so the outcome is not `Interrupted`.
    Ok(Outcome::Complete)
}

fn set(options: &Set) -> Result<Outcome, CliError> {
    let parameters = options.parameters.over(equipoise_kernel::parameters()?);
    equipoise_kernel::set_parameters(parameters)?;
    say(false, &words(&parameters));
    Ok(Outcome::Complete)
}

fn status(options: &Status) -> Result<Outcome, CliError> {
    let json = options.json.as_deref().map(Output::promise).transpose()?;
    let loaded = equipoise_kernel::is_loaded();
    let parameters = loaded.then(equipoise_kernel::parameters).transpose()?;
    let flows = equipoise_kernel::sockets()?;
    say(matches!(json, Some(Output::Stdout)), &table(parameters.as_ref(), &flows));
    if let Some(json) = json {
        let report = StatusReport {
            version: equipoise_lab::VERSION,
            loaded,
            gamma: parameters.map(|set| set.gamma),
            epsilon_per_s: parameters.map(|set| set.epsilon_per_s),
            noise_weight: parameters.map(|set| set.noise_weight),
            oscillation: parameters.map(|set| set.oscillation),
            connections: flows.iter().map(Connection::from).collect(),
        };
        json.fulfil(&serde_json::to_string_pretty(&report).unwrap_or_default())?;
    }
    Ok(Outcome::Complete)
}

fn words(set: &Parameters) -> String {
    let Parameters { gamma, epsilon_per_s, noise_weight, oscillation } = set;
    format!(
        "gamma {gamma:.3}, epsilon {epsilon_per_s:.3} 1/s, noise weight {noise_weight:.2}, oscillation {oscillation:.3} 1/√s\n"
    )
}

fn table(parameters: Option<&Parameters>, flows: &[Flow]) -> String {
    let mut text = parameters.map_or_else(
        || "symbiosis is not loaded; `equipoise kernel load` loads it\n".to_owned(),
        |parameters| format!("symbiosis is loaded: {}", words(parameters)),
    );
    if flows.is_empty() {
        text.push_str("no connection uses it\n");
        return text;
    }
    text.push_str("rates in Mbit/s of payload, windows in segments, times in ms\n");
    text.push_str("  window  capacity  available  gamma  min RTT      RTT  trains  losses  timeouts  connection\n");
    for flow in flows {
        let Connection { capacity_bps, available_bps, gamma, min_round_trip_s, .. } = flow.into();
        let scaled = |value: Option<f64>, scale: f64, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * scale))
        };
        text.push_str(&format!(
            "{:8}  {:>8}  {:>9}  {:>5}  {:>7}  {:7.2}  {:6}  {:6}  {:8}  {} to {}\n",
            flow.window,
            scaled(capacity_bps, 1e-6, 2),
            scaled(available_bps, 1e-6, 2),
            scaled(gamma, 1.0, 3),
            scaled(min_round_trip_s, 1e3, 2),
            flow.smoothed_round_trip.as_secs_f64() * 1e3,
            flow.trains_judged,
            flow.losses,
            flow.timeouts,
            flow.local,
            flow.peer,
        ));
    }
    text
}

#[derive(Debug, Serialize)]
struct StatusReport {
    version: &'static str,
    loaded: bool,
    gamma: Option<f64>,
    epsilon_per_s: Option<f64>,
    noise_weight: Option<f64>,
    oscillation: Option<f64>,
    connections: Vec<Connection>,
}

/// A TCP connection that uses the congestion control. Its rates count only payload.
#[derive(Debug, Serialize)]
struct Connection {
    local: String,
    peer: String,
    window_segments: u32,
    segment_bytes: u16,
    capacity_bps: Option<f64>,
    available_bps: Option<f64>,
    gamma: Option<f64>,
    min_round_trip_s: Option<f64>,
    round_trip_s: f64,
    trains: u32,
    trains_judged: u32,
    losses: u32,
    timeouts: u32,
}

impl From<&Flow> for Connection {
    fn from(flow: &Flow) -> Self {
        let bps = |rate: Option<f64>| rate.map(|rate| rate * f64::from(flow.segment_bytes) * 8.0);
        Self {
            local: flow.local.to_string(),
            peer: flow.peer.to_string(),
            window_segments: flow.window,
            segment_bytes: flow.segment_bytes,
            capacity_bps: bps(flow.capacity),
            available_bps: bps(flow.available),
            gamma: flow.gamma,
            min_round_trip_s: flow.min_round_trip.map(|least| least.as_secs_f64()),
            round_trip_s: flow.smoothed_round_trip.as_secs_f64(),
            trains: flow.trains,
            trains_judged: flow.trains_judged,
            losses: flow.losses,
            timeouts: flow.timeouts,
        }
    }
}
