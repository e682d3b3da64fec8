//! Time series for watching a run: rates, queueing delays and frame delays, in bins of equal length.

use equipoise::units::{Size, Span};
use equipoise_session::{Event, Medium};
use serde::Serialize;

use crate::record::LiveRecord;
use crate::scenario::Scenario;
use crate::sim::RunObserver;

/// The time series of a run, by flow.
#[derive(Debug)]
pub struct Timeline {
    duration: Span,
    piece: Span,
    flows: Vec<FlowTimeline>,
}

/// Approximate maximum number of bins of a run, similar to the number of pixel columns of a screen.
const MOST_PIECES: i64 = 3000;

#[derive(Debug)]
struct FlowTimeline {
    frames: LiveRecord,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    sent: Size,
    received: Size,
    waited: Span,
    longest_wait: Span,
    packets: u32,
    slowest_frame: Option<Span>,
}

/// The time series of one flow as columns of equal length, for charts. A value that was not measured in a bin is
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Columns {
    /// Ends of the bins, in seconds since the start of the run.
    pub at_s: Vec<f64>,
    /// Rate of IP bytes that the flow sent in each bin, in bit/s.
    pub sent_bps: Vec<f64>,
    /// Rate of IP bytes that arrived in each bin, in bit/s.
    pub received_bps: Vec<f64>,
    /// Mean queueing delay of the packets that arrived in each bin, in seconds.
    pub wait_mean_s: Vec<Option<f64>>,
    /// Maximum queueing delay of the packets that arrived in each bin, in seconds.
    pub wait_max_s: Vec<Option<f64>>,
    /// Maximum time from the capture of a video frame until the frame's last packet arrived, over the frames completed
    /// in each bin, in seconds.
    pub frame_delay_s: Vec<Option<f64>>,
}

impl Timeline {
    /// Returns an empty timeline for a run of the scenario. The length of a bin is the maximum of `piece`, 1 ms and
    /// 1/3000 of the duration of the run.
    pub fn new(scenario: &Scenario, piece: Span) -> Self {
        let least = Span::from_nanos(scenario.duration.as_nanos() / MOST_PIECES);
        let piece = piece.max(least).max(Span::from_millis(1));
        let pieces = (scenario.duration.as_nanos().max(0) as u64).div_ceil(piece.as_nanos() as u64) as usize;
        let flow = |_: &_| FlowTimeline { frames: LiveRecord::of_both(), pieces: vec![Piece::default(); pieces] };
        Self { duration: scenario.duration, piece, flows: scenario.flows.iter().map(flow).collect() }
    }

    /// Returns the columns of flow number `flow`; empty if there is no such flow.
    pub fn columns(&self, flow: usize) -> Columns {
        let Some(flow) = self.flows.get(flow) else { return Columns::default() };
        let mut columns = Columns::default();
        for (number, piece) in (0i64..).zip(&flow.pieces) {
            let begin = self.piece * number;
            // The last bin is shorter if the run ends within it.
            let end = (begin + self.piece).min(self.duration);
            let rate = |size: Size| size.as_bits() as f64 / (end - begin).as_secs_f64();
            let of_packets = |span: Span| (piece.packets > 0).then(|| span.as_secs_f64());
            columns.at_s.push(end.as_secs_f64());
            columns.sent_bps.push(rate(piece.sent));
            columns.received_bps.push(rate(piece.received));
            columns.wait_mean_s.push(of_packets(piece.waited).map(|waited| waited / f64::from(piece.packets)));
            columns.wait_max_s.push(of_packets(piece.longest_wait));
            columns.frame_delay_s.push(piece.slowest_frame.map(Span::as_secs_f64));
        }
        columns
    }

    /// Returns the record of a flow, and the flow's bin at the time `at`; `None` after the run's end.
    fn at(&mut self, at: Span, flow: usize) -> Option<(&mut LiveRecord, &mut Piece)> {
        let place = usize::try_from(at.as_nanos().div_euclid(self.piece.as_nanos())).ok()?;
        let FlowTimeline { frames, pieces } = self.flows.get_mut(flow).filter(|_| at < self.duration)?;
        pieces.get_mut(place).map(|piece| (frames, piece))
    }
}

impl RunObserver for Timeline {
    fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        let Some((frames, piece)) = self.at(at, flow) else { return };
        match *event {
            Event::FrameCaptured { medium, size, .. } => frames.on_captured(at, medium, size),
            Event::MediaSent { sequence, size, waited, fragment } => {
                piece.sent = piece.sent + size;
                frames.on_sent(sequence, waited, fragment);
            }
            Event::MediaReceived { sequence, size, .. } => {
                piece.received = piece.received + size;
                let arrived = frames.on_received(at, sequence);
                if let (Some(Medium::Video), Some(captured)) = (arrived.medium, arrived.completed) {
                    piece.slowest_frame = piece.slowest_frame.max(Some(at - captured));
                }
            }
            _ => {}
        }
    }

    fn on_waited(&mut self, at: Span, flow: usize, waited: Span) {
        let Some((_, piece)) = self.at(at, flow) else { return };
        piece.waited = piece.waited + waited;
        piece.longest_wait = piece.longest_wait.max(waited);
        piece.packets += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim;

    /// If this test fails, the sums over the bins differ from the run's own results.
    #[test]
    fn pieces_sum_up_to_the_run() {
        let scenario = Scenario::parse(crate::DEMO_OWN).expect("the demo");
        let timeline = Timeline::new(&scenario, Span::from_millis(100));
        let (run, timeline) = sim::simulate_observed(&scenario, 1, timeline).expect("a run");
        let columns = timeline.columns(0);
        assert_eq!(columns.at_s.len(), 200);
        let flow = &run.flows[0];
        let of = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let sent = flow.mean_rate_bps.expect("a rate");
        assert!((of(&columns.sent_bps) - sent).abs() < 1e-3 * sent, "{} for {sent}", of(&columns.sent_bps));
        let longest = columns.frame_delay_s.iter().flatten().copied().fold(0.0, f64::max);
        let frames = flow.video.as_ref().expect("video").delay.max_s.expect("frames");
        assert!((longest - frames).abs() < 1e-2 * frames, "{longest} for {frames}");
        assert_eq!(timeline.columns(1), Columns::default());
    }

    #[test]
    fn a_long_run_has_longer_pieces() {
        let text = crate::DEMO_OWN.replace("duration = \"20 s\"", "duration = \"1 h\"");
        let scenario = Scenario::parse(&text).expect("a longer demo");
        assert_eq!(Timeline::new(&scenario, Span::from_millis(100)).columns(0).at_s.len(), 3000);
    }

    #[test]
    fn the_last_piece_ends_with_the_run() {
        let text = crate::DEMO_OWN.replace("duration = \"20 s\"", "duration = \"20.05 s\"");
        let scenario = Scenario::parse(&text).expect("a longer demo");
        let columns = Timeline::new(&scenario, Span::from_millis(100)).columns(0);
        assert_eq!(columns.at_s[199..], [20.0, 20.05]);
    }
}
