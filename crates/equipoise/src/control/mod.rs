//! Statistics → a sending rate.
//!
//! The middle step of the loop. A *law* is a bare equation; a [`Controller`] feeds a law with [`Feedback`] and says how
//! fast to send. Neither parses, queues, paces or logs. Where a session has several paths, a [`split::Splitter`] says how
//! much goes on each.

mod adaptation;
mod aimd;
pub mod ap;
mod catalogue;
mod cbr;
mod lda;
mod limits;
mod load;
mod rap;
pub mod split;
mod tfrc;
mod tq;
pub mod window;

use alloc::boxed::Box;

pub use adaptation::{AdaptationPoints, reduced};
pub use aimd::Aimd;
pub use catalogue::{ConfigError, Entry, Kind, Parameter, Parameters, RateContext, Value, entries, find};
pub use cbr::Cbr;
pub use lda::{Increase, Lda, LdaConfig};
pub use limits::RateLimits;
pub use load::PathLoad;
pub use rap::Rap;
pub use tfrc::Tfrc;
pub use tq::{Tq, TqConfig, TqLaw};

use crate::measure::{DelaySummary, EgressSummary};
use crate::units::{Instant, Rate, SenderClock, Span};

/// A rate control algorithm: feedback in, allowance out.
pub trait Controller: Send {
    /// Takes what the far end has told.
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback);

    /// How fast the session may send from now on.
    fn allowance(&self) -> Allowance;

    /// No feedback came for three intervals (Waki 2013, Sec. 5.1). Nothing changes unless the algorithm says so.
    fn on_timeout(&mut self, _now: Instant<SenderClock>) {}

    /// What the algorithm can say of its last decision.
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// The one-way delay that the algorithm tries to hold, if it has one.
    fn target_delay(&self) -> Option<Span> {
        None
    }

    /// Whether the algorithm goes by the bottleneck's rate, so that the session is to send packet pairs.
    fn wants_packet_pairs(&self) -> bool {
        false
    }
}

/// A controller on the heap, as a session holds it.
pub type BoxedController = Box<dyn Controller>;

/// What the far end tells of the packets that were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feedback {
    /// The summary of a whole report interval.
    Interval(IntervalSummary),
}

/// What happened to the packets of one report interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalSummary {
    /// One-way delay; `None` for too few samples.
    pub delay: Option<DelaySummary>,
    /// Share of the packets that were lost, 0 to 1.
    pub fraction_lost: f64,
    /// How many packets the report speaks of, lost or not.
    pub packets: u64,
    /// From a request to its report; `None` where it was not measured.
    pub round_trip: Option<Span>,
    /// Rate of the bottleneck, from packet pairs; `None` where the session sends none or too few came.
    pub bottleneck: Option<Rate>,
    /// The application gave less than the rate allowed, so that a short delay says nothing of a higher rate.
    pub application_limited: bool,
    /// What went into the network and came out of it; `None` where the receiver has no egress buffer.
    pub egress: Option<EgressSummary>,
}

/// How fast a session may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Rate of IP packets.
    pub rate: Rate,
}

/// A controller's own account of its last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Why the rate is what it is; `None` before the first decision.
    pub reason: Option<Reason>,
    /// The change of rate that the bare law asked for, in bit/s; `None` where it was not computed.
    pub law_step_bps: Option<f64>,
    /// AP's coefficient of response b, in 1/(s·Mbit/s); `None` for other laws.
    pub response: Option<f64>,
}

/// Why a rate is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The law's own step was taken.
    Law,
    /// A step up was cut to a share of the headroom that the variance implies.
    HeadroomGuard,
    /// The step was cut to doubling or halving the rate.
    StepGuard,
    /// The delay rose beyond what chance explains: the law's step was taken at once.
    Change,
    /// The delay was far above the target: the rate was halved instead of stepped.
    FarAboveTarget,
    /// The delay was far above the target and falling fast enough: the rate was kept.
    Draining,
    /// The step was cut by the lower or upper limit of the rate.
    RateLimit,
    /// The rate was not raised: the application does not use what it has.
    ApplicationLimited,
    /// The rate was kept: too few samples, or samples without sense.
    NoStatistics,
    /// The delay did not vary at all, so that the law has no step.
    NoVariance,
    /// Three reports in a row did not come: the rate was halved.
    ReportsMissing,
    /// The algorithm does not react.
    Fixed,
}

impl Reason {
    /// The reason in lower-case words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Law => "law",
            Self::HeadroomGuard => "headroom-guard",
            Self::StepGuard => "step-guard",
            Self::Change => "change",
            Self::FarAboveTarget => "far-above-target",
            Self::Draining => "draining",
            Self::RateLimit => "rate-limit",
            Self::ApplicationLimited => "application-limited",
            Self::NoStatistics => "no-statistics",
            Self::NoVariance => "no-variance",
            Self::ReportsMissing => "reports-missing",
            Self::Fixed => "fixed",
        }
    }
}
