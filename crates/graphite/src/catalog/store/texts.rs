//! Texts stored once, addressed by numbers that stay.
//!
//! Texts lie one after the other in pages, each behind its number and its length. When more bytes are unused than used,
//! the texts of the emptiest page move to the end and the page is freed: one page at a time, so that no call takes long.

use super::hasher::KeyHasher;
use super::table::Table;
use super::{NONE, Pages};

/// Longest text.
pub(in crate::catalog) const TEXT_BYTES_MAX: usize = 8192;
const PAGE_SHIFT: u32 = 16;
const PAGE_BYTES: usize = 1 << PAGE_SHIFT;
const PAGES_MAX: usize = 1 << (32 - PAGE_SHIFT);
/// Number and length in front of a text.
const HEAD_BYTES: usize = 6;
/// Unused bytes that are not worth any work.
const SLACK_BYTES: usize = 4 * PAGE_BYTES;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Page and offset; [`NONE`] for a number that is not in use.
    at: u32,
    /// The owner's; the next unused number where `at` is [`NONE`].
    note: u32,
}

#[derive(Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    used: usize,
}

/// A set of texts. Each has a number and a note of its owner.
#[derive(Debug)]
pub(in crate::catalog) struct Texts {
    entries: Pages<Entry>,
    vacant: u32,
    pages: Vec<Page>,
    vacant_pages: Vec<u32>,
    /// The page that is written to.
    current: u32,
    used: usize,
    unused: usize,
    table: Table,
    hasher: KeyHasher,
}

impl Texts {
    pub(in crate::catalog) fn new(seed: u64) -> Texts {
        Texts {
            entries: Pages::default(),
            vacant: NONE,
            pages: vec![Page::default()],
            vacant_pages: Vec::new(),
            current: 0,
            used: 0,
            unused: 0,
            table: Table::new(),
            hasher: KeyHasher::new(seed),
        }
    }

    /// True while there is room for some more texts of any length.
    pub(in crate::catalog) fn has_room(&self) -> bool {
        self.pages.len() - self.vacant_pages.len() + 64 < PAGES_MAX && self.entries.len() < NONE / 4
    }

    #[inline]
    pub(in crate::catalog) fn get(&self, number: u32) -> &[u8] {
        let at = self.entries[number].at;
        let cell = &self.pages[(at >> PAGE_SHIFT) as usize].bytes[at as usize & (PAGE_BYTES - 1)..];
        let len = usize::from(u16::from_le_bytes([cell[4], cell[5]]));
        &cell[HEAD_BYTES..HEAD_BYTES + len]
    }

    pub(in crate::catalog) fn note(&self, number: u32) -> u32 {
        self.entries[number].note
    }

    pub(in crate::catalog) fn note_mut(&mut self, number: u32) -> &mut u32 {
        &mut self.entries[number].note
    }

    pub(in crate::catalog) fn find(&self, text: &[u8]) -> Option<u32> {
        self.table.find(self.hasher.hash_one(text), |number| self.get(number) == text)
    }

    /// Number of texts.
    pub(in crate::catalog) fn len(&self) -> usize {
        self.table.len()
    }

    /// Makes room in the table for so many texts.
    pub(in crate::catalog) fn reserve(&mut self, count: usize) {
        let Texts { table, entries, pages, hasher, .. } = self;
        table.reserve(count, |number| hasher.hash_one(text_at(pages, entries[number].at)));
    }

    /// The text's number; a new one gets the note 0. The caller has asked [`Texts::has_room`].
    pub(in crate::catalog) fn intern(&mut self, text: &[u8]) -> u32 {
        assert!(text.len() <= TEXT_BYTES_MAX, "texts are shorter than a page");
        let hash = self.hasher.hash_one(text);
        match self.table.find(hash, |number| self.get(number) == text) {
            Some(number) => number,
            None => self.add_hashed(hash, text),
        }
    }

    /// Adds a text that is not there, with the note 0.
    pub(in crate::catalog) fn add(&mut self, text: &[u8]) -> u32 {
        assert!(text.len() <= TEXT_BYTES_MAX, "texts are shorter than a page");
        debug_assert!(self.find(text).is_none(), "the text is new");
        self.add_hashed(self.hasher.hash_one(text), text)
    }

    fn add_hashed(&mut self, hash: u64, text: &[u8]) -> u32 {
        let number = match self.vacant {
            NONE => self.entries.push(Entry { at: 0, note: 0 }),
            number => {
                self.vacant = self.entries[number].note;
                number
            }
        };
        self.entries[number] = Entry { at: self.store(number, text), note: 0 };
        let Texts { table, entries, pages, hasher, .. } = self;
        table.insert(hash, number, |number| hasher.hash_one(text_at(pages, entries[number].at)));
        number
    }

    /// Forgets a text. Its number is used again.
    pub(in crate::catalog) fn free(&mut self, number: u32) {
        let at = self.entries[number].at;
        let hash = self.hasher.hash_one(text_at(&self.pages, at));
        let Texts { table, entries, pages, hasher, .. } = self;
        table.remove(hash, number, |number| hasher.hash_one(text_at(pages, entries[number].at)));
        self.entries[number] = Entry { at: NONE, note: self.vacant };
        self.vacant = number;
        let (index, offset) = (at >> PAGE_SHIFT, at as usize & (PAGE_BYTES - 1));
        let page = &mut self.pages[index as usize];
        page.bytes[offset..offset + 4].copy_from_slice(&NONE.to_le_bytes());
        let len =
            HEAD_BYTES + usize::from(u16::from_le_bytes([page.bytes[offset + 4], page.bytes[offset + 5]]));
        page.used -= len;
        self.used -= len;
        self.unused += len;
        if page.used == 0 {
            self.empty(index);
        } else if self.unused > self.used + SLACK_BYTES {
            self.move_one_page();
        }
    }

    pub(in crate::catalog) fn memory_bytes(&self) -> usize {
        let held = self.pages.len() - self.vacant_pages.len();
        self.entries.memory_bytes()
            + self.table.memory_bytes()
            + held * PAGE_BYTES
            + self.pages.capacity() * size_of::<Page>()
            + self.vacant_pages.capacity() * size_of::<u32>()
    }

    /// Writes a text to the end of the current page, and returns its place.
    fn store(&mut self, number: u32, text: &[u8]) -> u32 {
        let len = HEAD_BYTES + text.len();
        if self.pages[self.current as usize].bytes.len() + len > PAGE_BYTES {
            self.current = self.vacant_pages.pop().unwrap_or_else(|| {
                assert!(self.pages.len() < PAGES_MAX, "the caller asked for room");
                self.pages.push(Page::default());
                self.pages.len() as u32 - 1
            });
        }
        let page = &mut self.pages[self.current as usize];
        if page.bytes.capacity() == 0 {
            page.bytes.reserve_exact(PAGE_BYTES);
        }
        let at = self.current << PAGE_SHIFT | page.bytes.len() as u32;
        page.bytes.extend_from_slice(&number.to_le_bytes());
        page.bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        page.bytes.extend_from_slice(text);
        page.used += len;
        self.used += len;
        at
    }

    /// Frees a page without texts; the current one is only cleared.
    fn empty(&mut self, index: u32) {
        let page = &mut self.pages[index as usize];
        self.unused -= page.bytes.len();
        if index == self.current {
            page.bytes.clear();
        } else {
            page.bytes = Vec::new();
            self.vacant_pages.push(index);
        }
    }

    /// Moves the texts of the emptiest page to the end.
    fn move_one_page(&mut self) {
        let full = |at: &u32| *at != self.current && !self.pages[*at as usize].bytes.is_empty();
        let all = (0..self.pages.len() as u32).filter(full);
        let Some(index) = all.min_by_key(|at| self.pages[*at as usize].used) else { return };
        let page = std::mem::take(&mut self.pages[index as usize]);
        let mut rest = page.bytes.as_slice();
        while let Some((head, after)) = rest.split_at_checked(HEAD_BYTES) {
            let number = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let (text, after) = after.split_at(usize::from(u16::from_le_bytes([head[4], head[5]])));
            if number != NONE {
                self.entries[number].at = self.store(number, text);
            }
            rest = after;
        }
        self.used -= page.used;
        self.unused -= page.bytes.len() - page.used;
        self.vacant_pages.push(index);
    }
}

#[inline]
fn text_at(pages: &[Page], at: u32) -> &[u8] {
    let cell = &pages[(at >> PAGE_SHIFT) as usize].bytes[at as usize & (PAGE_BYTES - 1)..];
    let len = usize::from(u16::from_le_bytes([cell[4], cell[5]]));
    &cell[HEAD_BYTES..HEAD_BYTES + len]
}

#[test]
fn texts_are_found_until_they_are_freed() {
    let mut texts = Texts::new(1);
    let text = |at: usize| vec![b'a' + (at % 7) as u8; at];
    let numbers: Vec<u32> = (0..1000).map(|at| texts.intern(&text(at))).collect();
    assert_eq!(texts.intern(&text(500)), numbers[500]);
    texts.free(numbers[500]);
    assert_eq!(texts.find(&text(500)), None);
    for at in (0..1000).filter(|at| *at != 500) {
        assert_eq!((texts.find(&text(at)), texts.get(numbers[at])), (Some(numbers[at]), &*text(at)));
    }
    assert_eq!(texts.intern(b"new"), numbers[500], "the number is used again");
    let longest = vec![b'x'; TEXT_BYTES_MAX];
    let number = texts.intern(&longest);
    assert_eq!(texts.get(number), longest);
}

#[test]
fn texts_that_come_and_go_do_not_grow_the_memory() {
    let mut texts = Texts::new(1);
    let mut alive = std::collections::VecDeque::new();
    let mut moved = false;
    for round in 0..60_000usize {
        let text = format!("{round}{}", "x".repeat(round / 600 % 100));
        alive.push_back((texts.intern(text.as_bytes()), text));
        if alive.len() > 5_000 {
            // One of ten stays longer, so that pages are full of holes.
            let oldest = alive.pop_front().expect("not empty");
            if round % 10 == 0 && round % 2_000 > 100 {
                alive.push_back(oldest);
            } else {
                texts.free(oldest.0);
            }
        }
        assert!(texts.unused <= texts.used + SLACK_BYTES + PAGE_BYTES, "{} {}", texts.used, texts.unused);
        moved |= texts.unused > SLACK_BYTES;
    }
    assert!(moved, "there were holes");
    for (number, text) in &alive {
        assert_eq!(texts.get(*number), text.as_bytes());
        assert_eq!(texts.find(text.as_bytes()), Some(*number));
    }
    for (number, _) in alive {
        texts.free(number);
    }
    assert_eq!((texts.used, texts.unused), (0, 0));
}
