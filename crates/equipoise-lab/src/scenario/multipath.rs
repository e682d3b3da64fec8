use equipoise::units::Span;
use equipoise_session::PathChange;
use equipoise_session::feedback::Reporting;

use super::{Choice, SchedulerChoice};

/// A way through the network by its name, of which a flow may use several.
#[derive(Clone, Debug)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// Its links, in order, by their place in [`Scenario::links`](super::Scenario::links).
    pub links: Vec<usize>,
    /// When it is taken away from the host, which notices that, in the order of time.
    pub down: Vec<Outage>,
}

impl Path {
    /// What the host notices of it, in the order of time.
    pub fn changes(&self) -> Vec<(Span, PathChange)> {
        let down =
            self.down.iter().flat_map(|outage| [(Some(outage.at), PathChange::Down), (outage.until, PathChange::Up)]);
        down.filter_map(|(at, change)| Some((at?, change))).collect()
    }
}

/// A time in which a path cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its beginning, from the start of the run.
    pub at: Span,
    /// Its end; `None` where the path does not come back.
    pub until: Option<Span>,
}

/// A controlled session over several paths.
#[derive(Clone, Debug)]
pub struct MultipathFlow {
    /// The controller of the total; of each path, where it goes by single packets.
    pub controller: Choice,
    /// How the receiver reports on single packets; `None` if the controller is one for all paths.
    pub reporting: Option<Reporting>,
    /// Time between two requests for a report on each path.
    pub report_interval: Span,
    /// Time between two splits.
    pub period: Span,
    /// What divides the total.
    pub scheduler: SchedulerChoice,
    /// The paths by their place in [`Scenario::paths`](super::Scenario::paths); to the session they have numbers from 0.
    pub paths: Vec<usize>,
    /// The mean one-way delay that the controller tries to hold.
    pub target: Option<Span>,
}
