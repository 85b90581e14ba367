//! Random seeds, from the system by way of the standard library's hasher.

use std::hash::{BuildHasher, Hasher};

/// A seed that an outsider cannot guess.
pub fn random_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
