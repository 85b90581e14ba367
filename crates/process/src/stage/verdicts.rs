//! Cache of filter decisions by name: names repeat, and matching patterns costs more than everything else.
//!
//! A fixed number of rows, each with the last few names whose hashes belong there. Names are identified by their
//! seeded 64-bit hashes alone. A collision of two names is not to be expected in the lifetime of an installation,
//! and senders cannot cause one.

/// Number of rows. 256 KiB in all, for 16,384 names.
const ROWS: usize = 4096;

/// Names per row: as many as fit into a cache line.
const ROW_NAMES: usize = 4;

/// The decision for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict(u32);

impl Verdict {
    pub(super) const FILTERED: Verdict = Verdict(u32::MAX);

    /// It passes, with the share at this index.
    pub(super) fn share(place: usize) -> Verdict {
        debug_assert!(place < u32::MAX as usize);
        Verdict(place as u32)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Verdicts {
    /// (hash, verdict) of the names of each row, newest first. Allocated at the first name.
    rows: Vec<[(u64, Verdict); ROW_NAMES]>,
    shares: Vec<f64>,
}

impl Verdicts {
    pub(super) fn new(shares: Vec<f64>) -> Verdicts {
        assert!(!shares.is_empty(), "the list contains the plan's own share");
        Verdicts { rows: Vec::new(), shares }
    }

    /// The verdict on the name with this hash. `decide` is called when it is not cached.
    #[inline]
    pub(super) fn of(&mut self, hash: u64, decide: impl FnOnce() -> Verdict) -> Verdict {
        let at = hash as usize % ROWS;
        if let Some(row) = self.rows.get(at)
            && let Some((_, verdict)) = row.iter().find(|(known, _)| *known == hash)
        {
            return *verdict;
        }
        let verdict = decide();
        self.keep(at, hash, verdict);
        verdict
    }

    #[cold]
    fn keep(&mut self, at: usize, hash: u64, verdict: Verdict) {
        if self.rows.is_empty() {
            // No hash of a row is the complement of the row's number, so an unused entry matches nothing.
            self.rows = (0..ROWS as u64).map(|at| [(!at, Verdict::FILTERED); ROW_NAMES]).collect();
        }
        let row = &mut self.rows[at];
        row.rotate_right(1);
        row[0] = (hash, verdict);
    }

    /// The share of a verdict; None when the name is filtered.
    #[inline]
    pub(super) fn share_of(&self, verdict: Verdict) -> Option<f64> {
        self.shares.get(verdict.0 as usize).copied()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<[(u64, Verdict); ROW_NAMES]>()
    }
}

const _: () = assert!(ROWS.is_power_of_two() && size_of::<[(u64, Verdict); ROW_NAMES]>() == 64);
