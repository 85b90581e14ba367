//! Long texts and lists of tags that several events of a checkpoint have: they are written once, and referred to by a number.
//!
//! The writer and the reader count in the same way, so that numbers need no table in the bytes.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::value::Value;

/// Shorter values are written again: a reference would spare little.
const BYTES_MIN: usize = 64;
/// Values that can be referred to, at most, and their bytes: they are kept until the checkpoint is whole.
const VALUES_MAX: usize = 65_536;
const BYTES_MAX: usize = 64 << 20;

/// See the module's header.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// Values with their bytes. They are kept, so that no other value gets the address of one.
    values: Vec<(Value, usize)>,
    /// Their numbers, by where they are in memory.
    numbers: HashMap<usize, usize, FixedState>,
    bytes: usize,
}

impl Shared {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The number of a value that was written before.
    pub(super) fn number(&self, value: &Value) -> Option<u64> {
        if self.values.is_empty() {
            return None;
        }
        self.numbers.get(&address(value)?).map(|number| *number as u64)
    }

    /// The value with a number.
    pub(super) fn value(&self, number: u64) -> Option<Value> {
        Some(self.values.get(usize::try_from(number).ok()?)?.0.clone())
    }

    /// Gives a value that takes so many bytes the next number, if it is long enough and there is room.
    pub(super) fn add(&mut self, value: &Value, bytes: usize) {
        if bytes < BYTES_MIN || self.values.len() >= VALUES_MAX || bytes > BYTES_MAX - self.bytes {
            return;
        }
        let Some(address) = address(value) else { return };
        self.numbers.insert(address, self.values.len());
        self.values.push((value.clone(), bytes));
        self.bytes += bytes;
    }

    /// Forgets all but the first ones.
    pub(super) fn truncate(&mut self, len: usize) {
        for (value, bytes) in self.values.drain(len.min(self.values.len())..) {
            address(&value).and_then(|address| self.numbers.remove(&address));
            self.bytes -= bytes;
        }
    }
}

/// Where a long text or a vector is in memory.
fn address(value: &Value) -> Option<usize> {
    match value {
        // Short ones need no look at the table: they are never in it.
        Value::Text(text) if text.len() + 2 >= BYTES_MIN => Some(text.as_str().as_ptr().addr()),
        Value::Vector(vector) => Some(Arc::as_ptr(vector).addr()),
        _ => None,
    }
}
