//! Values as bytes, and back.
//!
//! Numbers are of a fixed size or in base 128 (the lowest seven bits first), texts and collections have their length before them.
//! A reader takes whatever it gets: it never allocates more than a multiple of the bytes that are left.
//!
//! Values share their parts: forty vectors that each have the one before it twice are small in memory, and a trillion of values here. So
//! each value is written within a number of bytes, and long texts and lists of tags that several events have are written once
//! ([`super::shared`]).

use std::sync::Arc;

use arcstr::ArcStr;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use super::shared::Shared;
use crate::event::{Event, Field};
use crate::number::Number;
use crate::object::pattern::Pattern;
use crate::object::time::{Moment, Zone};
use crate::symbol::Symbol;
use crate::value::Value;

/// Collections in each other, at most.
const DEPTH_MAX: u32 = 200;
/// Bytes of one value, at most.
pub const VALUE_BYTES_MAX: usize = 128 << 20;
/// Bytes of one field of an event, and of an attribute that is a text: what a message has room for.
const FIELD_BYTES_MAX: usize = 17 << 20;
/// Bytes of an attribute that is a collection, which only functions of the config make.
const COLLECTION_BYTES_MAX: usize = 1 << 20;

mod tag {
    pub(super) const NIL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const BIG: u8 = 4;
    pub(super) const RATIO: u8 = 5;
    pub(super) const FLOAT: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const CHAR: u8 = 8;
    pub(super) const TEXT: u8 = 9;
    pub(super) const KEYWORD: u8 = 10;
    pub(super) const SYMBOL: u8 = 11;
    pub(super) const LIST: u8 = 12;
    pub(super) const VECTOR: u8 = 13;
    pub(super) const MAP: u8 = 14;
    pub(super) const SET: u8 = 15;
    pub(super) const EVENT: u8 = 16;
    pub(super) const PATTERN: u8 = 17;
    pub(super) const DATE: u8 = 18;
    pub(super) const JODA_DATE: u8 = 19;
    /// A text or a list of tags that was written before, by its number.
    pub(super) const AGAIN: u8 = 20;
}

/// Bytes that a state is written to.
#[derive(Debug, Default)]
pub struct Archive {
    /// What was written.
    pub bytes: Vec<u8>,
    /// Values that cannot be saved: nil was written.
    pub lost: u64,
    /// Values that are too large: nil was written, or nothing.
    pub too_large: u64,
    /// What can be referred to.
    pub(super) shared: Shared,
    /// The bytes of the value at hand end here at the latest.
    end: usize,
    /// The value at hand does not fit.
    is_over: bool,
    /// Bytes that were written and taken back.
    discarded: usize,
}

/// A state of an archive, to go back to.
#[derive(Clone, Copy, Debug)]
struct Mark {
    bytes: usize,
    shared: usize,
    lost: u64,
    too_large: u64,
}

impl Archive {
    /// Goes on with these bytes, and with what those before them can refer to.
    pub(super) fn of(bytes: Vec<u8>, shared: Shared) -> Archive {
        Archive { bytes, shared, ..Archive::default() }
    }

    /// Writes a number that is mostly small.
    pub fn count(&mut self, mut count: u64) {
        while count >= 0x80 {
            self.bytes.push(count as u8 | 0x80);
            count >>= 7;
        }
        self.bytes.push(count as u8);
    }

    /// Writes bytes with their length.
    pub fn text(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a number.
    pub fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a value; nil if it takes more than [`VALUE_BYTES_MAX`].
    pub fn value(&mut self, value: &Value) {
        if !self.value_within(value, VALUE_BYTES_MAX) {
            self.too_large += 1;
            self.bytes.push(tag::NIL);
        }
    }

    /// Writes a value, unless it takes more than so many bytes. Returns whether it was written: otherwise nothing is.
    pub fn value_within(&mut self, value: &Value, most: usize) -> bool {
        let mark = self.mark();
        self.end = mark.bytes.saturating_add(most);
        self.nested(value, DEPTH_MAX);
        self.check_end();
        let is_written = !self.is_over;
        if !is_written {
            self.back_to(mark);
        }
        is_written
    }

    fn mark(&self) -> Mark {
        let Archive { bytes, lost, too_large, shared, .. } = self;
        Mark { bytes: bytes.len(), shared: shared.len(), lost: *lost, too_large: *too_large }
    }

    fn back_to(&mut self, mark: Mark) {
        self.discarded += self.bytes.len() - mark.bytes;
        self.bytes.truncate(mark.bytes);
        self.shared.truncate(mark.shared);
        (self.lost, self.too_large, self.is_over) = (mark.lost, mark.too_large, false);
    }

    fn check_end(&mut self) {
        self.is_over |= self.bytes.len() > self.end;
    }

    /// A part of a value: nil if it takes more than so many bytes. Bytes that are taken back count for the value, so that its parts
    /// cannot keep the thread busy.
    fn limited(&mut self, value: &Value, most: usize, depth: u32) {
        let (mark, outer, discarded) = (self.mark(), self.end, self.discarded);
        self.end = outer.min(mark.bytes.saturating_add(most));
        let is_own_limit = self.end < outer;
        self.nested(value, depth);
        self.check_end();
        if self.is_over && is_own_limit {
            self.back_to(mark);
            self.too_large += 1;
            self.bytes.push(tag::NIL);
        }
        self.end = outer.saturating_sub(self.discarded - discarded);
    }

    fn nested(&mut self, value: &Value, depth: u32) {
        self.check_end();
        if self.is_over {
            return;
        }
        let Some(inner) = depth.checked_sub(1) else { return self.lose() };
        match value {
            Value::Nil => self.bytes.push(tag::NIL),
            Value::Bool(value) => self.bytes.push(if *value { tag::TRUE } else { tag::FALSE }),
            Value::Number(number) => self.any_number(number),
            Value::Char(char) => self.tagged(tag::CHAR, char.encode_utf8(&mut [0; 4]).as_bytes()),
            Value::Text(text) => self.once(value, |to| to.tagged(tag::TEXT, text.as_bytes())),
            Value::Keyword(name) => self.tagged(tag::KEYWORD, name.as_bytes()),
            Value::Symbol(symbol) => self.tagged(tag::SYMBOL, symbol.name.as_bytes()),
            Value::List(list) => self.all(tag::LIST, list.len(), list.iter(), inner),
            Value::Vector(vector) => self.all(tag::VECTOR, vector.len(), vector.iter(), inner),
            Value::Set(set) => self.all(tag::SET, set.len(), set.iter(), inner),
            Value::Map(map) => {
                let entries = map.iter().flat_map(|(key, value)| [key, value]);
                self.all(tag::MAP, map.len(), entries, inner);
            }
            Value::Event(event) => self.event(event, inner),
            Value::Pattern(pattern) => self.tagged(tag::PATTERN, pattern.source.as_bytes()),
            Value::Moment(moment) => {
                self.bytes.push(if moment.is_joda { tag::JODA_DATE } else { tag::DATE });
                self.number(moment.milliseconds.cast_unsigned());
                if moment.is_joda {
                    self.text(moment.zone.name().as_bytes());
                }
            }
            Value::Seq(_)
            | Value::Closure(_)
            | Value::Native(_)
            | Value::Bound(_)
            | Value::Stream(_)
            | Value::Var(_)
            | Value::Atom(_)
            | Value::Delay(_)
            | Value::Exception(_)
            | Value::Class(_)
            | Value::Namespace(_) => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.lost += 1;
        self.bytes.push(tag::NIL);
    }

    /// Writes a value, or its number if it was written before.
    fn once(&mut self, value: &Value, write: impl FnOnce(&mut Archive)) {
        if let Some(number) = self.shared.number(value) {
            self.bytes.push(tag::AGAIN);
            return self.count(number);
        }
        let start = self.bytes.len();
        write(self);
        if !self.is_over {
            self.shared.add(value, self.bytes.len() - start);
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        if bytes.len() > self.end.saturating_sub(self.bytes.len()) {
            self.is_over = true;
            return;
        }
        self.bytes.push(tag);
        self.text(bytes);
    }

    fn all<'v>(&mut self, tag: u8, count: usize, values: impl Iterator<Item = &'v Value>, depth: u32) {
        self.bytes.push(tag);
        self.count(count as u64);
        for value in values {
            if self.is_over {
                return;
            }
            self.nested(value, depth);
        }
    }

    fn any_number(&mut self, number: &Number) {
        match number {
            Number::Int(value) => {
                self.bytes.push(tag::INT);
                self.number(value.cast_unsigned());
            }
            Number::Big(value) => self.tagged(tag::BIG, &value.to_signed_bytes_le()),
            Number::Ratio(value) => {
                self.tagged(tag::RATIO, &value.numer().to_signed_bytes_le());
                self.text(&value.denom().to_signed_bytes_le());
            }
            Number::Float(value) => {
                self.bytes.push(tag::FLOAT);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Number::Double(value) => {
                self.bytes.push(tag::DOUBLE);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    fn event(&mut self, event: &Event, depth: u32) {
        self.bytes.push(tag::EVENT);
        for field in Field::ALL {
            match (field, event.get(field)) {
                (Field::Tags, tags @ Value::Vector(_)) => {
                    self.once(tags, |to| to.limited(tags, FIELD_BYTES_MAX, depth));
                }
                (_, value) => self.limited(value, FIELD_BYTES_MAX, depth),
            }
        }
        self.count(event.attributes().len() as u64);
        for (name, value) in event.attributes() {
            if self.is_over {
                return;
            }
            let most = if matches!(value, Value::Text(_)) { FIELD_BYTES_MAX } else { COLLECTION_BYTES_MAX };
            self.text(name.as_bytes());
            self.limited(value, most, depth);
        }
    }
}

/// The bytes are no state, or not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged")]
pub struct Damaged;

/// Reads what an [`Archive`] wrote.
#[derive(Clone, Debug)]
pub struct Reader<'b> {
    left: &'b [u8],
    /// What can be referred to.
    shared: Shared,
}

impl<'b> Reader<'b> {
    /// Reads these bytes.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { left: bytes, shared: Shared::default() }
    }

    /// Reads these bytes, which may refer to those before them.
    pub(super) fn go_on(&mut self, bytes: &'b [u8]) {
        self.left = bytes;
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// The next byte.
    ///
    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.bytes::<1>()?[0])
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (bytes, left) = self.left.split_first_chunk().ok_or(Damaged)?;
        self.left = left;
        Ok(*bytes)
    }

    /// A number that [`Archive::count`] wrote.
    ///
    /// # Errors
    /// If it is not whole, or past 64 bits.
    pub fn count(&mut self) -> Result<u64, Damaged> {
        let mut count = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            count |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(count);
            }
        }
        Err(Damaged)
    }

    /// A number that [`Archive::number`] wrote.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn number(&mut self) -> Result<u64, Damaged> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Bytes with their length.
    ///
    /// # Errors
    /// If they are not whole.
    pub fn text(&mut self) -> Result<&'b [u8], Damaged> {
        let len = usize::try_from(self.count()?).map_err(|_| Damaged)?;
        let (text, left) = self.left.split_at_checked(len).ok_or(Damaged)?;
        self.left = left;
        Ok(text)
    }

    /// A text with its length.
    ///
    /// # Errors
    /// If it is not whole, or not UTF-8.
    pub fn str(&mut self) -> Result<ArcStr, Damaged> {
        std::str::from_utf8(self.text()?).map(ArcStr::from).map_err(|_| Damaged)
    }

    /// A value.
    ///
    /// # Errors
    /// If it is none.
    pub fn value(&mut self) -> Result<Value, Damaged> {
        self.nested(DEPTH_MAX)
    }

    fn nested(&mut self, depth: u32) -> Result<Value, Damaged> {
        let inner = depth.checked_sub(1).ok_or(Damaged)?;
        Ok(match self.byte()? {
            tag::NIL => Value::Nil,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => Value::from(self.number()?.cast_signed()),
            tag::BIG => Value::Number(Number::Big(Arc::new(BigInt::from_signed_bytes_le(self.text()?)))),
            tag::RATIO => Value::Number(Number::Ratio(Arc::new(self.ratio()?))),
            tag::FLOAT => Value::Number(Number::Float(f32::from_le_bytes(self.bytes()?))),
            tag::DOUBLE => Value::from(f64::from_le_bytes(self.bytes()?)),
            tag::CHAR => Value::Char(self.str()?.chars().next().ok_or(Damaged)?),
            tag::TEXT => {
                let start = self.left.len();
                let text = Value::Text(self.str()?);
                // With the tag.
                self.shared.add(&text, 1 + start - self.left.len());
                text
            }
            tag::AGAIN => {
                let number = self.count()?;
                self.shared.value(number).ok_or(Damaged)?
            }
            tag::KEYWORD => Value::Keyword(self.str()?),
            tag::SYMBOL => Value::Symbol(Arc::new(Symbol::new(self.str()?))),
            tag::LIST => Value::list(self.all(1, inner)?),
            tag::VECTOR => Value::vector(self.all(1, inner)?),
            tag::SET => Value::set(self.all(1, inner)?),
            tag::MAP => {
                let mut entries = self.all(2, inner)?.into_iter();
                Value::map(std::iter::from_fn(|| Some((entries.next()?, entries.next()?))))
            }
            tag::EVENT => Value::Event(Arc::new(self.event(inner)?)),
            tag::PATTERN => Value::Pattern(Arc::new(Pattern::new(self.str()?).map_err(|_| Damaged)?)),
            tag::DATE => Value::Moment(Arc::new(Moment::date(self.number()?.cast_signed()))),
            tag::JODA_DATE => {
                let milliseconds = self.number()?.cast_signed();
                let zone = Zone::find(&self.str()?).ok_or(Damaged)?;
                Value::Moment(Arc::new(Moment::joda(milliseconds, zone)))
            }
            _ => return Err(Damaged),
        })
    }

    /// So many times the counted number of values. Each has a byte at least, so that a count past the bytes is damage.
    fn all(&mut self, times: usize, depth: u32) -> Result<Vec<Value>, Damaged> {
        let count = usize::try_from(self.count()?).ok().and_then(|count| count.checked_mul(times));
        let count = count.filter(|count| *count <= self.left.len()).ok_or(Damaged)?;
        (0..count).map(|_| self.nested(depth)).collect()
    }

    fn ratio(&mut self) -> Result<BigRational, Damaged> {
        let top = BigInt::from_signed_bytes_le(self.text()?);
        let bottom = BigInt::from_signed_bytes_le(self.text()?);
        if bottom.is_zero() {
            return Err(Damaged);
        }
        let ratio = BigRational::new(top, bottom);
        // A whole one would be an integer.
        if ratio.is_integer() { Err(Damaged) } else { Ok(ratio) }
    }

    fn event(&mut self, depth: u32) -> Result<Event, Damaged> {
        let mut event = Event::default();
        for field in Field::ALL {
            let (start, first) = (self.left.len(), self.left.first().copied());
            let value = self.nested(depth)?;
            if field == Field::Tags && first == Some(tag::VECTOR) {
                self.shared.add(&value, start - self.left.len());
            }
            event.set(field, value);
        }
        for _ in 0..self.count()? {
            let name = self.str()?;
            if Field::of(&name).is_some() {
                return Err(Damaged);
            }
            event.set_attribute(name, self.nested(depth)?);
        }
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collections::element::Element;
    use crate::language::budget::Limits;
    use crate::language::host::Nowhere;
    use crate::language::machine::Machine;
    use crate::language::tests::graph;

    fn evaluate(text: &str) -> Value {
        let mut graph = graph(Nowhere::default());
        Machine::new(&mut graph, Limits::EVENT).load(text, "t").expect("it evaluates")
    }

    #[test]
    fn values_come_back_from_their_bytes() {
        let table = [
            "nil",
            "true",
            "false",
            "0",
            "-9223372036854775808",
            "12345678901234567890N",
            "-7N",
            "1/3",
            "-22/7",
            "1.5",
            "(float 0.1)",
            "##-Inf",
            r"\a",
            r"\ü",
            "\"\"",
            "\"täxt\"",
            ":k",
            ":a/b",
            "'sym",
            "'(1 2)",
            "[]",
            "[1 [2 [3 {:a nil}]]]",
            "{:a 1, \"b\" #{1 2}}",
            "#{}",
            "(java.util.Date. 5)",
        ];
        for text in table {
            let value = evaluate(text);
            let mut archive = Archive::default();
            archive.value(&value);
            let mut reader = Reader::new(&archive.bytes);
            let read = reader.value().unwrap();
            assert!(read.equal(&value), "{text}: {read:?}");
            assert_eq!((reader.left(), archive.lost), (0, 0), "{text}");
            for end in 0..archive.bytes.len() {
                assert!(Reader::new(&archive.bytes[..end]).value().is_err(), "{text} cut at {end}");
            }
        }
    }

    #[test]
    fn dates_keep_their_zone() {
        for zone in [Zone::UTC, Zone::Fixed(-5_400), Zone::find("Europe/Berlin").expect("a zone")] {
            let mut archive = Archive::default();
            archive.value(&Value::Moment(Arc::new(Moment::joda(-7, zone))));
            let read = Reader::new(&archive.bytes).value();
            assert!(
                matches!(read, Ok(Value::Moment(moment)) if *moment == Moment::joda(-7, zone)),
                "{zone:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_saved_is_nil_and_counted() {
        let mut archive = Archive::default();
        archive.value(&evaluate("[1 inc (fn [x] x) (atom 2) (map inc [1])]"));
        let read = Reader::new(&archive.bytes).value().unwrap();
        assert!(read.equal(&evaluate("[1 nil nil nil nil]")), "{read:?}");
        assert_eq!(archive.lost, 4);
    }

    #[test]
    fn a_count_past_the_bytes_reserves_nothing() {
        let mut archive = Archive::default();
        archive.bytes.push(tag::VECTOR);
        archive.count(1 << 60);
        assert_eq!(Reader::new(&archive.bytes).value().unwrap_err(), Damaged);
        let deep: Vec<u8> = [tag::VECTOR, 1].repeat(100_000);
        assert_eq!(Reader::new(&deep).value().unwrap_err(), Damaged);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_damaged(bytes in prop::collection::vec(0..32_u8, 0..64)) {
            let _read = Reader::new(&bytes).value();
        }
    }
}
