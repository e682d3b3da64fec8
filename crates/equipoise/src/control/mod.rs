//! Computes a sending rate, a window, or both, from statistics.
//!
//! Control is the middle step of the loop: measure, control, pace. A *law* is an equation. A [`Controller`] feeds a law
//! with [`Feedback`] and returns an [`Allowance`]. Laws and controllers do not parse, queue, pace or log. `feedback.rs`
//! is the interface between sessions and controllers. If a session has several paths, a [`scheduler::Scheduler`]
//! decides how much to send on each path. [`adapt`] converts a session's feedback to the kind that a controller needs.

pub mod adapt;
mod adaptation;
mod aimd;
pub mod ap;
mod base_delay;
#[cfg(test)]
mod bottleneck;
mod catalogue;
mod cbr;
mod ceiling;
pub mod coupled;
mod equipoise;
mod feedback;
pub mod gcc;
mod lda;
mod limits;
mod load;
mod loss_intervals;
pub mod nada;
mod rap;
pub mod scheduler;
pub mod scream;
mod tfrc;
mod tq;
pub mod window;

pub use adaptation::{AdaptationPoints, reduced};
pub use aimd::Aimd;
pub use catalogue::{ConfigError, Context, Entry, Kind, Parameter, Parameters, RateContext, Value, entries, find};
pub use cbr::Cbr;
pub use ceiling::Ceiling;
pub use equipoise::{Equipoise, EquipoiseConfig};
pub use feedback::{
    Allowance, Beliefs, BoxedController, CloneController, Controller, Ecn, Fate, Feedback, IntervalSummary, Mode,
    Needs, PacketFeedback, PacketReport, Probe, QueuedFrame, Reason, SentPacket, Snapshot, UnmetNeeds,
};
pub use gcc::{Gcc, GccConfig, GccForm, GccProbing};
pub use lda::{Increase, Lda, LdaConfig};
pub use limits::RateLimits;
pub use load::PathLoad;
pub use rap::Rap;
pub use tfrc::Tfrc;
pub use tq::{Tq, TqConfig, TqLaw};
