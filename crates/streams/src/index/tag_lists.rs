//! Lists of tags, of which equal ones are kept once: most events have the tags of many others.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;

use super::hasher::SeededHasher;
use crate::collections::element::Element;
use crate::query::tag_texts;
use crate::value::Value;

/// Tables: each grows for itself, so that growing never takes long.
const TABLES: usize = 64;

#[derive(Debug)]
struct TagList {
    hash: u64,
    tags: Value,
    events: u32,
    bytes: u64,
}

/// The lists, each with the number of its events.
#[derive(Debug)]
pub(super) struct TagLists {
    tables: Vec<HashTable<TagList>>,
    bytes: u64,
    hasher: SeededHasher,
}

impl TagLists {
    pub(super) fn new(hasher: SeededHasher) -> TagLists {
        TagLists { tables: (0..TABLES).map(|_| HashTable::new()).collect(), bytes: 0, hasher }
    }

    /// Counts an event with these tags. Returns the list as it is kept.
    pub(super) fn insert(&mut self, tags: &Value, bytes: u64) -> Value {
        let hash = self.hash(tags);
        let table = &mut self.tables[table_of(hash)];
        if let Some(known) = table.find_mut(hash, |list| is_same(list, hash, tags)) {
            known.events += 1;
            return known.tags.clone();
        }
        self.bytes += bytes;
        let list = TagList { hash, tags: tags.clone(), events: 1, bytes };
        table.insert_unique(hash, list, |list| list.hash);
        tags.clone()
    }

    /// An event with these tags is gone.
    pub(super) fn remove(&mut self, tags: &Value) {
        let hash = self.hash(tags);
        let found = self.tables[table_of(hash)].find_entry(hash, |list| is_same(list, hash, tags));
        let mut entry = found.expect("the tags of each event are counted");
        entry.get_mut().events -= 1;
        if entry.get().events == 0 {
            let (list, _) = entry.remove();
            self.bytes -= list.bytes;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn hash(&self, tags: &Value) -> u64 {
        let mut hasher = self.hasher.start();
        tag_texts(tags).for_each(|tag| tag.as_str().hash(&mut hasher));
        hasher.finish()
    }
}

fn table_of(hash: u64) -> usize {
    // Neither the bits that choose a place in a table nor those that it keeps there.
    (hash >> 32) as usize % TABLES
}

fn is_same(list: &TagList, hash: u64, tags: &Value) -> bool {
    let is_shared = match (&list.tags, tags) {
        (Value::Vector(a), Value::Vector(b)) => Arc::ptr_eq(a, b),
        _ => false,
    };
    list.hash == hash && (is_shared || Value::equal(&list.tags, tags))
}
