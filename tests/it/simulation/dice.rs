//! Chance, one stream of it for each actor: what one draws does not change what another one draws.

use std::ops::Range;
use std::time::Duration;

/// Draws for one actor.
pub(super) struct Dice {
    random: fastrand::Rng,
    /// Times are multiples of so many milliseconds: in a coarse world much happens at the very same moment.
    grain: u64,
}

impl Dice {
    /// The dice of `actor` in the world of `seed`; `numbers` tell actors of one name apart.
    pub(super) fn of(seed: u64, actor: &str, numbers: &[u64]) -> Self {
        let words = std::iter::once(seed).chain(actor.bytes().map(u64::from)).chain(numbers.iter().copied());
        // FNV-1a over words: another standard library must not make another world.
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

    /// True so many times of a hundred.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.random.usize(0..items.len())]
    }

    /// One of `items`, each as likely as its weight says.
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
