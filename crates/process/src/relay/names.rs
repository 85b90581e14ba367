//! Names that are known, each with a number: a table of places, and the names themselves in pieces that never move.
//!
//! A look-up reads two places in memory, one of the table and one of a piece, so that millions of names cost two waits
//! for memory each and not four; [`Names::fetch`] has several names wait at once. Not here: what the numbers mean, and when
//! to forget (`cache`).
//! Invariants: names are compared byte for byte, never by hash alone; a piece is never copied once it is full, and only
//! what is used of it has been touched.

use std::hint::black_box;

/// Bytes of a piece. A name that is longer has one of its own.
const PIECE_BYTES: usize = 1 << PIECE_BITS;
const PIECE_BITS: u32 = 20;

/// Fewest slots, and how many of eight may be in use: most names then lie in the first slot that they may be in.
const SLOTS_MIN: usize = 16;
const USED_OF_EIGHT: usize = 5;

/// Names that are fetched at once: more than that processors do not wait for at the same time.
pub(super) const FETCH_MAX: usize = 16;

/// What stands before a name in its piece: number, kind and length.
const HEAD_BYTES: usize = 12;

/// Places of no name: a slot that is free, and one that was in use.
const FREE: u32 = u32::MAX;
const TAKEN: u32 = u32::MAX - 1;

/// Names with their numbers. A name is known once for each kind.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As many as a power of two, or none. A name lies in the slot that its tag's upper bits tell, or behind it.
    slots: Vec<Slot>,
    /// Slots that are not free.
    used: usize,
    /// Names that are known.
    known: usize,
    pieces: Vec<Vec<u8>>,
    pieces_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the hash.
    tag: u32,
    /// The piece above [`PIECE_BITS`], where in it below.
    place: u32,
}

impl Names {
    /// Names that are known.
    pub(super) fn len(&self) -> usize {
        self.known
    }

    /// Memory that is held for them.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.pieces_bytes
    }

    /// The same with a name of so many bytes more.
    pub(super) fn memory_bytes_with(&self, name_bytes: usize) -> usize {
        let slots = if self.is_full() { self.slots_grown() } else { self.slots.capacity() };
        let (_, piece) = self.piece_for(HEAD_BYTES + name_bytes);
        slots * size_of::<Slot>() + self.pieces_bytes + piece
    }

    /// Gives back a piece: only for names that nobody looks for any more.
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

    /// The number of a name, which is forgotten. Its bytes stay.
    pub(super) fn take(&mut self, hash: u64, kind: u32, name: &[u8]) -> Option<u32> {
        let (at, number) = self.slot_of(hash, kind, name)?;
        self.slots[at].place = TAKEN;
        self.known -= 1;
        Some(number)
    }

    /// Adds a name that is not known yet.
    pub(super) fn insert(&mut self, hash: u64, kind: u32, name: &[u8], number: u32) {
        if self.is_full() {
            self.grow();
        }
        let place = self.append(kind, name, number);
        put(&mut self.slots, Slot { tag: tag(hash), place });
        self.used += 1;
        self.known += 1;
    }

    /// Has the memory that `find` will read for names with these hashes brought near, of at most [`FETCH_MAX`] of them.
    #[inline]
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        if self.slots.is_empty() {
            return;
        }
        // Two rounds: the reads of each do not wait for one another.
        let mut places = [FREE; FETCH_MAX];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = self.slots[first(tag(hash), self.slots.len())].place;
        }
        for place in places {
            if place < TAKEN {
                let (piece, at) = apart(place);
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
            // There are none before the first name; later one of them is free.
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

    /// The number of the name at a place, if it is this one.
    #[inline]
    fn number_at(&self, place: u32, kind: u32, name: &[u8]) -> Option<u32> {
        let (piece, at) = apart(place);
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
        // The caller's bound on bytes keeps pieces below 4 GiB, and no name begins in the last bytes of one.
        u32::try_from(place).expect("pieces are within 4 GiB")
    }

    /// Whether so many bytes need another piece, and how many bytes that one has, or the last one is to have more.
    fn piece_for(&self, bytes: usize) -> (bool, usize) {
        let Some(last) = self.pieces.last() else { return (true, bytes.max(64)) };
        if last.len() + bytes > PIECE_BYTES {
            return (true, bytes.max(PIECE_BYTES));
        }
        let room = last.capacity() - last.len();
        if bytes <= room {
            return (false, 0);
        }
        // The first piece doubles: few names need little.
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

/// Puts a slot where its tag belongs. One of `slots` is free.
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

/// The first of so many slots that a tag may be in. Tags keep their order, so that growing reads and writes forwards.
#[inline]
fn first(tag: u32, slots: usize) -> usize {
    ((u64::from(tag) * slots as u64) >> 32) as usize
}

/// Kind and length of a name, as they stand in its head.
#[inline]
fn end_of_head(kind: u32, name: &[u8]) -> [u8; 8] {
    (u64::from(kind) << 32 | name.len() as u64).to_ne_bytes()
}

#[inline]
fn apart(place: u32) -> (usize, usize) {
    ((place >> PIECE_BITS) as usize, place as usize & (PIECE_BYTES - 1))
}

const _: () = assert!(size_of::<Slot>() == 8 && SLOTS_MIN.is_power_of_two() && USED_OF_EIGHT < 8);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32) -> Vec<u8> {
        format!("servers.web{number}.cpu").into_bytes()
    }

    /// Spread over all bits, and the same for eight names each.
    fn hash(number: u32) -> u64 {
        u64::from(number / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn each_name_of_each_kind_has_its_number_until_it_is_taken() {
        const COUNT: u32 = 60_000;
        let mut names = Names::default();
        assert_eq!(names.find(hash(1), 0, &name(1)), None);
        for number in 0..COUNT {
            for kind in 0..2 {
                let told = names.memory_bytes_with(name(number).len());
                names.insert(hash(number), kind, &name(number), number * 2 + kind);
                assert_eq!(names.memory_bytes(), told, "what it needs is known before");
            }
        }
        assert!(names.pieces.len() > 2 && names.len() == 2 * COUNT as usize);
        for number in 0..COUNT {
            assert_eq!(names.find(hash(number), 1, &name(number)), Some(number * 2 + 1));
            assert_eq!(names.find(hash(number), 2, &name(number)), None);
            if number % 3 == 0 {
                assert_eq!(names.take(hash(number), 1, &name(number)), Some(number * 2 + 1));
                assert_eq!(names.take(hash(number), 1, &name(number)), None);
            }
        }
        names.fetch((0..100).map(hash));
        assert_eq!(names.find(hash(3), 1, &name(3)), None);
        assert_eq!(names.find(hash(3), 0, &name(3)), Some(6));
        assert_eq!(names.find(hash(4), 1, &name(4)), Some(9));
        assert_eq!(names.len() as u32, 2 * COUNT - COUNT / 3);
    }

    #[test]
    fn names_fill_a_piece_and_no_more() {
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
