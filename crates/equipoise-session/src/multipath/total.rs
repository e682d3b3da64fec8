use alloc::boxed::Box;
use core::fmt;

use equipoise::control::{BoxedController, Controller as _, Needs};
use equipoise::units::Rate;

/// What decides how much a session over several paths sends in all.
pub enum Total {
    /// One controller for all paths together, which goes by the intervals that their reports make of them as of one path.
    Pooled(BoxedController),
    /// A controller for each path, which goes by reports on that path's packets.
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
}

impl Total {
    /// What `controller` is to a session: one like it on each path, as `laws` makes them, if it goes by single packets, and else the
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
