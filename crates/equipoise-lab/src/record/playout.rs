use equipoise::units::Span;

use crate::result::PlayoutResult;
use crate::scenario::{Direction, Flow, Scenario};

/// The data recorded so far about a session's playout buffer.
#[derive(Debug)]
pub(super) struct PlayoutRecord {
    pub(super) result: PlayoutResult,
    /// Number of packets in the content of the session, if the content is finite and its length is known.
    content: Option<u64>,
    /// Propagation delay of the links that a packet crosses after the playout buffer.
    behind: Span,
}

impl PlayoutRecord {
    pub(super) fn new(flow: &Flow, scenario: &Scenario) -> Option<Self> {
        flow.playout()?;
        let behind = flow.path.get(flow.network().len()..).unwrap_or_default();
        let behind = scenario.propagation_delay(behind, Direction::Forward);
        Some(Self { result: PlayoutResult::default(), content: None, behind })
    }

    /// Records that the sender will send this number of packets in total.
    pub(super) const fn on_content(&mut self, packets: u64) {
        self.content = Some(packets);
    }

    /// Records that the buffer accepted a packet. `served` is the time from the run's start until the playout of the
    /// packet is complete.
    pub(super) fn on_buffered(&mut self, served: Span) {
        self.result.packets_buffered += 1;
        if self.content == Some(self.result.packets_buffered) {
            self.result.finished_s = Some((served + self.behind).as_secs_f64());
        }
    }
}
