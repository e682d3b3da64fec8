//! Rate controllers that use per-packet feedback.

use alloc::boxed::Box;

use super::super::nada::{Nada, NadaLaw};
use super::super::scream::{Form, Marking, Scream, ScreamConfig, ScreamLaw};
use super::super::{Equipoise, EquipoiseConfig, Gcc, GccConfig, GccForm, GccProbing, RateLimits};
use super::rates::{DECREASE, FLOOR, INITIAL_RATE, MAX_RATE, MIN_RATE, START_RATE};
use super::{ConfigError, Entry, Kind, Parameter, Parameters};

impl Parameters {
    fn gcc(&self) -> Result<GccConfig, ConfigError> {
        let limits = RateLimits::new(self.rate(&GCC_MIN_RATE)?, self.rate(&MAX_RATE)?)?;
        let form = if self.choice(&GCC_FORM)? == "draft" { GccForm::Draft } else { GccForm::Libwebrtc };
        let probing = match self.choice(&GCC_PROBING)? {
            "off" => GccProbing::Off,
            "periodic" => GccProbing::Periodic,
            _ => GccProbing::On,
        };
        let limits = limits.starting_at(self.rate(&GCC_INITIAL_RATE)?);
        Ok(GccConfig {
            limits,
            form,
            probing,
            decrease: self.number(&GCC_DECREASE)?,
            pacing: self.number(&GCC_PACING)?,
        })
    }
}

const GCC_FORM: Parameter = Parameter {
    name: "form",
    kind: Kind::Choice(&["libwebrtc", "draft"]),
    default: Some("libwebrtc"),
    range: None,
    meaning: "the law of today's libwebrtc, or the law of the draft, which has a Kalman filter and a rule on losses",
    source: "libwebrtc, goog_cc; draft-ietf-rmcat-gcc-02",
};
const GCC_PROBING: Parameter = Parameter {
    name: "probing",
    kind: Kind::Choice(&["off", "on", "periodic"]),
    default: Some("on"),
    range: None,
    meaning: "which probes (short bursts above the rate) the law requests. off: none; on: at the beginning, and after a large drop of the rate if the application sends less than the rate; periodic: as on, and also every 5 s while the application sends less than the rate. The draft's form requests no probes",
    source: "libwebrtc, probe_controller",
};
const GCC_DECREASE: Parameter = Parameter {
    default: Some("0.85"),
    range: Some(("0.5", "0.99")),
    meaning: "β: after overuse, the rate is β times the arrival rate; a smaller value empties the queue sooner, but gives up more rate",
    source: "draft-ietf-rmcat-gcc-02, Sec. 5.5",
    ..DECREASE
};
const GCC_PACING: Parameter = Parameter {
    name: "pacing",
    kind: Kind::Number { unit: "" },
    default: Some("1.1"),
    range: Some(("1", "100")),
    meaning: "ratio of the pacing rate to the rate; with a larger value a frame leaves in a shorter time. Chromium's pacer also sends the data of up to 40 ms at once; our sessions do not. With the draft's form, the session decides the pacing rate",
    source: "libwebrtc, goog_cc_network_control",
};
const GCC_MIN_RATE: Parameter = Parameter {
    default: Some("30 kbit/s"),
    meaning: "lowest rate",
    source: "libwebrtc: the lowest of a video stream",
    ..MIN_RATE
};
const GCC_INITIAL_RATE: Parameter = Parameter {
    default: Some("300 kbit/s"),
    meaning: "rate at which the session starts, limited to `min_rate` ... `max_rate`; the first probes are faster",
    source: "libwebrtc, the start of a call",
    ..INITIAL_RATE
};

pub(super) const GCC: Entry = Entry {
    name: "gcc",
    summary: "Google congestion control: keeps the rate just below the rate at which the delay begins to rise; needs feedback on single packets",
    source: "draft-ietf-rmcat-gcc-02; Carlucci 2016; libwebrtc, goog_cc",
    parameters: &[GCC_FORM, GCC_PROBING, GCC_DECREASE, GCC_PACING, GCC_INITIAL_RATE, GCC_MIN_RATE, MAX_RATE],
    make: |given, _| Ok(Box::new(Gcc::new(given.gcc()?))),
};

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
    meaning: "XREF, congestion signal at the highest rate; a larger value gives longer queues, and a larger share beside other flows",
    source: "RFC 8698, Table 2",
};
const KAPPA: Parameter = Parameter {
    name: "kappa",
    kind: Kind::Number { unit: "" },
    default: Some("0.5"),
    range: Some(("0.01", "10")),
    meaning: "KAPPA, gain of the gradual update; with a larger value the rate reacts faster, but oscillates more",
    source: "RFC 8698, Table 2",
};
const ETA: Parameter = Parameter {
    name: "eta",
    kind: Kind::Number { unit: "" },
    default: Some("2"),
    range: Some(("0", "100")),
    meaning: "ETA, ratio of two weights: that of the change of the congestion signal, and that of the signal's offset from equilibrium; with a larger value the rate falls sooner when a queue begins to grow",
    source: "RFC 8698, Table 2",
};
const TAU: Parameter = Parameter {
    name: "tau",
    kind: Kind::Span,
    default: Some("500 ms"),
    range: Some(("10 ms", "10 s")),
    meaning: "TAU, longest round-trip time for which the gains are designed; with a larger value the rate is steadier, but slower",
    source: "RFC 8698, Table 2",
};
const RAMP_BOUND: Parameter = Parameter {
    name: "ramp_bound",
    kind: Kind::Span,
    default: Some("50 ms"),
    range: Some(("1 ms", "1 s")),
    meaning: "QBOUND, queueing delay that a ramp-up may cause; with a larger value the rate finds free capacity faster, but overshoots it further",
    source: "RFC 8698, Table 2",
};
const WARP_ABOVE: Parameter = Parameter {
    name: "warp_above",
    kind: Kind::Span,
    default: Some("50 ms"),
    range: Some(("1 ms", "10 s")),
    meaning: "QTH: while packets are lost, a queueing delay above this value counts less; with a smaller value the flow yields less to loss-based flows",
    source: "RFC 8698, Table 2",
};
const LOSS_PENALTY: Parameter = Parameter {
    name: "loss_penalty",
    kind: Kind::Span,
    default: Some("10 ms"),
    range: Some(("0.1 ms", "1 s")),
    meaning: "DLOSS: 1 % of losses counts as this delay; with a larger value, losses lower the rate more",
    source: "RFC 8698, Table 2",
};
const MARK_PENALTY: Parameter = Parameter {
    name: "mark_penalty",
    kind: Kind::Span,
    default: Some("2 ms"),
    range: Some(("0.1 ms", "1 s")),
    meaning: "DMARK: 1 % of marks counts as this delay; with a larger value, marks lower the rate more",
    source: "RFC 8698, Table 2",
};
const NADA_START: Parameter = Parameter {
    meaning: "rate at which the session starts, limited to `min_rate` ... `max_rate`",
    source: "RFC 8698, Sec. 4.3: at RMIN",
    ..START_RATE
};
const NADA_MIN: Parameter =
    Parameter { default: Some("150 kbit/s"), meaning: "RMIN, lowest rate", source: "RFC 8698, Table 2", ..MIN_RATE };
const NADA_MAX: Parameter = Parameter {
    default: Some("1.5 Mbit/s"),
    meaning: "RMAX, highest rate; flows share a bottleneck in proportion to their RMAX",
    source: "RFC 8698, Table 2",
    ..MAX_RATE
};

pub(super) const NADA: Entry = Entry {
    name: "nada",
    summary: "delay, marks and losses as one signal, to which the rate is in inverse proportion; needs feedback on single packets",
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

const QUEUE_TARGET: Parameter = Parameter {
    name: "queue_target",
    kind: Kind::Span,
    default: Some("60 ms"),
    range: Some(("1 ms", "400 ms")),
    meaning: "QDELAY_TARGET_LO: the window is reduced if the queueing delay is above half of this value; at this value the reduction is at its maximum; with a larger value, more of a link with varying capacity is used",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2",
};
const LOSS_FACTOR: Parameter = Parameter {
    name: "loss_factor",
    kind: Kind::Number { unit: "" },
    default: Some("0.7"),
    range: Some(("0.1", "0.99")),
    meaning: "BETA_LOSS, by which a loss multiplies the window",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2",
};
const MARK_FACTOR: Parameter = Parameter {
    name: "mark_factor",
    kind: Kind::Number { unit: "" },
    default: Some("0.8"),
    range: Some(("0.1", "0.99")),
    meaning: "BETA_ECN, by which a mark of classic ECN multiplies the window",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2",
};
const GROWTH: Parameter = Parameter {
    name: "growth",
    kind: Kind::Number { unit: "" },
    default: Some("0.02"),
    range: Some(("0", "1")),
    meaning: "MUL_INCREASE_FACTOR, share of the window added in a round trip far from congestion; with a larger value the flow finds capacity sooner",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2",
};
const HEAD_ROOM: Parameter = Parameter {
    name: "head_room",
    kind: Kind::Number { unit: "" },
    default: Some("1.5"),
    range: Some(("1", "10")),
    meaning: "BYTES_IN_FLIGHT_HEAD_ROOM: the window grows only while it is below this multiple of the data recently in flight",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2",
};
const PACING_HEAD_ROOM: Parameter = Parameter {
    name: "pacing",
    kind: Kind::Number { unit: "" },
    default: Some("1.5"),
    range: Some(("1", "10")),
    meaning: "PACKET_PACING_HEADROOM, the ratio of the pacing rate to the target rate",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.3.2",
};
const MARKING: Parameter = Parameter {
    name: "marking",
    kind: Kind::Choice(&["codepoint", "l4s", "classic"]),
    default: Some("codepoint"),
    range: None,
    meaning: "how ECN marks count. l4s: by the share of marked packets; classic: as one congestion event, at most once per round trip; codepoint: as l4s if packets arrive as ECT(1), otherwise as classic",
    source: "ours; draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.1.3",
};
const FORM: Parameter = Parameter {
    name: "form",
    kind: Kind::Choice(&["core", "full"]),
    default: Some("core"),
    range: None,
    meaning: "only what the draft requires, or also what it suggests for jitter, rare losses, policers and undershoot",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.5",
};

pub(super) const SCREAM: Entry = Entry {
    name: "scream",
    summary: "SCReAM v2: a window that follows L4S marks, queueing delay and losses, and a bitrate derived from this window; needs feedback on single packets",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4",
    parameters: &[
        QUEUE_TARGET,
        LOSS_FACTOR,
        MARK_FACTOR,
        GROWTH,
        HEAD_ROOM,
        PACING_HEAD_ROOM,
        MARKING,
        FORM,
        START_RATE,
        FLOOR,
        MAX_RATE,
    ],
    make: |given, context| {
        let law = ScreamLaw {
            target_s: given.span(&QUEUE_TARGET)?.as_secs_f64(),
            loss_factor: given.number(&LOSS_FACTOR)?,
            mark_factor: given.number(&MARK_FACTOR)?,
            growth: given.number(&GROWTH)?,
            head_room: given.number(&HEAD_ROOM)?,
            pacing: given.number(&PACING_HEAD_ROOM)?,
            ..ScreamLaw::new(context.packet)
        };
        let marking = match given.choice(&MARKING)? {
            "l4s" => Marking::L4s,
            "classic" => Marking::Classic,
            _ => Marking::ByCodepoint,
        };
        let form = if given.choice(&FORM)? == "full" { Form::Full } else { Form::Core };
        let limits = given.limits_and_start(&FLOOR)?;
        Ok(Box::new(Scream::new(ScreamConfig { law, limits, marking, form })))
    },
};

const SHARE: Parameter = Parameter {
    name: "priority",
    kind: Kind::Number { unit: "" },
    default: Some("1"),
    range: Some(("0.1", "10")),
    meaning: "a flow of twice the priority has twice the rate beside others of this law",
    source: "ours",
};

const MOST_QUEUE: Parameter = Parameter {
    name: "most_queue",
    kind: Kind::Span,
    default: Some("57 ms"),
    range: Some(("2 ms", "1 s")),
    meaning: "upper limit of the target queueing delay of a flow that is alone; the target is as long as this only on slow links, and where the delay varies much from packet to packet; on both, a smaller value leaves more of the capacity unused",
    source: "ours",
};
const BESIDE_LOSSES: Parameter = Parameter {
    name: "beside_losses",
    kind: Kind::Choice(&["compete", "yield"]),
    default: Some("compete"),
    range: None,
    meaning: "what the law does beside loss-based flows such as TCP. compete: it sends at the rate of a virtual TCP flow, although the queue is then long; yield: it uses only the capacity that these flows leave",
    source: "ours; Tobe 1999",
};

pub(super) const EQUIPOISE: Entry = Entry {
    name: "equipoise",
    summary: "our own law: keeps the queueing delay small, grows towards the rate that trains of packets show, and takes TCP's rate in competition with TCP; needs feedback on single packets",
    source: "ours; Waki 2013, Kodama 2009, Subramanya 2003, Tobe 1999",
    parameters: &[SHARE, MOST_QUEUE, BESIDE_LOSSES, GCC_INITIAL_RATE, FLOOR, MAX_RATE],
    make: |given, _| {
        let limits = RateLimits::new(given.rate(&FLOOR)?, given.rate(&MAX_RATE)?)?;
        Ok(Box::new(Equipoise::new(EquipoiseConfig {
            limits: limits.starting_at(given.rate(&GCC_INITIAL_RATE)?),
            priority: given.number(&SHARE)?,
            most_queue: given.span(&MOST_QUEUE)?,
            competes: given.choice(&BESIDE_LOSSES)? == "compete",
        })))
    },
};
