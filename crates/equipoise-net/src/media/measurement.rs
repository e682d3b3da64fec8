use equipoise::control::Reason;
use equipoise::measure::{DelaySummary, Offset};
use equipoise::units::{Rate, Span};
use equipoise_session::Event;

use super::news::Publisher;
use crate::{HostStats, Observer, Time};

/// A sender's measurements of its path, from the receiver's latest report.
///
/// A value is `None` if it is not known: before the first report, or if the report covers too few packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Number of reports received.
    pub reports: u64,
    /// Mean delay in the interval of the latest report. The session's configuration determines which delay is measured
    /// ([`SendConfig::delays`](crate::SendConfig::delays)).
    pub delay_mean: Option<Span>,
    /// Standard deviation of the delay in the interval of the latest report.
    pub delay_deviation: Option<Span>,
    /// Round-trip time: from the request for a report to the arrival of the report, minus the time for which the
    /// receiver delayed its answer (RFC 3550, Sec. 6.4.1).
    pub round_trip: Option<Span>,
    /// Share of packets lost in the interval of the latest report, 0 to 1.
    pub fraction_lost: Option<f64>,
    /// Number of packets that were sent before the request for the latest report and have not arrived.
    pub lost: Option<u64>,
    /// How far the receiver's clock is ahead of the sender's clock, and the uncertainty of this value.
    pub offset: Option<Offset>,
    /// Why the controller chose the current rate; `None` before the controller's first decision.
    pub reason: Option<Reason>,
}

/// A receiver's measurements of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Number of media packets received; duplicates count once.
    pub packets: u64,
    /// Total size of the received media packets as IP packets, in bytes.
    pub bytes: u64,
    /// Number of packets that were lost or arrived too late, so that their payload is missing.
    pub missing: u64,
    /// Mean delay in the interval of the latest report sent, minus the delay of the session's first packet. A delay is
    /// the arrival time by the receiver's clock minus the sending time by the sender's clock. `None` before the first
    /// report, or if the interval had too few packets.
    pub delay_mean: Option<Span>,
    /// Standard deviation of the delay in the interval of the latest report sent.
    pub delay_deviation: Option<Span>,
}

/// A summary of a sender's session that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of media packets sent, without retransmissions.
    pub packets: u64,
    /// Total size of the media packets sent, without retransmissions, in bytes of IP packets.
    pub bytes: u64,
    /// The last measurements of the path.
    pub measurement: Measurement,
    /// Whether the receiver ended the session; if not, the sender ended it.
    pub ended_by_peer: bool,
    /// The counters of the sender's host.
    pub host: HostStats,
}

/// Collects the events of a sender's session and publishes the results. It runs on the session's thread.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) measurement: Measurement,
    pub(super) ended_by_peer: bool,
    key_frames_wanted: u64,
    /// Where results are published; `None` after the end of the session.
    publishers: Option<Publishers>,
}

/// The publishers of the values that an application can watch.
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

/// Mean and standard deviation of a delay in a report's interval; `None` if they are not known.
pub(super) fn moments(delay: Option<DelaySummary>) -> (Option<Span>, Option<Span>) {
    let mean = delay.and_then(|delay| Span::from_secs_f64(delay.mean_s));
    (mean, delay.and_then(|delay| Span::from_secs_f64(delay.variance_s2.sqrt())))
}
