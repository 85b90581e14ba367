//! Hashes with a seed that nobody outside knows: keys come from outside, and with a known function one could send keys
//! that all have the same hash.

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

#[derive(Clone, Debug)]
pub(super) struct SeededHasher {
    seed: u64,
    shared: SharedSeed,
}

impl SeededHasher {
    pub(super) fn new(seed: u64) -> SeededHasher {
        SeededHasher { seed, shared: SharedSeed::from_u64(seed) }
    }

    /// A hasher for one key.
    pub(super) fn start(&self) -> FoldHasher<'_> {
        FoldHasher::with_seed(self.seed, &self.shared)
    }
}

#[test]
fn hashes_depend_on_the_seed_alone() {
    use std::hash::{Hash, Hasher};
    let hash = |seed: u64| {
        let hasher = SeededHasher::new(seed);
        let mut hasher = hasher.start();
        "web1".hash(&mut hasher);
        hasher.finish()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
