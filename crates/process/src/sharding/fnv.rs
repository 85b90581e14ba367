//! FNV-1a hashes, as relays use them for sharding.

/// How a byte above 0x7f is added to the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// As a number up to 255, as FNV is defined.
    Unsigned,
    /// Sign-extended: what C's `char` does on x86, and so carbon-c-relay.
    Signed,
}

/// 32 bits.
pub(super) fn fnv1a_32(key: &[u8], bytes: Bytes) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| {
        let byte = match bytes {
            Bytes::Unsigned => u32::from(*byte),
            Bytes::Signed => *byte as i8 as u32,
        };
        (hash ^ byte).wrapping_mul(0x0100_0193)
    })
}

/// 64 bits.
pub(super) fn fnv1a_64(key: &[u8], bytes: Bytes) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        let byte = match bytes {
            Bytes::Unsigned => u64::from(*byte),
            Bytes::Signed => *byte as i8 as u64,
        };
        (hash ^ byte).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// 32 bits folded to 16.
pub(super) fn fnv1a_16(key: &[u8], bytes: Bytes) -> u16 {
    let hash = fnv1a_32(key, bytes);
    (hash >> 16 ^ hash & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_equals_its_published_values() {
        // The first three are from FNV's own test vectors, the rest from jjneely's statsrelay.
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
            assert_eq!(fnv1a_64(key.as_bytes(), Bytes::Unsigned), *want, "{key:?}");
            assert_eq!(fnv1a_64(key.as_bytes(), Bytes::Signed), *want, "{key:?}");
        }
        for (key, want) in [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968_u32)] {
            assert_eq!(fnv1a_32(key.as_bytes(), Bytes::Unsigned), want, "{key:?}");
        }
    }

    #[test]
    fn bytes_above_127_are_sign_extended_as_on_x86() {
        // One step computed by hand: 0x811c9dc5 ^ 0xffffffc3.
        let want = (0x811c_9dc5_u32 ^ 0xffff_ffc3).wrapping_mul(0x0100_0193);
        assert_eq!(fnv1a_32(b"\xc3", Bytes::Signed), want);
        assert_ne!(fnv1a_32(b"\xc3", Bytes::Unsigned), want);
        assert_ne!(fnv1a_64(b"\xc3", Bytes::Signed), fnv1a_64(b"\xc3", Bytes::Unsigned));
    }
}
