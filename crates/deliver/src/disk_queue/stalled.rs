//! Reading that waits: the disk did not give bytes that are there.
//!
//! Only bytes that were read and fail their checksum are damage (design §12). A lack of descriptors or memory, a folder
//! that is away and missing permissions are waited for as long as they last. Where the disk itself fails, each try may be
//! the one that succeeds; past [`FAILING_MS_MAX`] and [`TRIES_MIN`] tries the range is passed over, counted as damaged,
//! and its segment is kept in the quarantine whole.
//! Invariant: while reading waits nothing is counted, moved or removed, and the next try begins where this one did.

use model::{Disk, DiskError, Now};

#[cfg(any(test, feature = "canary"))]
use super::Canary;
use super::expiry::Expiry;
use super::{DiskQueue, FAILING_MS_MAX};
use crate::pause::MS_NS;

/// Pause between two tries, in milliseconds.
pub const READ_AGAIN_MS: u64 = 250;

/// Least tries before a range that the disk fails to read is passed over: time alone may have passed without any.
const TRIES_MIN: u32 = 8;

/// Why nothing can be read, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalled {
    error: DiskError,
    /// When the disk began to fail. Anew with each error that says nothing about it.
    since_ns: u64,
    tries: u32,
    again_ns: u64,
    /// Somebody was woken to try again.
    told: bool,
}

impl<D: Disk> DiskQueue<D> {
    /// Why nothing can be read although records wait; none while reading goes on.
    pub fn read_error(&self) -> Option<DiskError> {
        self.stalled.map(|stalled| stalled.error)
    }

    /// What [`DiskQueue::read_error`] says, before the pause between two tries is over.
    pub(super) fn pauses(&self) -> Option<DiskError> {
        self.stalled.filter(|stalled| self.now_ns < stalled.again_ns).map(|stalled| stalled.error)
    }

    /// When reading is tried again, or goes on past what is too old, unless somebody was woken for it.
    pub(super) fn read_due_ns(&self) -> Option<u64> {
        let expires_ns = (self.expiry == Expiry::GoesOn).then_some(self.now_ns);
        let again_ns = self.stalled.filter(|stalled| !stalled.told).map(|stalled| stalled.again_ns);
        expires_ns.or(again_ns)
    }

    /// True once after each pause, and after each slice of what is too old: whoever reads is to be woken.
    pub fn read_again(&mut self, now: Now) -> bool {
        self.now_ns = self.now_ns.max(now.mono_ns);
        let now_ns = self.now_ns;
        if self.expires_again() {
            return true;
        }
        self.stalled
            .as_mut()
            .filter(|stalled| !stalled.told && stalled.again_ns <= now_ns)
            .map(|stalled| stalled.told = true)
            .is_some()
    }

    /// Something could not be read.
    pub(super) fn stall(&mut self, error: DiskError) {
        let again_ns = self.now_ns.saturating_add(READ_AGAIN_MS * MS_NS);
        let earlier = self.stalled.filter(|stalled| !stalled.error.passes() && !error.passes());
        self.counts.read_errors += 1;
        self.stalled = Some(Stalled {
            error,
            since_ns: earlier.map_or(self.now_ns, |earlier| earlier.since_ns),
            tries: earlier.map_or(1, |earlier| earlier.tries.saturating_add(1)),
            again_ns,
            told: false,
        });
    }

    /// Something could be read, or was passed over.
    pub(super) fn unstall(&mut self) {
        self.stalled = None;
    }

    /// Whether what the disk fails to read in this segment is passed over by now: it has failed for long, or has been
    /// passed over before in the same segment.
    pub(super) fn passes_over(&self, sequence: u64) -> bool {
        let most_ns = FAILING_MS_MAX * MS_NS;
        let given_up = self.stalled.is_some_and(|stalled| {
            !stalled.error.passes()
                && stalled.tries >= TRIES_MIN
                && self.now_ns.saturating_sub(stalled.since_ns) >= most_ns
        });
        given_up || self.segments.iter().any(|segment| segment.sequence == sequence && segment.unreadable)
    }

    /// Whether an error of reading is damage: the bytes are not there, or it is passed over.
    pub(super) fn is_damage(&self, error: DiskError, sequence: u64) -> bool {
        #[cfg(any(test, feature = "canary"))]
        if self.canary == Some(Canary::ScarcityIsDamage) {
            return true;
        }
        error == DiskError::Short || !error.passes() && self.passes_over(sequence)
    }
}
