//! Computes round-trip times from RTCP sender reports and from the report blocks that refer to them.

use std::collections::{BTreeMap, VecDeque};

use equipoise_session::wire::rtcp::{ReportBlock, RtcpPacket};
use serde::Serialize;

/// Round-trip times between the capture point and a receiver of a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundTrip {
    /// The interface that captured the reports, counted from 0.
    pub interface: u32,
    /// SSRC of the sender reports, in tshark's format: `0x1234abcd`.
    pub sender_ssrc: String,
    /// SSRC of the receiver whose report blocks refer to the sender reports.
    pub reporter_ssrc: String,
    /// The samples in order of time.
    pub samples: Vec<RoundTripSample>,
}

/// One measured round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundTripSample {
    /// Capture time of the report block, in seconds since the first datagram.
    pub at_s: f64,
    /// Time at the capture point from the sender report to the report block that refers to it, minus the receiver's
    /// delay between the two (DLSR).
    pub round_trip_s: f64,
}

/// Number of recent sender reports that are kept for each source. A report block can refer to any of them.
const REMEMBERED: usize = 32;
/// `MOST_SOURCES` limits the number of sources and of pairs of sources. `MOST_SAMPLES` limits the number of all
/// samples. Both limit the memory.
const MOST_SOURCES: usize = 1000;
const MOST_SAMPLES: usize = 1_000_000;
/// The delays in report blocks have a unit of 1/65 536 s (RFC 3550, Sec. 6.4.1).
const UNITS_PER_S: f64 = 65_536.0;

/// An interface, the SSRC of sender reports, and the SSRC of the reports that refer to them.
type Pair = (u32, u32, u32);
/// The middle 32 bits of a sender report's NTP time, and the capture time of the report in nanoseconds.
type Sent = (u32, i64);

#[derive(Default)]
pub(super) struct RoundTrips {
    sent: BTreeMap<(u32, u32), VecDeque<Sent>>,
    found: BTreeMap<Pair, Vec<RoundTripSample>>,
    samples: usize,
}

impl RoundTrips {
    pub(super) fn push(&mut self, at_ns: i64, interface: u32, packet: &RtcpPacket<'_>) {
        match packet {
            RtcpPacket::SenderReport(report) => {
                if self.sent.len() < MOST_SOURCES || self.sent.contains_key(&(interface, report.ssrc)) {
                    let sent = self.sent.entry((interface, report.ssrc)).or_default();
                    sent.push_back((report.ntp.middle(), at_ns));
                    if sent.len() > REMEMBERED {
                        sent.pop_front();
                    }
                }
                report.blocks().for_each(|block| self.answer(at_ns, (interface, report.ssrc), &block));
            }
            RtcpPacket::ReceiverReport(report) => {
                report.blocks().for_each(|block| self.answer(at_ns, (interface, report.ssrc), &block));
            }
            _ => {}
        }
    }

    fn answer(&mut self, at_ns: i64, (interface, reporter): (u32, u32), block: &ReportBlock) {
        if block.last_sr == 0 || self.samples >= MOST_SAMPLES {
            return;
        }
        let Some(sent) = self.sent.get(&(interface, block.ssrc)) else { return };
        // The latest match is used, because the middle 32 bits of the NTP time repeat after 18 hours.
        let Some((_, sent_ns)) = sent.iter().rev().find(|(middle, _)| *middle == block.last_sr) else { return };
        let held = f64::from(block.delay_since_last_sr) / UNITS_PER_S;
        let round_trip_s = (at_ns - sent_ns) as f64 * 1e-9 - held;
        let sample = RoundTripSample { at_s: at_ns as f64 * 1e-9, round_trip_s };
        let pair = (interface, block.ssrc, reporter);
        if self.found.len() < MOST_SOURCES || self.found.contains_key(&pair) {
            self.found.entry(pair).or_default().push(sample);
            self.samples += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<RoundTrip> {
        let found = self.found.into_iter().map(|((interface, sender, reporter), samples)| RoundTrip {
            interface,
            sender_ssrc: super::stream::ssrc(sender),
            reporter_ssrc: super::stream::ssrc(reporter),
            samples,
        });
        found.collect()
    }
}
