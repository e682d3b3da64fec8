//! A sample run for tests.

use super::board::Board;
use super::told::{Interval, Measured, Open, Start, Told, Way};
use crate::hosts::results::{self, ReceiveInterval};

pub(crate) fn start() -> Told {
    Told::Start(Start { version: "0.0.0", command: "receive", title: "receiving at [::]:5004".to_owned() })
}

pub(crate) fn open(series: u64) -> Told {
    let name = if series == 1 { "a \"quoted\" peer".to_owned() } else { format!("192.0.2.{series}:5004") };
    Told::Open(Open { series, at_s: 0.0, name, direction: Way::Received })
}

pub(crate) fn interval(series: u64, at_s: f64) -> Told {
    let mut received = ReceiveInterval::default();
    (received.start_s, received.end_s) = (at_s - 1.0, at_s);
    (received.rate_bps, received.packets, received.bytes, received.packets_lost) = (1e6, 104, 125_000, Some(1));
    (received.shown_delay_mean_s, received.delay_mean_s) = (Some(-0.005), Some(0.006));
    let quantiles = [&mut received.delay_p50_s, &mut received.delay_p95_s, &mut received.delay_p99_s];
    quantiles.into_iter().zip([0.005, 0.012, 0.02]).for_each(|(quantile, delay_s)| *quantile = Some(delay_s));
    received.jitter_s = Some(0.001);
    let measured = Measured::Session(results::Interval::Received(received.into()));
    Told::Interval(Box::new(Interval { series, at_s, measured }))
}

/// Returns the state of a run after one second, with `sessions` sessions. A circuit breaker has stopped the first
/// session.
pub(crate) fn board(sessions: u64) -> Board {
    let mut board = Board::default();
    board.take(&start());
    for series in 0..sessions {
        board.take(&open(series));
        board.take(&interval(series, 1.0));
    }
    board.take(&Told::Breaker { series: 0, at_s: 1.0, breaker: Some("media timeout") });
    board.sample();
    board
}
