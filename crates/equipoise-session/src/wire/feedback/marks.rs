//! Packet status symbols, the chunks that contain them, and arrival time deltas
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01, Sec. 3.1.1 to 3.1.5).

use equipoise::units::{Instant, ReceiverClock};

use super::{Consecutive, FeedbackError, PacketStatus};

/// The status of a packet, as encoded in a chunk.
///
/// Our reading: draft-holmer-rmcat-transport-wide-cc-extensions-01 reserves the value 3 in its table, but calls it
/// "received, without delta" in its example; we follow the example. The draft's text on vectors of one-bit symbols
/// swaps the meanings of 0 and 1. We use 1 for received, as the draft's example and other implementations do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// Not received.
    Missing = 0,
    /// Received, with an unsigned delta of eight bits.
    Small = 1,
    /// Received, with a delta of 16 bits, which may be negative.
    Large = 2,
    /// Received, without a delta.
    Untimed = 3,
}

impl Symbol {
    const fn of(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::Missing,
            1 => Self::Small,
            2 => Self::Large,
            _ => Self::Untimed,
        }
    }

    /// Returns the length of the symbol's delta, in bytes.
    pub(super) const fn delta_len(self) -> usize {
        match self {
            Self::Missing | Self::Untimed => 0,
            Self::Small => 1,
            Self::Large => 2,
        }
    }
}

/// This bit is set in a chunk that is a vector, and not in a chunk that is a run.
const VECTOR: u16 = 0x8000;
/// This bit is set in a vector whose symbols have two bits each.
const TWO_BITS: u16 = 0x4000;
/// The maximum length of a run, in symbols.
const MAX_RUN: u16 = 0x1FFF;
/// Number of symbols in a vector of one-bit symbols.
const ONES: usize = 14;
/// Number of symbols in a vector of two-bit symbols.
const TWOS: usize = 7;

/// An iterator over the symbols of a chunk.
#[derive(Clone, Debug)]
pub(super) enum Symbols {
    /// A run: one symbol that is repeated. `left` is the number of remaining repetitions.
    Run { symbol: Symbol, left: u16 },
    /// A vector of symbols of `width` bits each. The next symbol is in the upper bits; `left` is the number of
    /// remaining symbols.
    Vector { bits: u16, width: u32, left: u16 },
}

impl Symbols {
    /// An iterator without symbols.
    pub(super) const EMPTY: Self = Self::Run { symbol: Symbol::Missing, left: 0 };

    /// Returns the symbols of the encoded chunk `chunk`.
    pub(super) const fn of(chunk: u16) -> Self {
        if chunk & VECTOR == 0 {
            Self::Run { symbol: Symbol::of(chunk >> 13), left: chunk & MAX_RUN }
        } else if chunk & TWO_BITS == 0 {
            Self::Vector { bits: chunk << 2, width: 1, left: ONES as u16 }
        } else {
            Self::Vector { bits: chunk << 2, width: 2, left: TWOS as u16 }
        }
    }

    /// Returns the number of symbols (at most `most`) and the total length of the deltas of these symbols, in bytes.
    pub(super) fn measure(self, most: u16) -> (u16, usize) {
        if let Self::Run { symbol, left } = self {
            let count = left.min(most);
            return (count, symbol.delta_len().saturating_mul(usize::from(count)));
        }
        self.take(usize::from(most)).fold((0, 0), |(count, length), symbol| {
            (u16::saturating_add(count, 1), usize::saturating_add(length, symbol.delta_len()))
        })
    }
}

impl Iterator for Symbols {
    type Item = Symbol;

    fn next(&mut self) -> Option<Symbol> {
        match self {
            Self::Run { left: 0, .. } | Self::Vector { left: 0, .. } => None,
            Self::Run { symbol, left } => {
                *left = left.saturating_sub(1);
                Some(*symbol)
            }
            Self::Vector { bits, width, left } => {
                let symbol = Symbol::of(bits.rotate_left(*width) & if *width == 1 { 1 } else { 3 });
                *bits = bits.wrapping_shl(*width);
                *left = left.saturating_sub(1);
                Some(symbol)
            }
        }
    }
}

/// The status symbol of a packet in a transport-wide report, and the packet's arrival time delta in units of 250 µs.
/// The delta is zero if the symbol has no delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) symbol: Symbol,
    pub(super) delta: i16,
}

/// The unit of deltas, in ns.
pub(super) const TICK_NS: u64 = 250_000;

/// Returns a time in units of 250 µs, rounded to the nearest.
pub(super) const fn tick(at: Instant<ReceiverClock>) -> i64 {
    (at.as_nanos().saturating_add(TICK_NS / 2) / TICK_NS).cast_signed()
}

/// An iterator over the status symbols and arrival time deltas of packets in a transport-wide report. It ends before
/// the first packet whose delta cannot be represented.
#[derive(Clone, Debug)]
pub(super) struct Marks<I> {
    packets: I,
    consecutive: Consecutive,
    /// Arrival time of the previous packet that has a delta, in units of 250 µs; initially the reference time.
    tick: i64,
}

impl<I: Iterator<Item = PacketStatus>> Marks<I> {
    /// Returns the marks of `packets`. The first delta is relative to `reference`, which is in units of 250 µs.
    pub(super) fn new(packets: I, reference: i64) -> Self {
        Self { packets, consecutive: Consecutive::default(), tick: reference }
    }
}

impl<I: Iterator<Item = PacketStatus>> Iterator for Marks<I> {
    type Item = Result<Mark, FeedbackError>;

    fn next(&mut self) -> Option<Self::Item> {
        let status = self.packets.next()?;
        if let Err(error) = self.consecutive.follow(status.sequence) {
            return Some(Err(error));
        }
        let untimed = |symbol| Some(Ok(Mark { symbol, delta: 0 }));
        let Some(arrival) = status.arrival else { return untimed(Symbol::Missing) };
        let Some(at) = arrival.time.measured() else { return untimed(Symbol::Untimed) };
        let tick = tick(at);
        let delta = i16::try_from(tick.saturating_sub(self.tick)).ok()?;
        self.tick = tick;
        let symbol = if u8::try_from(delta).is_ok() { Symbol::Small } else { Symbol::Large };
        Some(Ok(Mark { symbol, delta }))
    }
}

/// A chunk that encodes the status of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The encoded chunk.
    pub(super) word: u16,
    /// Number of packets that the chunk covers.
    pub(super) symbols: usize,
    /// Total length of the arrival time deltas of the chunk's packets, in bytes.
    pub(super) deltas: usize,
    /// Whether the chunk is a vector that is not full, so that no chunk can follow it.
    pub(super) is_last: bool,
}

impl Chunk {
    /// Returns a chunk for as many of the next marks as possible. It covers at most `most` marks, and their deltas have
    /// at most `room` bytes in total. Returns `None` if no mark remains, or if not even one fits.
    pub(super) fn of(
        marks: impl Iterator<Item = Result<Mark, FeedbackError>>,
        room: usize,
        most: usize,
    ) -> Result<Option<Self>, FeedbackError> {
        let mut head = [Symbol::Missing; ONES];
        let (mut seen, mut run, mut deltas) = (0usize, 0usize, 0usize);
        for mark in marks.take(most.min(usize::from(MAX_RUN))) {
            let symbol = mark?.symbol;
            deltas = deltas.saturating_add(symbol.delta_len());
            if deltas > room {
                break;
            }
            if let Some(place) = head.get_mut(seen) {
                *place = symbol;
            }
            let goes_on = run == seen && head.first() == Some(&symbol);
            run = run.saturating_add(usize::from(goes_on));
            seen = seen.saturating_add(1);
            if seen >= ONES && run < seen {
                break;
            }
        }
        let head = head.get(..seen.min(ONES)).unwrap_or_default();
        let fit_one_bit = head.iter().all(|symbol| matches!(symbol, Symbol::Missing | Symbol::Small));
        let [ones, twos] = [if fit_one_bit { head.len() } else { 0 }, head.len().min(TWOS)];
        Ok(match head.first() {
            None => None,
            Some(symbol) if run >= ones.max(twos) => Some(Self::run(*symbol, run)),
            Some(_) if ones >= twos => Some(Self::vector(head, 1)),
            Some(_) => Some(Self::vector(head.get(..twos).unwrap_or_default(), 2)),
        })
    }

    fn run(symbol: Symbol, length: usize) -> Self {
        let deltas = symbol.delta_len().saturating_mul(length);
        Self { word: (symbol as u16) << 13 | length as u16, symbols: length, deltas, is_last: false }
    }

    fn vector(symbols: &[Symbol], width: u32) -> Self {
        let (kind, full) = if width == 1 { (VECTOR, ONES) } else { (VECTOR | TWO_BITS, TWOS) };
        let list = symbols.iter().fold(0u16, |list, symbol| list.wrapping_shl(width) | *symbol as u16);
        let missing = full.saturating_sub(symbols.len());
        let word = kind | list.wrapping_shl(width.saturating_mul(missing as u32));
        let deltas = symbols.iter().map(|symbol| symbol.delta_len()).sum();
        Self { word, symbols: symbols.len(), deltas, is_last: missing > 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn symbols() -> impl Strategy<Value = Symbol> {
        prop_oneof![4 => Just(Symbol::Small), 3 => Just(Symbol::Missing), 1 => Just(Symbol::Large)]
    }

    /// Encodes all these symbols into chunks.
    fn chunks(symbols: &[Symbol]) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut rest = symbols;
        while !rest.is_empty() {
            let marks = rest.iter().map(|symbol| Ok(Mark { symbol: *symbol, delta: 0 }));
            let chunk = Chunk::of(marks, usize::MAX, usize::MAX).expect("no gap").expect("not at the end");
            rest = &rest[chunk.symbols..];
            chunks.push(chunk);
        }
        chunks
    }

    /// Returns the minimum number of chunks for these symbols, found by dynamic programming.
    fn fewest(symbols: &[Symbol]) -> usize {
        let mut best = vec_of(symbols.len() + 1);
        for at in (0..symbols.len()).rev() {
            let rest = &symbols[at..];
            let run = rest.iter().take_while(|symbol| **symbol == rest[0]).count();
            let fits = rest.iter().take(ONES).all(|symbol| (*symbol as u16) < 2);
            let reach = [Some(run), Some(TWOS), fits.then_some(ONES)];
            let ends = reach.into_iter().flatten().map(|length| length.min(rest.len()));
            best[at] = 1 + ends.map(|length| best[at + length]).min().expect("a run has a symbol");
        }
        best[0]
    }

    fn vec_of(length: usize) -> Vec<usize> {
        core::iter::repeat_n(0, length).collect()
    }

    #[test]
    fn the_chunks_of_the_draft() {
        // The examples of the draft: Sec. 3.1.3 has runs of 221 packets not received and 24 packets received without
        // delta; Sec. 3.1.4 has vectors with one and two bits per symbol.
        let all = |chunk: u16| Symbols::of(chunk).map(|symbol| symbol as u16).collect::<Vec<_>>();
        assert_eq!(all(0b0000_0000_1101_1101), core::iter::repeat_n(0, 221).collect::<Vec<_>>());
        assert_eq!(all(0b0110_0000_0001_1000), core::iter::repeat_n(3, 24).collect::<Vec<_>>());
        assert_eq!(all(0b1001_1111_0001_1100), [0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0]);
        assert_eq!(all(0b1100_1101_0101_0000), [0, 3, 1, 1, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn chunks_hold_the_symbols_and_are_few(
            pieces in proptest::collection::vec((symbols(), prop_oneof![4 => 1usize..4, 1 => 1usize..40]), 1..60),
        ) {
            let symbols: Vec<_> = pieces.iter().flat_map(|(symbol, times)| core::iter::repeat_n(*symbol, *times)).collect();
            let chunks = chunks(&symbols);
            let held = chunks.iter().flat_map(|chunk| Symbols::of(chunk.word).take(chunk.symbols));
            prop_assert_eq!(held.collect::<Vec<_>>(), symbols.clone());
            for chunk in &chunks {
                prop_assert_eq!(Symbols::of(chunk.word).measure(chunk.symbols as u16), (chunk.symbols as u16, chunk.deltas));
            }
            let (last, before) = chunks.split_last().expect("not empty");
            prop_assert!(before.iter().all(|chunk| !chunk.is_last), "{:?} before {:?}", before, last);
            let fewest = fewest(&symbols);
            prop_assert!(chunks.len() <= fewest + 1 + fewest / 5, "{} chunks where {} would do", chunks.len(), fewest);
        }
    }
}
