use equipoise::control::ap::{Ap, ApConfig, Learning};
use equipoise::control::{BoxedController, RateLimits};
use equipoise::units::{Rate, Size, Span};
use equipoise_pair::tpba::{Running, RunningConfig, TpbaConfig};

use super::TcpFlow;

/// A flow pair: a flow of application data units (ADUs) that is sent over TCP in probing periods and over RTP in
/// running periods (Tobe 1999, Sec. 4). The two kinds of periods alternate.
///
/// The application always has another ADU to send. The flow's packet size is the size of an IP packet that carries RTP.
#[derive(Clone, Debug)]
pub struct PairFlow {
    /// Size of each ADU.
    pub adu: Size,
    /// Settings that determine when probing and running periods start and end.
    pub tpba: TpbaConfig,
    /// The control law of the rate in running periods.
    pub law: RunningLaw,
    /// Time between two requests for a receiver report on the RTP half.
    pub report_interval: Span,
    /// Size of an IP packet that carries a full TCP segment.
    pub segment: Size,
    /// The flow pair's TCP connection. The flow pair writes the data to this connection. The connection keeps its
    /// congestion window while idle.
    pub tcp: TcpFlow,
}

/// The control law of the rate in a running period. The maximum rate is the rate that TCP reached in the preceding
/// probing period, but at least the minimum rate. `Loss` starts at the maximum rate, and `Ap` at the minimum rate. A
/// scenario cannot set another start rate. Our results for Tobe 1999 are with these start rates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunningLaw {
    /// A reported loss lowers the rate, and the rate never rises (Tobe 1999, Sec. 4).
    Loss(RunningConfig),
    /// Our alternative to the law of Tobe 1999: attractor perturbation (Waki 2013, Eq. 15, 16).
    Ap {
        /// The target one-way delay.
        target: Span,
        /// The minimum rate.
        min_rate: Rate,
    },
}

/// The coefficient of response b, in 1/(s·Mbit/s), and the parameter [`unrest`](ApConfig::unrest) of the controller AP:
/// the defaults of the catalogue.
const AP_RESPONSE: f64 = 300.0;
const AP_UNREST: f64 = 0.08;

impl RunningLaw {
    /// Returns a controller for a running period, in which RTP carries the data of the flow pair. `found` is the rate
    /// that TCP reached in the preceding probing period, and `packet` is the packet size.
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

    /// Name of the control law in a scenario file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss(_) => "loss",
            Self::Ap { .. } => "ap",
        }
    }
}

impl PairFlow {
    /// Name of the flow pair in results: the scheme and, if the control law is not that of Tobe 1999, the control law.
    pub const fn name(&self) -> &'static str {
        match self.law {
            RunningLaw::Loss(_) => "tpba",
            RunningLaw::Ap { .. } => "tpba-ap",
        }
    }

    /// The target one-way delay in running periods, when the flow pair sends over RTP; `None` if the control law of
    /// these periods has no target.
    pub const fn target(&self) -> Option<Span> {
        match self.law {
            RunningLaw::Loss(_) => None,
            RunningLaw::Ap { target, .. } => Some(target),
        }
    }
}
