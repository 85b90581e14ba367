//! A set of ids in little memory, listed in order from any id: the series with one value of a tag.
//!
//! Up to [`FEW_MAX`] ids are a sorted array. More are divided into blocks of 65,536 ids, each a sorted array of 16-bit
//! numbers or, from [`SPARSE_MAX`], one bit for each id. So an insertion moves at most 8 KiB.

/// Longest plain array.
const FEW_MAX: usize = 32;
/// Longest array of a block; bits take no more than it.
const SPARSE_MAX: usize = 4096;
const WORDS: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::catalog) enum Ids {
    #[default]
    None,
    One(u32),
    Few(Vec<u32>),
    Many(Box<Many>),
}

#[derive(Debug)]
pub(in crate::catalog) struct Many {
    blocks: Vec<Block>,
    len: u32,
    /// Memory of the members of all blocks.
    member_bytes: usize,
}

#[derive(Debug)]
struct Block {
    /// The upper half of its ids.
    upper: u16,
    members: Members,
}

#[derive(Debug)]
enum Members {
    Sparse(Vec<u16>),
    Bits { words: Box<[u64; WORDS]>, count: u32 },
}

impl Ids {
    pub(in crate::catalog) fn len(&self) -> u32 {
        match self {
            Ids::None => 0,
            Ids::One(_) => 1,
            Ids::Few(ids) => ids.len() as u32,
            Ids::Many(many) => many.len,
        }
    }

    pub(in crate::catalog) fn insert(&mut self, id: u32) {
        match self {
            Ids::None => *self = Ids::One(id),
            Ids::One(other) if *other == id => {}
            Ids::One(other) => *self = Ids::Few(vec![id.min(*other), id.max(*other)]),
            Ids::Few(ids) => {
                let Err(at) = ids.binary_search(&id) else { return };
                if ids.len() < FEW_MAX {
                    if ids.capacity() == ids.len() {
                        ids.reserve_exact(ids.len().max(4) / 2);
                    }
                    return ids.insert(at, id);
                }
                let mut many = Many { blocks: Vec::new(), len: 0, member_bytes: 0 };
                ids.iter().for_each(|id| many.insert(*id));
                many.insert(id);
                *self = Ids::Many(Box::new(many));
            }
            Ids::Many(many) => many.insert(id),
        }
    }

    pub(in crate::catalog) fn remove(&mut self, id: u32) {
        match self {
            Ids::None => {}
            Ids::One(other) if *other == id => *self = Ids::None,
            Ids::One(_) => {}
            Ids::Few(ids) => {
                if let Ok(at) = ids.binary_search(&id) {
                    let _removed = ids.remove(at);
                }
                if let [only] = ids[..] {
                    *self = Ids::One(only);
                }
            }
            Ids::Many(many) => {
                many.remove(id);
                if many.len as usize <= FEW_MAX / 2 {
                    let mut few = Vec::with_capacity(FEW_MAX);
                    let mut from = Some(0);
                    while let Some(id) = from.and_then(|from| many.next(from)) {
                        few.push(id);
                        from = id.checked_add(1);
                    }
                    *self = Ids::Few(few);
                }
            }
        }
    }

    /// The first id that is at least `from`.
    pub(in crate::catalog) fn next(&self, from: u32) -> Option<u32> {
        match self {
            Ids::None => None,
            Ids::One(id) => (*id >= from).then_some(*id),
            Ids::Few(ids) => ids.get(ids.partition_point(|id| *id < from)).copied(),
            Ids::Many(many) => many.next(from),
        }
    }

    /// Memory in addition to the value itself, in constant time.
    pub(in crate::catalog) fn memory_bytes(&self) -> usize {
        match self {
            Ids::None | Ids::One(_) => 0,
            Ids::Few(ids) => ids.capacity() * size_of::<u32>(),
            Ids::Many(many) => {
                size_of::<Many>() + many.blocks.capacity() * size_of::<Block>() + many.member_bytes
            }
        }
    }
}

impl Many {
    fn insert(&mut self, id: u32) {
        let (upper, lower) = ((id >> 16) as u16, id as u16);
        // Ids mostly come in order.
        let found = match self.blocks.last() {
            Some(last) if last.upper == upper => Ok(self.blocks.len() - 1),
            _ => self.blocks.binary_search_by_key(&upper, |block| block.upper),
        };
        let block = match found {
            Ok(at) => &mut self.blocks[at],
            Err(at) => {
                self.blocks.reserve_exact(1);
                self.blocks.insert(at, Block { upper, members: Members::Sparse(Vec::new()) });
                &mut self.blocks[at]
            }
        };
        let before = block.members.memory_bytes();
        self.len += u32::from(block.members.insert(lower));
        self.member_bytes = self.member_bytes - before + block.members.memory_bytes();
    }

    fn remove(&mut self, id: u32) {
        let (upper, lower) = ((id >> 16) as u16, id as u16);
        let Ok(at) = self.blocks.binary_search_by_key(&upper, |block| block.upper) else { return };
        let members = &mut self.blocks[at].members;
        let before = members.memory_bytes();
        self.len -= u32::from(members.remove(lower));
        self.member_bytes = self.member_bytes - before + members.memory_bytes();
        if members.next(0).is_none() {
            let empty = self.blocks.remove(at);
            self.member_bytes -= empty.members.memory_bytes();
        }
    }

    fn next(&self, from: u32) -> Option<u32> {
        let (upper, lower) = ((from >> 16) as u16, from as u16);
        let first = self.blocks.partition_point(|block| block.upper < upper);
        self.blocks[first..].iter().find_map(|block| {
            let lower = if block.upper == upper { lower } else { 0 };
            block.members.next(lower).map(|lower| u32::from(block.upper) << 16 | u32::from(lower))
        })
    }
}

impl Members {
    fn memory_bytes(&self) -> usize {
        match self {
            Members::Sparse(numbers) => numbers.capacity() * size_of::<u16>(),
            Members::Bits { .. } => WORDS * size_of::<u64>(),
        }
    }

    /// True when the number is new.
    fn insert(&mut self, number: u16) -> bool {
        match self {
            Members::Sparse(numbers) => {
                let found = match numbers.last() {
                    Some(last) if *last < number => Err(numbers.len()),
                    _ => numbers.binary_search(&number),
                };
                let Err(at) = found else { return false };
                if numbers.len() < SPARSE_MAX {
                    if numbers.capacity() == numbers.len() {
                        numbers.reserve_exact((numbers.len() / 2).max(8));
                    }
                    numbers.insert(at, number);
                    return true;
                }
                let mut words = Box::new([0; WORDS]);
                for number in numbers.iter().chain([&number]) {
                    words[usize::from(*number >> 6)] |= 1 << (number & 63);
                }
                *self = Members::Bits { words, count: SPARSE_MAX as u32 + 1 };
                true
            }
            Members::Bits { words, count } => {
                let word = &mut words[usize::from(number >> 6)];
                let is_new = *word >> (number & 63) & 1 == 0;
                *word |= 1 << (number & 63);
                *count += u32::from(is_new);
                is_new
            }
        }
    }

    /// True when the number was there.
    fn remove(&mut self, number: u16) -> bool {
        match self {
            Members::Sparse(numbers) => {
                let Ok(at) = numbers.binary_search(&number) else { return false };
                let _removed = numbers.remove(at);
                true
            }
            Members::Bits { words, count } => {
                let word = &mut words[usize::from(number >> 6)];
                let was_there = *word >> (number & 63) & 1 == 1;
                *word &= !(1 << (number & 63));
                *count -= u32::from(was_there);
                if *count as usize <= SPARSE_MAX / 2 {
                    let mut numbers = Vec::with_capacity(SPARSE_MAX);
                    let is_in = |number: &u16| words[usize::from(number >> 6)] >> (number & 63) & 1 == 1;
                    numbers.extend((0..=u16::MAX).filter(is_in));
                    *self = Members::Sparse(numbers);
                }
                was_there
            }
        }
    }

    fn next(&self, from: u16) -> Option<u16> {
        match self {
            Members::Sparse(numbers) => {
                numbers.get(numbers.partition_point(|number| *number < from)).copied()
            }
            Members::Bits { words, .. } => {
                let first = usize::from(from >> 6);
                let begin = words[first] & (!0 << (from & 63));
                let rest = (first + 1..WORDS).map(|at| (at, words[at]));
                let (at, word) = [(first, begin)].into_iter().chain(rest).find(|(_, word)| *word != 0)?;
                Some((at as u16) << 6 | word.trailing_zeros() as u16)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Memory of the blocks' members, counted one by one.
    fn member_bytes(ids: &Ids) -> Option<(usize, usize)> {
        let Ids::Many(many) = ids else { return None };
        Some((many.member_bytes, many.blocks.iter().map(|block| block.members.memory_bytes()).sum()))
    }

    fn all(ids: &Ids) -> Vec<u32> {
        let mut from = Some(0);
        std::iter::from_fn(|| {
            let id = ids.next(from?)?;
            from = id.checked_add(1);
            Some(id)
        })
        .collect()
    }

    #[test]
    fn a_set_changes_its_form_at_the_limits() {
        let mut ids = Ids::default();
        for id in 0..FEW_MAX as u32 {
            ids.insert(id * 2);
        }
        assert!(matches!(ids, Ids::Few(_)));
        ids.insert(1);
        assert!(matches!(ids, Ids::Many(_)));
        for id in 0..65_536 {
            ids.insert(id);
        }
        assert!(ids.len() == 65_536 && ids.memory_bytes() < 8192 + 100, "{}", ids.memory_bytes());
        ids.insert(u32::MAX);
        assert_eq!((ids.next(65_536), ids.next(70_000), ids.len()), (Some(u32::MAX), Some(u32::MAX), 65_537));
        for id in 1..65_536 {
            ids.remove(id);
        }
        assert_eq!(all(&ids), [0, u32::MAX]);
        assert!(matches!(ids, Ids::Few(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn a_set_is_a_set(
            steps in prop::collection::vec((any::<bool>(), prop_oneof![0u32..100, 65_500u32..80_000, any::<u32>()]), 0..400),
            run in 0u32..12_000,
        ) {
            let (mut ids, mut model) = (Ids::default(), BTreeSet::new());
            for id in 60_000..60_000 + run {
                ids.insert(id);
                model.insert(id);
            }
            for (comes, id) in steps {
                if comes {
                    ids.insert(id);
                    model.insert(id);
                } else {
                    ids.remove(id);
                    model.remove(&id);
                }
                prop_assert_eq!(ids.next(id), model.range(id..).next().copied());
                prop_assert!(member_bytes(&ids).is_none_or(|(kept, counted)| kept == counted));
            }
            for id in 60_000..60_000 + run {
                if id % 5 > 0 {
                    ids.remove(id);
                    model.remove(&id);
                }
            }
            prop_assert_eq!(ids.len() as usize, model.len());
            prop_assert!(all(&ids).into_iter().eq(model));
        }
    }
}
