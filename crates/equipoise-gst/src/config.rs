//! The settings that the element's properties contain, and the controller created from them.

use equipoise::control::{BoxedController, ConfigError, Needs, entries, find};
use equipoise::units::{Instant, Size, Span};
use equipoise_session::feedback::Format;
use equipoise_session::guest::Guest;
use equipoise_session::rtp::SessionError;
use gst::glib;
use thiserror::Error;

use equipoise::control::adapt::IntervalConfig;
use equipoise::units::SenderClock;

/// The values of the properties, which take effect when the element starts.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The initial estimate, in bit/s.
    pub(crate) estimated_bps: u32,
    pub(crate) min_bps: u32,
    pub(crate) max_bps: u32,
    /// Accepted for compatibility with `rtpgccbwe`, but ignored.
    pub(crate) estimator: Estimator,
    pub(crate) controller: String,
    /// Parameters of the controller: `name=value,name=value`.
    pub(crate) parameters: String,
}

/// Default of the initial estimate, in bit/s: the initial rate of a call in libwebrtc.
pub(crate) const ESTIMATED_BPS: u32 = 300_000;
/// Default of the minimum estimate, in bit/s: the minimum rate of most controllers.
pub(crate) const MIN_BPS: u32 = 100_000;
/// Default of the maximum estimate, in bit/s: the same as in `rtpgccbwe`.
pub(crate) const MAX_BPS: u32 = 8_192_000;
pub(crate) const CONTROLLER: &str = "equipoise";

impl Default for Settings {
    fn default() -> Self {
        Self {
            estimated_bps: ESTIMATED_BPS,
            min_bps: MIN_BPS,
            max_bps: MAX_BPS,
            estimator: Estimator::default(),
            controller: CONTROLLER.to_owned(),
            parameters: String::new(),
        }
    }
}

/// The filter types of `rtpgccbwe`. They exist so that a pipeline that sets such a type runs unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstRtpEquipoiseBweEstimator")]
pub(crate) enum Estimator {
    #[enum_value(name = "No effect; for pipelines written for rtpgccbwe", nick = "kalman")]
    Kalman,
    #[default]
    #[enum_value(name = "No effect; for pipelines written for rtpgccbwe", nick = "linear-regression")]
    LinearRegression,
}

/// The reasons why the properties do not describe a valid controller.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("property `controller`: there is no controller {name:?}; there are {known}")]
    Unknown { name: String, known: String },
    #[error("property `controller-params`: {found:?} is not `name=value`; separate several by commas")]
    NotAPair { found: String },
    #[error("property `min-bitrate` is {min_bps} bit/s, above `max-bitrate`, {max_bps} bit/s")]
    Order { min_bps: u32, max_bps: u32 },
    #[error("property `controller-params`")]
    Parameter(#[from] ConfigError),
    #[error("property `controller`: {name:?} cannot be used here")]
    Controller {
        name: String,
        #[source]
        source: SessionError,
    },
}

/// The controller's maximum rate as a multiple of the property `max-bitrate`. The controller's rate includes headers,
/// but `max-bitrate` does not. With this multiple, the estimate can reach `max-bitrate` if headers take at most a fifth
/// of the controller's rate.
const WITH_HEADERS: f64 = 1.25;
/// The lowest rate accepted by controllers, in bit/s.
const LEAST_BPS: u32 = 1_000;
/// The packet size, with headers, that is assumed for control laws that count packets: the typical size of a
/// payloader's packets.
const PACKET: Size = Size::from_bytes(1440);
/// Length of an interval for control laws that decide once per interval, such as `ap`.
const INTERVAL: Span = Span::from_millis(250);

impl Settings {
    /// Creates the controller with its limits and timers, starting at `now`.
    pub(crate) fn guest(&self, now: Instant<SenderClock>) -> Result<Guest, SettingsError> {
        let format = Format::TransportWide;
        let intervals = IntervalConfig { quantum: format.quantum(), ..IntervalConfig::new(INTERVAL) };
        Guest::new(self.build()?, Needs::PACKETS, intervals, now)
            .map_err(|source| SettingsError::Controller { name: self.controller.clone(), source })
    }

    /// Creates the controller. The three bitrate properties set the parameters `min_rate`, `max_rate` and
    /// `initial_rate`, unless `parameters` sets them.
    fn build(&self) -> Result<BoxedController, SettingsError> {
        let Self { min_bps, max_bps, .. } = *self;
        if min_bps > max_bps {
            return Err(SettingsError::Order { min_bps, max_bps });
        }
        let entry = find(&self.controller).ok_or_else(|| SettingsError::Unknown {
            name: self.controller.clone(),
            known: entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        })?;
        let mut given = pairs(&self.parameters)?;
        let max = (f64::from(max_bps) * WITH_HEADERS).max(f64::from(LEAST_BPS));
        let min = min_bps.max(LEAST_BPS);
        let start = self.estimated_bps.clamp(min_bps, max_bps).max(LEAST_BPS);
        let ours = [("min_rate", bps(min)), ("max_rate", bps(max)), ("initial_rate", bps(start))];
        for (name, value) in &ours {
            let is_known = entry.parameters.iter().any(|parameter| parameter.name == *name);
            if is_known && given.iter().all(|(given, _)| given != name) {
                given.push((name, value));
            }
        }
        Ok(entry.build(&entry.parse(&given)?, PACKET)?)
    }
}

fn bps(rate: impl std::fmt::Display) -> String {
    format!("{rate} bit/s")
}

/// Parses a text of the form `name=value,name=value`.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, SettingsError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| SettingsError::NotAPair { found: part.to_owned() })?;
            Ok((name.trim(), value.trim()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &Settings) -> String {
        let error = settings.guest(Instant::ZERO).expect_err("wrong on purpose");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", source.unwrap_or_default())
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let with = |controller: &str, parameters: &str| Settings {
            controller: controller.to_owned(),
            parameters: parameters.to_owned(),
            ..Settings::default()
        };
        for (settings, named) in [
            (with("gc", ""), "there is no controller \"gc\"; there are "),
            (with("equipoise", "max_rat=1 Mbit/s"), "max_rate"),
            (with("equipoise", "fast"), "\"fast\" is not `name=value`"),
            (with("ap", ""), "target"),
            (with("tq", ""), "playout"),
            (
                Settings { min_bps: 3, max_bps: 2, ..Settings::default() },
                "`min-bitrate` is 3 bit/s, above `max-bitrate`",
            ),
        ] {
            let found = refused(&settings);
            assert!(found.contains(named), "{found}");
        }
    }

    #[test]
    fn bitrates_are_the_controllers_limits_unless_it_is_given_its_own() {
        let settings = Settings { estimated_bps: 700_000, ..Settings::default() };
        let rate = |settings: &Settings| settings.guest(Instant::ZERO).expect("right").rate().as_bps();
        assert_eq!(rate(&settings), 700_000);
        assert_eq!(rate(&Settings { max_bps: 400_000, ..settings.clone() }), 400_000);
        let parameters = " initial_rate = 200 kbit/s , max_rate=1 Mbit/s,".to_owned();
        assert_eq!(rate(&Settings { parameters, ..settings.clone() }), 200_000);
        // The extreme values of the bitrate properties are also tested with a controller that has none of the
        // parameters `min_rate`, `max_rate` and `initial_rate`.
        for bps in [1, u32::MAX] {
            let (controller, parameters) = ("cbr".to_owned(), "rate=1 Mbit/s".to_owned());
            let extreme = Settings { estimated_bps: bps, min_bps: bps, max_bps: bps, ..Settings::default() };
            assert!(rate(&extreme) >= 1000);
            assert_eq!(rate(&Settings { controller, parameters, ..extreme }), 1_000_000);
        }
    }
}
