//! The texts of one field, in their order, each with the events that have it. For tags an event may have several.

use std::collections::BTreeMap;
use std::ops::Bound;

use arcstr::ArcStr;

use super::slot_set::SlotSet;

/// What a text takes: its entry in the tree, its length and its count of references. An estimate.
const TERM_BYTES: u64 = 80;

/// Texts with their slots; no text without one.
#[derive(Debug, Default)]
pub(super) struct Terms {
    texts: BTreeMap<ArcStr, SlotSet>,
    bytes: u64,
}

impl Terms {
    /// Adds a slot to a text.
    pub(super) fn insert(&mut self, text: &ArcStr, slot: u32) {
        if let Some(slots) = self.texts.get_mut(text) {
            slots.insert(slot);
            return;
        }
        self.bytes += TERM_BYTES + text.len() as u64;
        self.texts.entry(text.clone()).or_default().insert(slot);
    }

    /// The copy of a text that is kept, so that all events share it.
    pub(super) fn kept(&self, text: &str) -> Option<&ArcStr> {
        self.texts.get_key_value(text).map(|(kept, _)| kept)
    }

    pub(super) fn remove(&mut self, text: &str, slot: u32) {
        let Some(slots) = self.texts.get_mut(text) else {
            return;
        };
        slots.remove(slot);
        if slots.is_empty() {
            self.texts.remove(text);
            self.bytes -= TERM_BYTES + text.len() as u64;
        }
    }

    pub(super) fn slots(&self, text: &str) -> Option<&SlotSet> {
        self.texts.get(text)
    }

    /// The texts that begin with a prefix, from one of them on, in the order of their bytes.
    pub(super) fn with_prefix<'t>(
        &'t self,
        prefix: &'t str,
        from: Option<&'t str>,
    ) -> impl Iterator<Item = (&'t ArcStr, &'t SlotSet)> {
        let first = Bound::Included(from.unwrap_or(prefix));
        let from = self.texts.range::<str, _>((first, Bound::Unbounded));
        from.take_while(move |(text, _)| text.starts_with(prefix))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
