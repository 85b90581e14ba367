//! The windows of one result that have values, by number.
//!
//! Nearly every result has few windows, kept in a sorted list. Points with scattered timestamps create many
//! windows, and inserting into the middle of a list moves the others; so many windows are kept in a tree.
//! Not here: which windows are open, and which have ended (`series`).
//! Invariant: [`Windows::bytes`] counts allocated memory, not only used memory; it is freed when the windows are
//! gone.

use std::collections::BTreeMap;

use super::window::{Window, grown};

/// Bytes of a window in a list, without kept values.
pub(super) const WINDOW_BYTES: usize = size_of::<(u64, Window)>();

/// Bytes of a window in a tree, whose nodes are at least half full.
const TREE_WINDOW_BYTES: usize = 2 * WINDOW_BYTES + 16;

/// Maximum windows of a list.
const LIST_MAX: usize = 64;

/// A tree with fewer windows becomes a list again.
const TREE_MIN: usize = 16;

/// Capacity that an empty list keeps: most results have one window after another.
const KEPT_MAX: usize = 4;

#[derive(Clone, Debug)]
pub(super) enum Windows {
    /// Ascending.
    List(Vec<(u64, Window)>),
    Tree(BTreeMap<u64, Window>),
}

impl Windows {
    pub(super) fn new() -> Windows {
        Windows::List(Vec::new())
    }

    /// From windows in ascending order.
    pub(super) fn of(windows: Vec<(u64, Window)>) -> Windows {
        if windows.len() > LIST_MAX {
            return Windows::Tree(windows.into_iter().collect());
        }
        let mut list = windows;
        list.shrink_to_fit();
        Windows::List(list)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Windows::List(list) => list.len(),
            Windows::Tree(tree) => tree.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of the first window.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Windows::List(list) => list.first().map(|(number, _)| *number),
            Windows::Tree(tree) => tree.first_key_value().map(|(number, _)| *number),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Window> {
        match self {
            Windows::List(list) => {
                let at = list.binary_search_by_key(&number, |(number, _)| *number).ok()?;
                list.get(at).map(|(_, window)| window)
            }
            Windows::Tree(tree) => tree.get(&number),
        }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = (u64, &Window)> + '_> {
        match self {
            Windows::List(list) => Box::new(list.iter().map(|(number, window)| (*number, window))),
            Windows::Tree(tree) => Box::new(tree.iter().map(|(number, window)| (*number, window))),
        }
    }

    /// Bytes of the windows, without kept values.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Windows::List(list) => list.capacity() * WINDOW_BYTES,
            Windows::Tree(tree) => tree.len() * TREE_WINDOW_BYTES,
        }
    }

    /// The same after one more window.
    pub(super) fn bytes_of_one_more(&self) -> usize {
        match self {
            Windows::List(list) if list.len() >= LIST_MAX => (list.len() + 1) * TREE_WINDOW_BYTES,
            Windows::List(list) if list.len() < list.capacity() => list.capacity() * WINDOW_BYTES,
            Windows::List(list) => grown(list.capacity()) * WINDOW_BYTES,
            Windows::Tree(tree) => (tree.len() + 1) * TREE_WINDOW_BYTES,
        }
    }

    /// The window with this number; created if it does not exist.
    pub(super) fn at(&mut self, number: u64) -> &mut Window {
        if let Windows::List(list) = self
            && list.len() >= LIST_MAX
            && list.binary_search_by_key(&number, |(number, _)| *number).is_err()
        {
            *self = Windows::Tree(std::mem::take(list).into_iter().collect());
        }
        match self {
            Windows::Tree(tree) => tree.entry(number).or_default(),
            Windows::List(list) => {
                let at = list.partition_point(|(known, _)| *known < number);
                if list.get(at).is_none_or(|(known, _)| *known != number) {
                    if list.len() == list.capacity() {
                        list.reserve_exact(grown(list.len()) - list.len());
                    }
                    list.insert(at, (number, Window::default()));
                }
                &mut list[at].1
            }
        }
    }

    /// Removes the windows before `number`, in order.
    pub(super) fn end_before(&mut self, number: u64, mut ended: impl FnMut(u64, Window)) {
        match self {
            Windows::List(list) => {
                let count = list.partition_point(|(known, _)| *known < number);
                list.drain(..count).for_each(|(number, window)| ended(number, window));
            }
            Windows::Tree(tree) => {
                while let Some(first) = tree.first_entry().filter(|first| *first.key() < number) {
                    let (number, window) = first.remove_entry();
                    ended(number, window);
                }
            }
        }
        self.shrink();
    }

    /// Removes the windows from `number` on, in order.
    pub(super) fn end_from(&mut self, number: u64, mut ended: impl FnMut(u64, Window)) {
        match self {
            Windows::List(list) => {
                let count = list.partition_point(|(known, _)| *known < number);
                list.drain(count..).for_each(|(number, window)| ended(number, window));
            }
            Windows::Tree(tree) => {
                tree.split_off(&number).into_iter().for_each(|(number, window)| ended(number, window));
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        match self {
            Windows::List(list) if list.capacity() > KEPT_MAX.max(4 * list.len()) => {
                list.shrink_to(2 * list.len());
            }
            Windows::Tree(tree) if tree.len() < TREE_MIN => {
                *self = Windows::of(std::mem::take(tree).into_iter().collect());
            }
            Windows::List(_) | Windows::Tree(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Compute;
    use super::*;

    fn numbers(windows: &Windows) -> Vec<u64> {
        windows.iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn many_windows_are_a_tree_and_their_memory_is_freed() {
        let mut windows = Windows::new();
        for number in (0..10_000).rev() {
            let want = windows.bytes_of_one_more();
            windows.at(number);
            assert_eq!(windows.bytes(), want, "{number}");
            assert_eq!(matches!(windows, Windows::Tree(_)), windows.len() > LIST_MAX, "{number}");
        }
        assert!(windows.bytes() > 10_000 * WINDOW_BYTES);
        let mut ended = Vec::new();
        windows.end_before(9_990, |number, _| ended.push(number));
        assert_eq!((ended.len(), numbers(&windows)), (9_990, (9_990..10_000).collect()));
        assert_eq!(windows.bytes(), 10 * WINDOW_BYTES);
        windows.end_before(u64::MAX, |_, _| {});
        assert!(windows.bytes() <= KEPT_MAX * WINDOW_BYTES);
    }

    proptest! {
        #[test]
        fn list_and_tree_behave_as_a_map(
            steps in proptest::collection::vec((0..200_u64, 0..40_u8), 0..400),
        ) {
            let (mut windows, mut map) = (Windows::new(), BTreeMap::<u64, u64>::new());
            for (number, what) in steps {
                let (mut ended, mut want) = (Vec::new(), Vec::new());
                match what {
                    0 => {
                        windows.end_before(number, |number, window| ended.push((number, window.count)));
                        let kept = map.split_off(&number);
                        want.extend(std::mem::replace(&mut map, kept));
                    }
                    1 => {
                        windows.end_from(number, |number, window| ended.push((number, window.count)));
                        want.extend(map.split_off(&number));
                    }
                    _ => {
                        windows.at(number).add(Compute::Count, 1.0);
                        *map.entry(number).or_default() += 1;
                    }
                }
                prop_assert_eq!(ended, want);
                let found: Vec<_> = windows.iter().map(|(number, window)| (number, window.count)).collect();
                prop_assert_eq!(found, map.iter().map(|(number, count)| (*number, *count)).collect::<Vec<_>>());
                prop_assert_eq!(windows.first(), map.keys().next().copied());
                prop_assert_eq!(windows.get(number).map(|window| window.count), map.get(&number).copied());
                prop_assert_eq!((windows.len(), windows.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(windows.bytes() <= 4 * WINDOW_BYTES * map.len().max(KEPT_MAX));
            }
        }
    }
}
