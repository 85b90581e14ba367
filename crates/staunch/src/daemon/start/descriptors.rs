//! Divides the file descriptors of this process.
//!
//! Queues on disk, outputs and the daemon's own files open theirs without a limit: half of all descriptors, or
//! [`OWN_DESCRIPTORS`] and some for each output if that is less, are reserved for them. The rest is divided among the
//! connections of peers by kind, so that no kind exhausts another's. Sources have many listeners and one share: each
//! accept loop requests a [`Permit`] and closes the connection without one. The listener of HTTP, and each management
//! port, has its part as a limit of its `Admission`; a connection that is asked to leave has gone at the next accept
//! but one.
//!
//! | kind | share of the descriptors for peers |
//! |---|---|
//! | HTTP | a quarter, at most [`HTTP_CONNECTIONS_MAX`] |
//! | management | an eighth, at most [`MANAGEMENT_CONNECTIONS_MAX`] |
//! | sources | the rest |
//!
//! Not here: limits of a single source or port (`max_connections` and similar ones), which also apply.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Descriptors reserved for the daemon itself, in addition to those of outputs.
pub const OWN_DESCRIPTORS: u64 = 200;

/// The same for each output: its connection, and the segments that its queue reads, writes and syncs.
pub const DESCRIPTORS_OF_OUTPUT: u64 = 4;

/// Most connections of HTTP clients, with any number of descriptors.
pub const HTTP_CONNECTIONS_MAX: u64 = 1024;

/// Most connections of management clients, with any number of descriptors.
pub const MANAGEMENT_CONNECTIONS_MAX: u64 = 256;

/// The use of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A connection of a client of a source.
    Source,
    /// A connection of an HTTP client.
    Http,
    /// A connection of a management client.
    Management,
}

const KINDS: usize = 3;

/// The descriptors of each kind, and how many sources use.
#[derive(Debug)]
pub struct Descriptors {
    /// All descriptors; `u64::MAX` until they are divided.
    total: AtomicU64,
    max: [AtomicU64; KINDS],
    of_sources: AtomicU64,
}

/// A permit for one connection of a source, returned when dropped.
#[derive(Debug)]
#[must_use = "a connection without a permit does not count"]
pub struct Permit {
    of: &'static Descriptors,
}

/// Those of this process.
static OURS: Descriptors = Descriptors::new();

/// Divides the `total` descriptors of this process with this many outputs: at the start, and when a reload changes the
/// number. Before, there is no limit. After a share has shrunk, existing connections are kept, but no new ones are
/// permitted.
pub fn divide(total: u64, outputs: usize) {
    OURS.divide(total, outputs);
}

/// A permit for another connection of a source; `None` when the share is used up.
pub fn try_take() -> Option<Permit> {
    OURS.try_take()
}

/// A permit for an existing connection of a source, such as one from another process.
pub fn take() -> Permit {
    OURS.take()
}

/// Most connections of this kind.
pub fn max(kind: Kind) -> u64 {
    OURS.max[kind as usize].load(Relaxed)
}

/// The limit, its division, and how to raise it: for the log, when one is missing.
pub fn advice() -> String {
    OURS.advice()
}

impl Descriptors {
    /// Without a limit.
    const fn new() -> Descriptors {
        Descriptors {
            total: AtomicU64::new(u64::MAX),
            max: [const { AtomicU64::new(u64::MAX) }; KINDS],
            of_sources: AtomicU64::new(0),
        }
    }

    /// For the log, when one is missing.
    fn advice(&self) -> String {
        let max = |kind: Kind| self.max[kind as usize].load(Relaxed);
        let limit = match self.total.load(Relaxed) {
            u64::MAX => "This process has a limit on open files".to_owned(),
            total => format!("This process may have {total} files open"),
        };
        format!(
            "{limit}: connections of sources have {} (at most {}), those of HTTP at most {}, of management at most {}; the \
             rest is for outputs, queues and the daemon itself. Raise it: LimitNOFILE= in the systemd unit, `ulimit -n` in \
             the shell that starts it",
            self.of_sources.load(Relaxed),
            max(Kind::Source),
            max(Kind::Http),
            max(Kind::Management),
        )
    }

    fn divide(&self, total: u64, outputs: usize) {
        self.total.store(total, Relaxed);
        let own = OWN_DESCRIPTORS.saturating_add(DESCRIPTORS_OF_OUTPUT.saturating_mul(outputs as u64));
        let peers = total - own.min(total / 2);
        let http = (peers / 4).clamp(1, HTTP_CONNECTIONS_MAX);
        let management = (peers / 8).clamp(1, MANAGEMENT_CONNECTIONS_MAX);
        let sources = peers.saturating_sub(http + management).max(1);
        for (kind, max) in [(Kind::Source, sources), (Kind::Http, http), (Kind::Management, management)] {
            self.max[kind as usize].store(max, Relaxed);
        }
    }

    fn try_take(&'static self) -> Option<Permit> {
        let max = self.max[Kind::Source as usize].load(Relaxed);
        let more = |taken: u64| (taken < max).then_some(taken + 1);
        self.of_sources.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Permit { of: self })
    }

    fn take(&'static self) -> Permit {
        self.of_sources.fetch_add(1, Relaxed);
        Permit { of: self }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.of_sources.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_share_and_the_daemons_part_is_reserved() {
        // (total, outputs, sources, HTTP, management)
        let table = [
            (0, 1, 1, 1, 1),
            (80, 1, 25, 10, 5),
            (1024, 1, 513, 205, 102),
            (1024, 1000, 320, 128, 64),
            (1 << 20, 10, (1 << 20) - 240 - 1024 - 256, 1024, 256),
        ];
        for (total, outputs, sources, http, management) in table {
            let descriptors = Descriptors::new();
            descriptors.divide(total, outputs);
            let found = descriptors.max.each_ref().map(|max| max.load(Relaxed));
            assert_eq!(found, [sources, http, management], "of {total} with {outputs} outputs");
            assert!(total < 8 || found.iter().sum::<u64>() <= total - total.min(200) / 2);
        }
    }

    #[test]
    fn a_returned_permit_can_be_used_again() {
        static DESCRIPTORS: Descriptors = Descriptors::new();
        let free = DESCRIPTORS.try_take().expect("no limit yet");
        drop(free);
        DESCRIPTORS.divide(80, 1);
        let mut taken: Vec<Permit> = (0..25).filter_map(|_| DESCRIPTORS.try_take()).collect();
        assert_eq!(taken.len(), 25);
        assert!(DESCRIPTORS.try_take().is_none(), "past it");
        taken.pop();
        taken.push(DESCRIPTORS.try_take().expect("one came back"));
        taken.push(DESCRIPTORS.take());
        taken.pop();
        assert!(DESCRIPTORS.try_take().is_none(), "one that is there already counts");
        let advice = DESCRIPTORS.advice();
        let want = "This process may have 80 files open: connections of sources have 25 (at most 25), those of HTTP at most 10, \
                    of management at most 5; ";
        assert!(
            advice.starts_with(want) && advice.contains("LimitNOFILE=") && advice.contains("`ulimit -n`"),
            "{advice}"
        );
    }
}
