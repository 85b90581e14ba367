//! What events take in memory: an estimate, to limit it.

use arcstr::ArcStr;

use crate::event::{Event, Field};
use crate::number::Number;
use crate::value::Value;

/// What an entry takes beside its texts and attributes: the event, its slot, its key, its deadline, and its places in
/// the sets of its host, service and tags.
pub(super) const ENTRY_BYTES: u64 = 16 + size_of::<Event>() as u64 + 96;

/// A text: its length, its counts, and what the allocator adds.
fn text_bytes(text: &ArcStr) -> u64 {
    24 + text.len() as u64
}

/// Nesting of vectors and events that is looked at.
const DEPTH_MAX: usize = 16;

/// What an event takes for itself, without host, service and tags, which the index keeps once.
pub(super) fn event_bytes(event: &Event) -> u64 {
    own_bytes(event, DEPTH_MAX)
}

fn own_bytes(event: &Event, depth: usize) -> u64 {
    let own = |field: &Field| !matches!(field, Field::Host | Field::Service | Field::Tags);
    let standard = Field::ALL.iter().filter(|field| own(field)).map(|field| bytes(event.get(*field), depth));
    let custom = |(name, value): &(ArcStr, Value)| {
        size_of::<(ArcStr, Value)>() as u64 + text_bytes(name) + bytes(value, depth)
    };
    standard.sum::<u64>() + event.attributes().iter().map(custom).sum::<u64>()
}

/// What a value points to.
pub(super) fn value_bytes(value: &Value) -> u64 {
    bytes(value, DEPTH_MAX)
}

fn bytes(value: &Value, depth: usize) -> u64 {
    let Some(below) = depth.checked_sub(1) else {
        return 0;
    };
    match value {
        Value::Nil
        | Value::Bool(_)
        | Value::Char(_)
        | Value::Native(_)
        | Value::Stream(_)
        | Value::Class(_) => 0,
        // What these have is the config's, and not counted: an event only refers to it.
        Value::Symbol(_)
        | Value::Seq(_)
        | Value::Pattern(_)
        | Value::Closure(_)
        | Value::Bound(_)
        | Value::Var(_)
        | Value::Atom(_)
        | Value::Delay(_)
        | Value::Exception(_)
        | Value::Namespace(_)
        | Value::Moment(_) => 64,
        Value::Number(Number::Big(value)) => 48 + value.bits() / 8,
        Value::Number(Number::Ratio(value)) => 80 + (value.numer().bits() + value.denom().bits()) / 8,
        Value::Number(Number::Int(_) | Number::Float(_) | Number::Double(_)) => 0,
        Value::Text(text) | Value::Keyword(text) => text_bytes(text),
        // Each member has an allocation of its own.
        Value::Vector(members) => 128 + members.iter().map(|member| 40 + bytes(member, below)).sum::<u64>(),
        Value::List(members) => members.iter().map(|member| 64 + bytes(member, below)).sum(),
        Value::Set(members) => 64 + members.iter().map(|member| 64 + bytes(member, below)).sum::<u64>(),
        Value::Map(entries) => {
            let entry = |(key, value)| 96 + bytes(key, below) + bytes(value, below);
            64 + entries.iter().map(entry).sum::<u64>()
        }
        Value::Event(event) => {
            let kept_once =
                [Field::Host, Field::Service, Field::Tags].map(|field| bytes(event.get(field), below));
            16 + size_of::<Event>() as u64 + own_bytes(event, below) + kept_once.iter().sum::<u64>()
        }
    }
}
