//! Forms without a ring: a hash picks one of numbered shards, a table says where the shard lives.

use super::{ClusterMistake, SHARDS_MAX};

#[derive(Clone, Copy, Debug)]
pub(super) enum ShardsHash {
    Jump,
    Murmur3,
}

#[derive(Clone, Debug)]
pub(super) struct Shards {
    hash: ShardsHash,
    /// Endpoint of each shard. Empty only when there is no endpoint.
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

    /// The endpoint of the key's shard. The originals know no endpoints that are out: here each key of one that is goes
    /// to the live endpoint for which the key's hash mixed with the endpoint's number is highest. So these keys spread
    /// over the others, nothing else moves, and they return with it.
    pub(super) fn owner(&self, key: &[u8], live: &[bool], listed: &[u16]) -> Option<usize> {
        if self.table.is_empty() || listed.is_empty() {
            return None;
        }
        let shards = self.table.len() as u32;
        let (hash, shard) = match self.hash {
            ShardsHash::Jump => {
                let hash = fnv1a(key);
                (hash, jump(hash, shards))
            }
            ShardsHash::Murmur3 => {
                let hash = murmur3(key, STATSRELAY_SEED);
                (u64::from(hash), hash % shards)
            }
        };
        let endpoint = usize::from(self.table[shard as usize]);
        if live[endpoint] {
            return Some(endpoint);
        }
        let stand_in = listed.iter().max_by_key(|endpoint| mixed(hash, u64::from(**endpoint)))?;
        Some(usize::from(*stand_in))
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Jump consistent hash (Lamping and Veach, arXiv:1406.2294): a number below `count`, which is above 0.
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

/// A hash of hash and number: the finish of SplitMix64.
fn mixed(hash: u64, number: u64) -> u64 {
    let mut hash = hash.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// What the statsrelays seed with, so that restarts and several relays agree.
const STATSRELAY_SEED: u32 = 0xaccd_3d34;

/// MurmurHash3_x86_32.
fn murmur3(key: &[u8], seed: u32) -> u32 {
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
    fn fnv1a_gives_its_published_values() {
        // The first two are of FNV's own test vectors, the rest of jjneely's statsrelay.
        let table: &[(&str, u64)] = &[
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
            ("changed", 0xdf38_879a_f614_707b),
            (
                "5min.prod.dc06.graphite-web006-g6.kernel.net.netfilter.nf_conntrack_max",
                0xdb7b_58ef_171e_ee9f,
            ),
        ];
        for (key, want) in table {
            assert_eq!(fnv1a(key.as_bytes()), *want, "{key:?}");
        }
    }

    #[test]
    fn murmur3_gives_its_published_values() {
        let table: &[(&str, u32, u32)] = &[
            ("", 0, 0),
            ("", 1, 0x514e_28b7),
            ("", 0xffff_ffff, 0x81f1_6f39),
            ("test", 0, 0xba6b_d213),
            ("Hello, world!", 0, 0xc036_3e43),
            ("The quick brown fox jumps over the lazy dog", 0, 0x2e4f_f723),
            // What the statsrelays expect of theirs.
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
    fn jump_moves_only_to_the_new_bucket_and_fills_all_alike() {
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
