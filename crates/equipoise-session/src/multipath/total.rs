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
    /// One controller for all paths together. It gets interval summaries that combine the reports about all paths, as
    /// if the paths were one.
    Pooled(BoxedController),
    /// One controller for each path. Each controller gets per-packet reports on its path.
    PerPath(PathLaws),
}

/// The function that creates one controller for each path of a session, and the maximum total rate. The total rate is
/// the sum of the rates that the controllers of the live paths allow, but at most the maximum.
pub struct PathLaws {
    /// Creates the controller of a path that is new or is usable again. The function must create the same kind of
    /// controller each time. If the function returns `None`, a new path is rejected, and a path that is usable again
    /// keeps its old controller.
    pub make: Box<dyn Fn() -> Option<BoxedController> + Send + Sync>,
    /// Maximum total rate; `None` for no limit.
    pub highest: Option<Rate>,
}

impl PathLaws {
    /// Creates a `PathLaws`: `make` creates the controllers of the paths, and `highest` limits the total rate.
    pub fn new(make: impl Fn() -> Option<BoxedController> + Send + Sync + 'static, highest: Option<Rate>) -> Self {
        Self { make: Box::new(make), highest }
    }

    /// Returns the total rate that the live paths' controllers allow, at most [`highest`](Self::highest).
    pub(super) fn allowed(&self, views: &[PathView]) -> Rate {
        let all = sum(views.iter().filter(|view| view.alive).filter_map(|view| view.most));
        self.highest.map_or(all, |highest| all.min(highest))
    }
}

/// Returns the sum of these rates.
pub(super) fn sum(rates: impl Iterator<Item = Rate>) -> Rate {
    Rate::from_bps(rates.fold(0, |sum, rate| sum.saturating_add(rate.as_bps())))
}

impl Total {
    /// Returns `PerPath` with `laws` if `controller` uses per-packet reports, otherwise `Pooled` with `controller`
    /// itself.
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

/// What decides on the total rate of a session that has started.
#[derive(Debug)]
pub(super) enum Control {
    Pooled(Governor),
    /// Each path has its own law, which this value creates.
    PerPath(PathLaws),
}

impl Control {
    /// Creates the controller or the controllers that decide on the total rate of a session with this configuration.
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
                // This creates a law once as a test, so that an unsuitable controller is rejected at the start.
                Law::new(config, &laws, config.start)?;
                Ok(Self::PerPath(laws))
            }
        }
    }

    /// Returns what creates the controllers of the paths; `None` if one controller serves all paths together.
    pub(super) const fn laws(&self) -> Option<&PathLaws> {
        match self {
            Self::Pooled(_) => None,
            Self::PerPath(laws) => Some(laws),
        }
    }

    /// Returns the controller of all paths together, with its limits; `None` if each path has its own controller.
    pub(super) const fn pooled_mut(&mut self) -> Option<&mut Governor> {
        match self {
            Self::Pooled(governor) => Some(governor),
            Self::PerPath(_) => None,
        }
    }
}
