//! Stalled reading: the disk does not return bytes that exist.
//!
//! Only bytes that were read and have a bad checksum are damage (design §12). Reading waits without limit for
//! descriptors, memory, permissions and an unavailable directory. Where the disk itself fails, reading retries; past
//! [`FAILING_MS_MAX`] and [`TRIES_MIN`] attempts the range is skipped and counted as damaged, and its segment is kept
//! in the quarantine.
//! Invariant: while reading waits nothing is counted, moved or removed, and the next attempt starts at the same place.

use model::{Disk, DiskError, Now};

#[cfg(any(test, feature = "canary"))]
use super::Canary;
use super::DiskQueue;
use super::state::{Expiry, FAILING_MS_MAX, READ_AGAIN_MS, Stalled};
use crate::pause::MS_NS;

/// Fewest attempts before an unreadable range is skipped: time alone may pass without any.
const TRIES_MIN: u32 = 8;

impl<D: Disk> DiskQueue<D> {
    /// Why queued records cannot be read; none while reading works.
    pub fn read_error(&self) -> Option<DiskError> {
        self.stalled.map(|stalled| stalled.error)
    }

    /// The error of [`DiskQueue::read_error`], until the pause between two attempts is over.
    pub(super) fn pauses(&self) -> Option<DiskError> {
        self.stalled.filter(|stalled| self.now_ns < stalled.again_ns).map(|stalled| stalled.error)
    }

    /// When reading is retried, or the next slice of old records is dropped, unless the sender was woken for it.
    pub(super) fn read_due_ns(&self) -> Option<u64> {
        let expires_ns = (self.expiry == Expiry::HasMore).then_some(self.now_ns);
        let again_ns = self.stalled.filter(|stalled| !stalled.woken).map(|stalled| stalled.again_ns);
        expires_ns.or(again_ns)
    }

    /// True once after each pause, and after each slice of old records: the sender has to be woken.
    pub fn read_again(&mut self, now: Now) -> bool {
        self.now_ns = self.now_ns.max(now.mono_ns);
        let now_ns = self.now_ns;
        if self.take_wake_up() {
            return true;
        }
        self.stalled
            .as_mut()
            .filter(|stalled| !stalled.woken && stalled.again_ns <= now_ns)
            .map(|stalled| stalled.woken = true)
            .is_some()
    }

    /// A read failed.
    pub(super) fn stall(&mut self, error: DiskError) {
        let again_ns = self.now_ns.saturating_add(READ_AGAIN_MS * MS_NS);
        let earlier = self.stalled.filter(|stalled| !stalled.error.passes() && !error.passes());
        self.counts.read_errors += 1;
        self.stalled = Some(Stalled {
            error,
            since_ns: earlier.map_or(self.now_ns, |earlier| earlier.since_ns),
            tries: earlier.map_or(1, |earlier| earlier.tries.saturating_add(1)),
            again_ns,
            woken: false,
        });
    }

    /// A read succeeded, or its bytes were skipped.
    pub(super) fn unstall(&mut self) {
        self.stalled = None;
    }

    /// Whether unreadable bytes of this segment are skipped: the disk has failed for too long, or some bytes of the
    /// segment were skipped before.
    pub(super) fn skips_unreadable(&self, sequence: u64) -> bool {
        let most_ns = FAILING_MS_MAX * MS_NS;
        let given_up = self.stalled.is_some_and(|stalled| {
            !stalled.error.passes()
                && stalled.tries >= TRIES_MIN
                && self.now_ns.saturating_sub(stalled.since_ns) >= most_ns
        });
        given_up || self.segments.iter().any(|segment| segment.sequence == sequence && segment.unreadable)
    }

    /// Whether a read error counts as damage: the bytes do not exist, or they are skipped.
    pub(super) fn is_damage(&self, error: DiskError, sequence: u64) -> bool {
        #[cfg(any(test, feature = "canary"))]
        if self.canary == Some(Canary::ScarcityIsDamage) {
            return true;
        }
        error == DiskError::Short || !error.passes() && self.skips_unreadable(sequence)
    }
}
