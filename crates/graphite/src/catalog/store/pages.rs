//! An array in pages: it grows without copying its elements, and by a small fixed amount.

use std::ops::{Index, IndexMut};

const SHIFT: u32 = 10;
const PAGE: usize = 1 << SHIFT;

/// Elements with the numbers 0, 1, 2, …
#[derive(Debug)]
pub(in crate::catalog) struct Pages<T> {
    pages: Vec<Vec<T>>,
    len: u32,
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { pages: Vec::new(), len: 0 }
    }
}

impl<T> Pages<T> {
    /// Appends an element, and returns its number.
    pub(in crate::catalog) fn push(&mut self, value: T) -> u32 {
        let at = self.len;
        if at as usize & (PAGE - 1) == 0 {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        self.pages[(at >> SHIFT) as usize].push(value);
        self.len += 1;
        at
    }

    /// The element of this number, if there is one.
    pub(in crate::catalog) fn get(&self, at: u32) -> Option<&T> {
        self.pages.get((at >> SHIFT) as usize)?.get(at as usize & (PAGE - 1))
    }

    pub(in crate::catalog) fn len(&self) -> u32 {
        self.len
    }

    /// Memory of the pages, without what the elements own.
    pub(in crate::catalog) fn memory_bytes(&self) -> usize {
        self.pages.len() * PAGE * size_of::<T>() + self.pages.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.pages[(at >> SHIFT) as usize][at as usize & (PAGE - 1)]
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.pages[(at >> SHIFT) as usize][at as usize & (PAGE - 1)]
    }
}

#[test]
fn elements_keep_their_numbers() {
    let mut pages = Pages::default();
    for number in 0..3000u32 {
        assert_eq!(pages.push(number * 2), number);
    }
    assert!((0..3000).all(|at| pages[at] == at * 2 && pages.get(at) == Some(&(at * 2))));
    assert_eq!((pages.len(), pages.get(3000)), (3000, None));
    assert!(pages.memory_bytes() >= 3 * PAGE * 4);
}
