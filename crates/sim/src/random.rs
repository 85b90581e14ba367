//! Pseudorandom numbers from a seed: the only randomness in the simulator.

/// SplitMix64. Equal seeds give equal numbers in every version.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number of `from ..= to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A running fingerprint of byte strings: equal for equal strings in equal order, and almost never otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Adds one string. Its end counts, too.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0 ^ bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = mix(self.0.wrapping_add(u64::from_le_bytes(word)).wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = |seed| {
        let mut random = Random::new(seed);
        [(); 8].map(|()| random.between(3, 9))
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
    assert!(numbers(5).iter().all(|number| (3..=9).contains(number)));
}

#[test]
fn a_digest_depends_on_borders_and_order() {
    let digest = |pieces: &[&[u8]]| {
        let mut digest = Digest::default();
        pieces.iter().for_each(|piece| digest.add(piece));
        digest.number()
    };
    assert_eq!(digest(&[b"ab", b"c"]), digest(&[b"ab", b"c"]));
    assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"c", b"ab"]));
    assert_ne!(digest(&[b"a"]), digest(&[b"a\0"]));
}
