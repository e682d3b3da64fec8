use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

/// Says which numbers a sender leaves out, so that who acknowledges packets without receiving them is found out.
///
/// Source: RFC 9000, Sec. 21.4 (optimistic acknowledgements). A receiver that would have the sender send faster may acknowledge
/// packets that it has not seen. It cannot know which numbers nobody sent: [`History`](super::History) refuses a report that
/// acknowledges one of them.
///
/// Reading: the RFC says neither how often nor when. Here the gap between two numbers left out is drawn anew each time, evenly from
/// 1 to twice `mean` less one. An honest receiver reports such a number as not received, and the history does not count it as lost. In
/// a stream's RTP numbers it is a hole which a foreign receiver takes for a loss; transport-wide numbers harm nobody.
#[derive(Debug)]
pub struct Traps {
    random: ChaCha12Rng,
    mean: u32,
    /// Packets until the next number to be left out.
    left: u32,
}

impl Traps {
    /// One that leaves out a number for each `mean` packets on average, from 1 to 2³⁰, drawn from a stream of `seed`. The peer must not
    /// know the seed.
    pub fn new(seed: u64, mean: u32) -> Self {
        let mut traps = Self { random: ChaCha12Rng::seed_from_u64(seed), mean: mean.clamp(1, 1 << 30), left: 0 };
        traps.left = traps.draw();
        traps
    }

    /// A packet is about to leave: whether the number that is next is to be left out. It takes the one after that, then.
    pub fn skips(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        let skips = self.left == 0;
        if skips {
            self.left = self.draw();
        }
        skips
    }

    fn draw(&mut self) -> u32 {
        let choices = u64::from(self.mean) * 2 - 1;
        1 + ((u64::from(self.random.next_u32()) * choices) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn numbers_are_left_out_as_often_as_asked_and_not_regularly() {
        let mut traps = Traps::new(3, 50);
        let skipped: Vec<_> = (0..100_000u32).filter(|_| traps.skips()).collect();
        assert!((1900..2100).contains(&skipped.len()), "{}", skipped.len());
        let gaps: Vec<_> = skipped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (1..100).contains(gap)));
        let distinct: alloc::collections::BTreeSet<_> = gaps.iter().collect();
        assert!(distinct.len() > 90, "{distinct:?}");
    }
}
