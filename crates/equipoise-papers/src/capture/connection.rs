use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use equipoise::units::Span;

use super::analysis::{AckRule, Connection, Direction, Side};
use super::distribution::Distribution;
use super::segment::Segment;

/// All connections of a capture.
pub(super) struct Connections {
    rule: AckRule,
    first_ns: Option<i64>,
    /// Index in `all` of the newest connection between two addresses. In the key, the lower address is first.
    newest: BTreeMap<(SocketAddr, SocketAddr), usize>,
    all: Vec<State>,
    room: Room,
}

/// Limits for all connections together, which keep the memory of any analysis below about 1 GB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Maximum number of connections, each of which needs up to 1.4 kB. Segments of further connections are skipped.
    pub(super) connections: usize,
    /// Number of free entries for segments in flight. An entry takes 16 bytes. If no entry is left, a new segment
    /// replaces the oldest one of its direction.
    pub(super) pieces: usize,
    /// Number of free entries for samples. An entry takes 8 bytes. If no entry is left, further samples are only
    /// counted.
    pub(super) samples: usize,
    /// Number of free entries for histogram bars. An entry takes 8 bytes. If few entries are left, histograms have
    /// wider bars.
    pub(super) bars: usize,
}

impl Room {
    pub(super) const DEFAULT: Self = Self { connections: 200_000, pieces: 1 << 22, samples: 1 << 26, bars: 1 << 24 };
}

/// The reason for skipping a segment that belongs to a connection beyond the limit.
pub(super) const TOO_MANY_CONNECTIONS: &str = "of more connections than are kept";

/// Returns by how many entries a list's capacity may grow to hold one more entry. `left` is the number of entries that
/// all lists together may still use. Returns `None` if the list is full and `left` is zero.
fn growth(length: usize, capacity: usize, left: &mut usize) -> Option<usize> {
    if length < capacity {
        return Some(0);
    }
    let more = capacity.max(4).min(*left);
    *left -= more;
    (more > 0).then_some(more)
}

struct State {
    start_ns: i64,
    /// The two directions. The first one is the direction of the first captured segment.
    halves: [Half; 2],
    handshake: Handshake,
}

/// Capture times of the three segments of the handshake. If a segment is retransmitted, its first capture counts.
#[derive(Default)]
struct Handshake {
    syn: Option<(SocketAddr, u32, i64)>,
    syn_ack_ns: Option<i64>,
    ack_ns: Option<i64>,
}

/// The state of one direction: its data, and the acknowledgements of this data.
struct Half {
    from: SocketAddr,
    to: SocketAddr,
    /// `next` is the sequence number that follows the highest one sent. `acknowledged` is the highest acknowledgement
    /// number received.
    next: Option<u32>,
    acknowledged: Option<u32>,
    under_way: VecDeque<Piece>,
    /// The sequence number that follows a FIN. It is one above the end of the data, because a FIN uses one sequence
    /// number.
    fin_end: Option<u32>,
    mss: Option<u16>,
    hop_limit: Option<u8>,
    segments: u64,
    bytes: u64,
    retransmitted: u64,
    left_out: BTreeMap<&'static str, u64>,
    samples_s: Vec<f64>,
}

/// A segment as sent on the wire. It is kept until it is acknowledged.
#[derive(Clone, Copy)]
struct Piece {
    end: u32,
    sent_ns: i64,
    repeated: bool,
}

/// Maximum number of unacknowledged segments that are kept for a direction. Our choice: 191 MB of data in
/// segments of 1460 bytes. TCP's receive window can be larger, up to 1 GiB.
const MOST_UNDER_WAY: usize = 1 << 17;
/// Bytes of data in an IPv4 packet on Ethernet without TCP options. Used if no MSS option was captured.
const USUAL_MSS: u16 = 1460;
/// In the handshake, the capture point measures a round trip to each end. If the two times differ by this factor
/// or more, the capture counts as made at the nearer end.
const BESIDE: i64 = 3;

/// Whether sequence number `a` is before `b`. Sequence numbers have 32 bits and wrap (RFC 9293, Sec. 3.4).
const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b).cast_signed()) < 0
}

impl Connections {
    pub(super) const fn new(rule: AckRule, room: Room) -> Self {
        Self { rule, first_ns: None, newest: BTreeMap::new(), all: Vec::new(), room }
    }

    /// Adds a segment to its connection.
    ///
    /// # Errors
    /// [`TOO_MANY_CONNECTIONS`] if the segment belongs to a connection beyond the limit.
    pub(super) fn push(&mut self, segment: &Segment) -> Result<(), &'static str> {
        self.first_ns.get_or_insert(segment.at_ns);
        let ends = (segment.from.min(segment.to), segment.from.max(segment.to));
        let known = self.newest.get(&ends).copied().filter(|&index| !self.all[index].is_replaced_by(segment));
        let index = match known {
            Some(index) => index,
            None if self.all.len() >= self.room.connections => {
                // The new connection is not kept. Later segments between these addresses belong to the new connection.
                // Therefore the segments must not be added to the previous connection.
                self.newest.remove(&ends);
                return Err(TOO_MANY_CONNECTIONS);
            }
            None => {
                self.all.push(State::new(segment));
                self.newest.insert(ends, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.all[index].push(segment, self.rule, &mut self.room);
        Ok(())
    }

    pub(super) fn finish(self, bin: Option<Span>) -> Vec<Connection> {
        let (first_ns, mut room) = (self.first_ns.unwrap_or(0), self.room);
        self.all.into_iter().map(|state| state.finish(first_ns, bin, &mut room)).collect()
    }
}

impl State {
    fn new(segment: &Segment) -> Self {
        let halves = [Half::new(segment.from, segment.to), Half::new(segment.to, segment.from)];
        Self { start_ns: segment.at_ns, halves, handshake: Handshake::default() }
    }

    /// Whether a segment opens a new connection between the same two addresses as this connection.
    fn is_replaced_by(&self, segment: &Segment) -> bool {
        let opens = segment.syn && segment.acknowledges.is_none();
        let begun = self.halves.iter().any(|half| half.segments > 0);
        let again = self.handshake.syn.is_none_or(|(_, sequence, _)| sequence != segment.sequence);
        opens && begun && again
    }

    fn push(&mut self, segment: &Segment, rule: AckRule, room: &mut Room) {
        self.handshake.push(segment);
        let [first, second] = &mut self.halves;
        let (own, other) = if first.from == segment.from { (first, second) } else { (second, first) };
        own.hop_limit.get_or_insert(segment.hop_limit);
        if let Some(mss) = segment.mss {
            // The MSS that one end announces limits the segments of the other end.
            other.mss = Some(mss);
        }
        own.send(segment, room);
        if let Some(number) = segment.acknowledges {
            other.acknowledge(number, segment, rule, room);
        }
    }

    fn finish(self, first_ns: i64, bin: Option<Span>, room: &mut Room) -> Connection {
        let sides = [0, 1].map(|half| self.side(half));
        let start_s = self.start_ns.saturating_sub(first_ns) as f64 / 1e9;
        let directions = self.halves.into_iter().zip(sides).map(|(half, side)| half.finish(side, bin, room)).collect();
        Connection { start_s, directions }
    }

    /// Returns whether the capture was made at the sender or at the receiver of the direction `half`. If the handshake
    /// was captured, the result follows from its two round-trip times ([`BESIDE`]). Otherwise, it follows from the hop
    /// limits: if the packets of only one end still have an initial hop limit, the capture was made at that end.
    fn side(&self, half: usize) -> Side {
        let (own, other) = (&self.halves[half], &self.halves[1 - half]);
        if let Some((opener, to_there_ns, to_opener_ns)) = self.handshake.halves() {
            let (ahead, behind) =
                if own.from == opener { (to_there_ns, to_opener_ns) } else { (to_opener_ns, to_there_ns) };
            return match () {
                () if ahead >= behind.saturating_mul(BESIDE) => Side::Sender,
                () if behind >= ahead.saturating_mul(BESIDE) => Side::Receiver,
                () => Side::Unknown,
            };
        }
        let fresh = |half: &Half| half.hop_limit.is_some_and(|hops| [32, 64, 128, 255].contains(&hops));
        match (fresh(own), fresh(other)) {
            (true, false) if other.hop_limit.is_some() => Side::Sender,
            (false, true) if own.hop_limit.is_some() => Side::Receiver,
            _ => Side::Unknown,
        }
    }
}

impl Handshake {
    fn push(&mut self, segment: &Segment) {
        match (segment.syn, segment.acknowledges) {
            (true, None) => {
                self.syn.get_or_insert((segment.from, segment.sequence, segment.at_ns));
            }
            (true, Some(_)) => {
                self.syn_ack_ns.get_or_insert(segment.at_ns);
            }
            (false, Some(_))
                if self.syn_ack_ns.is_some() && self.syn.is_some_and(|(opener, ..)| opener == segment.from) =>
            {
                self.ack_ns.get_or_insert(segment.at_ns);
            }
            _ => {}
        }
    }

    /// Returns the end that opened the connection, the round-trip time from the capture point to the other end, and the
    /// round-trip time from the capture point to the opener.
    fn halves(&self) -> Option<(SocketAddr, i64, i64)> {
        let ((opener, _, syn), syn_ack, ack) = (self.syn?, self.syn_ack_ns?, self.ack_ns?);
        Some((opener, syn_ack.saturating_sub(syn).max(0), ack.saturating_sub(syn_ack).max(0)))
    }
}

impl Half {
    const fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            next: None,
            acknowledged: None,
            under_way: VecDeque::new(),
            fin_end: None,
            mss: None,
            hop_limit: None,
            segments: 0,
            bytes: 0,
            retransmitted: 0,
            left_out: BTreeMap::new(),
            samples_s: Vec::new(),
        }
    }

    fn send(&mut self, segment: &Segment, room: &mut Room) {
        // A SYN and a FIN each use one sequence number, but are not data.
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let end = first.wrapping_add(segment.data).wrapping_add(u32::from(segment.fin));
        let next = *self.next.get_or_insert(first);
        if segment.fin {
            self.fin_end = Some(end);
        }
        if segment.data == 0 {
            if before(next, end) {
                self.next = Some(end);
            }
            return;
        }
        self.bytes += u64::from(segment.data);
        let size = u32::from(self.mss.unwrap_or(USUAL_MSS)).saturating_sub(segment.options).max(1);
        // With hardware offload, the capture may show several segments as one large segment. A large segment is counted
        // as the segments into which the hardware divides it.
        let pieces = if segment.data > size { segment.data.div_ceil(size) } else { 1 };
        self.segments += u64::from(pieces);
        if before(first, next) {
            self.retransmitted += u64::from(pieces);
            let covers = |piece: &Piece| before(first, piece.end);
            self.under_way.iter_mut().filter(|piece| covers(piece)).for_each(|piece| piece.repeated = true);
        }
        for number in 1..=pieces {
            let piece_end = if number == pieces { end } else { first.wrapping_add(number * size) };
            if before(next, piece_end) {
                let repeated = before(first, next);
                self.keep(Piece { end: piece_end, sent_ns: segment.at_ns, repeated }, room);
            }
        }
        if before(next, end) {
            self.next = Some(end);
        }
    }

    /// Keeps a segment until it is acknowledged. If there is no space, the oldest kept segment is removed, and gives no
    /// sample of the round-trip time.
    fn keep(&mut self, piece: Piece, room: &mut Room) {
        let under_way = &mut self.under_way;
        let is_bounded = under_way.len() >= MOST_UNDER_WAY;
        let more = if is_bounded { None } else { growth(under_way.len(), under_way.capacity(), &mut room.pieces) };
        match more {
            Some(more) => under_way.reserve_exact(more),
            None => _ = under_way.pop_front(),
        }
        if under_way.len() < under_way.capacity() {
            under_way.push_back(piece);
        }
    }

    fn acknowledge(&mut self, number: u32, segment: &Segment, rule: AckRule, room: &mut Room) {
        let known = *self.acknowledged.get_or_insert(number);
        if !before(known, number) {
            if number == known && segment.data == 0 && !segment.syn && !segment.fin && !self.under_way.is_empty() {
                self.leave_out("duplicate");
            }
            if self.under_way.front().is_none_or(|piece| before(number, piece.end)) {
                return;
            }
        }
        self.acknowledged = Some(number);
        let (mut covered, mut repeated, mut last) = (0u32, false, None);
        while let Some(piece) = self.under_way.front().copied().filter(|piece| !before(number, piece.end)) {
            covered += 1;
            repeated |= piece.repeated;
            last = Some(piece);
            self.under_way.pop_front();
        }
        let Some(last) = last else {
            if self.fin_end != Some(number) {
                self.leave_out("segment not captured, or not acknowledged whole");
            }
            return;
        };
        let reason = match (rule, covered) {
            _ if repeated => "retransmitted",
            _ if last.end != number && self.fin_end != Some(number) => "not at a segment's end",
            _ if segment.at_ns < last.sent_ns => "before its segment",
            (AckRule::Pair, 1) => "one segment: delayed-ACK timer",
            (AckRule::Pair, 3..) => "more than two segments",
            _ => {
                let samples = &mut self.samples_s;
                if let Some(more) = growth(samples.len(), samples.capacity(), &mut room.samples) {
                    samples.reserve_exact(more);
                    samples.push(segment.at_ns.saturating_sub(last.sent_ns) as f64 / 1e9);
                    return;
                }
                "of more samples than are kept"
            }
        };
        self.leave_out(reason);
    }

    fn leave_out(&mut self, reason: &'static str) {
        *self.left_out.entry(reason).or_default() += 1;
    }

    fn finish(self, side: Side, bin: Option<Span>, room: &mut Room) -> Direction {
        let rtt = Distribution::of(self.samples_s, bin, room.bars);
        room.bars -= rtt.as_ref().map_or(0, |rtt| rtt.counts.len()).min(room.bars);
        Direction {
            from: self.from.to_string(),
            to: self.to.to_string(),
            side,
            data_segments: self.segments,
            data_bytes: self.bytes,
            retransmitted: self.retransmitted,
            left_out: self.left_out.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect(),
            rtt,
        }
    }
}
