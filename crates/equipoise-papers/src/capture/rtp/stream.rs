//! An RTP stream as seen at one capture point.

use std::collections::{BTreeSet, VecDeque};

use equipoise_lab::statistics::{quantile, sorted};
use equipoise_session::wire::rtp::RtpHeader;
use serde::Serialize;

use super::Key;

/// An RTP stream as captured by one interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RtpStream {
    /// The interface that captured the stream, counted from 0.
    pub interface: u32,
    /// Address and port of the sender.
    pub from: String,
    /// Address and port of the receiver.
    pub to: String,
    /// SSRC of the stream, in tshark's format: `0x1234abcd`.
    pub ssrc: String,
    /// All payload types that occur in the stream.
    pub payload_types: BTreeSet<u8>,
    /// Time of the first packet, in seconds since the first datagram of the capture.
    pub start_s: f64,
    /// Time of the last packet, in seconds since the first datagram of the capture.
    pub end_s: f64,
    /// Number of packets, including duplicates.
    pub packets: u64,
    /// Number of packets whose sequence number had already been received in one of the recent packets.
    pub duplicates: u64,
    /// Number of packets that were received after a packet with a higher sequence number. Duplicates are not counted.
    pub reordered: u64,
    /// Number of expected packets, computed from the first and the highest sequence number (RFC 3550, App. A.3).
    pub expected: u64,
    /// Number of expected packets minus number of received packets; negative if there are more duplicates than losses.
    pub lost: i64,
    /// Lost packets as a share of the expected packets.
    pub lost_share: f64,
    /// Rate of the stream's IP packets between its first and last packet, in bit/s; `null` if all packets have the same
    /// time.
    pub rate_bps: Option<f64>,
    /// Interarrival jitter; `null` if the media clock is not known.
    pub jitter: Option<Jitter>,
    /// One-way delays from the first interface that captured the stream to `interface`; `null` if these are the same
    /// interface, or if no delay was measured.
    pub delay: Option<Delays>,
    /// The values of each second in which packets were received.
    pub seconds: Vec<Second>,
}

/// Interarrival jitter (RFC 3550, Sec. 6.4.1, App. A.8), estimated after each packet except the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Jitter {
    /// Mean of the estimates, in seconds.
    pub mean_s: f64,
    /// Maximum of the estimates, in seconds.
    pub max_s: f64,
    /// The last estimate, in seconds.
    pub last_s: f64,
}

/// One-way delays of a stream between two interfaces with a common clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// The interface that captured the stream first.
    pub from_interface: u32,
    /// Number of packets that both interfaces captured.
    pub packets: u64,
    /// Smallest delay, in seconds.
    pub min_s: f64,
    /// Mean delay, in seconds.
    pub mean_s: f64,
    /// Median of the delays, in seconds.
    pub p50_s: f64,
    /// 95th percentile of the delays, in seconds.
    pub p95_s: f64,
    /// Largest delay, in seconds.
    pub max_s: f64,
}

/// The values of a stream in one second of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Beginning of the second, in seconds since the first datagram of the capture.
    pub at_s: f64,
    /// Number of packets received in the second.
    pub packets: u64,
    /// Rate of IP packets in this second of the capture, in bit/s.
    pub rate_bps: f64,
    /// The last jitter estimate in the second, in seconds; `null` if there is none.
    pub jitter_s: Option<f64>,
    /// Mean delay of the packets in the second, measured as for [`RtpStream::delay`], in seconds; `null` if no delay
    /// was measured.
    pub delay_mean_s: Option<f64>,
}

/// Number of recent packets whose capture times are kept, to measure delays between interfaces and to detect
/// duplicates.
const REMEMBERED: usize = 8192;
/// Maximum number of entries that are kept for all streams together. An entry is the counters of one second, or one
/// delay. With this number of entries, the analysis and its output need about 250 MB.
const MOST_KEPT: usize = 1_000_000;

/// The number of further entries that can be kept. An entry is the counters of one second, or one delay.
pub(super) struct Room {
    left: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: MOST_KEPT }
    }
}

impl Room {
    /// Uses one of the remaining entries, if there is any. Returns false if there is none.
    const fn take(&mut self) -> bool {
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }
}

pub(super) struct Stream {
    begun_ns: i64,
    ended_ns: i64,
    /// The first and the highest extended sequence number of the stream.
    first: i64,
    highest: i64,
    packets: u64,
    bytes: u64,
    duplicates: u64,
    reordered: u64,
    /// Whether two packets with consecutive sequence numbers were found. Only then are the packets an RTP stream.
    is_one: bool,
    payload_types: BTreeSet<u8>,
    /// Extended sequence numbers and capture times of the recent packets, in order of the sequence numbers.
    seen: VecDeque<(i64, i64)>,
    clocked: Option<Clocked>,
    jitters: Jitters,
    delays: Option<(u32, Vec<f64>)>,
    seconds: Vec<Counted>,
}

/// The time of the last packet on two clocks: the media clock (`timestamp`) and the clock of the capture (`at_ns`).
#[derive(Clone, Copy)]
struct Clocked {
    rate: u32,
    timestamp: u32,
    at_ns: i64,
}

#[derive(Clone, Copy, Default)]
struct Jitters {
    last_s: f64,
    max_s: f64,
    sum_s: f64,
    count: u64,
}

/// The counters of one second.
#[derive(Clone, Copy, Default)]
struct Counted {
    number: i64,
    packets: u64,
    bytes: u64,
    jitter_s: Option<f64>,
    delay_s: f64,
    delays: u64,
}

impl Stream {
    pub(super) fn new(at_ns: i64, sequence: u16) -> Self {
        Self {
            begun_ns: at_ns,
            ended_ns: at_ns,
            first: sequence.into(),
            highest: sequence.into(),
            packets: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            is_one: false,
            payload_types: BTreeSet::new(),
            seen: VecDeque::new(),
            clocked: None,
            jitters: Jitters::default(),
            delays: None,
            seconds: Vec::new(),
        }
    }

    pub(super) const fn begun_ns(&self) -> i64 {
        self.begun_ns
    }

    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) const fn is_one(&self) -> bool {
        self.is_one
    }

    /// Returns the extended sequence number of a packet: the one nearest to the highest so far.
    fn number(&self, sequence: u16) -> i64 {
        self.highest + i64::from(sequence.wrapping_sub(self.highest as u16).cast_signed())
    }

    /// Returns the capture time of a recent packet; `None` if the packet was not captured recently.
    pub(super) fn seen(&self, sequence: u16) -> Option<i64> {
        let number = self.number(sequence);
        let place = self.seen.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.seen.get(place).map(|(_, at_ns)| *at_ns)
    }

    pub(super) fn push(&mut self, at_ns: i64, size: u32, header: &RtpHeader, clock_rate: Option<u32>, room: &mut Room) {
        let number = self.number(header.sequence);
        match self.seen.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(_) => self.duplicates += 1,
            Err(place) => {
                self.reordered += u64::from(number < self.highest);
                self.seen.insert(place, (number, at_ns));
                if self.seen.len() > REMEMBERED {
                    self.seen.pop_front();
                }
            }
        }
        self.is_one |= self.packets > 0 && number == self.highest + 1;
        self.highest = self.highest.max(number);
        self.packets += 1;
        self.bytes += u64::from(size);
        self.ended_ns = at_ns;
        self.payload_types.insert(header.payload_type);
        let jitter_s = self.jitter(at_ns, header.timestamp, clock_rate);
        if let Some(second) = self.second(at_ns, room) {
            second.packets += 1;
            second.bytes += u64::from(size);
            second.jitter_s = jitter_s.or(second.jitter_s);
        }
    }

    /// Returns the jitter estimate after this packet (RFC 3550, App. A.8). Returns `None` and keeps the estimate if the
    /// clock rate is not known or has changed, or if this is the first packet.
    fn jitter(&mut self, at_ns: i64, timestamp: u32, clock_rate: Option<u32>) -> Option<f64> {
        let rate = clock_rate?;
        let last = self.clocked.replace(Clocked { rate, timestamp, at_ns }).filter(|last| last.rate == rate)?;
        let media_s = f64::from(timestamp.wrapping_sub(last.timestamp).cast_signed()) / f64::from(rate);
        let transit_s = (at_ns - last.at_ns) as f64 * 1e-9 - media_s;
        let jitters = &mut self.jitters;
        jitters.last_s += (transit_s.abs() - jitters.last_s) / 16.0;
        jitters.max_s = jitters.max_s.max(jitters.last_s);
        jitters.sum_s += jitters.last_s;
        jitters.count += 1;
        Some(jitters.last_s)
    }

    /// Adds the delay of a packet: the interface `from` captured it at `seen_ns`, and this stream's interface captured
    /// it at `at_ns`. Without `seen_ns`, nothing is added.
    pub(super) fn push_delay(&mut self, from: u32, at_ns: i64, seen_ns: Option<i64>, room: &mut Room) {
        let delays = self.delays.get_or_insert_with(|| (from, Vec::new()));
        let Some(seen_ns) = seen_ns.filter(|_| delays.0 == from && room.take()) else { return };
        let delay_s = (at_ns - seen_ns) as f64 * 1e-9;
        delays.1.push(delay_s);
        if let Some(second) = self.second(at_ns, room) {
            second.delay_s += delay_s;
            second.delays += 1;
        }
    }

    /// Returns the last entry. If `at_ns` is in a later second, an entry for that second is added first. Returns `None`
    /// if no further entry can be kept.
    fn second(&mut self, at_ns: i64, room: &mut Room) -> Option<&mut Counted> {
        let number = at_ns.div_euclid(1_000_000_000);
        if self.seconds.last().is_none_or(|last| last.number < number) {
            if !room.take() {
                return None;
            }
            self.seconds.push(Counted { number, ..Counted::default() });
        }
        self.seconds.last_mut()
    }

    pub(super) fn finish(self, key: &Key) -> RtpStream {
        let expected = u64::try_from(self.highest - self.first + 1).unwrap_or(0);
        let lost = expected.cast_signed() - self.packets.cast_signed();
        let lasted_s = (self.ended_ns - self.begun_ns) as f64 * 1e-9;
        let jitters = self.jitters;
        let jitter = (jitters.count > 0).then(|| Jitter {
            mean_s: jitters.sum_s / jitters.count as f64,
            max_s: jitters.max_s,
            last_s: jitters.last_s,
        });
        RtpStream {
            interface: key.interface,
            from: key.from.to_string(),
            to: key.to.to_string(),
            ssrc: ssrc(key.ssrc),
            payload_types: self.payload_types,
            start_s: self.begun_ns as f64 * 1e-9,
            end_s: self.ended_ns as f64 * 1e-9,
            packets: self.packets,
            duplicates: self.duplicates,
            reordered: self.reordered,
            expected,
            lost,
            lost_share: lost as f64 / expected.max(1) as f64,
            rate_bps: (lasted_s > 0.0).then(|| self.bytes as f64 * 8.0 / lasted_s),
            jitter,
            delay: self.delays.and_then(|(from, delays)| described(from, &delays)),
            seconds: self.seconds.iter().map(Counted::finish).collect(),
        }
    }
}

impl Counted {
    fn finish(&self) -> Second {
        Second {
            at_s: self.number as f64,
            packets: self.packets,
            rate_bps: self.bytes as f64 * 8.0,
            jitter_s: self.jitter_s,
            delay_mean_s: (self.delays > 0).then(|| self.delay_s / self.delays as f64),
        }
    }
}

fn described(from_interface: u32, delays: &[f64]) -> Option<Delays> {
    let sorted = sorted(delays);
    Some(Delays {
        from_interface,
        packets: delays.len() as u64,
        min_s: *sorted.first()?,
        mean_s: delays.iter().sum::<f64>() / delays.len() as f64,
        p50_s: quantile(&sorted, 0.5),
        p95_s: quantile(&sorted, 0.95),
        max_s: *sorted.last()?,
    })
}

/// Formats an SSRC as tshark does.
pub(super) fn ssrc(ssrc: u32) -> String {
    format!("0x{ssrc:08x}")
}
