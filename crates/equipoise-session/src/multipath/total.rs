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

/// What decides how much a session over several paths sends in all.
pub enum Total {
    /// One controller for all paths together, which uses intervals of their pooled reports, as if they were one path.
    Pooled(BoxedController),
    /// A controller for each path, which uses reports on that path's packets.
    PerPath(PathLaws),
}

/// The controllers of a session's paths, one for each. What is sent in all is the sum of what they allow on the paths that live.
pub struct PathLaws {
    /// Makes the controller of a path that is new, or was away: the same kind each time. `None` if there is none; then a new path is
    /// refused, and one that was away goes on under the one that it had.
    pub make: Box<dyn Fn() -> Option<BoxedController> + Send + Sync>,
    /// The most that is sent in all; `None` for whatever the paths carry.
    pub highest: Option<Rate>,
}

impl PathLaws {
    /// Controllers that `make` makes, for a session that sends no more than `highest` in all.
    pub fn new(make: impl Fn() -> Option<BoxedController> + Send + Sync + 'static, highest: Option<Rate>) -> Self {
        Self { make: Box::new(make), highest }
    }

    /// What the live paths allow in total, at most [`highest`](Self::highest).
    pub(super) fn allowed(&self, views: &[PathView]) -> Rate {
        let all = sum(views.iter().filter(|view| view.alive).filter_map(|view| view.most));
        self.highest.map_or(all, |highest| all.min(highest))
    }
}

/// All these rates together.
pub(super) fn sum(rates: impl Iterator<Item = Rate>) -> Rate {
    Rate::from_bps(rates.fold(0, |sum, rate| sum.saturating_add(rate.as_bps())))
}

impl Total {
    /// What `controller` is to a session: one like it on each path, as `laws` makes them, if it uses single packets, and otherwise the
    /// one for all paths.
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

/// Who decides on the total.
#[derive(Debug)]
pub(super) enum Control {
    Pooled(Governor),
    /// The laws themselves are the paths'.
    PerPath(PathLaws),
}

impl Control {
    /// Who decides in a session of this configuration.
    ///
    /// # Errors
    /// [`SessionError`] where the controllers do not go with its reports.
    pub(super) fn new(config: &SenderConfig, total: Total) -> Result<Self, SessionError> {
        check_reporting(config.reporting)?;
        match (total, config.reporting.map(|reporting| reporting.format)) {
            (Total::Pooled(_), Some(_)) => Err(SessionError::ByPacket),
            (Total::Pooled(controller), None) => Ok(Self::Pooled(Governor::new(controller, Sender::PROVIDES)?)),
            (Total::PerPath(_), Some(Format::TransportWide)) => Err(SessionError::TransportWide),
            (Total::PerPath(laws), format) => {
                let provided = if format.is_some() { Law::PROVIDES } else { Needs::NOTHING };
                Needs::PACKETS.met_by(provided)?;
                // Tried once here, so that the law of a later path cannot fail.
                Law::new(config, &laws, config.start)?;
                Ok(Self::PerPath(laws))
            }
        }
    }

    /// The laws of paths, where they have any.
    pub(super) const fn laws(&self) -> Option<&PathLaws> {
        match self {
            Self::Pooled(_) => None,
            Self::PerPath(laws) => Some(laws),
        }
    }

    /// The one law of all paths, where they have one.
    pub(super) const fn pooled_mut(&mut self) -> Option<&mut Governor> {
        match self {
            Self::Pooled(governor) => Some(governor),
            Self::PerPath(_) => None,
        }
    }
}
