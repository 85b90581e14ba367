//! Python pickles of plain data to values: numbers, texts, lists, tuples and dicts, and nothing that would have to be run.
//!
//! Path of a packet: a frame of a Graphite pickle listener -> [`Reading::step`], as often as there is more -> [`Pickle::root`] -> `graphite::input` makes points
//! of it. The opcodes are a closed list (spec graphite §1.2), which covers what carbon's own restricted reader takes in
//! protocols 0 to 5; a class, a function or a persistent id makes the whole message bad.
//! Not here: frames (`frame`), what a list of points looks like (`graphite::input`), writing (`graphite::pickle`).
//! Invariants: no byte string makes it panic or recurse; what it holds is bounded by [`VALUES_MAX`] values of 16 bytes on
//! the stack, in containers and in the memo each, and by the message's own length in texts. Each byte of a message costs a
//! bounded number of steps and of bytes: no opcode looks at what another one has read. A step is bounded
//! whatever the message.

mod machine;
#[cfg(test)]
mod tests;

use model::Span;

pub use machine::Reading;

/// Most values that the opcodes of one message may make, and most places of its memo: 200,000 points.
pub const VALUES_MAX: usize = 1_000_000;

/// Most lists and dicts of one message: all are given back at once. A client that has no tuples makes two for each point.
pub const LISTS_MAX: usize = 250_000;

/// Most containers that may be open at once (`MARK`s on the stack).
pub const DEPTH_MAX: usize = 32;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It ends before its `STOP`, or a length in it reaches past its end.
    Truncated,
    /// An opcode that is unknown, or would make an object: this one.
    Opcode(u8),
    /// An opcode finds too little on the stack, or something that it cannot work on.
    Stack,
    /// A place of the memo that nothing was put into, or that is past the bounds: [`VALUES_MAX`], the bytes read before it, and
    /// 65,536 past the last one. Whoever writes pickles numbers their places as they come.
    Memo,
    /// More than [`VALUES_MAX`] values, [`LISTS_MAX`] lists or [`DEPTH_MAX`] open containers, or a number or a text with escapes of
    /// more than 64 KiB.
    TooMuch,
    /// A text or number that Python would not read either.
    Text,
    /// A protocol above 5.
    Protocol(u8),
}

/// Where a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// In the message.
    Sent(Span),
    /// In [`Pickle::made`]: it had escapes.
    Made(Span),
}

/// A value as the stack holds it: 16 bytes, containers by their place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Value {
    #[default]
    None,
    Whole(i64),
    Float(f64),
    Text(Text),
    /// Digits of a whole number that needs more than 64 bits.
    Huge,
    /// A span of [`Pickle::items`].
    Tuple(Span),
    /// An index into [`Pickle::lists`]: lists, and dicts as keys and values by turns.
    List(u32),
    Dict(u32),
}

/// A message that was read, without its bytes: whoever asks for the values lends them.
#[derive(Debug, Default)]
pub struct Pickle {
    made: Vec<u8>,
    items: Vec<Value>,
    lists: Vec<Vec<Value>>,
    root: Value,
}

/// A value, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// `None`.
    None,
    /// A whole number, `True` as 1 and `False` as 0 included.
    Whole(i64),
    /// A whole number of more than 64 bits.
    Huge,
    /// A float.
    Float(f64),
    /// A `str` or `bytes`.
    Text(&'a [u8]),
    /// A list or tuple.
    Items(Items<'a>),
    /// A dict.
    Dict(Items<'a>),
}

/// The values of a list or tuple, or the keys and values of a dict by turns.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    pickle: &'a Pickle,
    message: &'a [u8],
    values: &'a [Value],
}

impl<'a> Items<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        let (pickle, message) = (self.pickle, self.message);
        self.values.iter().map(move |value| pickle.of(message, *value))
    }

    /// The value at `at`, counted from 0.
    pub fn nth(&self, at: usize) -> Option<ValueRef<'a>> {
        self.values.get(at).map(|value| self.pickle.of(self.message, *value))
    }

    /// The two values, when there are two.
    pub fn pair(&self) -> Option<(ValueRef<'a>, ValueRef<'a>)> {
        let [first, second] = self.values else { return None };
        Some((self.pickle.of(self.message, *first), self.pickle.of(self.message, *second)))
    }
}

impl Pickle {
    /// The value that the message is. `message` is the one that was read.
    pub fn root<'a>(&'a self, message: &'a [u8]) -> ValueRef<'a> {
        self.of(message, self.root)
    }

    fn of<'a>(&'a self, message: &'a [u8], value: Value) -> ValueRef<'a> {
        let items = |values| Items { pickle: self, message, values };
        match value {
            Value::None => ValueRef::None,
            Value::Whole(number) => ValueRef::Whole(number),
            Value::Huge => ValueRef::Huge,
            Value::Float(number) => ValueRef::Float(number),
            Value::Text(Text::Sent(span)) => ValueRef::Text(span.of(message)),
            Value::Text(Text::Made(span)) => ValueRef::Text(span.of(&self.made)),
            Value::Tuple(span) => {
                ValueRef::Items(items(&self.items[span.at as usize..][..span.len as usize]))
            }
            Value::List(at) => ValueRef::Items(items(&self.lists[at as usize])),
            Value::Dict(at) => ValueRef::Dict(items(&self.lists[at as usize])),
        }
    }
}
