//! Seeds and generators of random numbers: the same seed yields the same numbers on every machine.
//!
//! Nothing in this crate takes random numbers from the operating system. The caller passes a seed, and each use has its
//! own stream, so that a new use does not change the numbers of other uses.

use rand_core::SeedableRng;

/// The generator used in all crates: 128 bits of state, and the same numbers on every machine. Only numbers that a peer
/// must not predict come from another generator, `ChaCha`.
pub type Generator = rand_pcg::Pcg64Mcg;

/// Returns the seed of one of many independent streams of random numbers. Neighbouring values of `seed` or `stream`
/// give unrelated results.
pub const fn stream_seed(seed: u64, stream: u64) -> u64 {
    mix(stream ^ mix(seed))
}

/// Creates a generator of random numbers. Its state consists of the seeds of the streams `stream` and `stream + 1`.
pub fn generator(seed: u64, stream: u64) -> Generator {
    let state = u128::from(stream_seed(seed, stream)) << 64 | u128::from(stream_seed(seed, stream.wrapping_add(1)));
    // The state of this generator must be odd.
    Generator::from_seed((state | 1).to_le_bytes())
}

/// Mixes the bits of a seed by the finaliser of `SplitMix64` (Steele 2014, Fig. 15): every bit of the input affects
/// every bit of the result.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
