//! A shortcut from the texts of a key to its slot, without a hash of the texts.
//!
//! Events of a server share the texts of hosts and services that come again, and the index keeps those of its events. So a key whose
//! two texts are the very copies that the event of a slot has is the key of that slot, and two addresses find it.
//! Only a guess is kept here: each use compares it with the entry, so that removals need not be noted.

use arcstr::ArcStr;

use super::entries::Entries;
use crate::event::Field;
use crate::value::Value;

/// Places: a power of two.
const PLACES: usize = 1 << 14;
/// Addresses of texts end in zeros, and differ little.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the module's header. Empty until the first key is noted.
#[derive(Debug, Default)]
pub(super) struct Recent {
    slots: Box<[u32]>,
}

impl Recent {
    /// The slot of a key, if it is known by the addresses of its texts.
    pub(super) fn slot(&self, entries: &Entries, host: &Value, service: &Value) -> Option<u32> {
        let (Value::Text(host), Value::Text(service)) = (host, service) else { return None };
        let slot = *self.slots.get(place(host, service))?;
        let event = &entries.get(slot)?.event;
        let is_it = |field: Field, text: &ArcStr| matches!(event.get(field), Value::Text(kept) if ArcStr::ptr_eq(kept, text));
        (is_it(Field::Host, host) && is_it(Field::Service, service)).then_some(slot)
    }

    /// Notes the slot of a key.
    pub(super) fn note(&mut self, slot: u32, host: &Value, service: &Value) {
        let (Value::Text(host), Value::Text(service)) = (host, service) else { return };
        if self.slots.is_empty() {
            self.slots = vec![u32::MAX; PLACES].into();
        }
        self.slots[place(host, service)] = slot;
    }
}

fn place(host: &ArcStr, service: &ArcStr) -> usize {
    let (host, service) = (host.as_ptr().addr() as u64, service.as_ptr().addr() as u64);
    (host.wrapping_add(service.rotate_left(32)).wrapping_mul(SPREAD) >> (u64::BITS - PLACES.trailing_zeros()))
        as usize
}
