//! What patterns say of a name, remembered: a name comes again and again, and matching it costs more than all else.
//!
//! One place for each of a fixed number of hash values; a name that finds another's place taken replaces it. Names
//! are known by their seeded 64-bit hashes alone: that two of them have the same is not to be expected in an
//! installation's lifetime, nor can senders bring it about.

/// Places. A power of two; 64 KiB in all.
const PLACES: usize = 4096;

/// What the plan says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict(u32);

impl Verdict {
    pub(super) const FILTERED: Verdict = Verdict(u32::MAX);

    /// It passes, and the share at that place of the list holds.
    pub(super) fn share(place: usize) -> Verdict {
        debug_assert!(place < u32::MAX as usize);
        Verdict(place as u32)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Verdicts {
    /// (hash, verdict); empty until the first name comes.
    known: Vec<(u64, Verdict)>,
    shares: Vec<f64>,
}

impl Verdicts {
    pub(super) fn new(shares: Vec<f64>) -> Verdicts {
        assert!(!shares.is_empty(), "the plan's own share is always there");
        Verdicts { known: Vec::new(), shares }
    }

    /// The verdict on the name of this hash; `decide` is asked when it is not remembered.
    #[inline]
    pub(super) fn of(&mut self, hash: u64, decide: impl FnOnce() -> Verdict) -> Verdict {
        let place = hash as usize % PLACES;
        match self.known.get(place) {
            Some(&(known, verdict)) if known == hash => verdict,
            _ => {
                let verdict = decide();
                self.keep(place, hash, verdict);
                verdict
            }
        }
    }

    #[cold]
    fn keep(&mut self, place: usize, hash: u64, verdict: Verdict) {
        if self.known.is_empty() {
            // No hash is its own complement of the place, so an untouched place matches nothing.
            self.known = (0..PLACES as u64).map(|place| (!place, Verdict::FILTERED)).collect();
        }
        self.known[place] = (hash, verdict);
    }

    /// The share that a verdict names; none when the name is filtered.
    #[inline]
    pub(super) fn share_of(&self, verdict: Verdict) -> Option<f64> {
        self.shares.get(verdict.0 as usize).copied()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.known.capacity() * size_of::<(u64, Verdict)>()
    }
}

const _: () = assert!(PLACES.is_power_of_two());
