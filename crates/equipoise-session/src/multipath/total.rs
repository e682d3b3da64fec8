use alloc::boxed::Box;
use core::fmt;

use super::law::Law;
use super::sender::Sender;
use crate::feedback::Format;
use crate::rtp::governor::Governor;
use crate::rtp::stream::check_reporting;
use crate::rtp::{SenderConfig, SessionError};
use equipoise::control::scheduler::PathView;
use equipoise::control::{BoxedController, Controller as _, Needs};
use equipoise::units::Rate;

/// How the total rate of a session over several paths is decided.
pub enum Total {
    /// One controller for all paths together, which gets interval summaries of their combined reports, as of one path.
    Pooled(BoxedController),
    /// A controller for each path, which gets per-packet reports on that path.
    PerPath(PathLaws),
}

/// The controllers of a session's paths, one for each. The total rate is the sum of the rates that they allow on live
/// paths.
pub struct PathLaws {
    /// Creates the controller of a path that is new or has come back: the same kind each time. If it returns `None`, a
    /// new path is rejected, and a path that has come back keeps its controller.
    pub make: Box<dyn Fn() -> Option<BoxedController> + Send + Sync>,
    /// Maximum total rate; `None` for no limit.
    pub highest: Option<Rate>,
}

impl PathLaws {
    /// Controllers created by `make`, for a session with a total rate of at most `highest`.
    pub fn new(make: impl Fn() -> Option<BoxedController> + Send + Sync + 'static, highest: Option<Rate>) -> Self {
        Self { make: Box::new(make), highest }
    }

    /// The total rate that the live paths' controllers allow, at most [`highest`](Self::highest).
    pub(super) fn allowed(&self, views: &[PathView]) -> Rate {
        let all = sum(views.iter().filter(|view| view.alive).filter_map(|view| view.most));
        self.highest.map_or(all, |highest| all.min(highest))
    }
}

/// The sum of these rates.
pub(super) fn sum(rates: impl Iterator<Item = Rate>) -> Rate {
    Rate::from_bps(rates.fold(0, |sum, rate| sum.saturating_add(rate.as_bps())))
}

impl Total {
    /// The total for `controller`: if it uses per-packet reports, a controller for each path, created by `laws`;
    /// otherwise `controller` itself for all paths.
    pub fn of(controller: BoxedController, laws: PathLaws) -> Self {
        if controller.needs().contains(Needs::PACKETS) { Self::PerPath(laws) } else { Self::Pooled(controller) }
    }
}

impl fmt::Debug for PathLaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathLaws").field("highest", &self.highest).finish_non_exhaustive()
    }
}

impl fmt::Debug for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pooled(controller) => f.debug_tuple("Pooled").field(controller).finish(),
            Self::PerPath(laws) => f.debug_tuple("PerPath").field(laws).finish(),
        }
    }
}

/// What decides on the total rate, once the session has started.
#[derive(Debug)]
pub(super) enum Control {
    Pooled(Governor),
    /// Each path has its own law; these are the data to create them.
    PerPath(PathLaws),
}

impl Control {
    /// The decision for a session with this configuration.
    ///
    /// # Errors
    /// [`SessionError`] if the controllers do not fit the session's reports.
    pub(super) fn new(config: &SenderConfig, total: Total) -> Result<Self, SessionError> {
        check_reporting(config.reporting)?;
        match (total, config.reporting.map(|reporting| reporting.format)) {
            (Total::Pooled(_), Some(_)) => Err(SessionError::ByPacket),
            (Total::Pooled(controller), None) => Ok(Self::Pooled(Governor::new(controller, Sender::PROVIDES)?)),
            (Total::PerPath(_), Some(Format::TransportWide)) => Err(SessionError::TransportWide),
            (Total::PerPath(laws), format) => {
                let provided = if format.is_some() { Law::PROVIDES } else { Needs::NOTHING };
                Needs::PACKETS.met_by(provided)?;
                // Create a law once here, so that the creation for a later path cannot fail.
                Law::new(config, &laws, config.start)?;
                Ok(Self::PerPath(laws))
            }
        }
    }

    /// The laws of the paths, if each path has its own.
    pub(super) const fn laws(&self) -> Option<&PathLaws> {
        match self {
            Self::Pooled(_) => None,
            Self::PerPath(laws) => Some(laws),
        }
    }

    /// The law of all paths together, if there is one.
    pub(super) const fn pooled_mut(&mut self) -> Option<&mut Governor> {
        match self {
            Self::Pooled(governor) => Some(governor),
            Self::PerPath(_) => None,
        }
    }
}
