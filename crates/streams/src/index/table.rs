//! The table of the index: inserts, look-ups, removals, expiry.

use std::sync::Arc;

use super::deadlines::{ABSENT, Deadlines};
use super::entries::{Entries, Entry};
use super::expiry::{Age, age};
use super::hasher::SeededHasher;
use super::keys::{KeyHash, Keys};
use super::limits::{Limits, Reject};
use super::recent::Recent;
use super::slot_set::SlotSet;
use super::tag_lists::TagLists;
use super::terms::Terms;
use super::{expiry, memory, share};
use crate::collections::element::Element;
use crate::event::{Event, Field};
use crate::number::Number;
use crate::query::tag_texts;
use crate::value::Value;

/// The latest events, by host and service.
#[derive(Debug)]
pub struct Index {
    limits: Limits,
    keys: Keys,
    pub(super) entries: Entries,
    pub(super) hosts: Part,
    pub(super) services: Part,
    pub(super) tags: Terms,
    tag_lists: TagLists,
    states: share::States,
    deadlines: Deadlines,
    /// Slots of late keys; only a shortcut.
    recent: Recent,
    /// What the events take for themselves.
    bytes: u64,
}

/// Slots by one part of the key. Parts that are neither text nor nil are in no set: only a scan finds their events.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) texts: Terms,
    nil: SlotSet,
}

/// What an insert did.
#[derive(Clone, Debug)]
pub enum Change {
    /// The key is new.
    Added,
    /// The event replaced this one.
    Replaced(Arc<Event>),
    /// The event is expired: this one was removed.
    Removed(Arc<Event>),
    /// The event is expired, and there was none to remove.
    Nothing,
}

/// An event that a sweep removed.
#[derive(Clone, Debug)]
pub struct Expired {
    /// As it was in the index. [`expired_event`](super::expired_event) makes the event to publish of it.
    pub event: Arc<Event>,
    /// [`Age::Expired`], or [`Age::Unknown`] for an event whose ttl or time is no number: it is dropped with an error.
    pub age: Age,
}

impl Index {
    /// An empty index. The seed of its hashes must not be known to clients.
    pub fn new(limits: Limits, seed: u64) -> Index {
        Index::with_hasher(limits, SeededHasher::new(seed))
    }

    fn with_hasher(limits: Limits, hasher: SeededHasher) -> Index {
        Index {
            limits,
            keys: Keys::new(hasher.clone()),
            entries: Entries::default(),
            hosts: Part::default(),
            services: Part::default(),
            tags: Terms::default(),
            tag_lists: TagLists::new(hasher),
            states: share::States::default(),
            deadlines: Deadlines::default(),
            recent: Recent::default(),
            bytes: 0,
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An estimate of the memory of all events, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let texts = self.hosts.texts.bytes() + self.services.texts.bytes() + self.tags.bytes();
        self.bytes + texts + self.tag_lists.bytes()
    }

    /// The events of so many slots, from one on: all of them, if it is called with the number that follows until that is none. Events that
    /// come or go meanwhile may be among them.
    pub fn slots(&self, from: u32, most: u32) -> (impl Iterator<Item = &Arc<Event>>, Option<u32>) {
        let end = from.saturating_add(most).min(self.entries.end());
        let events = (from..end).filter_map(|slot| self.entries.get(slot)).map(|entry| &entry.event);
        (events, (end < self.entries.end()).then_some(end))
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        *self = Index::with_hasher(self.limits, self.keys.hasher().clone());
    }

    /// Inserts an event in the place of the one with its host and service, also of a later one; an expired event removes
    /// that one instead. In both cases the caller publishes the event.
    ///
    /// # Errors
    /// The event was not indexed. If it would have replaced another one, that one is still there.
    pub fn insert(&mut self, event: Arc<Event>) -> Result<Change, Reject> {
        if matches!(event.get(Field::Time), Value::Nil) {
            return Err(Reject::NoTime);
        }
        let (host, service) = (event.get(Field::Host), event.get(Field::Service));
        if let Some(slot) = self.recent.slot(&self.entries, host, service) {
            return match expiry::is_expired_by_state(&event) {
                true => Ok(Change::Removed(self.remove(slot))),
                false => self.replace(slot, event).map(Change::Replaced),
            };
        }
        let hash = self.keys.hash(host, service).ok_or(Reject::BadKey)?;
        let slot = self.slot(hash, host, service);
        if expiry::is_expired_by_state(&event) {
            let removed = slot.map(|slot| self.remove(slot));
            return Ok(removed.map_or(Change::Nothing, Change::Removed));
        }
        self.recent.note(slot.unwrap_or_else(|| self.entries.next_slot()), host, service);
        match slot {
            Some(slot) => self.replace(slot, event).map(Change::Replaced),
            None => self.add(hash, event).map(|()| Change::Added),
        }
    }

    /// All events.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        (0..self.entries.end()).filter_map(|slot| Some(&self.entries.get(slot)?.event))
    }

    /// The event of a key.
    pub fn lookup(&self, host: &Value, service: &Value) -> Option<&Arc<Event>> {
        let hash = self.keys.hash(host, service)?;
        self.slot(hash, host, service).map(|slot| &self.entries.at(slot).event)
    }

    /// Removes the event of a key.
    pub fn delete(&mut self, host: &Value, service: &Value) -> Option<Arc<Event>> {
        let hash = self.keys.hash(host, service)?;
        self.slot(hash, host, service).map(|slot| self.remove(slot))
    }

    /// Removes the event of this one's key, if it is equal to this one: it has not changed since.
    pub fn delete_exactly(&mut self, event: &Arc<Event>) -> Option<Arc<Event>> {
        let (host, service) = (event.get(Field::Host), event.get(Field::Service));
        let hash = self.keys.hash(host, service)?;
        let slot = self.slot(hash, host, service)?;
        let present = &self.entries.at(slot).event;
        let is_same = Arc::ptr_eq(present, event)
            || Value::equal(&Value::Event(present.clone()), &Value::Event(event.clone()));
        is_same.then(|| self.remove(slot))
    }

    /// Removes the events that are expired at that time, in Unix seconds, and appends them to `expired`. Looks at most at
    /// `most` events; true when none is left. An event is looked at when it may be expired, so about once in its ttl.
    pub fn expire(&mut self, now: &Number, most: usize, expired: &mut Vec<Expired>) -> bool {
        // Not below the time itself, which may be an exact ratio.
        let after_now = now.as_f64().next_up();
        for _ in 0..most {
            let Some(slot) = self.deadlines.first().filter(|slot| self.entries.at(*slot).due < after_now)
            else {
                return true;
            };
            let event = &self.entries.at(slot).event;
            match age(event, now) {
                age @ (Age::Expired | Age::Unknown) => {
                    expired.push(Expired { event: self.remove(slot), age })
                }
                Age::Live => {
                    // Its ttl or time has changed since it was filed; or it is due within the rounding of `now`.
                    let due = expiry::due(event).max(after_now);
                    if due.is_finite() {
                        self.deadlines.file(&mut self.entries, slot, due);
                    } else {
                        self.deadlines.remove(&mut self.entries, slot);
                    }
                }
            }
        }
        self.deadlines.first().is_none_or(|slot| self.entries.at(slot).due >= after_now)
    }

    fn slot(&self, hash: KeyHash, host: &Value, service: &Value) -> Option<u32> {
        self.keys.find(hash, |slot| {
            let event = &self.entries.at(slot).event;
            Value::equal(event.get(Field::Host), host) && Value::equal(event.get(Field::Service), service)
        })
    }

    fn replace(&mut self, slot: u32, mut event: Arc<Event>) -> Result<Arc<Event>, Reject> {
        let entry = self.entries.at_mut(slot);
        if share::differs_in_numbers(&event, &entry.event) {
            let due = expiry::due(&event);
            let is_earlier = due < entry.due;
            let predecessor = std::mem::replace(&mut entry.event, event);
            if is_earlier {
                self.deadlines.file(&mut self.entries, slot, due);
            }
            return Ok(predecessor);
        }
        let predecessor = Arc::clone(&entry.event);
        share::share(&mut event, &predecessor);
        let (old, new) = (self.entries.at(slot).bytes, own_bytes(&event));
        let has_new_tags = !is_same_list(event.get(Field::Tags), predecessor.get(Field::Tags));
        let tags = if has_new_tags { memory::value_bytes(event.get(Field::Tags)) } else { 0 };
        let more = u64::from(new.saturating_sub(old)) + tags;
        if more > 0 && self.memory_bytes() + more > self.limits.bytes_max {
            return Err(Reject::TooManyBytes);
        }
        self.bytes = self.bytes - u64::from(old) + u64::from(new);
        if has_new_tags {
            self.remove_tags(&predecessor, slot);
            self.add_tags(&mut event, slot);
        }
        let due = expiry::due(&event);
        let entry = self.entries.at_mut(slot);
        entry.event = event;
        entry.bytes = new;
        if due < entry.due {
            self.deadlines.file(&mut self.entries, slot, due);
        }
        Ok(predecessor)
    }

    fn add(&mut self, hash: KeyHash, mut event: Arc<Event>) -> Result<(), Reject> {
        if self.len() >= self.limits.events_max as usize {
            return Err(Reject::TooManyEvents);
        }
        let bytes = own_bytes(&event);
        // With host, service and tags as if they were new.
        let texts =
            [Field::Host, Field::Service, Field::Tags].map(|field| memory::value_bytes(event.get(field)));
        if self.memory_bytes() + u64::from(bytes) + texts.iter().sum::<u64>() > self.limits.bytes_max {
            return Err(Reject::TooManyBytes);
        }
        self.bytes += u64::from(bytes);
        let slot = self.entries.next_slot();
        self.keys.insert(hash, slot);
        let state = self.states.kept(event.get(Field::State));
        share::set_shared(&mut event, Field::State, &state);
        for field in [Field::Host, Field::Service] {
            let kept = self.part_mut(field).insert(event.get(field), slot);
            share::set_shared(&mut event, field, &kept);
        }
        self.add_tags(&mut event, slot);
        let due = expiry::due(&event);
        let used = self.entries.insert(Entry { event, due: f64::INFINITY, due_at: ABSENT, bytes });
        assert_eq!(used, slot, "nothing was inserted in between");
        if due < f64::INFINITY {
            self.deadlines.file(&mut self.entries, slot, due);
        }
        Ok(())
    }

    fn remove(&mut self, slot: u32) -> Arc<Event> {
        self.deadlines.remove(&mut self.entries, slot);
        let Entry { event, bytes, .. } = self.entries.remove(slot);
        self.bytes -= u64::from(bytes);
        let hash = self.keys.hash(event.get(Field::Host), event.get(Field::Service));
        self.keys.remove(hash.expect("events with other keys are rejected"), slot);
        for field in [Field::Host, Field::Service] {
            self.part_mut(field).remove(event.get(field), slot);
        }
        self.remove_tags(&event, slot);
        event
    }

    fn part_mut(&mut self, field: Field) -> &mut Part {
        if field == Field::Host { &mut self.hosts } else { &mut self.services }
    }

    fn add_tags(&mut self, event: &mut Arc<Event>, slot: u32) {
        if let tags @ Value::Vector(_) = event.get(Field::Tags) {
            let kept = self.tag_lists.insert(tags, memory::value_bytes(tags));
            share::set_shared(event, Field::Tags, &kept);
        }
        for tag in tag_texts(event.get(Field::Tags)) {
            self.tags.insert(tag, slot);
        }
    }

    fn remove_tags(&mut self, event: &Event, slot: u32) {
        let tags = event.get(Field::Tags);
        tag_texts(tags).for_each(|tag| self.tags.remove(tag, slot));
        if matches!(tags, Value::Vector(_)) {
            self.tag_lists.remove(tags);
        }
    }
}

/// What an entry with this event takes; host, service and tags are counted where they are kept.
fn own_bytes(event: &Event) -> u32 {
    u32::try_from(memory::ENTRY_BYTES + memory::event_bytes(event)).unwrap_or(u32::MAX)
}

/// Whether two values of the field `tags` have the same place in the lists: after `share`, equal lists are one.
fn is_same_list(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Vector(a), Value::Vector(b)) => Arc::ptr_eq(a, b),
        // Only vectors are counted, and a list of the same tags is equal to one.
        (Value::Vector(_), _) | (_, Value::Vector(_)) => false,
        (a, b) => Value::equal(a, b),
    }
}

impl Part {
    /// Adds a slot; returns the value as it is kept.
    fn insert(&mut self, value: &Value, slot: u32) -> Value {
        match value {
            Value::Text(text) => {
                self.texts.insert(text, slot);
                if let Some(kept) = self.texts.kept(text) {
                    return Value::Text(kept.clone());
                }
            }
            Value::Nil => self.nil.insert(slot),
            _ => {}
        }
        value.clone()
    }

    fn remove(&mut self, value: &Value, slot: u32) {
        match value {
            Value::Text(text) => self.texts.remove(text, slot),
            Value::Nil => self.nil.remove(slot),
            _ => {}
        }
    }

    /// The slots of a text, or of nil; None for none.
    pub(super) fn slots(&self, text: Option<&str>) -> Option<&SlotSet> {
        match text {
            Some(text) => self.texts.slots(text),
            None => Some(&self.nil),
        }
    }
}
