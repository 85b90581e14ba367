//! Slab of values of one type with stable ids. Values never move.
//!
//! Pages of 2048 cells are allocated and freed one by one. Growing never copies, and an empty page is freed.

use super::cells::Cells;

const SHIFT: u32 = 11;
/// Values on one page.
pub(super) const PAGE_CELLS: u32 = 1 << SHIFT;

/// Values whose ids stay valid until [`Slab::free`].
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    /// Empty for a page that was freed.
    pages: Vec<Box<[T]>>,
    cells: Vec<Cells>,
    /// Pages with a free cell; the last one is filled first.
    open: Vec<u32>,
    len: u32,
}

impl<T: Default> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { pages: Vec::new(), cells: Vec::new(), open: Vec::new(), len: 0 }
    }

    /// Number of values.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Allocates an id with a default value. None when `ids_max` ids are in use.
    pub(super) fn take(&mut self, ids_max: u32) -> Option<u32> {
        if self.len >= ids_max {
            return None;
        }
        let page = match self.open.last() {
            Some(page) => *page,
            None => {
                let page = self.pages.len() as u32;
                self.pages.push(Box::default());
                self.cells.push(Cells::new(PAGE_CELLS));
                self.open.push(page);
                page
            }
        };
        let cells = &mut self.cells[page as usize];
        if self.pages[page as usize].is_empty() {
            self.pages[page as usize] = (0..PAGE_CELLS).map(|_| T::default()).collect();
        }
        let cell = cells.take().expect("an open page has a free cell");
        if cells.is_full() {
            self.open.pop();
        }
        self.len += 1;
        Some(page << SHIFT | cell)
    }

    /// Frees the id; its value is dropped.
    pub(super) fn free(&mut self, id: u32) {
        let page = (id >> SHIFT) as usize;
        let cells = &mut self.cells[page];
        if cells.is_full() {
            self.open.push(page as u32);
        }
        cells.free(id & (PAGE_CELLS - 1));
        self.len -= 1;
        if cells.is_empty() {
            self.pages[page] = Box::default();
        } else {
            *self.get_mut(id) = T::default();
        }
    }

    pub(super) fn is_taken(&self, id: u32) -> bool {
        self.cells.get((id >> SHIFT) as usize).is_some_and(|cells| cells.is_taken(id & (PAGE_CELLS - 1)))
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &T {
        &self.pages[(id >> SHIFT) as usize][(id & (PAGE_CELLS - 1)) as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.pages[(id >> SHIFT) as usize][(id & (PAGE_CELLS - 1)) as usize]
    }

    /// The first id in use at or after `from`.
    pub(super) fn next_taken(&self, from: u32) -> Option<u32> {
        let first = from >> SHIFT;
        for (page, cells) in self.cells.iter().enumerate().skip(first as usize) {
            let page = page as u32;
            let start = if page == first { from & (PAGE_CELLS - 1) } else { 0 };
            if let Some(cell) = cells.next_taken(start) {
                return Some(page << SHIFT | cell);
            }
        }
        None
    }

    /// Memory of the slab itself, without the heap memory of its values.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.iter().map(|page| size_of_val(&**page)).sum::<usize>()
            + self.cells.iter().map(Cells::memory_bytes).sum::<usize>()
            + self.pages.capacity() * size_of::<Box<[T]>>()
            + self.cells.capacity() * size_of::<Cells>()
            + self.open.capacity() * size_of::<u32>()
    }
}

#[test]
fn ids_are_stable_and_empty_pages_are_freed() {
    let mut slab = Slab::<u64>::new();
    let ids: Vec<u32> = (0..3 * PAGE_CELLS).map(|_| slab.take(u32::MAX).expect("no limit")).collect();
    for id in &ids {
        *slab.get_mut(*id) = u64::from(*id) + 1;
    }
    let full = slab.memory_bytes();
    for id in &ids[PAGE_CELLS as usize..] {
        assert_eq!(*slab.get(*id), u64::from(*id) + 1);
        slab.free(*id);
        assert!(!slab.is_taken(*id));
    }
    assert_eq!(slab.len(), PAGE_CELLS);
    assert!(slab.memory_bytes() < full / 2);
    assert_eq!(slab.next_taken(PAGE_CELLS), None);
    assert_eq!(slab.next_taken(5), Some(5));
    for _ in 0..10 {
        let id = slab.take(u32::MAX).expect("no limit");
        assert_eq!(*slab.get(id), 0, "a reused cell has the default value");
    }
    assert_eq!(slab.take(slab.len()), None, "no id beyond the limit");
}
