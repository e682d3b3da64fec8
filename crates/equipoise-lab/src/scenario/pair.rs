use equipoise::control::ap::{Ap, ApConfig, Learning};
use equipoise::control::{BoxedController, RateLimits};
use equipoise::units::{Rate, Size, Span};
use equipoise_pair::tpba::{Running, RunningConfig, TpbaConfig};

use super::TcpFlow;

/// A flow pair: one flow of application data units (ADUs) that alternates between TCP and RTP (Tobe 1999, Sec. 4).
///
/// Its application always has another ADU to send. The flow's packet size is the size of its RTP packets.
#[derive(Clone, Debug)]
pub struct PairFlow {
    /// Size of an ADU, in bytes.
    pub adu: Size,
    /// When its probing and running periods begin and end.
    pub tpba: TpbaConfig,
    /// The control law of the rate in a running period.
    pub law: RunningLaw,
    /// Time between two requests for a report on the RTP half.
    pub report_interval: Span,
    /// Size of the IP packet of a full TCP segment.
    pub segment: Size,
    /// The TCP half; it has no content and no end of its own, and keeps its window while idle.
    pub tcp: TcpFlow,
}

/// The control law of the rate in a running period. The rate begins at the rate that TCP reached and never exceeds it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunningLaw {
    /// Reported loss lowers the rate, and nothing raises it (Tobe 1999, Sec. 4).
    Loss(RunningConfig),
    /// Our choice: attractor perturbation (Waki 2013, Eq. 15, 16), with the rate that TCP reached as its maximum.
    Ap {
        /// The target one-way delay.
        target: Span,
        /// The minimum rate.
        min_rate: Rate,
    },
}

/// AP's coefficient of response b in 1/(s·Mbit/s), and its `unrest`: the catalogue's defaults.
const AP_RESPONSE: f64 = 300.0;
const AP_UNREST: f64 = 0.08;

impl RunningLaw {
    /// Makes a controller for a running period after TCP reached the rate `found`, for packets of size `packet`.
    pub fn controller(self, found: Rate, packet: Size) -> BoxedController {
        match self {
            Self::Loss(config) => Box::new(Running::new(config, found)),
            Self::Ap { target, min_rate } => Box::new(Ap::new(ApConfig {
                target,
                limits: RateLimits::within(min_rate, found),
                response: AP_RESPONSE,
                learning: Learning::Fixed,
                unrest: AP_UNREST,
                packet,
            })),
        }
    }

    /// Its name in a scenario file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss(_) => "loss",
            Self::Ap { .. } => "ap",
        }
    }
}

impl PairFlow {
    /// Name of the flow pair in results: the scheme and the law of its running periods.
    pub const fn name(&self) -> &'static str {
        match self.law {
            RunningLaw::Loss(_) => "tpba",
            RunningLaw::Ap { .. } => "tpba-ap",
        }
    }

    /// The target one-way delay of its running periods; `None` if their control law has none.
    pub const fn target(&self) -> Option<Span> {
        match self.law {
            RunningLaw::Loss(_) => None,
            RunningLaw::Ap { target, .. } => Some(target),
        }
    }
}
