use equipoise::units::Span;
use equipoise_session::PathChange;
use equipoise_session::feedback::Reporting;

use super::{Choice, SchedulerChoice};

/// A named path through the network. A flow can use several paths.
#[derive(Clone, Debug)]
pub struct Path {
    /// Name of the path.
    pub name: String,
    /// Links of the path, in order, as indices into [`Scenario::links`](super::Scenario::links).
    pub links: Vec<usize>,
    /// Outages of the path that the host notices, in order of time.
    pub down: Vec<Outage>,
}

impl Path {
    /// Returns the changes of the path that the host notices, in order of time.
    pub fn changes(&self) -> Vec<(Span, PathChange)> {
        let down =
            self.down.iter().flat_map(|outage| [(Some(outage.at), PathChange::Down), (outage.until, PathChange::Up)]);
        down.filter_map(|(at, change)| Some((at?, change))).collect()
    }
}

/// A time span in which a path cannot be used, or in which a session pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Start of the time span, since the start of the run.
    pub at: Span,
    /// When the outage or pause ends, since the start of the run; `None` if it does not end within the run.
    pub until: Option<Span>,
}

/// A session with a controller over several paths.
#[derive(Clone, Debug)]
pub struct MultipathFlow {
    /// The controller. If it uses reports about single packets, each path has its own instance, which controls the rate
    /// of this path. Otherwise, one instance controls the total rate.
    pub controller: Choice,
    /// How the receiver reports about single packets; `None` if one controller serves all paths.
    pub reporting: Option<Reporting>,
    /// Time between two requests for a receiver report on each path.
    pub report_interval: Span,
    /// Time between two divisions of the total rate among the paths.
    pub period: Span,
    /// The scheduler that divides the total rate among the paths.
    pub scheduler: SchedulerChoice,
    /// The session's paths, as indices into [`Scenario::paths`](super::Scenario::paths). Within the session, paths are
    /// numbered from 0 in this order.
    pub paths: Vec<usize>,
    /// The mean one-way delay that the controller tries to reach; `None` if it has no target.
    pub target: Option<Span>,
}
