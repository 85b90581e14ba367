//! A vector that grows by pages, so that growing never copies all of it.

/// Items of a page.
const PAGE: usize = 4096;

/// Items by number.
#[derive(Debug)]
pub(super) struct Pages<T> {
    pages: Vec<Vec<T>>,
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { pages: Vec::new() }
    }
}

impl<T> Pages<T> {
    pub(super) fn len(&self) -> usize {
        match self.pages.last() {
            Some(last) => (self.pages.len() - 1) * PAGE + last.len(),
            None => 0,
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE)?.get(at % PAGE)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pages.get_mut(at / PAGE)?.get_mut(at % PAGE)
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pages.last_mut() {
            Some(last) if last.len() < PAGE => last.push(item),
            _ => {
                // The first page grows as it is filled: most indexes are small.
                let mut page = Vec::with_capacity(if self.pages.is_empty() { 16 } else { PAGE });
                page.push(item);
                self.pages.push(page);
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.pages.last_mut()?;
        let item = last.pop();
        if last.is_empty() {
            self.pages.pop();
        }
        item
    }
}

#[test]
fn items_are_found_across_pages_and_popped_in_reverse() {
    let mut pages = Pages::default();
    let count = 2 * PAGE + 3;
    for item in 0..count {
        pages.push(item);
        assert_eq!(pages.len(), item + 1);
    }
    assert!((0..count).all(|at| pages.get(at) == Some(&at)));
    assert_eq!(pages.get(count), None);
    if let Some(item) = pages.get_mut(PAGE) {
        *item = 0;
    }
    assert_eq!(pages.get(PAGE), Some(&0));
    for item in (PAGE + 1..count).rev() {
        assert_eq!(pages.pop(), Some(item));
    }
    assert_eq!(pages.len(), PAGE + 1);
}
