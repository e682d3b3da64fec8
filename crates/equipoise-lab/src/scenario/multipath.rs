use equipoise::units::Span;
use equipoise_session::PathChange;
use equipoise_session::feedback::Reporting;

use super::{Choice, SchedulerChoice};

/// A named path through the network; a flow may use several.
#[derive(Clone, Debug)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// Its links, in order, as indices into [`Scenario::links`](super::Scenario::links).
    pub links: Vec<usize>,
    /// Time spans in which the host has lost the path and has noticed the loss, in order of time.
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

/// A time span in which a path cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its beginning, from the start of the run.
    pub at: Span,
    /// Its end; `None` if the path does not return.
    pub until: Option<Span>,
}

/// A controlled session over several paths.
#[derive(Clone, Debug)]
pub struct MultipathFlow {
    /// The controller of the total rate, or of each path's rate if it uses reports on single packets.
    pub controller: Choice,
    /// How the receiver reports on single packets; `None` if one controller serves all paths.
    pub reporting: Option<Reporting>,
    /// Time between two requests for a report on each path.
    pub report_interval: Span,
    /// Time between two splits of the total rate.
    pub period: Span,
    /// The scheduler that splits the total rate.
    pub scheduler: SchedulerChoice,
    /// The paths as indices into [`Scenario::paths`](super::Scenario::paths); within the session they are numbered from
    /// 0.
    pub paths: Vec<usize>,
    /// The mean one-way delay that the controller tries to hold.
    pub target: Option<Span>,
}
