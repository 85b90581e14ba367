//! Divides the sources' descriptors among sources and peers (`descriptors`). If they are fewer than `max_connections`,
//! the limits of a source alone would let one peer use up all of them.
//!
//! No peer has more than half of them, over all sources. Half of them is reserved for the sources, in equal parts, so
//! that each has some in any case. Not here: the limits of a source (`admission`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::plan::{Listen, Plan};
use model::{PeerKey, SourceId};

use crate::daemon::start::descriptors::{self, Kind, Permit};

/// Those of this process.
static OURS: Shares = Shares::new();

/// Why another connection gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Short {
    /// The sources have used their share; or this source has used its part, and the rest is reserved for others.
    All,
    /// The peer has half of all.
    PerPeer,
}

/// A permit for one connection, returned when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: &'static Shares,
    source: SourceId,
    peer: PeerKey,
}

/// The permits in use.
#[derive(Debug)]
struct Shares(Mutex<Taken>);

#[derive(Debug)]
struct Taken {
    of_source: BTreeMap<SourceId, u64>,
    of_peer: BTreeMap<PeerKey, u64>,
}

/// A permit for another connection of `peer` at `source` of `plan`, with its descriptor.
///
/// # Errors
/// The limit that is reached.
pub(super) fn try_take(source: SourceId, peer: PeerKey, plan: &Plan) -> Result<(Share, Permit), Short> {
    let is_stream = |listen: &Listen| !matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
    let sources = plan.sources.iter().filter(|source| source.listen.iter().any(is_stream)).count();
    let share = OURS.try_take((source, peer), descriptors::max(Kind::Source), sources as u64)?;
    Ok((share, descriptors::try_take().ok_or(Short::All)?))
}

/// A permit for an existing connection.
pub(super) fn take(source: SourceId, peer: PeerKey) -> (Share, Permit) {
    (OURS.take((source, peer)), descriptors::take())
}

/// Most connections that one peer may have at all sources.
pub(super) fn of_peer_max() -> u64 {
    half(descriptors::max(Kind::Source))
}

/// The peer with the most connections at all sources, and their number.
pub(super) fn most() -> Option<(PeerKey, u64)> {
    let taken = OURS.lock();
    let most = taken.of_peer.iter().max_by_key(|(_, count)| **count);
    most.map(|(peer, count)| (*peer, *count))
}

fn half(max: u64) -> u64 {
    (max / 2).max(1)
}

impl Shares {
    const fn new() -> Shares {
        Shares(Mutex::new(Taken { of_source: BTreeMap::new(), of_peer: BTreeMap::new() }))
    }

    /// One of `max`, which this many sources share.
    fn try_take(
        &'static self,
        (source, peer): (SourceId, PeerKey),
        max: u64,
        sources: u64,
    ) -> Result<Share, Short> {
        let mut taken = self.lock();
        if taken.of_peer.get(&peer).copied().unwrap_or(0) >= half(max) {
            return Err(Short::PerPeer);
        }
        let kept = max / 2 / sources.max(1);
        if taken.of_source.get(&source).copied().unwrap_or(0) >= kept {
            // Unused parts of other sources stay reserved for them.
            let absent = sources.saturating_sub(taken.of_source.len() as u64);
            let bound: u64 = taken.of_source.values().map(|here| (*here).max(kept)).sum();
            if bound.saturating_add(absent.saturating_mul(kept)) >= max {
                return Err(Short::All);
            }
        }
        Ok(taken.add(self, source, peer))
    }

    fn take(&'static self, (source, peer): (SourceId, PeerKey)) -> Share {
        self.lock().add(self, source, peer)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn add(&mut self, of: &'static Shares, source: SourceId, peer: PeerKey) -> Share {
        *self.of_source.entry(source).or_insert(0) += 1;
        *self.of_peer.entry(peer).or_insert(0) += 1;
        Share { of, source, peer }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        give_back(&mut taken.of_source, self.source);
        give_back(&mut taken.of_peer, self.peer);
    }
}

/// Decrements a count; at 0 it is removed.
fn give_back<K: Ord>(taken: &mut BTreeMap<K, u64>, key: K) {
    if let Some(here) = taken.get_mut(&key) {
        *here -= 1;
        if *here == 0 {
            taken.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> PeerKey {
        crate::admission::peer_key(Some([10, 0, 0, last].into()))
    }

    /// As many as a peer gets at a source, and why there are no more.
    fn most(of: &'static Shares, who: (u16, u8), max: u64, sources: u64) -> (Vec<Share>, Short) {
        let mut got = Vec::new();
        loop {
            match of.try_take((SourceId(who.0), peer(who.1)), max, sources) {
                Ok(share) => got.push(share),
                Err(short) => return (got, short),
            }
        }
    }

    #[test]
    fn no_peer_has_more_than_half_and_each_source_has_a_reserved_part() {
        static SHARES: Shares = Shares::new();
        let (first, short) = most(&SHARES, (0, 1), 100, 2);
        assert_eq!((first.len(), short), (50, Short::PerPeer));
        assert_eq!(most(&SHARES, (1, 1), 100, 2).1, Short::PerPeer, "over all sources");
        let (second, short) = most(&SHARES, (0, 2), 100, 2);
        assert_eq!((second.len(), short), (25, Short::All), "a quarter of all is kept for the other source");
        assert!(SHARES.try_take((SourceId(0), peer(3)), 100, 2).is_err());
        let (third, short) = most(&SHARES, (1, 3), 100, 2);
        assert_eq!((third.len(), short), (25, Short::All));
        drop(second);
        let (fourth, short) = most(&SHARES, (1, 4), 100, 2);
        assert_eq!((fourth.len(), short), (25, Short::All), "what nobody has is for anybody");
        // Existing connections count.
        let handed = SHARES.take((SourceId(1), peer(5)));
        drop((first, third, fourth, handed));
        let taken = SHARES.lock();
        assert!(taken.of_source.is_empty() && taken.of_peer.is_empty(), "nobody is remembered");
    }

    #[test]
    fn even_one_descriptor_can_be_used() {
        static SHARES: Shares = Shares::new();
        for (max, sources) in [(1, 1), (1, 3), (2, 1), (3, 5)] {
            let share = SHARES.try_take((SourceId(0), peer(1)), max, sources);
            assert!(share.is_ok(), "{max} for {sources}");
        }
        // Without a limit.
        let all: Vec<_> = (0..1_000).map(|_| SHARES.try_take((SourceId(0), peer(1)), u64::MAX, 3)).collect();
        assert!(all.iter().all(Result::is_ok));
    }
}
