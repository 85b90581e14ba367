//! The names with tags: which series have which value of which tag.
//!
//! A tag is a node below the root of a tree, a value is a node below its tag, and each value has the set of its series.
//! A series is a key of 32-bit numbers: the text of its metric, the value of `name`, and its other values in the order of
//! its normal name. Texts are those of the catalog, which also counts who uses them.

use super::SeriesId;
use super::store::{Ids, NONE, Pages, ROOT, Texts, Tree};

/// The inverted index over tags.
#[derive(Debug)]
pub(super) struct TagIndex {
    pub(super) tree: Tree,
    /// By value node.
    ids: Pages<Ids>,
    ids_bytes: usize,
    /// Note: the series.
    keys: Texts,
}

impl TagIndex {
    pub(super) fn new(seed: u64) -> TagIndex {
        TagIndex { tree: Tree::new(seed), ids: Pages::default(), ids_bytes: 0, keys: Texts::new(seed) }
    }

    pub(super) fn has_room(&self) -> bool {
        self.tree.has_room() && self.keys.has_room()
    }

    /// Makes room in the tables for so many tags and values, and for so many series.
    pub(super) fn reserve(&mut self, nodes: usize, series: usize) {
        self.tree.reserve(nodes);
        self.keys.reserve(series);
    }

    /// The node of a tag.
    pub(super) fn tag(&self, texts: &Texts, tag: &[u8]) -> Option<u32> {
        self.tree.child(ROOT, texts.find(tag)?)
    }

    /// The node of a tag's value.
    pub(super) fn value(&self, texts: &Texts, tag: &[u8], value: &[u8]) -> Option<u32> {
        self.tree.child(self.tag(texts, tag)?, texts.find(value)?)
    }

    /// The same, faster if the tag is that of another value, or if even the value is the same: names that follow each
    /// other often share most of their tags.
    pub(super) fn value_like(&self, texts: &Texts, other: u32, tag: &[u8], value: &[u8]) -> Option<u32> {
        let other_tag = self.tree.parent(other);
        if texts.get(self.tree.text(other_tag)) != tag {
            return self.value(texts, tag, value);
        }
        if texts.get(self.tree.text(other)) == value {
            return Some(other);
        }
        self.tree.child(other_tag, texts.find(value)?)
    }

    /// The series with this value.
    pub(super) fn ids(&self, value: u32) -> &Ids {
        static NO_IDS: Ids = Ids::None;
        self.ids.get(value).unwrap_or(&NO_IDS)
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<SeriesId> {
        self.keys.find(key).map(|key| SeriesId(self.keys.note(key)))
    }

    /// The key of a series, as numbers.
    pub(super) fn key(&self, key: u32) -> impl Iterator<Item = u32> + Clone {
        let numbers = self.keys.get(key).as_chunks::<4>().0;
        numbers.iter().map(|number| u32::from_le_bytes(*number))
    }

    /// The value nodes of a series, that of `name` first.
    pub(super) fn values_of(&self, key: u32) -> impl Iterator<Item = u32> + Clone {
        self.key(key).skip(1)
    }

    /// The node of a value, which is added if there is none. Its texts count one more use for each new node.
    pub(super) fn value_or_new(&mut self, texts: &mut Texts, tag: &[u8], value: &[u8]) -> u32 {
        let tag = self.node_or_new(texts, ROOT, tag);
        self.node_or_new(texts, tag, value)
    }

    fn node_or_new(&mut self, texts: &mut Texts, parent: u32, text: &[u8]) -> u32 {
        let text = texts.intern(text);
        self.tree.child(parent, text).unwrap_or_else(|| {
            *texts.note_mut(text) += 1;
            self.tree.add(parent, text)
        })
    }

    /// Adds a series whose key is new, and returns the number of the key.
    pub(super) fn insert(&mut self, key: &[u8], id: SeriesId) -> u32 {
        let number = self.keys.add(key);
        *self.keys.note_mut(number) = id.0;
        for value in key.as_chunks::<4>().0.iter().skip(1).map(|value| u32::from_le_bytes(*value)) {
            while self.ids.len() <= value {
                self.ids.push(Ids::None);
            }
            let ids = &mut self.ids[value];
            self.ids_bytes -= ids.memory_bytes();
            ids.insert(id.0);
            self.ids_bytes += ids.memory_bytes();
        }
        number
    }

    /// Removes a series, and values and tags that no series has any more.
    pub(super) fn remove(&mut self, texts: &mut Texts, key: u32, id: SeriesId) {
        let mut numbers = self.key(key);
        let metric = numbers.next();
        let values: Vec<u32> = numbers.collect();
        self.keys.free(key);
        for value in values {
            let ids = &mut self.ids[value];
            self.ids_bytes -= ids.memory_bytes();
            ids.remove(id.0);
            self.ids_bytes += ids.memory_bytes();
            if self.ids[value].len() == 0 {
                let tag = self.tree.parent(value);
                self.remove_node(texts, value);
                if !self.tree.has_children(tag) {
                    self.remove_node(texts, tag);
                }
            }
        }
        if let Some(metric) = metric {
            release(texts, metric);
        }
    }

    fn remove_node(&mut self, texts: &mut Texts, node: u32) {
        let text = self.tree.text(node);
        self.tree.remove(node);
        release(texts, text);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.ids.memory_bytes() + self.ids_bytes + self.keys.memory_bytes()
    }
}

/// One user of a text less.
pub(super) fn release(texts: &mut Texts, text: u32) {
    assert!(text != NONE, "a text that is used");
    let users = texts.note_mut(text);
    *users -= 1;
    if *users == 0 {
        texts.free(text);
    }
}
