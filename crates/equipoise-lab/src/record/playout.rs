use equipoise::units::Span;

use crate::result::PlayoutResult;
use crate::scenario::{Direction, Flow, Scenario};

/// A session's playout buffer so far.
#[derive(Debug)]
pub(super) struct PlayoutRecord {
    pub(super) result: PlayoutResult,
    /// Number of packets of finite content.
    content: Option<u64>,
    /// Delay from the buffer to the end of the path.
    behind: Span,
}

impl PlayoutRecord {
    pub(super) fn new(flow: &Flow, scenario: &Scenario) -> Option<Self> {
        flow.playout()?;
        let behind = flow.path.get(flow.network().len()..).unwrap_or_default();
        let behind = scenario.propagation_delay(behind, Direction::Forward);
        Some(Self { result: PlayoutResult::default(), content: None, behind })
    }

    /// The sender has this many packets to send.
    pub(super) const fn on_content(&mut self, packets: u64) {
        self.content = Some(packets);
    }

    /// A packet was accepted; its playout is complete at `served`.
    pub(super) fn on_buffered(&mut self, served: Span) {
        self.result.packets_buffered += 1;
        if self.content == Some(self.result.packets_buffered) {
            self.result.finished_s = Some((served + self.behind).as_secs_f64());
        }
    }
}
