//! Random numbers, with an independent stream per actor.

use std::ops::Range;
use std::time::Duration;

/// The random stream of an actor.
pub(super) struct Dice {
    random: fastrand::Rng,
    /// The granularity of times, in milliseconds. With a coarse granularity, many things happen at the same time.
    grain: u64,
}

impl Dice {
    /// Returns the stream of `actor` in the run of `seed`. `numbers` distinguish actors with the same name.
    pub(super) fn of(seed: u64, actor: &str, numbers: &[u64]) -> Self {
        let words = std::iter::once(seed).chain(actor.bytes().map(u64::from)).chain(numbers.iter().copied());
        // FNV-1a over words, so that the run does not depend on the hash function of the standard library.
        let mixed =
            words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3));
        let grain = [1, 1, 100, 1_000][fastrand::Rng::with_seed(seed).usize(0..4)];
        Self { random: fastrand::Rng::with_seed(mixed), grain }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.random.u64(..)
    }

    pub(super) fn below(&mut self, range: Range<usize>) -> usize {
        self.random.usize(range)
    }

    /// Returns true with this probability.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.random.usize(0..items.len())]
    }

    /// Returns one of the weighted `items`.
    pub(super) fn weighted<T: Copy>(&mut self, items: &[(u32, T)]) -> T {
        let mut left = self.random.u32(0..items.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in items {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *item,
            }
        }
        unreachable!("the weights were summed up")
    }

    pub(super) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range) / self.grain * self.grain)
    }
}
