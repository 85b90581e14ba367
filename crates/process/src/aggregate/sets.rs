//! Sets: distinct members of a window, exact up to a limit and then estimated (spec statsd §7.6).

use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use hashbrown::HashTable;
use model::{FlushInfo, Flushed, Kind, SeriesRef};

use super::context::{Context, Tally};
use super::hyperloglog::{HyperLogLog, REGISTERS};
use super::plan::{ExpiryPlan, SeriesExpiry};
use super::state::{AddResult, Closing, State};
use crate::bytes::{Bytes, put_varint};

/// Average bytes per member above which a set is estimated even with few members.
pub(super) const MEMBER_BYTES_MAX: usize = 256;
/// Bytes of members above which even a set without `set_exact_max` is estimated: offsets are 32 bits wide.
pub(super) const SET_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Copy, Debug)]
struct Member {
    hash: u32,
    at: u32,
    len: u32,
}

/// Members, each once.
#[derive(Clone, Debug, Default)]
struct Exact {
    /// All members in order of arrival, separated by LF. No member contains LF: it ends a line.
    text: Vec<u8>,
    members: HashTable<Member>,
}

/// An estimate of the number of members.
#[derive(Clone, Debug)]
struct Estimate {
    /// Seed of the hashes counted so far. It stays when the series moves to a process with another seed.
    seed: u32,
    sketch: HyperLogLog,
}

#[derive(Clone, Debug, Default)]
enum Members {
    #[default]
    None,
    Exact(Box<Exact>),
    Estimate(Box<Estimate>),
}

/// The members of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Set(Members);

impl Exact {
    fn memory_bytes(&self) -> usize {
        size_of::<Exact>() + self.text.capacity() + self.members.allocation_size()
    }

    fn of(&self, member: Member) -> &[u8] {
        &self.text[member.at as usize..][..member.len as usize]
    }

    fn has(&self, member: &[u8], hash: u32) -> bool {
        let text = &self.text;
        let is =
            |known: &Member| known.hash == hash && &text[known.at as usize..][..known.len as usize] == member;
        self.members.find(spread(hash), is).is_some()
    }

    /// Adds a new member.
    fn add(&mut self, member: &[u8], hash: u32) {
        if self.members.is_empty() {
            self.text.clear();
        } else {
            self.text.push(b'\n');
        }
        let known = Member { hash, at: self.text.len() as u32, len: member.len() as u32 };
        self.text.extend_from_slice(member);
        self.members.insert_unique(spread(hash), known, |known| spread(known.hash));
    }

    fn clear(&mut self) {
        let used = self.text.len();
        self.text.clear();
        if self.text.capacity() > 256 && used < self.text.capacity() / 4 {
            self.text.shrink_to(used * 2);
        }
        let used = self.members.len();
        self.members.clear();
        if self.members.capacity() > 64 && used < self.members.capacity() / 4 {
            self.members.shrink_to(used * 2, |known| spread(known.hash));
        }
    }
}

impl Estimate {
    fn add(&mut self, member: &[u8]) {
        self.sketch.add(FixedState::with_seed(u64::from(self.seed)).hash_one(member));
    }
}

fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

impl Set {
    fn memory_bytes(&self) -> usize {
        match &self.0 {
            Members::None => 0,
            Members::Exact(exact) => exact.memory_bytes(),
            Members::Estimate(estimate) => size_of::<Estimate>() + estimate.sketch.memory_bytes(),
        }
    }

    /// Adds a member. `seed` must be the same for all members of a set, and unknown to senders.
    pub(super) fn add(&mut self, member: &[u8], seed: u32, context: &mut Context) -> AddResult {
        if member.is_ascii() {
            return self.add_text(if member.is_empty() { b"0" } else { member }, seed, context);
        }
        // Members are compared as text: two byte strings that decode to the same replacement characters are equal.
        self.add_text(String::from_utf8_lossy(member).as_bytes(), seed, context)
    }

    fn add_text(&mut self, member: &[u8], seed: u32, context: &mut Context) -> AddResult {
        let hasher = FixedState::with_seed(u64::from(seed));
        let hash = (hasher.hash_one(member) >> 32) as u32;
        let exact = match &mut self.0 {
            Members::Estimate(estimate) => {
                estimate.add(member);
                return AddResult::Added;
            }
            Members::Exact(exact) => exact,
            Members::None if !context.has_room() => return AddResult::NoRoom,
            Members::None => {
                context.tally.heap(0, size_of::<Exact>());
                self.0 = Members::Exact(Box::default());
                let Members::Exact(exact) = &mut self.0 else { return AddResult::NoRoom };
                exact
            }
        };
        if exact.has(member, hash) {
            return AddResult::Added;
        }
        if !context.has_room() {
            return AddResult::NoRoom;
        }
        let before = exact.memory_bytes();
        exact.add(member, hash);
        context.tally.heap(before, exact.memory_bytes());
        let bytes_max = match context.set_exact_max {
            0 => SET_BYTES_MAX,
            members_max => members_max.saturating_mul(MEMBER_BYTES_MAX).min(SET_BYTES_MAX),
        };
        let members_max = if context.set_exact_max == 0 { usize::MAX } else { context.set_exact_max };
        if exact.members.len() > members_max || exact.text.len() > bytes_max {
            self.estimate(seed, &mut context.tally);
        }
        AddResult::Added
    }

    #[cold]
    fn estimate(&mut self, seed: u32, tally: &mut Tally) {
        let before = self.memory_bytes();
        let mut estimate = Estimate { seed, sketch: HyperLogLog::new() };
        if let Members::Exact(exact) = &self.0 {
            exact.members.iter().for_each(|member| estimate.add(exact.of(*member)));
        }
        self.0 = Members::Estimate(Box::new(estimate));
        tally.heap(before, self.memory_bytes());
        tally.set_estimates += 1;
    }

    /// Distinct members so far.
    pub(super) fn count(&self) -> u64 {
        match &self.0 {
            Members::None => 0,
            Members::Exact(exact) => exact.members.len() as u64,
            Members::Estimate(estimate) => estimate.sketch.estimate(),
        }
    }

    /// All members separated by LF. Empty when there are none, or they are estimated.
    pub(super) fn text(&self) -> &[u8] {
        match &self.0 {
            Members::Exact(exact) => &exact.text,
            Members::None | Members::Estimate(_) => b"",
        }
    }
}

impl State for Set {
    const KIND: Kind = Kind::Set;

    fn idle(plan: &ExpiryPlan) -> SeriesExpiry {
        plan.sets
    }

    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        _active: bool,
        closing: &Closing,
        context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        let members = if context.set_members { self.text() } else { b"" };
        emit(&closing.info, Flushed::Set { series, count: self.count(), members });
    }

    fn clear(&mut self, tally: &mut Tally) {
        let before = self.memory_bytes();
        match &mut self.0 {
            Members::Exact(exact) => exact.clear(),
            members => *members = Members::None,
        }
        tally.heap(before, self.memory_bytes());
    }

    fn reset(&mut self, tally: &mut Tally) {
        tally.heap(self.memory_bytes(), 0);
        self.0 = Members::None;
    }

    fn save(&self, to: &mut Vec<u8>) {
        match &self.0 {
            Members::Exact(exact) if !exact.text.is_empty() => {
                to.push(1);
                put_varint(exact.text.len() as u64, to);
                to.extend_from_slice(&exact.text);
            }
            Members::Estimate(estimate) => {
                to.push(2);
                to.extend_from_slice(&estimate.seed.to_le_bytes());
                to.extend_from_slice(estimate.sketch.registers());
            }
            Members::None | Members::Exact(_) => to.push(0),
        }
    }

    fn load(&mut self, from: &mut Bytes<'_>, seed: u32, context: &mut Context) -> Option<()> {
        match from.u8()? {
            0 => {}
            1 => {
                let len = from.len_of(1)?;
                let members = from.take(len)?.split(|byte| *byte == b'\n');
                // Another limit may apply now, so they are added as new members are. None of them is lost.
                for member in members {
                    if self.add(member, seed, context) == AddResult::NoRoom {
                        self.estimate(seed, &mut context.tally);
                        self.add(member, seed, context);
                    }
                }
            }
            2 => {
                let seed = from.u32()?;
                let sketch = HyperLogLog::of_registers(from.take(REGISTERS)?)?;
                self.0 = Members::Estimate(Box::new(Estimate { seed, sketch }));
                context.tally.heap(0, self.memory_bytes());
            }
            _ => return None,
        }
        Some(())
    }

    fn work(&self) -> usize {
        match self.0 {
            Members::Estimate(_) => 64,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::AggregatePlan;

    fn context(set_exact_max: usize) -> Context {
        Context::new(&AggregatePlan { set_exact_max, ..AggregatePlan::default() })
    }

    #[test]
    fn members_are_compared_as_text() {
        let table: [(&[u8], u64, &str); 4] = [
            (b"7,8,7", 2, "7\n8"),
            (b",0,00", 2, "0\n00"),
            (b"\xff,\xfe,\xef\xbf\xbd", 1, "\u{fffd}"),
            (b"__proto__,__proto__,a b", 2, "__proto__\na b"),
        ];
        for (members, count, text) in table {
            let (mut set, mut context) = (Set::default(), context(4096));
            for member in members.split(|byte| *byte == b',') {
                assert_eq!(set.add(member, 1, &mut context), AddResult::Added);
            }
            assert_eq!((set.count(), set.text()), (count, text.as_bytes()));
            set.clear(&mut context.tally);
            assert_eq!((set.count(), set.text()), (0, &b""[..]));
        }
    }

    #[test]
    fn sets_over_the_limit_are_estimated_until_the_window_ends() {
        let (mut set, mut context) = (Set::default(), context(4096));
        let add = |set: &mut Set, context: &mut Context, upto: u32| {
            for member in 0..upto {
                assert_eq!(set.add(member.to_string().as_bytes(), 9, context), AddResult::Added);
            }
        };
        add(&mut set, &mut context, 4096);
        assert_eq!((set.count(), context.tally.set_estimates), (4096, 0), "at the limit");
        add(&mut set, &mut context, 4097);
        assert_eq!(context.tally.set_estimates, 1, "past it");
        assert!(set.count().abs_diff(4097) < 110, "{}", set.count());
        add(&mut set, &mut context, 100_000);
        assert!(set.count().abs_diff(100_000) < 2_500, "{}", set.count());
        assert_eq!(context.tally.heap_bytes, set.memory_bytes() as u64);
        set.clear(&mut context.tally);
        assert_eq!(set.add(b"a", 9, &mut context), AddResult::Added);
        assert_eq!((set.count(), set.text()), (1, &b"a"[..]));
        set.reset(&mut context.tally);
        assert_eq!(context.tally.heap_bytes, 0);
    }

    #[test]
    fn sets_with_long_members_are_estimated() {
        let (mut set, mut context) = (Set::default(), context(10));
        for member in 0..4u8 {
            assert_eq!(set.add(&[b'a' + member; 1000], 1, &mut context), AddResult::Added);
        }
        assert_eq!(context.tally.set_estimates, 1);
        assert_eq!(set.count(), 4);
    }
}
