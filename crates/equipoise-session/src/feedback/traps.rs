use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

/// Chooses the numbers that a sender skips, to detect a peer that acknowledges packets without receiving them.
///
/// Source: RFC 9000, Sec. 21.4 (optimistic acknowledgements). A receiver that wants the sender to send faster may
/// acknowledge packets that it has not received. It cannot know which numbers were never sent, and
/// [`History`](super::History) rejects a report that acknowledges one of them.
///
/// Our choice: the RFC states neither how often nor when a sender skips numbers. Here the number of packets between two
/// skipped numbers is drawn uniformly from 1 to 2 · `mean` − 1. An honest receiver reports a skipped number as not
/// received, but [`History`](super::History) does not count it as a loss. Only transport-wide numbers should be
/// skipped: for a skipped RTP sequence number, the statistics of an RTP receiver would show a loss.
#[derive(Debug)]
pub struct Traps {
    random: ChaCha12Rng,
    mean: u32,
    /// Number of packets until the next number to skip.
    left: u32,
}

impl Traps {
    /// Creates traps: on average, the sender skips one number per `mean` packets, at random. `mean` is clamped to the
    /// range 1 to 2³⁰. The random numbers come from `seed`, which the peer must not know.
    pub fn new(seed: u64, mean: u32) -> Self {
        let mut traps = Self { random: ChaCha12Rng::seed_from_u64(seed), mean: mean.clamp(1, 1 << 30), left: 0 };
        traps.left = traps.draw();
        traps
    }

    /// Returns whether the sender must skip its next packet number. Must be called once before each packet. If it
    /// returns true, the packet uses the number after the skipped one.
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
