//! Seeds and generators of random numbers: the same seed gives the same numbers on every machine.
//!
//! Nothing in this crate draws an ambient random number. A caller passes a seed, and each use of random numbers has a
//! stream of its own, so that one more use changes no other.

use rand_core::SeedableRng;

/// The kind of generator that is used everywhere: 128 bits of state, the same numbers on every machine.
pub type Generator = rand_pcg::Pcg64Mcg;

/// A seed for one of many streams of random numbers; neighbouring seeds and streams share nothing.
pub const fn stream_seed(seed: u64, stream: u64) -> u64 {
    mix(stream ^ mix(seed))
}

/// A generator of random numbers, whose state takes the seeds of `stream` and of the one behind it.
pub fn generator(seed: u64, stream: u64) -> Generator {
    let state = u128::from(stream_seed(seed, stream)) << 64 | u128::from(stream_seed(seed, stream.wrapping_add(1)));
    // The state of this kind of generator is odd.
    Generator::from_seed((state | 1).to_le_bytes())
}

/// The finaliser of `SplitMix64` (Steele 2014, Fig. 15): every bit of the input moves every bit of the result.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
