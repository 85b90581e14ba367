//! Figures of an outlet's queue for HTTP and management, read without waiting for a disk.
//!
//! A thread that writes to a queue on disk, or reads from it, holds the queue's lock meanwhile, forever if the disk
//! does not answer. The threads of HTTP and of connections must not wait for it. Not here: the rows that show the
//! figures (`admin::accounts`, `admin::queues`).
//! Invariant: nothing here waits for a lock of a queue for longer than [`LOOK_NS_MAX`], and nothing here reads a file.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use deliver::disk_queue::{DiskQueue, Position, Promise};
use deliver::queue::{OutputQueue, Queue};
use model::{Now, OutputSum};

use super::Outlet;
use super::state::{DiskLook, MS_NS};
use sys::clock::Clock;
use sys::disk::Folder;

/// Longest wait for a locked queue: far longer than an append to a working disk.
const LOOK_NS_MAX: u64 = 20 * MS_NS;

/// Pause between two tries.
const TRY_EVERY: Duration = Duration::from_micros(200);

/// The result of a look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The queue was locked all the time: what waits comes from the account, and the rest from the last successful
    /// look.
    pub busy: bool,
    /// The account's sum.
    pub sum: OutputSum,
    /// Waiting bytes.
    pub bytes: u64,
    /// Age of the oldest queued block, in nanoseconds; in a queue in memory, of those that no sender holds.
    pub oldest_age_ns: Option<u64>,
    /// Of a queue on disk.
    pub disk: Option<DiskLook>,
}

impl DiskLook {
    fn of(queue: &DiskQueue<Folder>) -> DiskLook {
        DiskLook {
            segments: queue.segments() as u64,
            blocks_unsynced: queue.accepted_up_to().0.saturating_sub(queue.safe_up_to().0),
            counts: queue.counts(),
            missing: queue.missing(),
            write_error: queue.write_error(),
            read_error: queue.read_error(),
        }
    }
}

impl Outlet {
    /// The queue, if it is not locked.
    pub(super) fn queue_now(&self) -> Option<MutexGuard<'_, OutputQueue<Folder>>> {
        match self.queue.try_lock() {
            Ok(queue) => Some(queue),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The queue, if it is unlocked soon.
    fn queue_soon(&self) -> Option<MutexGuard<'_, OutputQueue<Folder>>> {
        let until_ns = Clock::mono_ns() + LOOK_NS_MAX;
        loop {
            let queue = self.queue_now();
            if queue.is_some() || Clock::mono_ns() >= until_ns {
                return queue;
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    /// What waits in the queue, and the state of its disk.
    pub fn look(&self, now: Now) -> Look {
        let mut found = *self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = if found.busy { self.queue_now() } else { self.queue_soon() };
        found.busy = queue.is_none();
        let waiting = queue.map(|mut queue| {
            // A store holds its points for minutes, and they count as queued until they are in their files.
            let held_ns = queue.on_disk().and_then(|queue| queue.oldest_open_age_ns(now));
            if held_ns.is_some() || self.knows_oldest(&mut queue) {
                let age_ns = held_ns.or_else(|| self.oldest_age_of(&mut queue, now));
                found.oldest_ns = age_ns.map(|age_ns| now.mono_ns.saturating_sub(age_ns));
            }
            found.disk = queue.on_disk().map_or_else(DiskLook::default, |queue| DiskLook::of(queue));
            (self.sum_of(&queue), self.bytes_of(&mut queue))
        });
        let (sum, bytes) = waiting.unwrap_or_else(|| {
            let account = &self.account;
            (account.sum(account.copies_queued()), account.queued_bytes.load(Relaxed))
        });
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Look {
            busy: found.busy,
            sum,
            bytes,
            oldest_age_ns: found.oldest_ns.map(|oldest_ns| now.mono_ns.saturating_sub(oldest_ns)),
            disk: self.disk().map(|_| found.disk),
        }
    }

    /// Whether the oldest block is known without reading. If not, the thread that syncs the queue reads on, and the
    /// next look knows it.
    fn knows_oldest(&self, queue: &mut OutputQueue<Folder>) -> bool {
        let knows = queue.on_disk().is_none_or(|queue| queue.knows_oldest());
        if let (false, Some(disk)) = (knows, self.disk()) {
            disk.wants_oldest.store(true, Relaxed);
            disk.wake_before(0, queue);
        }
        knows
    }

    /// [`Outlet::promise`]; none while the queue is locked.
    pub fn promise_soon(&self, of: Position) -> Option<Promise> {
        Some(self.queue_soon()?.promise(of))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::plan::QueueLimits;
    use deliver::queue::Block;
    use model::{OutputAccount, SECOND_NS};

    use super::*;

    #[test]
    fn a_locked_queue_is_shown_without_its_lock() {
        let at = |s: u64| Now::default().plus_ns(s * SECOND_NS);
        let outlet = Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default()));
        let block = |s| Block::lines(b"a 1 2\nb 1 2\n".to_vec(), 2, at(s).mono_ns);
        let place = outlet.append(block(1), at(1)).expect("there is room");
        let free = outlet.look(at(3));
        assert_eq!((free.busy, free.sum.queued, free.oldest_age_ns), (false, 2, Some(2 * SECOND_NS)));
        let (held, release) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _queue = outlet.queue();
                held.wait();
                release.wait();
            });
            held.wait();
            for s in [4, 5] {
                let busy = outlet.look(at(s));
                assert!(busy.busy && busy.sum.holds());
                assert_eq!((busy.sum.queued, busy.bytes), (2, free.bytes));
                assert_eq!(busy.oldest_age_ns, Some((s - 1) * SECOND_NS));
            }
            assert_eq!(outlet.promise_soon(place), None);
            release.wait();
        });
        assert!(outlet.promise_soon(place).is_some());
        assert!(!outlet.look(at(6)).busy);
    }
}
