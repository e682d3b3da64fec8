//! One stream at one place.

use std::collections::{BTreeSet, VecDeque};

use equipoise_lab::statistics::{quantile, sorted};
use equipoise_session::wire::rtp::RtpHeader;
use serde::Serialize;

use super::Key;

/// A stream of RTP as one interface saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RtpStream {
    /// The interface of the capture, from 0.
    pub interface: u32,
    /// Who sends it.
    pub from: String,
    /// Who receives it.
    pub to: String,
    /// Its synchronisation source, as tshark writes it: `0x1234abcd`.
    pub ssrc: String,
    /// Payload types that it had.
    pub payload_types: BTreeSet<u8>,
    /// Its first packet, in seconds since the first datagram.
    pub start_s: f64,
    /// Its last packet.
    pub end_s: f64,
    /// Packets, duplicates among them.
    pub packets: u64,
    /// Packets of which the sequence number was seen lately.
    pub duplicates: u64,
    /// Packets that came behind one with a higher sequence number, duplicates left out.
    pub reordered: u64,
    /// Packets that were to come by the first and the highest sequence number (RFC 3550, App. A.3).
    pub expected: u64,
    /// Expected less those that came; below zero where duplicates came.
    pub lost: i64,
    /// Of the expected ones.
    pub lost_share: f64,
    /// Of its IP packets, over the time between its first packet and its last; `null` if all came at once.
    pub rate_bps: Option<f64>,
    /// Interarrival jitter; `null` if the media clock is not known.
    pub jitter: Option<Jitter>,
    /// Delays from the interface that saw the stream first; `null` at that one.
    pub delay: Option<Delays>,
    /// What came in each second with packets.
    pub seconds: Vec<Second>,
}

/// Interarrival jitter (RFC 3550, Sec. 6.4.1, App. A.8), an estimate after each packet but the first one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Jitter {
    /// Mean of the estimates, in seconds.
    pub mean_s: f64,
    /// Largest of them, in seconds.
    pub max_s: f64,
    /// The last one, in seconds.
    pub last_s: f64,
}

/// One-way delays between two interfaces of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// The interface that saw the stream first.
    pub from_interface: u32,
    /// Packets that both saw.
    pub packets: u64,
    /// Least, in seconds.
    pub min_s: f64,
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Median, in seconds.
    pub p50_s: f64,
    /// 95th percentile, in seconds.
    pub p95_s: f64,
    /// Largest, in seconds.
    pub max_s: f64,
}

/// A second of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Its beginning, in seconds since the first datagram.
    pub at_s: f64,
    /// Packets that came.
    pub packets: u64,
    /// Of IP packets.
    pub rate_bps: f64,
    /// The last estimate of the jitter, in seconds.
    pub jitter_s: Option<f64>,
    /// Mean delay from the interface that saw the stream first, in seconds.
    pub delay_mean_s: Option<f64>,
}

/// Packets of which the time is remembered, for the other interface and for duplicates.
const REMEMBERED: usize = 8192;
/// Seconds and delays of all streams together, at the most: with what they are put together from and written as, a quarter of a gigabyte.
const MOST_KEPT: usize = 1_000_000;

/// Room for seconds and delays.
pub(super) struct Room {
    left: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: MOST_KEPT }
    }
}

impl Room {
    /// Takes a place, if there is one.
    const fn take(&mut self) -> bool {
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }
}

pub(super) struct Stream {
    begun_ns: i64,
    ended_ns: i64,
    /// Sequence numbers without their wraps: the first and the highest.
    first: i64,
    highest: i64,
    packets: u64,
    bytes: u64,
    duplicates: u64,
    reordered: u64,
    /// Two packets have followed each other.
    is_one: bool,
    payload_types: BTreeSet<u8>,
    /// Numbers and times of the last packets, in the order of their numbers.
    seen: VecDeque<(i64, i64)>,
    clocked: Option<Clocked>,
    jitters: Jitters,
    delays: Option<(u32, Vec<f64>)>,
    seconds: Vec<Counted>,
}

/// The last packet on the media clock.
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

/// A second while it is counted.
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

    /// The number of a packet without its wraps: the one nearest to the highest.
    fn number(&self, sequence: u16) -> i64 {
        self.highest + i64::from(sequence.wrapping_sub(self.highest as u16).cast_signed())
    }

    /// When a packet was seen.
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

    /// The estimate after this packet (RFC 3550, App. A.8). Where the clock changes it begins anew, and keeps its value.
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

    /// The packet that came last had been seen by another interface at this time, if it was.
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

    /// The second of a time, which is the last one or a new one; `None` if there would be too many.
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

/// A source as tshark writes it.
pub(super) fn ssrc(ssrc: u32) -> String {
    format!("0x{ssrc:08x}")
}
