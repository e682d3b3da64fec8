//! Assigns the receiver's feedback to the packets that were sent.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::iter;

use equipoise::control::{PacketFeedback, PacketReport, SentPacket};
use equipoise::units::{Instant, SenderClock, Size, Span};

use crate::feedback::{FeedbackCounts, Format, History, Joined, Scope};
use crate::wire::feedback::ArrivalFeedback;

/// A sender's state for per-packet feedback in one [`Format`], for all streams of a transport.
///
/// The state accepts any input from a peer, in bounded memory: 64 streams, and the last 8192 packets of each stream.
#[derive(Debug)]
pub struct Reports(Kind);

#[derive(Debug)]
enum Kind {
    /// Transport-wide feedback: all packets share one sequence of numbers.
    Transport { history: History, last: Option<u64> },
    /// Feedback as in RFC 8888, Sec. 3.1: each stream, identified by its synchronisation source, has its own sequence
    /// of numbers.
    Streams { streams: BTreeMap<u32, Stream>, next: u64 },
}

/// The packet history of one stream, by the stream's own sequence numbers.
#[derive(Debug)]
struct Stream {
    history: History,
    last: Option<u64>,
    /// For each of the stream's newest packets: its number in the stream, and its number among the packets of all
    /// streams.
    numbers: VecDeque<(u64, u64)>,
}

/// Number of packets that a history remembers: 0.8 s of 1200-byte packets at 100 Mbit/s.
const REMEMBERED: u16 = 1 << 13;
/// Maximum number of streams of one connection.
const STREAMS: usize = 64;

/// The packets whose state a feedback message changed, in sending order.
#[derive(Debug, Default)]
pub struct News {
    packets: Vec<PacketReport>,
    round_trip: Option<Span>,
    in_flight: Size,
}

impl News {
    /// Returns the changes as feedback for controllers.
    pub fn feedback(&self) -> PacketFeedback<'_> {
        let mut feedback = PacketFeedback::new(&self.packets, self.in_flight);
        feedback.round_trip = self.round_trip;
        feedback
    }

    fn add(&mut self, joined: &Joined<'_>, number: impl Fn(u64) -> Option<u64>) {
        self.packets.extend(joined.packets.iter().filter_map(|packet| {
            Some(PacketReport::new(number(packet.number)?, packet.size, packet.departed, packet.fate))
        }));
        self.round_trip = match (self.round_trip, joined.round_trip) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Reports {
    /// Creates a state without packets, for feedback in `format`.
    pub fn new(format: Format) -> Self {
        Self(match format {
            Format::TransportWide => {
                Kind::Transport { history: History::new(Scope::Transport, REMEMBERED), last: None }
            }
            Format::CongestionFeedback => Kind::Streams { streams: BTreeMap::new(), next: 0 },
        })
    }

    /// Records that a packet of stream `ssrc` was sent at `now`. `sequence` is the packet's number in its stream or,
    /// with transport-wide feedback, in the transport.
    ///
    /// Returns `None` if the packet can get no feedback. This is the case if its number does not exceed the previous
    /// number, as in a retransmission with the original number, or if there are too many streams.
    pub fn on_sent(&mut self, now: Instant<SenderClock>, ssrc: u32, sequence: u16, size: Size) -> Option<SentPacket> {
        let number = match &mut self.0 {
            Kind::Transport { history, last } => {
                let number = unwrapped(*last, sequence).filter(|number| *last < Some(*number))?;
                *last = Some(number);
                history.on_sent(number, size, now);
                number
            }
            Kind::Streams { streams, next } => {
                if !streams.contains_key(&ssrc) && streams.len() >= STREAMS {
                    return None;
                }
                let stream = streams.entry(ssrc).or_insert_with(|| Stream::new(ssrc));
                stream.on_sent(now, sequence, size, *next)?;
                *next += 1;
                *next - 1
            }
        };
        Some(SentPacket::new(number, size, self.in_flight()))
    }

    /// Processes feedback that arrived at `now`. Returns the packets whose state changed. A report that acknowledges
    /// packets that were never sent has no effect, and is counted ([`FeedbackCounts::refused`]). RFC 8888 feedback
    /// contains one report per stream. Reports on unknown streams are ignored and not counted.
    pub fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: ArrivalFeedback<'_>) -> News {
        let mut news = News { in_flight: self.in_flight(), ..News::default() };
        match (&mut self.0, feedback) {
            (Kind::Transport { history, .. }, ArrivalFeedback::Transport(feedback)) => {
                let near = history.reference(now);
                if let Ok(joined) = history.on_report(now, &feedback.report(near)) {
                    news.add(&joined, Some);
                }
            }
            (Kind::Streams { streams, .. }, ArrivalFeedback::Congestion(feedback)) => {
                for told in feedback.streams() {
                    let Some(stream) = streams.get_mut(&told.ssrc) else { continue };
                    let near = stream.history.reference(now);
                    let numbers = &stream.numbers;
                    let number = |own: u64| {
                        let at = numbers.binary_search_by_key(&own, |(own, _)| *own).ok()?;
                        numbers.get(at).map(|(_, number)| *number)
                    };
                    if let Ok(joined) = stream.history.on_report(now, &told.report(near)) {
                        news.add(&joined, number);
                    }
                }
                news.packets.sort_by_key(|packet| packet.number);
            }
            _ => {}
        }
        news
    }

    /// Treats the fate of all packets in flight as unknown.
    pub fn on_silence(&mut self) {
        self.histories().for_each(History::on_silence);
    }

    /// Returns the data in flight, over all streams.
    pub fn in_flight(&self) -> Size {
        match &self.0 {
            Kind::Transport { history, .. } => history.in_flight(),
            Kind::Streams { streams, .. } => {
                streams.values().fold(Size::ZERO, |sum, stream| sum + stream.history.in_flight())
            }
        }
    }

    /// Returns the counters, summed over all streams.
    pub fn counts(&self) -> FeedbackCounts {
        match &self.0 {
            Kind::Transport { history, .. } => history.counts(),
            Kind::Streams { streams, .. } => {
                streams.values().fold(FeedbackCounts::default(), |sum, stream| sum.and(stream.history.counts()))
            }
        }
    }

    fn histories(&mut self) -> Box<dyn Iterator<Item = &mut History> + '_> {
        match &mut self.0 {
            Kind::Transport { history, .. } => Box::new(iter::once(history)),
            Kind::Streams { streams, .. } => Box::new(streams.values_mut().map(|stream| &mut stream.history)),
        }
    }

    /// Removes a stream that has ended.
    pub fn forget(&mut self, ssrc: u32) {
        if let Kind::Streams { streams, .. } = &mut self.0 {
            streams.remove(&ssrc);
        }
    }
}

impl Stream {
    fn new(ssrc: u32) -> Self {
        let history = History::new(Scope::Stream(ssrc), REMEMBERED);
        Self { history, last: None, numbers: VecDeque::with_capacity(usize::from(REMEMBERED)) }
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, sequence: u16, size: Size, number: u64) -> Option<()> {
        let own = unwrapped(self.last, sequence).filter(|own| self.last < Some(*own))?;
        self.last = Some(own);
        self.history.on_sent(own, size, now);
        if self.numbers.len() >= usize::from(REMEMBERED) {
            self.numbers.pop_front();
        }
        self.numbers.push_back((own, number));
        Some(())
    }
}

/// Returns the number whose lower 16 bits are `sequence` and that is nearest to `last`; `None` if that number would be
/// below zero. Without `last`, returns `sequence` itself.
fn unwrapped(last: Option<u64>, sequence: u16) -> Option<u64> {
    match last {
        None => Some(u64::from(sequence)),
        Some(last) => last.checked_add_signed(i64::from(sequence.wrapping_sub(last as u16).cast_signed())),
    }
}
