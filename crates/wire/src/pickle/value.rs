//! The values of a decoded message, and the limits on them.
//!
//! Not here: decoding (`machine`).

use model::Span;

/// Most values that the opcodes of one message may make, and most memo entries: 200,000 points.
pub const VALUES_MAX: usize = 1_000_000;

/// Most lists and dicts of one message, because all are freed at once. A client without tuples makes two for each
/// point.
pub const LISTS_MAX: usize = 250_000;

/// Most containers that may be open at once (`MARK`s on the stack).
pub const DEPTH_MAX: usize = 32;

/// Why a message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickleError {
    /// It ends before its `STOP`, or a length in it reaches past its end.
    Truncated,
    /// An unsupported opcode: unknown, or one that makes an object.
    Opcode(u8),
    /// An opcode needs more values on the stack, or values of another type.
    Stack,
    /// A memo entry that was never stored, or an index over a limit: [`VALUES_MAX`], the bytes read before it, and
    /// the last index plus 65,536. Pickle writers number their entries in order.
    Memo,
    /// Over a limit: [`VALUES_MAX`] values, [`LISTS_MAX`] lists, [`DEPTH_MAX`] open containers, or 64 KiB of a number
    /// or an escaped string.
    TooMuch,
    /// A string or number that Python would reject too.
    Text,
    /// A protocol above 5.
    Protocol(u8),
}

/// Where the bytes of a string are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// In the message.
    Sent(Span),
    /// In [`Pickle::made`]: it had escapes.
    Made(Span),
}

/// A value on the stack: 16 bytes, containers by their index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Value {
    #[default]
    None,
    Whole(i64),
    Float(f64),
    Text(Text),
    /// An integer of more than 64 bits: no value is kept.
    Huge,
    /// A span of [`Pickle::items`].
    Tuple(Span),
    /// An index into [`Pickle::lists`]: lists, and dicts as alternating keys and values.
    List(u32),
    Dict(u32),
}

/// A decoded message, without its bytes: callers pass them again to read strings.
#[derive(Debug, Default)]
pub struct Pickle {
    pub(super) made: Vec<u8>,
    pub(super) items: Vec<Value>,
    pub(super) lists: Vec<Vec<Value>>,
    pub(super) root: Value,
}

/// A value, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// `None`.
    None,
    /// An integer; also `True` as 1 and `False` as 0.
    Whole(i64),
    /// An integer of more than 64 bits.
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

/// The values of a list or tuple, or the alternating keys and values of a dict.
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

    /// The two values, when there are exactly two.
    pub fn pair(&self) -> Option<(ValueRef<'a>, ValueRef<'a>)> {
        let [first, second] = self.values else { return None };
        Some((self.pickle.of(self.message, *first), self.pickle.of(self.message, *second)))
    }
}

impl Pickle {
    /// The top-level value. `message` is the decoded message.
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
