//! One refused point of each reason, for a line of the log: a count alone does not lead to the sender.
//!
//! Not here: counts of outcomes, which are exact (`refuse`, and the callers of `push`).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes of a name that are kept.
pub const EXAMPLE_BYTES_MAX: usize = 200;

/// A refused point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name, or the line that is no point: at most [`EXAMPLE_BYTES_MAX`] bytes.
    pub name: Vec<u8>,
    /// The name was longer.
    pub is_cut: bool,
    /// Its time, in Unix seconds, if it has one.
    pub time: Option<i64>,
    /// When it was refused, in Unix seconds.
    pub now: i64,
}

/// The first point of each of some reasons since it was taken, and about how many there were.
#[derive(Debug)]
pub(super) struct Examples<const REASONS: usize> {
    counts: [AtomicU64; REASONS],
    first: Mutex<[Option<Example>; REASONS]>,
}

impl<const REASONS: usize> Examples<REASONS> {
    pub(super) fn new() -> Examples<REASONS> {
        Examples {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            first: Mutex::new(std::array::from_fn(|_| None)),
        }
    }

    pub(super) fn note(&self, reason: usize, points: u64, name: &[u8], (time, now): (Option<i64>, i64)) {
        // Senders of such points send many: only the first one takes the lock.
        if points == 0 || self.counts[reason].fetch_add(points, Relaxed) > 0 {
            return;
        }
        let kept = &name[..name.len().min(EXAMPLE_BYTES_MAX)];
        let example = Example { name: kept.to_vec(), is_cut: kept.len() < name.len(), time, now };
        self.first()[reason] = Some(example);
    }

    pub(super) fn take(&self, reason: usize) -> Option<(u64, Example)> {
        let example = self.first()[reason].take()?;
        Some((self.counts[reason].swap(0, Relaxed), example))
    }

    fn first(&self) -> MutexGuard<'_, [Option<Example>; REASONS]> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
