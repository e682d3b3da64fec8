//! The table of rate controllers.

use alloc::boxed::Box;

use super::super::ap::{Ap, ApConfig, Learning, Printed, PrintedConfig, Response};
use super::super::{Aimd, BoxedController, Cbr, Increase, Lda, LdaConfig, Rap, RateLimits, Tfrc, Tq, TqConfig, TqLaw};
use super::{ConfigError, Context, Entry, Kind, Parameter, Parameters, packets, parameters};
use crate::control::PathLoad;
use crate::measure::TrafficAccumulation;
use crate::units::Size;

/// The data that a rate controller needs in addition to its parameters.
#[derive(Clone, Debug)]
pub struct RateContext {
    /// Size of the session's IP packets.
    pub packet: Size,
    /// The shared cell to which a simulator or a link emulator writes the load of the bottleneck. The cell stays empty
    /// in a session over a real network.
    pub load: PathLoad,
}

impl From<Size> for RateContext {
    fn from(packet: Size) -> Self {
        Self { packet, load: PathLoad::default() }
    }
}

impl Context for RateContext {
    fn trial() -> Self {
        Size::trial().into()
    }
}

impl Parameters {
    pub(super) fn learning(&self) -> Result<Learning, ConfigError> {
        Ok(match self.choice(&LEARN)? {
            "probe" => Learning::Probed,
            "adapt" => Learning::Adapted,
            _ => Learning::Fixed,
        })
    }

    /// Returns rate limits: the lower limit is the value of `min`, the upper limit that of `max_rate`, and the start
    /// rate that of `initial_rate`.
    pub(super) fn limits_and_start(&self, min: &Parameter) -> Result<RateLimits, ConfigError> {
        let limits = RateLimits::new(self.rate(min)?, self.rate(&MAX_RATE)?)?;
        Ok(limits.starting_at(self.rate(&START_RATE)?))
    }

    fn limits(&self) -> Result<RateLimits, ConfigError> {
        RateLimits::new(self.rate(&MIN_RATE)?, self.rate(&MAX_RATE)?)
    }

    fn lda(&self, increase: Increase, packet: Size) -> Result<BoxedController, ConfigError> {
        let limits = RateLimits::new(self.rate(&LOW_MIN_RATE)?, self.rate(&MAX_RATE)?)?;
        let (initial_rate, initial_increase) = (self.rate(&INITIAL_RATE)?, self.rate(&INITIAL_INCREASE)?);
        let (reduction_factor, adapt) = (self.number(&REDUCTION_FACTOR)?, self.span(&ADAPT)?);
        let config = LdaConfig { initial_rate, limits, initial_increase, reduction_factor, adapt, increase };
        Ok(Box::new(Lda::new(config, packet)))
    }

    fn aimd(&self, limits: RateLimits) -> Result<Aimd, ConfigError> {
        Ok(Aimd::new(self.span(&TARGET)?, limits, self.rate(&INCREASE)?, self.number(&DECREASE)?))
    }

    fn printed(&self, response: Response, packet: Size) -> Result<BoxedController, ConfigError> {
        let (target, limits) = (self.span(&TARGET)?, self.limits()?);
        Ok(Box::new(Printed::new(PrintedConfig { target, limits, response, packet })))
    }
}

const TARGET: Parameter = Parameter {
    name: "target",
    kind: Kind::Span,
    default: None,
    range: Some(("0.1 ms", "60 s")),
    meaning: "one-way delay to hold; above the path's propagation delay",
    source: "the application",
};
pub(super) const MIN_RATE: Parameter = Parameter {
    name: parameters::MIN_RATE,
    kind: Kind::Rate,
    default: Some("0.1 Mbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "lowest rate, at which the session starts",
    source: "Waki 2013, Sec. 6.1.2",
};
pub(super) const MAX_RATE: Parameter = Parameter {
    name: parameters::MAX_RATE,
    kind: Kind::Rate,
    default: Some("15 Mbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "highest rate",
    source: "Waki 2013, Sec. 6.1.2",
};
const UNREST: Parameter = Parameter {
    name: "unrest",
    kind: Kind::Number { unit: "" },
    default: Some("0.08"),
    range: Some(("0.001", "1")),
    meaning: "the law filters its measurements, so that the noise of the reports changes the rate by at most about this share of the free capacity (root mean square); with a smaller value the rate is steadier, but free capacity is found later",
    source: "ours",
};
pub(super) const RESPONSE: Parameter = Parameter {
    name: "b",
    kind: Kind::Number { unit: "1/(s·Mbit/s)" },
    default: Some("300"),
    range: Some(("0.001", "1000000")),
    meaning: "coefficient of response; larger is slower",
    source: "Waki 2013, Sec. 4.2",
};
pub(super) const LEARN: Parameter = Parameter {
    name: "learn",
    kind: Kind::Choice(&["never", "probe", "adapt"]),
    default: Some("never"),
    range: None,
    meaning: "whether b is learned by small pushes of the rate: never, at the beginning, or during the whole session",
    source: "Waki 2013, Sec. 8",
};
const RATE: Parameter = Parameter {
    name: "rate",
    kind: Kind::Rate,
    default: None,
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "the rate",
    source: "the application",
};
const INCREASE: Parameter = Parameter {
    name: "increase",
    kind: Kind::Rate,
    default: Some("0.4 Mbit/s"),
    range: Some(("1 bit/s", "1 Gbit/s")),
    meaning: "A, added in every interval whose mean delay is below the target",
    source: "Waki 2013, Sec. 6.1.2",
};
pub(super) const DECREASE: Parameter = Parameter {
    name: "decrease",
    kind: Kind::Number { unit: "" },
    default: Some("0.5"),
    range: Some(("0.01", "0.99")),
    meaning: "B, by which the rate is multiplied in every interval whose mean delay is not below the target",
    source: "Waki 2013, Sec. 6.1.2",
};

/// Like [`MIN_RATE`], for a controller that does not start at its lowest rate.
pub(super) const FLOOR: Parameter = Parameter { meaning: "lowest rate", ..MIN_RATE };
const PEAK: Parameter = Parameter {
    meaning: "highest rate, the peak packet rate, at which the session starts",
    source: "Subramanya 2003, Sec. 2; the default value is ours",
    ..MAX_RATE
};
const OCCUPANCY: Parameter = Parameter {
    name: "occupancy",
    kind: Kind::Number { unit: "packets" },
    default: Some("5"),
    range: Some(("0", "100000")),
    meaning: "x_d, number of the session's packets that the law keeps in the playout buffer; with a larger value the buffer runs empty less often, but packets wait longer",
    source: "ours: half of the buffer of Subramanya 2003, Table 2",
};
const GAIN: Parameter = Parameter {
    name: "gain",
    kind: Kind::Number { unit: "" },
    default: Some("0.5"),
    range: Some(("0", "0.99")),
    meaning: "k_v, share of the occupancy's error that is left after an interval; near 0 the rate oscillates if reports are late, and near 1 the rate reacts slowly",
    source: "ours: the middle of what Subramanya 2003, Eq. 5 allows",
};
const QUEUE: Parameter = Parameter {
    name: "queue",
    kind: Kind::Choice(&["printed", "adaptive", "accumulated"]),
    default: Some("printed"),
    range: None,
    meaning: "what the law takes for the bottleneck's queue q. printed: its growth in the last interval; adaptive: this growth, corrected by earlier prediction errors; accumulated: its whole length, calculated from the delay",
    source: "Subramanya 2003, Sec. 2; adaptive: Eq. 6, with an update rule of ours; accumulated: ours",
};
const LOW_MIN_RATE: Parameter = Parameter {
    default: Some("10 kbit/s"),
    meaning: "lowest rate",
    source: "ours: the rate that Tobe 1999, Sec. 6.2 begins with",
    ..MIN_RATE
};
pub(super) const INITIAL_RATE: Parameter = Parameter {
    name: "initial_rate",
    kind: Kind::Rate,
    default: Some("10 kbit/s"),
    range: Some(("1 kbit/s", "10 Gbit/s")),
    meaning: "r_0, the rate at which the session starts, between the limits",
    source: "Tobe 1999, Sec. 6.2",
};
pub(super) const START_RATE: Parameter = Parameter {
    default: Some("1 kbit/s"),
    meaning: "rate at which the session starts, limited to `min_rate` ... `max_rate`; the rate falls to `min_rate` if no report proves an arrival within 2 s, or within two report intervals plus 0.25 s if that is longer",
    source: "ours",
    ..INITIAL_RATE
};
const INITIAL_INCREASE: Parameter = Parameter {
    name: "increase",
    kind: Kind::Rate,
    default: Some("10 kbit/s"),
    range: Some(("1 bit/s", "1 Gbit/s")),
    meaning: "AIR_0, the first increase; a larger value reaches the flow's share sooner and overshoots it more",
    source: "Tobe 1999, Sec. 3",
};
const REDUCTION_FACTOR: Parameter = Parameter {
    name: "reduction_factor",
    kind: Kind::Number { unit: "" },
    default: Some("3"),
    range: Some(("0.1", "100")),
    meaning: "R_f: after a loss, the rate is reduced by R_f times the share of lost packets",
    source: "Tobe 1999, Sec. 3",
};
const ADAPT: Parameter = Parameter {
    name: "adapt",
    kind: Kind::Span,
    default: Some("3 s"),
    range: Some(("1 ms", "60 s")),
    meaning: "T_adapt, time between two adaptations of the rate; longer is steadier, and slower",
    source: "Tobe 1999, Sec. 3",
};
const LDA: &[Parameter] = &[INITIAL_RATE, INITIAL_INCREASE, REDUCTION_FACTOR, ADAPT, LOW_MIN_RATE, MAX_RATE];

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        name: "ap",
        summary: "the robust form of attractor perturbation: filters its measurements, and calculates each step from the whole curve of delay against load, not only from its slope",
        source: "Waki 2013, Eq. 7, 15, 16",
        parameters: &[TARGET, RESPONSE, LEARN, UNREST, START_RATE, FLOOR, MAX_RATE],
        make: |given, context| {
            let (target, limits) = (given.span(&TARGET)?, given.limits_and_start(&FLOOR)?);
            let (response, unrest) = (given.number(&RESPONSE)?, given.number(&UNREST)?);
            let learning = given.learning()?;
            Ok(Box::new(Ap::new(ApConfig { target, limits, response, learning, unrest, packet: context.packet })))
        },
    },
    Entry {
        name: "ap-printed",
        summary: "attractor perturbation as printed: a step of the rate is the target minus the mean delay, divided by b times the variance of the delay",
        source: "Waki 2013, Eq. 15, 16",
        parameters: &[TARGET, RESPONSE, MIN_RATE, MAX_RATE],
        make: |given, context| given.printed(Response::Constant(given.number(&RESPONSE)?), context.packet),
    },
    Entry {
        name: "ap-load",
        summary: "attractor perturbation as printed, but b is calculated from the load of the bottleneck, which only the simulator and the link emulator know; elsewhere the parameter `b` applies",
        source: "Waki 2013, Eq. 11, 15, 16",
        parameters: &[TARGET, RESPONSE, MIN_RATE, MAX_RATE],
        make: |given, context| {
            let response = Response::OfLoad { fallback: given.number(&RESPONSE)?, load: context.load.clone() };
            given.printed(response, context.packet)
        },
    },
    Entry {
        name: "aimd",
        summary: "additive increase below the target delay, multiplicative decrease above",
        source: "Waki 2013, Eq. 17",
        parameters: &[TARGET, INCREASE, DECREASE, START_RATE, FLOOR, MAX_RATE],
        make: |given, _| {
            let limits = given.limits_and_start(&FLOOR)?;
            Ok(Box::new(given.aimd(limits)?))
        },
    },
    Entry {
        name: "aimd-printed",
        summary: "`aimd` as in the paper: it starts at `min_rate`. Sessions limit `aimd` to twice the rate at which packets arrived, but do not limit `aimd-printed`",
        source: "Waki 2013, Eq. 17",
        parameters: &[TARGET, INCREASE, DECREASE, MIN_RATE, MAX_RATE],
        make: |given, _| Ok(Box::new(given.aimd(given.limits()?)?.as_printed())),
    },
    Entry {
        name: "lda",
        summary: "loss-delay based adjustment: an increase that becomes smaller as the rate comes near the bottleneck's rate, and a decrease in proportion to the loss",
        source: "Tobe 1999, Fig. 2; Sisalem 1998",
        parameters: LDA,
        make: |given, context| given.lda(Increase::Shrinking, context.packet),
    },
    Entry {
        name: "ldaf",
        summary: "`lda`, but each increase is calculated from AIR_0 and not from the last increase",
        source: "Tobe 1999, Sec. 6.2",
        parameters: LDA,
        make: |given, context| given.lda(Increase::Fixed, context.packet),
    },
    Entry {
        name: "rap",
        summary: "after each round trip without loss, one packet more per round trip; after a loss, half the rate",
        source: "Rejaie 1999, Sec. III",
        parameters: &[START_RATE, LOW_MIN_RATE, MAX_RATE],
        make: |given, context| {
            let limits = given.limits_and_start(&LOW_MIN_RATE)?;
            Ok(Box::new(Rap::new(limits, context.packet)))
        },
    },
    Entry {
        name: "tfrc",
        summary: "the rate that TCP's throughput equation gives for the loss events seen",
        source: "RFC 5348, Sec. 3.1, 4.3, 5.4",
        parameters: &[START_RATE, LOW_MIN_RATE, MAX_RATE],
        make: |given, context| {
            let limits = given.limits_and_start(&LOW_MIN_RATE)?;
            Ok(Box::new(Tfrc::new(limits, context.packet)))
        },
    },
    packets::EQUIPOISE,
    packets::GCC,
    Entry {
        name: "cbr",
        summary: "constant bit rate, whatever the path does",
        source: "Waki 2013, Sec. 6.1.2",
        parameters: &[RATE],
        make: |given, _| Ok(Box::new(Cbr::new(given.rate(&RATE)?))),
    },
    Entry {
        name: "tq",
        summary: "an explicit rate, calculated from the playout buffer's occupancy, arrival rate and service rate",
        source: "Subramanya 2003, Eq. 1 to 4",
        parameters: &[OCCUPANCY, GAIN, QUEUE, FLOOR, PEAK],
        make: |given, context| {
            let law = TqLaw { desired: given.number(&OCCUPANCY)?, gain: given.number(&GAIN)? };
            let accumulation = match given.choice(&QUEUE)? {
                "accumulated" => TrafficAccumulation::accumulated(),
                "adaptive" => TrafficAccumulation::adaptive(),
                _ => TrafficAccumulation::printed(),
            };
            Ok(Box::new(Tq::new(TqConfig { law, accumulation, limits: given.limits()?, packet: context.packet })))
        },
    },
    packets::NADA,
    packets::SCREAM,
];
