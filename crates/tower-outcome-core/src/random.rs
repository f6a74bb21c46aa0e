//! Randomness, injected.

use std::{
    fmt::Debug,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// A source of random bits for jitter.
///
/// It spreads load; it is not fit for secrets.
pub trait Random: Debug + Send + Sync {
    /// Returns the next 64 random bits.
    fn next_u64(&self) -> u64;
}

/// The SplitMix64 generator: one atomic addition per number, seedable, shared by reference.
///
/// The constants are those of Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (OOPSLA 2014).
#[derive(Debug)]
pub struct SplitMix64(AtomicU64);

// === impl SplitMix64 ===

impl SplitMix64 {
    /// Creates a generator whose numbers depend on the seed alone.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Creates a generator with a seed that differs from process to process, so that a fleet does
    /// not wait in step.
    #[must_use]
    pub fn unseeded() -> Self {
        // A fresh RandomState carries keys from the operating system; hashing a constant with it
        // yields bits that nothing else in the program shares.
        Self::seeded(RandomState::new().hash_one(0_u64))
    }
}

impl Random for SplitMix64 {
    fn next_u64(&self) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .0
            .fetch_add(GOLDEN, Ordering::Relaxed)
            .wrapping_add(GOLDEN);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of SplitMix64 with seed 1234567, as printed with its reference code.
        let random = SplitMix64::seeded(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn two_unseeded_sources_differ() {
        assert_ne!(
            SplitMix64::unseeded().next_u64(),
            SplitMix64::unseeded().next_u64()
        );
    }
}
