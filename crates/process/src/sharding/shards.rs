//! Sharding without a ring: a hash selects one of numbered shards, and a table has the endpoint of each shard.

use super::fnv::{Bytes, fnv1a_32, fnv1a_64};
use super::label::Label;
use super::method::{ClusterMistake, SHARDS_MAX};

#[derive(Clone, Copy, Debug)]
pub(super) enum ShardsHash {
    /// Jump hash of FNV-1a.
    Jump,
    /// The same as in carbon-c-relay.
    JumpSigned,
    /// MurmurHash3 modulo the number of shards.
    Murmur3,
    /// 32-bit FNV-1a modulo the number of shards, as in carbon-c-relay.
    Fnv1aSigned,
}

#[derive(Clone, Debug)]
pub(super) struct Shards {
    hash: ShardsHash,
    /// The endpoint of each shard. Empty only without endpoints.
    table: Vec<u16>,
}

impl Shards {
    pub(super) fn new(hash: ShardsHash, table: &[usize], endpoints: usize) -> Result<Shards, ClusterMistake> {
        if table.len() > SHARDS_MAX {
            return Err(ClusterMistake::TooManyShards);
        }
        if table.is_empty() {
            return Ok(Shards { hash, table: (0..endpoints as u16).collect() });
        }
        if let Some(shard) = table.iter().position(|endpoint| *endpoint >= endpoints) {
            return Err(ClusterMistake::NoSuchEndpoint { shard, endpoint: table[shard] });
        }
        Ok(Shards { hash, table: table.iter().map(|endpoint| *endpoint as u16).collect() })
    }

    /// One shard per endpoint in the order of `jump_fnv1a_ch`: those with an instance first, by instance, then
    /// those without, in the given order (spec graphite §3.3).
    pub(super) fn by_instance(labels: &[Label<'_>]) -> Shards {
        let mut table: Vec<u16> = Vec::with_capacity(labels.len());
        for (endpoint, label) in labels.iter().enumerate() {
            // Not a library sort: comparing numbers with texts can be cyclic, which library sorts do not allow.
            let behind = table.iter().rposition(|other| !comes_before(label, &labels[usize::from(*other)]));
            table.insert(behind.map_or(0, |at| at + 1), endpoint as u16);
        }
        Shards { hash: ShardsHash::JumpSigned, table }
    }

    /// True when [`Shards::owners`] can find more than one.
    pub(super) fn replicates(&self) -> bool {
        matches!(self.hash, ShardsHash::JumpSigned)
    }

    /// The endpoint of each shard.
    pub(super) fn table(&self) -> &[u16] {
        &self.table
    }

    /// The endpoint of the key's shard, and a hash of the key.
    pub(super) fn owner(&self, key: &[u8]) -> Option<(usize, u64)> {
        let (shard, hash) = self.shard(key)?;
        Some((usize::from(self.table[shard]), hash))
    }

    /// The key's shard, and a hash of the key.
    pub(super) fn shard(&self, key: &[u8]) -> Option<(usize, u64)> {
        if self.table.is_empty() {
            return None;
        }
        let shards = self.table.len() as u32;
        let (hash, shard) = match self.hash {
            ShardsHash::Jump => {
                let hash = fnv1a_64(key, Bytes::Unsigned);
                (hash, jump(hash, shards))
            }
            ShardsHash::JumpSigned => {
                let hash = fnv1a_64(key, Bytes::Signed);
                (hash, jump(hash, shards))
            }
            ShardsHash::Murmur3 => {
                let hash = murmur3(key, STATSRELAY_SEED);
                (u64::from(hash), hash % shards)
            }
            ShardsHash::Fnv1aSigned => {
                let hash = fnv1a_32(key, Bytes::Signed);
                (u64::from(hash), hash % shards)
            }
        };
        Some((shard as usize, hash))
    }

    /// Appends the `count` owners of the key to `to`, as `jump_fnv1a_ch` finds them: each owner is replaced in the
    /// list by the last entry, and the hash is mixed again.
    pub(super) fn owners(&self, key: &[u8], count: usize, to: &mut Vec<u16>) {
        if count <= 1 || !self.replicates() {
            to.extend(self.owner(key).map(|(endpoint, _)| endpoint as u16));
            return;
        }
        let mut left = self.table.clone();
        let mut hash = fnv1a_64(key, Bytes::Signed);
        for _ in 0..count.min(left.len()) {
            to.push(left.swap_remove(jump(hash, left.len() as u32) as usize));
            hash ^= hash >> 12;
            hash ^= hash << 25;
            hash ^= hash >> 27;
            hash = hash.wrapping_mul(2_685_821_657_736_338_717);
        }
    }
}

/// True when `label` sorts before `other`, which precedes it in the given order, in the order of
/// [`Shards::by_instance`].
fn comes_before(label: &Label<'_>, other: &Label<'_>) -> bool {
    match (label.instance_number(), other.instance_number()) {
        (Some(own), Some(before)) => own < before,
        _ => match (label.instance, other.instance) {
            (Some(own), Some(before)) => own < before,
            (own, before) => own.is_some() && before.is_none(),
        },
    }
}

/// Jump consistent hash (Lamping and Veach, arXiv:1406.2294): a number below `count`, which must be above 0.
fn jump(hash: u64, count: u32) -> u32 {
    let (mut state, mut at, mut next) = (hash, 0, 0);
    while next < u64::from(count) {
        at = next;
        state = state.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let divisor = (state >> 33) + 1;
        next = ((at + 1) as f64 * ((1u64 << 31) as f64 / divisor as f64)) as u64;
    }
    at as u32
}

/// A hash of a hash and a number: the final step of SplitMix64.
pub(super) fn mixed(hash: u64, number: u64) -> u64 {
    let mut hash = hash.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Seed of the statsrelays, fixed so that restarts and several relays agree.
const STATSRELAY_SEED: u32 = 0xaccd_3d34;

/// MurmurHash3_x86_32.
pub(super) fn murmur3(key: &[u8], seed: u32) -> u32 {
    let scrambled = |block: u32| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (blocks, tail) = key.as_chunks::<4>();
    let mut hash = blocks.iter().fold(seed, |hash, block| {
        let hash = hash ^ scrambled(u32::from_le_bytes(*block));
        hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    let last = tail.iter().rev().fold(0, |block, byte| block << 8 | u32::from(*byte));
    hash ^= scrambled(last);
    hash ^= key.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_equals_its_published_values() {
        let table: &[(&str, u32, u32)] = &[
            ("", 0, 0),
            ("", 1, 0x514e_28b7),
            ("", 0xffff_ffff, 0x81f1_6f39),
            ("test", 0, 0xba6b_d213),
            ("Hello, world!", 0, 0xc036_3e43),
            ("The quick brown fox jumps over the lazy dog", 0, 0x2e4f_f723),
            // Expected values of the statsrelays' own tests.
            ("apple", STATSRELAY_SEED, 2_699_884_538),
            ("banana", STATSRELAY_SEED, 558_421_143),
            ("orange", STATSRELAY_SEED, 2_279_140_812),
            ("lemon", STATSRELAY_SEED, 4_183_924_513),
        ];
        for (key, seed, want) in table {
            assert_eq!(murmur3(key.as_bytes(), *seed), *want, "{key:?} with {seed:#x}");
        }
    }

    #[test]
    fn jump_moves_keys_only_to_the_new_bucket_and_spreads_evenly() {
        let keys = 20_000u64;
        for count in 1..40u32 {
            let mut filled = vec![0u32; count as usize];
            for key in 0..keys {
                let hash = mixed(key, 1);
                let (before, after) = (jump(hash, count), jump(hash, count + 1));
                assert!(after == before || after == count, "{key} goes from {before} to {after}");
                filled[before as usize] += 1;
            }
            let fair = keys as f64 / f64::from(count);
            assert!(
                filled.iter().all(|own| (f64::from(*own) - fair).abs() < 6.0 * fair.sqrt()),
                "{filled:?}"
            );
        }
    }
}
