//! How many bytes unfinished lines and frames of all connections may hold together, and which connection may hold more.
//!
//! Path of a byte: `Intake::stream` has cut a read -> **[`Claim::hold`]** with the memory of the rest. If there is no
//! room, the intake discards the rest, counts it as one rejected record, and its connection is closed. Not here: the
//! limit (`config`), the framers (`wire::frame`), the log (`staunch`).
//! Invariants: the first [`FREE_BYTES`] of a connection are never counted and never refused; all claims together stay
//! within the limit and those of one peer within half of it, except for bytes that another process handed over and for
//! a limit that a reload has lowered: then nothing is granted until enough has been returned; a dropped claim returns
//! its bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{PeerKey, limits::LINE_BYTES_MAX};

/// What each connection may always hold.
const FREE_BYTES: usize = LINE_BYTES_MAX;

/// Whose bytes leave no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfinishedFull {
    /// The bytes of all connections together.
    All,
    /// The bytes of the peer.
    PerPeer,
}

/// The claims of the process, above what each connection may always hold.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedBytes {
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    all: u64,
    /// By peer, for those that hold something.
    of_peer: BTreeMap<PeerKey, u64>,
}

/// One connection's part of it.
#[derive(Debug)]
pub(crate) struct Claim {
    account: Arc<UnfinishedBytes>,
    peer: PeerKey,
    bytes: u64,
}

impl UnfinishedBytes {
    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn of(&self, peer: PeerKey) -> u64 {
        self.of_peer.get(&peer).copied().unwrap_or(0)
    }

    /// A claim of `peer` has `now` bytes instead of `before`.
    fn change(&mut self, peer: PeerKey, before: u64, now: u64) {
        let of_peer = (self.of(peer) + now).saturating_sub(before);
        debug_assert!(self.all >= before && self.of(peer) >= before, "what is given back was claimed");
        self.all = (self.all + now).saturating_sub(before);
        if of_peer == 0 {
            self.of_peer.remove(&peer);
        } else {
            self.of_peer.insert(peer, of_peer);
        }
    }

    fn full(&self, peer: PeerKey, more: u64, bytes_max: u64) -> Option<UnfinishedFull> {
        if self.of(peer) + more > bytes_max / 2 {
            Some(UnfinishedFull::PerPeer)
        } else if self.all + more > bytes_max {
            Some(UnfinishedFull::All)
        } else {
            None
        }
    }
}

impl Claim {
    /// For a connection that holds nothing, and whose peer is unknown.
    pub(crate) fn new(account: &Arc<UnfinishedBytes>) -> Claim {
        Claim { account: Arc::clone(account), peer: PeerKey::Local, bytes: 0 }
    }

    /// It is a connection of `peer`.
    pub(crate) fn set_peer(&mut self, peer: PeerKey) {
        let bytes = self.bytes;
        self.change(0);
        self.peer = peer;
        self.change(bytes);
    }

    /// The connection holds this many bytes from now on, including the free ones. Less is always granted, and small
    /// messages take no lock.
    ///
    /// # Errors
    /// When there is no room for more. The claim is unchanged: the connection has to discard what it holds.
    pub(crate) fn hold(&mut self, held: usize, bytes_max: u64) -> Result<(), UnfinishedFull> {
        let wanted = held.saturating_sub(FREE_BYTES) as u64;
        if wanted == self.bytes {
            return Ok(());
        }
        let mut sums = self.account.lock();
        let more = wanted.saturating_sub(self.bytes);
        if more > 0
            && let Some(full) = sums.full(self.peer, more, bytes_max)
        {
            return Err(full);
        }
        sums.change(self.peer, self.bytes, wanted);
        self.bytes = wanted;
        Ok(())
    }

    /// The same without a refusal: another process has granted the bytes.
    pub(crate) fn hold_anyway(&mut self, held: usize) {
        self.change(held.saturating_sub(FREE_BYTES) as u64);
    }

    fn change(&mut self, wanted: u64) {
        if wanted != self.bytes {
            self.account.lock().change(self.peer, self.bytes, wanted);
            self.bytes = wanted;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.change(0);
    }
}

#[cfg(test)]
mod tests {

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MAX: u64 = 1 << 20;

    fn peer(last: u8) -> PeerKey {
        match last {
            0 => PeerKey::Local,
            last => PeerKey::V4(0x7f00_0000 + u32::from(last)),
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Come(u8),
        Hold(usize, usize),
        Go(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => (0..4u8).prop_map(Step::Come),
            // Around the free bytes, and around the limits.
            4 => (any::<usize>(), prop_oneof![0..2 * FREE_BYTES, 0..2 * MAX as usize])
                .prop_map(|(at, held)| Step::Hold(at, held)),
            1 => any::<usize>().prop_map(Step::Go),
        ]
    }

    proptest! {
        #[test]
        fn claims_are_within_the_limits_and_are_refused_only_there(steps in vec(step(), 1..200)) {
            let account = Arc::new(UnfinishedBytes::default());
            // A claim, and the bytes that its connection holds.
            let mut claims: Vec<(Claim, usize)> = Vec::new();
            for step in steps {
                let sum = |claims: &[(Claim, usize)], of: Option<PeerKey>| -> u64 {
                    let of_peer = claims.iter().filter(|(claim, _)| of.is_none_or(|of| of == claim.peer));
                    of_peer.map(|(_, held)| held.saturating_sub(FREE_BYTES) as u64).sum()
                };
                match step {
                    Step::Come(of) => {
                        let mut claim = Claim::new(&account);
                        claim.set_peer(peer(of));
                        claims.push((claim, 0));
                    }
                    Step::Go(at) if !claims.is_empty() => drop(claims.swap_remove(at % claims.len())),
                    Step::Hold(at, wants) if !claims.is_empty() => {
                        let at = at % claims.len();
                        let before = std::mem::replace(&mut claims[at].1, wants);
                        let of_peer = sum(&claims, Some(claims[at].0.peer));
                        let fits = wants <= before.max(FREE_BYTES) || (of_peer <= MAX / 2 && sum(&claims, None) <= MAX);
                        let got = claims[at].0.hold(wants, MAX);
                        prop_assert_eq!(got.is_ok(), fits, "{} instead of {}: {:?}", wants, before, got);
                        if got.is_err() {
                            claims[at].1 = before;
                        }
                    }
                    _ => {}
                }
                let sums = account.lock();
                prop_assert_eq!(sums.all, sum(&claims, None));
                prop_assert!(sums.all <= MAX);
                for (of, bytes) in &sums.of_peer {
                    prop_assert!(*bytes > 0 && *bytes <= MAX / 2);
                    prop_assert_eq!(*bytes, sum(&claims, Some(*of)));
                }
            }
            drop(claims);
            prop_assert!(account.lock().all == 0 && account.lock().of_peer.is_empty(), "all is given back");
        }
    }

    #[test]
    fn the_limits_are_exact_and_handed_over_bytes_count_against_them() {
        let account = Arc::new(UnfinishedBytes::default());
        let half = FREE_BYTES + MAX as usize / 2;
        let of = |last| {
            let mut claim = Claim::new(&account);
            claim.set_peer(peer(last));
            claim
        };
        let (mut one, mut other, mut third) = (of(1), of(2), of(3));
        assert_eq!(one.hold(half + 1, MAX), Err(UnfinishedFull::PerPeer));
        assert_eq!((one.hold(half, MAX), other.hold(half, MAX)), (Ok(()), Ok(())));
        assert_eq!(of(1).hold(FREE_BYTES + 1, MAX), Err(UnfinishedFull::PerPeer));
        assert_eq!(third.hold(FREE_BYTES + 1, MAX), Err(UnfinishedFull::All));
        assert_eq!(third.hold(FREE_BYTES, MAX), Ok(()), "small messages always pass");
        third.hold_anyway(half);
        drop((one, other));
        // With a lower limit nothing more is granted, and less is.
        assert_eq!(third.hold(half + 1, MAX / 2), Err(UnfinishedFull::PerPeer));
        assert_eq!(third.hold(half - 1, MAX / 2), Ok(()));
        assert_eq!(of(1).hold(FREE_BYTES + 1, MAX / 2), Ok(()));
    }
}
