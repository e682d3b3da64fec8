use std::time::Instant as HostInstant;

use equipoise::control::adapt::{IntervalConfig, Windowed};
use equipoise::control::window::{self, WindowContext, WindowEntry};
use equipoise::control::{BoxedController, ConfigError, Entry, Needs, Parameters, RateContext, entries, find};
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::guest::Guest;
use equipoise_session::rtp::SessionError;
use thiserror::Error;

use crate::driver::{Core, Driver, Limit};
use crate::monitor::Monitor;
#[cfg(feature = "noq")]
use crate::split::Split;

/// The congestion control of QUIC connections. Set it as the congestion controller factory in the transport
/// configuration of the QUIC stack.
///
/// The factory creates a controller for each path of each connection. After a migration, the new path starts with a new
/// controller (RFC 9000, Sec. 9.4).
#[derive(Clone, Debug)]
pub struct Config {
    law: Law,
    /// Pacing rate as a multiple of the controller's rate, at least 1; used only for rate controllers on noq. Use 1 for
    /// a stream that sends as fast as possible. For media, a larger value reduces the delay of a frame.
    pub pacing: f64,
    /// Length of an interval for controllers that decide once per interval, such as `ap`.
    pub interval: Span,
    monitor: Monitor,
    #[cfg(feature = "noq")]
    pub(crate) split: Option<Split>,
}

#[derive(Clone, Debug)]
enum Law {
    Rate(&'static Entry, Parameters),
    Window(&'static WindowEntry, Parameters),
}

/// The error that a controller cannot be created.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum UnknownController {
    /// No controller has this name.
    #[error("there is no controller {name:?}; there are {known}")]
    Name {
        /// The given name.
        name: String,
        /// The names of all controllers, separated by commas.
        known: String,
    },
    /// A parameter is invalid.
    #[error("a parameter of the controller is invalid")]
    Parameter(#[from] ConfigError),
    /// The controller needs information that acknowledgements do not contain.
    #[error("the controller cannot be used here")]
    Needs(#[from] SessionError),
}

impl Config {
    /// Creates the configuration for the rate controller or window controller with this name, with values for some of
    /// its parameters, such as `("max_rate", "5 Mbit/s")`.
    ///
    /// # Errors
    /// [`UnknownController`] if the name is not known, a parameter is invalid, or the controller needs information that
    /// acknowledgements do not contain.
    pub fn named(name: &str, given: &[(&str, &str)]) -> Result<Self, UnknownController> {
        let law = match (find(name), window::find(name)) {
            (Some(entry), _) => Law::Rate(entry, entry.parse(given)?),
            (None, Some(entry)) => Law::Window(entry, entry.parse(given)?),
            (None, None) => {
                let rates = entries().iter().map(|entry| entry.name);
                let known: Vec<_> = rates.chain(window::entries().iter().map(|entry| entry.name)).collect();
                return Err(UnknownController::Name { name: name.to_owned(), known: known.join(", ") });
            }
        };
        let config = Self {
            law,
            pacing: 1.0,
            interval: Span::from_millis(250),
            monitor: Monitor::default(),
            #[cfg(feature = "noq")]
            split: None,
        };
        config.core(TRIAL, Instant::ZERO)?;
        Ok(config)
    }

    /// Sets the pacing factor; see [`pacing`](Self::pacing).
    #[must_use]
    pub fn with_pacing(self, pacing: f64) -> Self {
        Self { pacing, ..self }
    }

    /// Sets the scheduler of one multipath connection: `split` divides the rate among its paths.
    #[cfg(feature = "noq")]
    #[must_use]
    pub fn with_split(self, split: Split) -> Self {
        Self { split: Some(split), ..self }
    }

    /// Returns a monitor of the state of all paths whose controllers were created by this configuration.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Creates the controller of a new path whose packets have up to `mtu` bytes of UDP payload.
    pub(crate) fn driver(&self, limit: Limit, now: HostInstant, mtu: u16) -> Driver {
        Driver::new(self.clone(), limit, now, mtu)
    }

    /// Creates the control law of a new path. `named` calls this function once to check the configuration, so later
    /// calls do not fail.
    pub(crate) fn core(&self, packet: Size, now: Instant<SenderClock>) -> Result<Core, UnknownController> {
        Ok(match &self.law {
            Law::Rate(entry, parameters) => {
                let controller: BoxedController = entry.build(parameters, RateContext::from(packet))?;
                // The resolution of acknowledgement times is not known, so none is configured.
                let intervals = IntervalConfig::new(self.interval);
                Core::Rate(Box::new(Guest::new(controller, Needs::PACKETS, intervals, now)?))
            }
            Law::Window(entry, parameters) => {
                let law = entry.build(parameters, WindowContext { packet, seed: SEED })?;
                Core::Window(Box::new(Windowed::new(law, packet)))
            }
        })
    }

    pub(crate) fn register(&self, driver: &Driver) {
        self.monitor.add(driver.status());
    }
}

/// The packet size with which `named` tests a configuration.
const TRIAL: Size = Size::from_bytes(1228);
/// The seed of controllers that use random numbers.
const SEED: u64 = 1;
