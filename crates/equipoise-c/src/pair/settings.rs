use std::fmt::Display;
use std::str::FromStr;

use equipoise::units::{Rate, Size, Span};
use equipoise_net::flow_pair::PairConfig;
use equipoise_pair::tpba::{ProbeInterval, Tolerance};

use crate::error::{Fault, eq_error};

/// The names of all parameters, for error messages.
const KNOWN: &str = "packet_size, report_interval, patience, congestion_control, probe_interval, tolerance, running, \
                     adapt, reduction_factor, min_rate";

/// Sets the parameter in a text of the form "name=value".
pub(super) fn set(config: &mut PairConfig, parameter: &str) -> Result<(), Fault> {
    let Some((name, value)) = parameter.split_once('=').map(|(name, value)| (name.trim(), value.trim())) else {
        let words = format!("parameter `{parameter}` is not of the form `name=value`");
        return Err(Fault::new(eq_error::EQ_E_ARGUMENT, words));
    };
    match name {
        "packet_size" => config.packet_size = Size::from_bytes(read(name, value, "a number of bytes")?),
        "report_interval" => config.report_interval = time(name, value)?,
        "patience" => config.patience = time(name, value)?,
        "congestion_control" => config.congestion_control = Some(value.to_owned()),
        "probe_interval" => config.tpba.interval = ProbeInterval::Fixed(time(name, value)?),
        "tolerance" => config.tpba.tolerance = Tolerance::Absolute(read(name, value, "a rate such as `30 kbit/s`")?),
        "running" => config.tpba.running = time(name, value)?,
        "adapt" => config.running.adapt = time(name, value)?,
        "reduction_factor" => {
            let factor: f64 = read(name, value, "a number")?;
            if !(0.0..=1000.0).contains(&factor) {
                return Err(wrong(name, value, "a number from 0 to 1000"));
            }
            config.running.reduction_factor = factor;
        }
        "min_rate" => config.running.min_rate = read::<Rate>(name, value, "a rate such as `10 kbit/s`")?,
        _ => {
            let words = format!("`{name}` is not a parameter of flow pairs; they have {KNOWN}");
            return Err(Fault::new(eq_error::EQ_E_NAME, words));
        }
    }
    Ok(())
}

fn time(name: &str, value: &str) -> Result<Span, Fault> {
    let span: Span = read(name, value, "a time such as `1 s`")?;
    if span > Span::ZERO { Ok(span) } else { Err(wrong(name, value, "a time above zero")) }
}

fn read<T: FromStr<Err: Display>>(name: &str, value: &str, right: &str) -> Result<T, Fault> {
    value.parse().map_err(|error| wrong(name, value, &format!("{right}: {error}")))
}

fn wrong(name: &str, value: &str, right: &str) -> Fault {
    Fault::new(eq_error::EQ_E_VALUE, format!("`{name}` is `{value}`; it is to be {right}"))
}
