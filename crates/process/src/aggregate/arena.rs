//! Storage for the key bytes of all series, in pages that never move.
//!
//! A page holds cells of one size. Once its last cell is freed, the page can serve any other size. So the arena
//! never grows beyond the live keys plus the free cells of pages that still hold a live key. A key longer than the
//! largest cell gets a page of its own.

use super::cells::Cells;

/// Addresses count in units of this many bytes.
const UNIT: usize = 8;
const PAGE_UNITS: usize = 8192;
const PAGE_SHIFT: u32 = PAGE_UNITS.trailing_zeros();
const PAGE_BYTES: usize = PAGE_UNITS * UNIT;
/// Cell sizes in units: exact up to 128 bytes, then four steps for each doubling.
const CLASSES: [u16; 40] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128,
    160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024,
];
/// Class of a page with a single key longer than any cell.
const LARGE: u8 = u8::MAX;
const NOT_OPEN: u32 = u32::MAX;
/// Maximum number of pages: the range of 32-bit addresses (32 GiB).
const PAGES_MAX: usize = 1 << (32 - PAGE_SHIFT);

#[derive(Clone, Debug)]
struct Page {
    cells: Cells,
    class: u8,
    /// Position in its class's list of open pages.
    open_at: u32,
}

/// Key bytes, found by 32-bit addresses.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    /// Empty for a page that was freed.
    bytes: Vec<Box<[u8]>>,
    pages: Vec<Page>,
    /// Per class: pages with a free cell.
    open: [Vec<u32>; CLASSES.len()],
    /// Pages that were freed.
    vacant: Vec<u32>,
    held: usize,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena {
            bytes: Vec::new(),
            pages: Vec::new(),
            open: [const { Vec::new() }; CLASSES.len()],
            vacant: Vec::new(),
            held: 0,
        }
    }

    /// Stores `name` followed directly by `tags`. None when no address is left.
    pub(super) fn store(&mut self, name: &[u8], tags: &[u8]) -> Option<u32> {
        let len = name.len() + tags.len();
        let at = match class_of(len) {
            Some(class) => self.take_cell(class)?,
            None => self.take_large(len)?,
        };
        let cell = &mut self.bytes[(at >> PAGE_SHIFT) as usize][offset(at)..][..len];
        cell[..name.len()].copy_from_slice(name);
        cell[name.len()..].copy_from_slice(tags);
        Some(at)
    }

    /// The `len` bytes at `at`.
    #[inline]
    pub(super) fn get(&self, at: u32, len: usize) -> &[u8] {
        &self.bytes[(at >> PAGE_SHIFT) as usize][offset(at)..][..len]
    }

    /// Prefetch: reads the first and last of the `len` bytes at `at`. Any address is valid.
    #[inline]
    pub(super) fn touch(&self, at: u32, len: usize) -> u8 {
        let Some(page) = self.bytes.get((at >> PAGE_SHIFT) as usize) else { return 0 };
        let byte = |at: usize| page.get(at).copied().unwrap_or(0);
        byte(offset(at)) ^ byte(offset(at) + len)
    }

    /// Frees the key at `at`.
    pub(super) fn free(&mut self, at: u32) {
        let index = at >> PAGE_SHIFT;
        let page = &mut self.pages[index as usize];
        if page.class == LARGE {
            return self.vacate(index);
        }
        let size = u32::from(CLASSES[page.class as usize]);
        page.cells.free((at & (PAGE_UNITS as u32 - 1)) / size);
        if page.cells.is_empty() {
            self.close(index);
            self.vacate(index);
        } else if page.open_at == NOT_OPEN {
            let open = &mut self.open[page.class as usize];
            page.open_at = open.len() as u32;
            open.push(index);
        }
    }

    /// Bytes of all pages without their metadata. Constant time, unlike [`Arena::memory_bytes`].
    pub(super) fn held_bytes(&self) -> usize {
        self.held
    }

    /// Memory in use, including free cells of open pages.
    pub(super) fn memory_bytes(&self) -> usize {
        self.held
            + self.pages.iter().map(|page| page.cells.memory_bytes()).sum::<usize>()
            + self.pages.capacity() * size_of::<Page>()
            + self.bytes.capacity() * size_of::<Box<[u8]>>()
            + (self.vacant.capacity() + self.open.iter().map(Vec::capacity).sum::<usize>()) * size_of::<u32>()
    }

    fn take_cell(&mut self, class: usize) -> Option<u32> {
        let size = u32::from(CLASSES[class]);
        let index = match self.open[class].last() {
            Some(index) => *index,
            None => {
                let index = self.take_page(PAGE_BYTES)?;
                let page = &mut self.pages[index as usize];
                page.cells = Cells::new(PAGE_UNITS as u32 / size);
                page.class = class as u8;
                page.open_at = 0;
                self.open[class].push(index);
                index
            }
        };
        let page = &mut self.pages[index as usize];
        let cell = page.cells.take().expect("an open page has a free cell");
        if page.cells.is_full() {
            self.close(index);
        }
        Some((index << PAGE_SHIFT) | (cell * size))
    }

    fn take_large(&mut self, len: usize) -> Option<u32> {
        let index = self.take_page(len)?;
        let page = &mut self.pages[index as usize];
        page.class = LARGE;
        page.open_at = NOT_OPEN;
        Some(index << PAGE_SHIFT)
    }

    fn take_page(&mut self, bytes: usize) -> Option<u32> {
        let index = match self.vacant.pop() {
            Some(index) => index,
            None if self.pages.len() < PAGES_MAX => {
                self.pages.push(Page { cells: Cells::default(), class: LARGE, open_at: NOT_OPEN });
                self.bytes.push(Box::default());
                self.pages.len() as u32 - 1
            }
            None => return None,
        };
        self.bytes[index as usize] = vec![0; bytes].into_boxed_slice();
        self.held += bytes;
        Some(index)
    }

    /// Removes a page from its class's list of open pages, if it is there.
    fn close(&mut self, index: u32) {
        let page = &mut self.pages[index as usize];
        if page.open_at == NOT_OPEN {
            return;
        }
        let at = std::mem::replace(&mut page.open_at, NOT_OPEN);
        let open = &mut self.open[page.class as usize];
        open.swap_remove(at as usize);
        if let Some(moved) = open.get(at as usize) {
            self.pages[*moved as usize].open_at = at;
        }
    }

    fn vacate(&mut self, index: u32) {
        let bytes = std::mem::take(&mut self.bytes[index as usize]);
        self.held -= bytes.len();
        self.pages[index as usize].cells = Cells::default();
        self.vacant.push(index);
    }
}

#[inline]
fn offset(at: u32) -> usize {
    (at as usize & (PAGE_UNITS - 1)) * UNIT
}

/// The smallest class that `len` bytes fit in.
fn class_of(len: usize) -> Option<usize> {
    let units = len.div_ceil(UNIT).max(1);
    let class = CLASSES.partition_point(|size| usize::from(*size) < units);
    (class < CLASSES.len()).then_some(class)
}

#[test]
fn keys_of_every_length_are_stored_unchanged() {
    let mut arena = Arena::new();
    let key = |len: usize| (0..len).map(|at| (at * 7 + len) as u8).collect::<Vec<u8>>();
    let lens: Vec<usize> = (0..300).chain([8191, 8192, 8193, PAGE_BYTES, PAGE_BYTES + 1, 200_000]).collect();
    let ats: Vec<u32> = lens
        .iter()
        .map(|len| {
            let key = key(*len);
            let (name, tags) = key.split_at(len / 3);
            arena.store(name, tags).expect("addresses are left")
        })
        .collect();
    for (len, at) in lens.iter().zip(&ats) {
        assert_eq!(arena.get(*at, *len), key(*len), "{len} bytes");
    }
    for at in ats {
        arena.free(at);
    }
    assert_eq!(arena.held, 0, "every page was freed");
}

#[test]
fn keys_of_changing_lengths_do_not_grow_the_arena() {
    let mut arena = Arena::new();
    let mut alive = std::collections::VecDeque::new();
    let mut most = 0;
    for round in 0..200_000usize {
        // The typical length drifts, so that every class is used.
        let len = 10 + (round / 2_000) * 3 + round % 7;
        alive.push_back(arena.store(&vec![b'x'; len], b"").expect("addresses are left"));
        if alive.len() > 2_000 {
            arena.free(alive.pop_front().expect("not empty"));
        }
        most = most.max(arena.held);
    }
    // 2,000 keys of at most 320 bytes are 640 kB; pages of two or three neighbouring classes are half full.
    assert!(most < 1_400_000, "{most} bytes");
}
