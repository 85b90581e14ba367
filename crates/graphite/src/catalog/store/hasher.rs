//! Hashes of texts and nodes with a seed that nobody outside knows.

use std::hash::{Hash, Hasher as _};

use foldhash::{SharedSeed, fast::FoldHasher};

/// A function from keys to hashes; another seed is another function. Names come from outside: with a known function, one
/// could send names that all have the same hash.
#[derive(Clone, Debug)]
pub(super) struct KeyHasher {
    seed: u64,
    shared: SharedSeed,
}

impl KeyHasher {
    pub(super) fn new(seed: u64) -> KeyHasher {
        KeyHasher { seed, shared: SharedSeed::from_u64(seed) }
    }

    #[inline]
    pub(super) fn hash_one(&self, key: impl Hash) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

#[test]
fn hashes_depend_on_the_seed_alone() {
    let hash = |seed: u64| KeyHasher::new(seed).hash_one(b"servers".as_slice());
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
