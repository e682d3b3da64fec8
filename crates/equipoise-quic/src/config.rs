use std::time::Instant as HostInstant;

use equipoise::control::adapt::{IntervalConfig, Windowed};
use equipoise::control::window::{self, WindowContext, WindowEntry};
use equipoise::control::{BoxedController, ConfigError, Entry, Needs, Parameters, RateContext, entries, find};
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::guest::Guest;
use equipoise_session::rtp::SessionError;
use thiserror::Error;

use crate::driver::{Core, Driver};
use crate::monitor::Monitor;
#[cfg(feature = "noq")]
use crate::split::Split;

/// What controls the paths of connections: the factory that a transport's configuration takes.
///
/// Each path of each connection has a controller of its own, made by it. A path that a connection migrates to begins anew
/// (RFC 9000, Sec. 9.4).
#[derive(Clone, Debug)]
pub struct Config {
    law: Law,
    /// Packets follow each other at so many times the rate, 1 at least. A stream that takes whatever it gets is to have 1; media,
    /// which come in frames, leave sooner with more. For rate controllers on noq alone.
    pub pacing: f64,
    /// How long an interval is for a law that decides by intervals, such as `ap`.
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

/// Why there is no such controller.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum UnknownController {
    /// Nothing has that name.
    #[error("there is no controller {name:?}; there are {known}")]
    Name {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A parameter is wrong.
    #[error("a parameter of the controller is wrong")]
    Parameter(#[from] ConfigError),
    /// It needs what acknowledgements do not tell.
    #[error("the controller cannot be used here")]
    Needs(#[from] SessionError),
}

impl Config {
    /// The rate controller or the window law of this name, with values for some of its parameters such as `("max_rate", "5 Mbit/s")`.
    ///
    /// # Errors
    /// [`UnknownController`] for the name, a parameter, or a controller that needs more than acknowledgements tell.
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

    /// The same with packets that follow each other at so many times the rate.
    #[must_use]
    pub fn with_pacing(self, pacing: f64) -> Self {
        Self { pacing, ..self }
    }

    /// The same for one multipath connection, among whose paths `split` divides.
    #[cfg(feature = "noq")]
    #[must_use]
    pub fn with_split(self, split: Split) -> Self {
        Self { split: Some(split), ..self }
    }

    /// What tells of the paths that controllers made by this configuration are on.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// The controller of a new path whose packets have `mtu` bytes of UDP payload.
    pub(crate) fn driver(&self, now: HostInstant, mtu: u16) -> Driver {
        Driver::new(self.clone(), now, mtu)
    }

    /// The law alone. It was made once when the configuration was, so that it fails no more.
    pub(crate) fn core(&self, packet: Size, now: Instant<SenderClock>) -> Result<Core, UnknownController> {
        Ok(match &self.law {
            Law::Rate(entry, parameters) => {
                let controller: BoxedController = entry.build(parameters, RateContext::from(packet))?;
                // The rounding of acknowledgements' times is not known.
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

/// The size of packets with which a configuration is tried.
const TRIAL: Size = Size::from_bytes(1228);
/// Where the random numbers of a law begin that draws some.
const SEED: u64 = 1;
