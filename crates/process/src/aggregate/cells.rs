//! Bitmap of the used cells of a page.

/// The free list of one page, as a bitmap.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// A set bit is a used cell. Bits past the last cell are always set.
    words: Box<[u64]>,
    cells: u32,
    taken: u32,
}

impl Cells {
    pub(super) fn new(cells: u32) -> Cells {
        let mut words = vec![0u64; cells.div_ceil(64) as usize].into_boxed_slice();
        if !cells.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last = u64::MAX << (cells % 64);
        }
        Cells { words, cells, taken: 0 }
    }

    /// Takes the first free cell.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let at = self.words.iter().position(|word| *word != u64::MAX)?;
        let bit = self.words[at].trailing_ones();
        self.words[at] |= 1 << bit;
        self.taken += 1;
        Some(at as u32 * 64 + bit)
    }

    pub(super) fn free(&mut self, cell: u32) {
        debug_assert!(self.is_taken(cell), "cell {cell} is freed twice");
        self.words[cell as usize / 64] &= !(1 << (cell % 64));
        self.taken -= 1;
    }

    pub(super) fn is_taken(&self, cell: u32) -> bool {
        cell < self.cells && self.words[cell as usize / 64] >> (cell % 64) & 1 == 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.taken == self.cells
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// First used cell at or after `from`.
    pub(super) fn next_taken(&self, from: u32) -> Option<u32> {
        if from >= self.cells || self.taken == 0 {
            return None;
        }
        let mut at = from as usize / 64;
        let mut word = self.words[at] & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                let cell = at as u32 * 64 + word.trailing_zeros();
                return (cell < self.cells).then_some(cell);
            }
            at += 1;
            word = *self.words.get(at)?;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

#[test]
fn the_lowest_free_cell_is_taken_first() {
    for cells in [1, 63, 64, 65, 130] {
        let mut page = Cells::new(cells);
        assert!(page.is_empty() && page.next_taken(0).is_none());
        for want in 0..cells {
            assert_eq!(page.take(), Some(want));
        }
        assert!(page.is_full() && page.take().is_none(), "{cells} cells");
        page.free(cells / 2);
        assert!(!page.is_taken(cells / 2));
        assert_eq!(page.take(), Some(cells / 2));
        for cell in 0..cells - 1 {
            page.free(cell);
        }
        assert_eq!(page.next_taken(0), Some(cells - 1));
        assert_eq!(page.next_taken(cells), None);
        page.free(cells - 1);
        assert!(page.is_empty() && page.next_taken(0).is_none());
    }
}
