//! Table of names with numbers: a hash table, and the names themselves in pieces of memory that never move.
//!
//! A lookup reads two places in memory, one in the table and one in a piece, so that with millions of names it
//! costs two cache misses, not four. [`Names::fetch`] overlaps the misses of several names. Not here: the meaning
//! of the numbers, and eviction (`cache`).
//! Invariants: names are compared byte for byte, never by hash alone; a full piece is never copied; memory of a
//! piece is touched only as it is used.

use std::hint::black_box;

/// Size of a piece. A longer name has a piece of its own.
const PIECE_BYTES: usize = 1 << PIECE_BITS;
const PIECE_BITS: u32 = 20;

/// Minimum number of slots, and the maximum load in eighths: most names are then in the first slot that is probed.
const SLOTS_MIN: usize = 16;
const USED_OF_EIGHT: usize = 5;

/// Names prefetched at once: processors do not overlap more cache misses than that.
pub(super) const FETCH_MAX: usize = 16;

/// Bytes before a name in its piece: number, kind and length.
const HEAD_BYTES: usize = 12;

/// Places without a name: a free slot, and a deleted one.
const FREE: u32 = u32::MAX;
const TAKEN: u32 = u32::MAX - 1;

/// Names with their numbers. The same name may exist once for each kind.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// A power of two, or empty. Probing starts at the slot given by the upper bits of the tag.
    slots: Vec<Slot>,
    /// Slots that are not free, including deleted ones.
    used: usize,
    /// Number of names.
    known: usize,
    pieces: Vec<Vec<u8>>,
    pieces_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the hash.
    tag: u32,
    /// Number of the piece above [`PIECE_BITS`], offset in it below.
    place: u32,
}

impl Names {
    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.known
    }

    /// Memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.pieces_bytes
    }

    /// Memory after adding a name of this length.
    pub(super) fn memory_bytes_with(&self, name_bytes: usize) -> usize {
        let slots = if self.is_full() { self.slots_grown() } else { self.slots.capacity() };
        let (_, piece) = self.piece_for(HEAD_BYTES + name_bytes);
        slots * size_of::<Slot>() + self.pieces_bytes + piece
    }

    /// Frees a piece. Only for a table that is no longer searched.
    pub(super) fn free_piece(&mut self) {
        if let Some(piece) = self.pieces.pop() {
            self.pieces_bytes = self.pieces_bytes.saturating_sub(piece.capacity());
        }
    }

    /// True when it has no piece.
    pub(super) fn is_free(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The number of a name.
    #[inline]
    pub(super) fn find(&self, hash: u64, kind: u32, name: &[u8]) -> Option<u32> {
        self.slot_of(hash, kind, name).map(|(_, number)| number)
    }

    /// Removes a name and returns its number. Its bytes stay.
    pub(super) fn remove(&mut self, hash: u64, kind: u32, name: &[u8]) -> Option<u32> {
        let (at, number) = self.slot_of(hash, kind, name)?;
        self.slots[at].place = TAKEN;
        self.known -= 1;
        Some(number)
    }

    /// Adds a new name.
    pub(super) fn insert(&mut self, hash: u64, kind: u32, name: &[u8], number: u32) {
        if self.is_full() {
            self.grow();
        }
        let place = self.append(kind, name, number);
        put(&mut self.slots, Slot { tag: tag(hash), place });
        self.used += 1;
        self.known += 1;
    }

    /// Prefetches the memory that `find` will read for names with these hashes, at most [`FETCH_MAX`] of them.
    #[inline]
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        if self.slots.is_empty() {
            return;
        }
        // Two rounds, in each of which the reads are independent.
        let mut places = [FREE; FETCH_MAX];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = self.slots[first(tag(hash), self.slots.len())].place;
        }
        for place in places {
            if place < TAKEN {
                let (piece, at) = split_place(place);
                black_box(self.pieces[piece][at]);
            }
        }
    }

    /// The slot of a name, and its number.
    #[inline]
    fn slot_of(&self, hash: u64, kind: u32, name: &[u8]) -> Option<(usize, u32)> {
        let tag = tag(hash);
        let mut at = first(tag, self.slots.len());
        loop {
            // No slot exists before the first name; later one of them is always free.
            let slot = self.slots.get(at)?;
            if slot.tag == tag
                && slot.place < TAKEN
                && let Some(number) = self.number_at(slot.place, kind, name)
            {
                return Some((at, number));
            }
            if slot.place == FREE {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The number of the name at a place, if it is this name.
    #[inline]
    fn number_at(&self, place: u32, kind: u32, name: &[u8]) -> Option<u32> {
        let (piece, at) = split_place(place);
        let (head, known) = self.pieces[piece][at..].split_first_chunk::<HEAD_BYTES>()?;
        let (number, kind_and_length) = head.split_first_chunk::<4>()?;
        let is_it = *kind_and_length == end_of_head(kind, name) && known.get(..name.len())? == name;
        is_it.then(|| u32::from_ne_bytes(*number))
    }

    fn append(&mut self, kind: u32, name: &[u8], number: u32) -> u32 {
        let (fresh, more) = self.piece_for(HEAD_BYTES + name.len());
        if fresh {
            self.pieces.push(Vec::new());
        }
        let number_of_piece = self.pieces.len() - 1;
        let piece = &mut self.pieces[number_of_piece];
        piece.reserve_exact(piece.capacity() + more - piece.len());
        let place = (number_of_piece << PIECE_BITS) | piece.len();
        piece.extend_from_slice(&number.to_ne_bytes());
        piece.extend_from_slice(&end_of_head(kind, name));
        piece.extend_from_slice(name);
        self.pieces_bytes += more;
        // The caller's limit on bytes keeps pieces below 4 GiB, and no name begins in the last bytes of one.
        u32::try_from(place).expect("pieces are within 4 GiB")
    }

    /// Whether this many bytes need another piece, and the capacity of that piece or of the grown last one.
    fn piece_for(&self, bytes: usize) -> (bool, usize) {
        let Some(last) = self.pieces.last() else { return (true, bytes.max(64)) };
        if last.len() + bytes > PIECE_BYTES {
            return (true, bytes.max(PIECE_BYTES));
        }
        let room = last.capacity() - last.len();
        if bytes <= room {
            return (false, 0);
        }
        // The first piece grows by doubling, so that few names need little memory.
        let grown = (last.capacity() * 2).clamp(last.len() + bytes, PIECE_BYTES);
        (false, grown - last.capacity())
    }

    fn is_full(&self) -> bool {
        (self.used + 1) * 8 > self.slots.len() * USED_OF_EIGHT
    }

    fn slots_grown(&self) -> usize {
        (self.slots.len() * 2).max(SLOTS_MIN)
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Slot { tag: 0, place: FREE }; self.slots_grown()];
        self.used = 0;
        for slot in &self.slots {
            if slot.place < TAKEN {
                put(&mut slots, *slot);
                self.used += 1;
            }
        }
        self.slots = slots;
    }
}

/// Inserts a slot where its tag belongs. One of `slots` must be free.
fn put(slots: &mut [Slot], slot: Slot) {
    let mut at = first(slot.tag, slots.len());
    while slots[at].place != FREE {
        at = (at + 1) & (slots.len() - 1);
    }
    slots[at] = slot;
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The first slot to probe for a tag. It keeps the order of tags, so that growing reads and writes sequentially.
#[inline]
fn first(tag: u32, slots: usize) -> usize {
    ((u64::from(tag) * slots as u64) >> 32) as usize
}

/// Kind and length of a name, as stored in its head.
#[inline]
fn end_of_head(kind: u32, name: &[u8]) -> [u8; 8] {
    (u64::from(kind) << 32 | name.len() as u64).to_ne_bytes()
}

#[inline]
fn split_place(place: u32) -> (usize, usize) {
    ((place >> PIECE_BITS) as usize, place as usize & (PIECE_BYTES - 1))
}

const _: () = assert!(size_of::<Slot>() == 8 && SLOTS_MIN.is_power_of_two() && USED_OF_EIGHT < 8);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32) -> Vec<u8> {
        format!("servers.web{number}.cpu").into_bytes()
    }

    /// Spread over all bits, and equal for eight names each.
    fn hash(number: u32) -> u64 {
        u64::from(number / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn each_name_of_each_kind_keeps_its_number_until_removed() {
        const COUNT: u32 = 60_000;
        let mut names = Names::default();
        assert_eq!(names.find(hash(1), 0, &name(1)), None);
        for number in 0..COUNT {
            for kind in 0..2 {
                let expected = names.memory_bytes_with(name(number).len());
                names.insert(hash(number), kind, &name(number), number * 2 + kind);
                assert_eq!(names.memory_bytes(), expected, "what it needs is known before");
            }
        }
        assert!(names.pieces.len() > 2 && names.len() == 2 * COUNT as usize);
        for number in 0..COUNT {
            assert_eq!(names.find(hash(number), 1, &name(number)), Some(number * 2 + 1));
            assert_eq!(names.find(hash(number), 2, &name(number)), None);
            if number % 3 == 0 {
                assert_eq!(names.remove(hash(number), 1, &name(number)), Some(number * 2 + 1));
                assert_eq!(names.remove(hash(number), 1, &name(number)), None);
            }
        }
        names.fetch((0..100).map(hash));
        assert_eq!(names.find(hash(3), 1, &name(3)), None);
        assert_eq!(names.find(hash(3), 0, &name(3)), Some(6));
        assert_eq!(names.find(hash(4), 1, &name(4)), Some(9));
        assert_eq!(names.len() as u32, 2 * COUNT - COUNT / 3);
    }

    #[test]
    fn a_name_that_fills_a_piece_needs_no_other() {
        let mut names = Names::default();
        let long = vec![b'x'; PIECE_BYTES - HEAD_BYTES];
        names.insert(1, 0, &long, 1);
        assert_eq!((names.pieces.len(), names.pieces_bytes), (1, PIECE_BYTES));
        names.insert(2, 0, b"", 2);
        let longer = vec![b'x'; PIECE_BYTES * 2];
        names.insert(3, 0, &longer, 3);
        names.insert(4, 0, b"a", 4);
        assert_eq!(names.pieces.len(), 4);
        let found =
            [(1, &long[..]), (2, b""), (3, &longer), (4, b"a")].map(|(hash, name)| names.find(hash, 0, name));
        assert_eq!(found, [Some(1), Some(2), Some(3), Some(4)]);
    }
}
