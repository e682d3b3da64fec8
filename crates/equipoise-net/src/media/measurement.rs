use equipoise::control::Reason;
use equipoise::measure::{DelaySummary, Offset};
use equipoise::units::{Rate, Span};
use equipoise_session::Event;

use super::news::Publisher;
use crate::{HostStats, Observer, Time};

/// A sender's measurements of its path, from the receiver's last report.
///
/// A value is `None` if it is not known: before the first report, or if a report had too few packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Reports so far.
    pub reports: u64,
    /// Mean of the delay that the session uses ([`SendConfig::delays`](crate::SendConfig::delays)), over the last
    /// report's interval.
    pub delay_mean: Option<Span>,
    /// Standard deviation of this delay.
    pub delay_deviation: Option<Span>,
    /// Round-trip time: from the request for a report to its arrival, less the time that the receiver held it (RFC
    /// 3550, Sec. 6.4.1).
    pub round_trip: Option<Span>,
    /// Share of the interval's packets that were lost, 0 to 1.
    pub fraction_lost: Option<f64>,
    /// Packets that were sent and have not arrived since the session began.
    pub lost: Option<u64>,
    /// How far the receiver's clock is ahead of the sender's clock, with the uncertainty of this value.
    pub offset: Option<Offset>,
    /// Why the controller chose the current rate; `None` before its first decision.
    pub reason: Option<Reason>,
}

/// A receiver's measurements of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Packets received, each counted once.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// Packets that did not arrive in time, so that their payload is missing.
    pub missing: u64,
    /// Mean delay over the interval of the last report sent, as the two clocks show it, less the delay of the session's
    /// first packet. `None` before the first report, or if its interval had too few packets.
    pub delay_mean: Option<Span>,
    /// Standard deviation of this delay.
    pub delay_deviation: Option<Span>,
}

/// Summary of a sender's session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Media packets sent.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// The last measurements of the path.
    pub measurement: Measurement,
    /// Whether the receiver ended the session; otherwise this end did.
    pub ended_by_peer: bool,
    /// The counters of the session's host.
    pub host: HostStats,
}

/// Collects the events of a sender's session, on the session's thread, and publishes the results.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) measurement: Measurement,
    pub(super) ended_by_peer: bool,
    key_frames_wanted: u64,
    /// `None` once the session is over.
    publishers: Option<Publishers>,
}

/// The values that are published.
#[derive(Debug)]
pub(super) struct Publishers {
    pub(super) rate: Publisher<Rate>,
    pub(super) measurement: Publisher<Measurement>,
    pub(super) key_frames_wanted: Publisher<u64>,
}

impl Tally {
    pub(super) fn new(publishers: Publishers) -> Self {
        Self {
            packets: 0,
            bytes: 0,
            measurement: Measurement::default(),
            ended_by_peer: false,
            key_frames_wanted: 0,
            publishers: Some(publishers),
        }
    }
}

impl Observer for Tally {
    fn on_event(&mut self, _now: Time, event: &Event) {
        match event {
            Event::MediaSent { size, .. } => {
                self.packets += 1;
                self.bytes += size.as_bytes();
            }
            Event::RateDecided { rate, snapshot } => {
                self.measurement.reason = snapshot.reason;
                if let Some(publishers) = &self.publishers {
                    publishers.rate.tell(*rate);
                    if self.measurement.reports > 0 {
                        publishers.measurement.tell(self.measurement);
                    }
                }
            }
            Event::KeyFrameWanted(_) => {
                self.key_frames_wanted += 1;
                if let Some(publishers) = &self.publishers {
                    publishers.key_frames_wanted.tell(self.key_frames_wanted);
                }
            }
            Event::ClocksCompared { offset, .. } => self.measurement.offset = *offset,
            Event::ReportApplied { delay, round_trip, fraction_lost, lost, .. } => {
                let (delay_mean, delay_deviation) = moments(*delay);
                self.measurement = Measurement {
                    reports: self.measurement.reports + 1,
                    delay_mean,
                    delay_deviation,
                    round_trip: Some(*round_trip),
                    fraction_lost: Some(*fraction_lost),
                    lost: Some(*lost),
                    ..self.measurement
                };
                if let Some(publishers) = &self.publishers {
                    publishers.measurement.tell(self.measurement);
                }
            }
            Event::Ended { by_peer } => {
                self.ended_by_peer = *by_peer;
                self.publishers = None;
            }
            _ => {}
        }
    }
}

/// Mean and standard deviation of an interval's delay.
pub(super) fn moments(delay: Option<DelaySummary>) -> (Option<Span>, Option<Span>) {
    let mean = delay.and_then(|delay| Span::from_secs_f64(delay.mean_s));
    (mean, delay.and_then(|delay| Span::from_secs_f64(delay.variance_s2.sqrt())))
}
