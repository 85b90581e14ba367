//! How much one record may have searched by backtracking, by all expressions together.
//!
//! Each search has limits of its own (`backtracking`), but a plan has as many expressions as it likes, and whoever chooses
//! names can have each of them come near its limits. A search that ends soon in a short name costs no more than one of the
//! linear engine and is free; others take from what the record has, and give up when that is used up.
//! Not here: which searches those are.
//! Invariant: of one record at most [`TOGETHER_BYTES_MAX`] are searched that are not free.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Most bytes that the searches of one name, or of what stands behind it, may go over that are not free.
const TOGETHER_BYTES_MAX: usize = 16 << 10;

/// What is left for the record under way. Clones are the same, and those of one router. Without [`Effort::begin`] it is no limit.
#[derive(Clone, Debug)]
pub(super) struct Effort(Arc<AtomicUsize>);

impl Default for Effort {
    fn default() -> Effort {
        Effort(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl Effort {
    /// Another record begins.
    pub(super) fn begin(&self) {
        self.0.store(TOGETHER_BYTES_MAX, Relaxed);
    }

    /// Takes so many bytes; false when there are less.
    pub(super) fn take(&self, bytes: usize) -> bool {
        // One thread walks through the statements of a router, and no two routers have the same effort: nobody takes between
        // these two.
        let left = self.0.load(Relaxed);
        self.0.store(left.saturating_sub(bytes), Relaxed);
        left >= bytes
    }
}

#[test]
fn what_is_used_up_stays_so_until_the_next_record() {
    let effort = Effort::default();
    assert!(effort.take(TOGETHER_BYTES_MAX) && effort.take(TOGETHER_BYTES_MAX), "no record, no limit");
    effort.begin();
    assert!(effort.clone().take(TOGETHER_BYTES_MAX - 1) && effort.take(1) && !effort.take(1));
    effort.begin();
    assert!(!effort.take(TOGETHER_BYTES_MAX + 1) && !effort.take(1));
}
