//! Rate controllers that go by feedback on single packets.

use alloc::boxed::Box;

use super::super::{Nada, NadaLaw};
use super::rates::{MAX_RATE, MIN_RATE, START_RATE};
use super::{Entry, Kind, Parameter};

const PRIORITY: Parameter = Parameter {
    name: "priority",
    kind: Kind::Number { unit: "" },
    default: Some("1"),
    range: Some(("0.01", "100")),
    meaning: "PRIO, weight among flows of the law that share a bottleneck",
    source: "RFC 8698, Table 2",
};
const REFERENCE: Parameter = Parameter {
    name: "reference",
    kind: Kind::Span,
    default: Some("10 ms"),
    range: Some(("0.1 ms", "1 s")),
    meaning: "XREF, congestion signal at the highest rate; more fills queues further, and holds more beside others",
    source: "RFC 8698, Table 2",
};
const KAPPA: Parameter = Parameter {
    name: "kappa",
    kind: Kind::Number { unit: "" },
    default: Some("0.5"),
    range: Some(("0.01", "10")),
    meaning: "KAPPA, gain of the gradual update; more reacts faster, and swings more",
    source: "RFC 8698, Table 2",
};
const ETA: Parameter = Parameter {
    name: "eta",
    kind: Kind::Number { unit: "" },
    default: Some("2"),
    range: Some(("0", "100")),
    meaning: "ETA, weight of the signal's change beside its offset; more brakes sooner",
    source: "RFC 8698, Table 2",
};
const TAU: Parameter = Parameter {
    name: "tau",
    kind: Kind::Span,
    default: Some("500 ms"),
    range: Some(("10 ms", "10 s")),
    meaning: "TAU, longest round trip that the gains are made for; more is steadier, and slower",
    source: "RFC 8698, Table 2",
};
const RAMP_BOUND: Parameter = Parameter {
    name: "ramp_bound",
    kind: Kind::Span,
    default: Some("50 ms"),
    range: Some(("1 ms", "1 s")),
    meaning: "QBOUND, queue that a ramp-up may make; more finds free capacity faster, and overshoots it further",
    source: "RFC 8698, Table 2",
};
const WARP_ABOVE: Parameter = Parameter {
    name: "warp_above",
    kind: Kind::Span,
    default: Some("50 ms"),
    range: Some(("1 ms", "10 s")),
    meaning: "QTH, from which on delay counts less while packets are lost; less yields less to flows that go by loss",
    source: "RFC 8698, Table 2",
};
const LOSS_PENALTY: Parameter = Parameter {
    name: "loss_penalty",
    kind: Kind::Span,
    default: Some("10 ms"),
    range: Some(("0.1 ms", "1 s")),
    meaning: "DLOSS, delay that 1 % of losses count for; more bears fewer losses",
    source: "RFC 8698, Table 2",
};
const MARK_PENALTY: Parameter = Parameter {
    name: "mark_penalty",
    kind: Kind::Span,
    default: Some("2 ms"),
    range: Some(("0.1 ms", "1 s")),
    meaning: "DMARK, delay that 1 % of marks count for; more bears fewer marks",
    source: "RFC 8698, Table 2",
};
const NADA_START: Parameter = Parameter {
    meaning: "rate at which the session starts, brought between the limits",
    source: "RFC 8698, Sec. 4.3: at RMIN",
    ..START_RATE
};
const NADA_MIN: Parameter = Parameter {
    default: Some("150 kbit/s"),
    meaning: "RMIN, lowest rate",
    source: "RFC 8698, Table 2",
    ..MIN_RATE
};
const NADA_MAX: Parameter = Parameter {
    default: Some("1.5 Mbit/s"),
    meaning: "RMAX, highest rate; a flow's share of a bottleneck is in proportion",
    source: "RFC 8698, Table 2",
    ..MAX_RATE
};

pub(super) const NADA: Entry = Entry {
    name: "nada",
    summary: "delay, marks and losses as one signal, to which the rate is in inverse proportion; by feedback on single packets",
    source: "RFC 8698, Sec. 4, 5",
    parameters: &[
        PRIORITY,
        REFERENCE,
        KAPPA,
        ETA,
        TAU,
        RAMP_BOUND,
        WARP_ABOVE,
        LOSS_PENALTY,
        MARK_PENALTY,
        NADA_START,
        NADA_MIN,
        NADA_MAX,
    ],
    make: |given, _| {
        let limits = given.limits_and_start(&NADA_MIN)?;
        let law = NadaLaw {
            priority: given.number(&PRIORITY)?,
            max_bps: limits.max().as_bps_f64(),
            reference_s: given.span(&REFERENCE)?.as_secs_f64(),
            kappa: given.number(&KAPPA)?,
            eta: given.number(&ETA)?,
            tau_s: given.span(&TAU)?.as_secs_f64(),
            ramp_bound_s: given.span(&RAMP_BOUND)?.as_secs_f64(),
            warp_threshold_s: given.span(&WARP_ABOVE)?.as_secs_f64(),
            loss_penalty_s: given.span(&LOSS_PENALTY)?.as_secs_f64(),
            mark_penalty_s: given.span(&MARK_PENALTY)?.as_secs_f64(),
        };
        Ok(Box::new(Nada::new(law, limits)))
    },
};
