//! The table of window laws.

use alloc::boxed::Box;
use alloc::format;

use super::super::window::{
    BoxedWindowController, Cubic, FixedSymbiosis, Oscillating, Reno, Symbiosis, SymbiosisConfig, Vegas, VegasConfig,
    WindowController,
};
use super::{ConfigError, Context, Entry, Kind, Parameter, Parameters};
use crate::units::Size;

/// A window law that can be built by name.
pub type WindowEntry = Entry<BoxedWindowController, WindowContext>;

/// The data that a window law needs in addition to its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowContext {
    /// Size of an IP packet that carries a whole segment.
    pub packet: Size,
    /// Seed of the law's random numbers.
    pub seed: u64,
}

impl Context for WindowContext {
    fn trial() -> Self {
        Self { packet: Size::trial(), seed: 0 }
    }
}

impl Parameters {
    /// Returns the parameter `noise_weight`; zero if the parameter `aware` is `off`.
    fn noise_weight(&self, aware: &Parameter) -> Result<f64, ConfigError> {
        let weight = self.number(&NOISE_WEIGHT)?;
        Ok(if self.choice(aware)? == "on" { weight } else { 0.0 })
    }

    /// Returns the law, wrapped in an [`Oscillating`] if the parameter `oscillation` is above zero.
    fn oscillating<L: WindowController + 'static>(
        &self,
        law: L,
        context: &WindowContext,
    ) -> Result<BoxedWindowController, ConfigError> {
        let strength = self.number(&OSCILLATION)?;
        Ok(if strength > 0.0 { Box::new(Oscillating::new(law, strength, context.seed)) } else { Box::new(law) })
    }
}

const INITIAL_WINDOW: Parameter = Parameter {
    name: "initial_window",
    kind: Kind::Number { unit: "segments" },
    default: Some("10"),
    range: Some(("1", "1000")),
    meaning: "window before the first acknowledgement; more is a larger burst at the beginning",
    source: "RFC 6928, Sec. 2",
};
const OSCILLATION: Parameter = Parameter {
    name: "oscillation",
    kind: Kind::Number { unit: "1/√s" },
    default: Some("0"),
    range: Some(("0", "1")),
    meaning: "m, strength of the noise that keeps the window moving; with a larger value, changes of the path are found sooner, but the window varies more",
    source: "Kodama 2009, Eq. 17; the default value is ours",
};
const LOWER: Parameter = Parameter {
    name: "alpha",
    kind: Kind::Number { unit: "segments" },
    default: Some("2"),
    range: Some(("0.1", "1000")),
    meaning: "fewest segments of its own in the queue; below, the window grows",
    source: "Brakmo 1995; ns-2 has 1",
};
const UPPER: Parameter = Parameter {
    name: "beta",
    kind: Kind::Number { unit: "segments" },
    default: Some("4"),
    range: Some(("0.1", "1000")),
    meaning: "most segments of its own in the queue; above, the window shrinks",
    source: "Brakmo 1995; ns-2 has 3",
};
const GAMMA: Parameter = Parameter {
    name: "gamma",
    kind: Kind::Number { unit: "" },
    default: Some("0.95"),
    range: Some(("0.01", "0.99")),
    meaning: "γ, the weight of the other flows; with a smaller value the window is steadier, but the queue longer",
    source: "Kodama 2009, Sec. 3.3",
};
const EPSILON: Parameter = Parameter {
    name: "epsilon",
    kind: Kind::Number { unit: "1/s" },
    default: Some("1.95"),
    range: Some(("0.01", "100")),
    meaning: "ε, speed of convergence; more is faster, in larger bursts",
    source: "ours; the thesis does not state a value",
};
const NOISE_AWARE: Parameter = Parameter {
    name: "noise_aware",
    kind: Kind::Choice(&["on", "off"]),
    default: Some("on"),
    range: None,
    meaning: "whether γ falls where the measured bandwidth fluctuates",
    source: "Kodama 2009, Eq. 15",
};
/// Like [`NOISE_AWARE`], but off by default, for a law whose source does not consider noise.
const NOISE_AWARE_VEGAS: Parameter = Parameter {
    name: "noise_aware",
    kind: Kind::Choice(&["on", "off"]),
    default: Some("off"),
    range: None,
    meaning: "whether the measured backlog counts less where the queueing delay fluctuates",
    source: "ours, after Kodama 2009, Eq. 15",
};
const NOISE_WEIGHT: Parameter = Parameter {
    name: "noise_weight",
    kind: Kind::Number { unit: "" },
    default: Some("4"),
    range: Some(("0", "100")),
    meaning: "l, weight of the noise of the measurements if `noise_aware` is on: with a larger value, noise lowers γ more (law `symbiosis`), or the measured backlog (law `vegas`)",
    source: "Kodama 2009, Sec. 3.3",
};

const ARITHMETIC: Parameter = Parameter {
    name: "arithmetic",
    kind: Kind::Choice(&["float", "fixed"]),
    default: Some("float"),
    range: None,
    meaning: "floating point, or the integers of the Linux kernel's form of the law",
    source: "ours",
};

pub(super) static ENTRIES: &[WindowEntry] = &[
    Entry {
        name: "reno",
        summary: "the window grows by one segment per round trip, and is halved after a loss",
        source: "RFC 5681, Sec. 3.1",
        parameters: &[INITIAL_WINDOW, OSCILLATION],
        make: |given, context| given.oscillating(Reno::new(given.number(&INITIAL_WINDOW)?), context),
    },
    Entry {
        name: "cubic",
        summary: "a cubic function of the time since the last loss, never slower than Reno",
        source: "RFC 9438, Sec. 4",
        parameters: &[INITIAL_WINDOW, OSCILLATION],
        make: |given, context| given.oscillating(Cubic::new(given.number(&INITIAL_WINDOW)?), context),
    },
    Entry {
        name: "vegas",
        summary: "keeps a few segments of its own in the queue; calculates their number from the round-trip time",
        source: "Brakmo 1995, Sec. 3",
        parameters: &[LOWER, UPPER, NOISE_AWARE_VEGAS, NOISE_WEIGHT, INITIAL_WINDOW, OSCILLATION],
        make: |given, context| {
            let (lower, upper) = (given.number(&LOWER)?, given.number(&UPPER)?);
            if lower > upper {
                let problem = format!("it is {lower}, above `beta`, which is {upper}; swap them or lower `alpha`");
                return Err(ConfigError::Together { name: LOWER.name, problem });
            }
            let (noise_weight, initial_window) =
                (given.noise_weight(&NOISE_AWARE_VEGAS)?, given.number(&INITIAL_WINDOW)?);
            given.oscillating(Vegas::new(VegasConfig { lower, upper, noise_weight, initial_window }), context)
        },
    },
    Entry {
        name: "symbiosis",
        summary: "the window grows like the population of a species that competes with others; calculated from the measured capacity and available bandwidth; Reno until these are measured",
        source: "Kodama 2009, Eq. 10, 15",
        parameters: &[GAMMA, EPSILON, NOISE_AWARE, NOISE_WEIGHT, INITIAL_WINDOW, OSCILLATION, ARITHMETIC],
        make: |given, context| {
            let config = SymbiosisConfig {
                gamma: given.number(&GAMMA)?,
                epsilon_per_s: given.number(&EPSILON)?,
                noise_weight: given.noise_weight(&NOISE_AWARE)?,
                initial_window: given.number(&INITIAL_WINDOW)?,
                packet: context.packet,
            };
            if given.choice(&ARITHMETIC)? == "fixed" {
                return Ok(Box::new(FixedSymbiosis::new(config, given.number(&OSCILLATION)?, context.seed)));
            }
            given.oscillating(Symbiosis::new(config), context)
        },
    },
];
