//! A tree whose nodes are a parent and the number of a text; at most one child of a node has a text.
//!
//! A node is found by a hash table; the children of a node can be listed from any slot. A slot stays: a child that is
//! removed leaves a hole, which the next new child fills. Only when three of four slots are holes, the children move
//! together, and [`Tree::moves`] counts up. So a listing that was interrupted goes on where it stopped unless the count
//! has changed.

use super::hasher::KeyHasher;
use super::table::Table;
use super::{NONE, Pages};

/// The node without a text.
pub(in crate::catalog) const ROOT: u32 = 0;
/// A node without a series.
pub(in crate::catalog) const NO_SERIES: u32 = NONE;
/// In `children`: the number of a list, not of the only child. In a slot: a hole, with the next one.
const MARK: u32 = 1 << 31;
/// Shorter lists keep their holes.
const COMPACT_FROM: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The next unused node where `text` is [`NONE`] (except the root).
    parent: u32,
    text: u32,
    /// Its slot among the children of `parent`.
    at: u32,
    /// [`NONE`], the only child in slot 0, or [`MARK`] and a list.
    children: u32,
    series: u32,
}

#[derive(Debug)]
struct List {
    slots: Vec<u32>,
    live: u32,
    first_hole: u32,
}

/// One slot among the children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::catalog) enum Slot {
    Child(u32),
    Hole,
    End,
}

#[derive(Debug)]
pub(in crate::catalog) struct Tree {
    nodes: Pages<Node>,
    vacant: u32,
    lists: Pages<List>,
    vacant_lists: Vec<u32>,
    list_bytes: usize,
    table: Table,
    hasher: KeyHasher,
    moves: u64,
}

impl Tree {
    pub(in crate::catalog) fn new(seed: u64) -> Tree {
        let mut nodes = Pages::default();
        let root = Node { parent: NONE, text: NONE, at: 0, children: NONE, series: NO_SERIES };
        assert_eq!(nodes.push(root), ROOT, "the first node");
        Tree {
            nodes,
            vacant: NONE,
            lists: Pages::default(),
            vacant_lists: Vec::new(),
            list_bytes: 0,
            table: Table::new(),
            hasher: KeyHasher::new(seed),
            moves: 0,
        }
    }

    /// True while there are numbers for some more nodes.
    pub(in crate::catalog) fn has_room(&self) -> bool {
        self.nodes.len() < MARK / 2
    }

    #[inline]
    pub(in crate::catalog) fn child(&self, parent: u32, text: u32) -> Option<u32> {
        let is_it = |at: u32| self.nodes[at].text == text && self.nodes[at].parent == parent;
        self.table.find(self.hasher.hash_one((parent, text)), is_it)
    }

    /// Number of nodes.
    pub(in crate::catalog) fn len(&self) -> usize {
        self.table.len()
    }

    /// Makes room in the table for so many nodes.
    pub(in crate::catalog) fn reserve(&mut self, count: usize) {
        let Tree { table, nodes, hasher, .. } = self;
        table.reserve(count, |at| hasher.hash_one((nodes[at].parent, nodes[at].text)));
    }

    /// Adds a child that is not there.
    pub(in crate::catalog) fn add(&mut self, parent: u32, text: u32) -> u32 {
        let node = Node { parent, text, at: 0, children: NONE, series: NO_SERIES };
        let number = match self.vacant {
            NONE => self.nodes.push(node),
            number => {
                self.vacant = self.nodes[number].parent;
                self.nodes[number] = node;
                number
            }
        };
        self.nodes[number].at = self.take_slot(parent, number);
        let Tree { table, nodes, hasher, .. } = self;
        let hash_of = |at: u32| hasher.hash_one((nodes[at].parent, nodes[at].text));
        table.insert(hash_of(number), number, hash_of);
        number
    }

    /// Removes a node without children. Its number is used again.
    pub(in crate::catalog) fn remove(&mut self, number: u32) {
        assert!(number != ROOT && self.nodes[number].children == NONE, "a node without children");
        let Tree { table, nodes, hasher, .. } = self;
        let hash_of = |at: u32| hasher.hash_one((nodes[at].parent, nodes[at].text));
        table.remove(hash_of(number), number, hash_of);
        let Node { parent, at, .. } = self.nodes[number];
        self.free_slot(parent, at);
        self.nodes[number] =
            Node { parent: self.vacant, text: NONE, at: 0, children: NONE, series: NO_SERIES };
        self.vacant = number;
    }

    #[inline]
    pub(in crate::catalog) fn parent(&self, number: u32) -> u32 {
        self.nodes[number].parent
    }

    /// The text of a node; [`NONE`] for the root and for a number that is not in use.
    #[inline]
    pub(in crate::catalog) fn text(&self, number: u32) -> u32 {
        self.nodes[number].text
    }

    #[inline]
    pub(in crate::catalog) fn series(&self, number: u32) -> u32 {
        self.nodes[number].series
    }

    pub(in crate::catalog) fn set_series(&mut self, number: u32, series: u32) {
        self.nodes[number].series = series;
    }

    #[inline]
    pub(in crate::catalog) fn has_children(&self, number: u32) -> bool {
        self.nodes[number].children != NONE
    }

    /// Number of children of a node.
    pub(in crate::catalog) fn children(&self, number: u32) -> u32 {
        match self.nodes[number].children {
            NONE => 0,
            list if list & MARK != 0 => self.lists[list & !MARK].live,
            _ => 1,
        }
    }

    #[inline]
    pub(in crate::catalog) fn slot(&self, parent: u32, at: u32) -> Slot {
        match self.nodes[parent].children {
            NONE => Slot::End,
            list if list & MARK != 0 => match self.lists[list & !MARK].slots.get(at as usize) {
                None => Slot::End,
                Some(slot) if slot & MARK != 0 => Slot::Hole,
                Some(child) => Slot::Child(*child),
            },
            child if at == 0 => Slot::Child(child),
            _ => Slot::End,
        }
    }

    /// How often children have moved to other slots.
    pub(in crate::catalog) fn moves(&self) -> u64 {
        self.moves
    }

    pub(in crate::catalog) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
            + self.lists.memory_bytes()
            + self.vacant_lists.capacity() * size_of::<u32>()
            + self.list_bytes
            + self.table.memory_bytes()
    }

    fn take_slot(&mut self, parent: u32, child: u32) -> u32 {
        match self.nodes[parent].children {
            NONE => {
                self.nodes[parent].children = child;
                0
            }
            number if number & MARK != 0 => {
                let list = &mut self.lists[number & !MARK];
                let before = list.slots.capacity();
                list.live += 1;
                let at = match list.first_hole {
                    NONE => {
                        list.slots.push(child);
                        list.slots.len() as u32 - 1
                    }
                    hole => {
                        list.first_hole = next_hole(list.slots[hole as usize]);
                        list.slots[hole as usize] = child;
                        hole
                    }
                };
                self.list_bytes += (list.slots.capacity() - before) * size_of::<u32>();
                at
            }
            only => {
                let list = List { slots: vec![only, child], live: 2, first_hole: NONE };
                self.list_bytes += list.slots.capacity() * size_of::<u32>();
                let number = match self.vacant_lists.pop() {
                    Some(number) => {
                        self.lists[number] = list;
                        number
                    }
                    None => self.lists.push(list),
                };
                self.nodes[parent].children = number | MARK;
                1
            }
        }
    }

    fn free_slot(&mut self, parent: u32, at: u32) {
        let number = self.nodes[parent].children;
        if number & MARK == 0 {
            self.nodes[parent].children = NONE;
            return;
        }
        let list = &mut self.lists[number & !MARK];
        list.slots[at as usize] = hole(list.first_hole);
        list.first_hole = at;
        list.live -= 1;
        if list.live == 0 {
            self.list_bytes -= list.slots.capacity() * size_of::<u32>();
            list.slots = Vec::new();
            self.vacant_lists.push(number & !MARK);
            self.nodes[parent].children = NONE;
        } else if list.slots.len() >= COMPACT_FROM && (list.live as usize) < list.slots.len() / 4 {
            self.compact(number & !MARK);
        }
    }

    fn compact(&mut self, number: u32) {
        let list = &mut self.lists[number];
        self.list_bytes -= list.slots.capacity() * size_of::<u32>();
        let mut slots = Vec::with_capacity(list.live as usize * 2);
        slots.extend(list.slots.iter().copied().filter(|slot| slot & MARK == 0));
        for (at, child) in slots.iter().enumerate() {
            self.nodes[*child].at = at as u32;
        }
        self.list_bytes += slots.capacity() * size_of::<u32>();
        (list.slots, list.first_hole) = (slots, NONE);
        self.moves += 1;
    }
}

/// A hole that is followed by another one.
fn hole(next: u32) -> u32 {
    next | MARK
}

fn next_hole(slot: u32) -> u32 {
    if slot == NONE { NONE } else { slot & !MARK }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(tree: &Tree, parent: u32) -> Vec<u32> {
        let slots = (0..).map(|at| tree.slot(parent, at)).take_while(|slot| *slot != Slot::End);
        let mut found: Vec<u32> =
            slots.filter_map(|slot| if let Slot::Child(child) = slot { Some(child) } else { None }).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn children_are_found_and_listed() {
        let mut tree = Tree::new(1);
        let all: Vec<u32> = (0..1000).map(|text| tree.add(ROOT, text)).collect();
        let inner = tree.add(all[3], 7);
        assert_eq!(
            (tree.child(ROOT, 7), tree.child(all[3], 7), tree.child(all[3], 8)),
            (Some(all[7]), Some(inner), None)
        );
        assert_eq!((children(&tree, ROOT), children(&tree, all[3])), (all.clone(), vec![inner]));
        assert_eq!((tree.children(ROOT), tree.children(all[3]), tree.children(inner)), (1000, 1, 0));
        tree.remove(inner);
        for child in &all[1..] {
            tree.remove(*child);
        }
        assert_eq!(children(&tree, ROOT), [all[0]]);
        assert!(tree.moves() > 0 && tree.list_bytes < 1000);
        tree.remove(all[0]);
        assert_eq!((tree.has_children(ROOT), tree.list_bytes), (false, 0));
    }

    #[test]
    fn a_slot_stays_while_others_come_and_go() {
        let mut tree = Tree::new(1);
        let all: Vec<u32> = (0..100).map(|text| tree.add(ROOT, text)).collect();
        let before: Vec<Slot> = (0..100).map(|at| tree.slot(ROOT, at)).collect();
        for at in (0..100).step_by(2) {
            tree.remove(all[at]);
        }
        for at in (1..100).step_by(2) {
            assert_eq!(tree.slot(ROOT, at as u32), before[at]);
        }
        for text in 200..250 {
            tree.add(ROOT, text);
        }
        assert_eq!((tree.slot(ROOT, 100), tree.moves()), (Slot::End, 0), "holes are filled first");
    }
}
