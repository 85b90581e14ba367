//! Numbers and attribute values of events, as they are stored and as they are read.
//!
//! The attributes of an event are entries, one behind the other. The entries of a list or map follow it; it has their number,
//! entries of inner lists and maps included. So an event can be copied without changing anything but its spans.

use std::fmt;

use crate::Span;

/// What stored numbers and values point into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool<'a> {
    pub(super) text: &'a str,
    pub(super) ratios: &'a [Ratio],
}

/// A number, as it is stored. [`NumberRef`] reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// An integer.
    I64(i64),
    /// A number of double precision.
    F64(f64),
    /// A number of single precision: it is printed with fewer digits than the same number of double precision.
    F32(f32),
    /// Index of an exact rational in the array of ratios.
    Ratio(u32),
    /// Decimal digits of an integer beyond 64 bits.
    BigInteger(Span),
}

/// A number of an event. Equal numbers have the same type and the same bits.
#[derive(Clone, Copy, Debug)]
pub enum NumberRef<'a> {
    /// An integer.
    I64(i64),
    /// A number of double precision.
    F64(f64),
    /// A number of single precision.
    F32(f32),
    /// An exact rational.
    Ratio(Ratio),
    /// Decimal digits of an integer beyond 64 bits, with `-` before them if it is negative.
    BigInteger(&'a str),
}

/// An exact rational in lowest terms that is no integer. Its denominator is above 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i64,
    denominator: i64,
}

impl Ratio {
    /// The quotient of two integers in lowest terms: an integer where nothing remains. `None` when the denominator is 0 or a
    /// part of the result needs more than 64 bits.
    pub fn of(numerator: i64, denominator: i64) -> Option<NumberRef<'static>> {
        if denominator == 0 {
            return None;
        }
        let divisor = i128::from(divisor(numerator.unsigned_abs(), denominator.unsigned_abs()));
        let divisor = if denominator < 0 { -divisor } else { divisor };
        let numerator = i64::try_from(i128::from(numerator) / divisor).ok()?;
        let denominator = i64::try_from(i128::from(denominator) / divisor).ok()?;
        Some(if denominator == 1 {
            NumberRef::I64(numerator)
        } else {
            NumberRef::Ratio(Ratio { numerator, denominator })
        })
    }

    /// Has the sign.
    pub fn numerator(self) -> i64 {
        self.numerator
    }

    /// Above 1.
    pub fn denominator(self) -> i64 {
        self.denominator
    }
}

/// The greatest common divisor; `b` is not 0.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

impl<'a> NumberRef<'a> {
    pub(super) fn of(number: Number, pool: Pool<'a>) -> NumberRef<'a> {
        match number {
            Number::I64(number) => NumberRef::I64(number),
            Number::F64(number) => NumberRef::F64(number),
            Number::F32(number) => NumberRef::F32(number),
            Number::Ratio(at) => NumberRef::Ratio(pool.ratios[at as usize]),
            Number::BigInteger(digits) => NumberRef::BigInteger(text_of(pool.text, digits)),
        }
    }

    /// Type and bits.
    fn parts(self) -> (u8, u64, u64, &'a str) {
        match self {
            NumberRef::I64(number) => (0, number as u64, 0, ""),
            NumberRef::F64(number) => (1, number.to_bits(), 0, ""),
            NumberRef::F32(number) => (2, u64::from(number.to_bits()), 0, ""),
            NumberRef::Ratio(Ratio { numerator, denominator }) => {
                (3, numerator as u64, denominator as u64, "")
            }
            NumberRef::BigInteger(digits) => (4, 0, 0, digits),
        }
    }
}

impl PartialEq for NumberRef<'_> {
    fn eq(&self, other: &NumberRef<'_>) -> bool {
        self.parts() == other.parts()
    }
}

/// An attribute, an item of a list (its key is empty) or an entry of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: Span,
    pub(super) value: Value,
}

const _: () = assert!(size_of::<Entry>() <= 24, "an entry is a key and a value of 16 bytes");

/// A value, as it is stored. [`ValueRef`] reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    Number(Number),
    Text(Span),
    Keyword(Span),
    /// Number of entries behind it that belong to it.
    List(u32),
    /// Number of entries behind it that belong to it.
    Map(u32),
}

impl Value {
    /// Number of entries behind it that belong to it.
    fn entries(self) -> usize {
        match self {
            Value::List(entries) | Value::Map(entries) => entries as usize,
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Keyword(_) => 0,
        }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// The attribute is present and has no value.
    Nil,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(NumberRef<'a>),
    /// A text.
    Text(&'a str),
    /// A keyword of Clojure, without its colon.
    Keyword(&'a str),
    /// A list of values.
    List(Items<'a>),
    /// Values by their keys.
    Map(Entries<'a>),
}

/// Attributes of an event, or entries of a map, in order.
#[derive(Clone)]
pub struct Entries<'a> {
    pool: Pool<'a>,
    rest: &'a [Entry],
}

impl<'a> Entries<'a> {
    pub(super) fn new(pool: Pool<'a>, entries: &'a [Entry]) -> Entries<'a> {
        Entries { pool, rest: entries }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let pool = self.pool;
        let (entry, rest) = self.rest.split_first()?;
        let (inner, rest) = rest.split_at(entry.value.entries());
        self.rest = rest;
        let inner = Entries { pool, rest: inner };
        let value = match entry.value {
            Value::Nil => ValueRef::Nil,
            Value::Bool(is_true) => ValueRef::Bool(is_true),
            Value::Number(number) => ValueRef::Number(NumberRef::of(number, pool)),
            Value::Text(text) => ValueRef::Text(text_of(pool.text, text)),
            Value::Keyword(name) => ValueRef::Keyword(text_of(pool.text, name)),
            Value::List(_) => ValueRef::List(Items(inner)),
            Value::Map(_) => ValueRef::Map(inner),
        };
        Some((text_of(pool.text, entry.key), value))
    }
}

impl PartialEq for Entries<'_> {
    fn eq(&self, other: &Entries<'_>) -> bool {
        self.clone().eq(other.clone())
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

/// Items of a list, in order.
#[derive(Clone, PartialEq)]
pub struct Items<'a>(Entries<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        self.0.next().map(|(_, value)| value)
    }
}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The text of a span.
pub(super) fn text_of(arena: &str, span: Span) -> &str {
    &arena[span.at as usize..][..span.len as usize]
}
