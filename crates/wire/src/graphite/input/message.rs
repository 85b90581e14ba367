//! Messages of many points, as pickle (spec graphite §1.2) or protobuf (§1.3), to lines.
//!
//! Path of a packet: a frame of the source's connection -> [`Reader::message`] -> each element as the line that carbon would
//! have sent for it -> [`Reader::packet`], whose personality then says what becomes of it.
//! Not here: cutting the stream into frames (`frame`), opcodes (`pickle`).
//! Invariant: a message gives all its points and a reject for each element that is none, or one reject for the whole.

use model::{Reject, Span};

use super::number;
use super::{Parsed, Reader};
use crate::number::js_format;
use crate::pickle::{self, Items, ValueRef};

/// Most bytes of lines that one message may become. A pickle names a text once and may use it in every element, so this
/// is not bounded by the message's own length.
pub(super) const LINES_BYTES_MAX: usize = 16 << 20;

/// What a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    /// A Python pickle of `[(name, (time, value)), …]`.
    Pickle,
    /// go-carbon's and carbon's protobuf `Payload`.
    Protobuf,
}

/// The message cannot be read.
struct Bad;

/// Elements on their way to be read as lines.
#[derive(Default)]
struct Elements {
    lines: Vec<u8>,
    bad: u64,
}

impl Reader {
    /// Reads the message at `message` in `bytes`, which is one frame without its length, and appends to `into`.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn message(&self, form: MessageForm, bytes: &[u8], message: Span, now_s: u64, into: &mut Parsed) {
        let mut elements = Elements::default();
        let text = message.of(bytes);
        let read = match form {
            MessageForm::Pickle => pickled(text, &mut elements),
            MessageForm::Protobuf => payload(text, &mut elements),
        };
        if read.is_err() {
            into.lines += 1;
            into.reject(Reject::BadMessage, message);
            return;
        }
        for _ in 0..elements.bad {
            into.lines += 1;
            into.reject(Reject::BadElement, message);
        }
        let said = into.first_reject;
        self.packet(&elements.lines, Span::new(0, elements.lines.len()), now_s, into);
        // A complaint shows what came.
        into.first_reject = said.or(into.first_reject.map(|(why, _)| (why, message)));
    }
}

impl Elements {
    /// Adds the line of an element; `write` appends the value, a blank and the time, or says that they are none.
    ///
    /// # Errors
    /// When the lines become too many bytes.
    fn add(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Result<(), Bad> {
        let begin = self.lines.len();
        if begin + name.len() > LINES_BYTES_MAX {
            return Err(Bad);
        }
        let fits = !name.is_empty() && name.iter().all(|byte| *byte > b' ');
        self.lines.extend_from_slice(name);
        self.lines.push(b' ');
        if fits && write(&mut self.lines).is_some() {
            self.lines.push(b'\n');
        } else {
            self.lines.truncate(begin);
            self.bad += 1;
        }
        if self.lines.len() > LINES_BYTES_MAX { Err(Bad) } else { Ok(()) }
    }
}

fn pickled(message: &[u8], elements: &mut Elements) -> Result<(), Bad> {
    let pickle = pickle::read(message).map_err(|_| Bad)?;
    let ValueRef::Items(points) = pickle.root() else { return Err(Bad) };
    for point in points.iter() {
        match pickled_point(point) {
            Some((name, time, value)) => elements.add(name, |out| {
                write_value(value, out)?;
                out.push(b' ');
                write_time(time, out)
            })?,
            None => elements.bad += 1,
        }
    }
    Ok(())
}

/// Name, time and value of `(name, (time, value))`.
fn pickled_point(point: ValueRef<'_>) -> Option<(&[u8], ValueRef<'_>, ValueRef<'_>)> {
    let pair = |value| if let ValueRef::Items(items) = value { Items::pair(&items) } else { None };
    let (name, point) = pair(point)?;
    let (time, value) = pair(point)?;
    let ValueRef::Text(name) = name else { return None };
    Some((name, time, value))
}

fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) -> Option<()> {
    match value {
        ValueRef::Whole(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        ValueRef::Float(number) => write_float(number, out),
        ValueRef::Text(text) => {
            number::read(text)?;
            out.extend_from_slice(text);
        }
        ValueRef::None | ValueRef::Huge | ValueRef::Items(_) | ValueRef::Dict(_) => return None,
    }
    Some(())
}

/// The shortest digits that mean the same number.
fn write_float(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        js_format(number, out);
    } else if number.is_nan() {
        out.extend_from_slice(b"nan");
    } else {
        out.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    }
}

/// Floats lose their fraction, as carbon's own line client has it.
fn write_time(time: ValueRef<'_>, out: &mut Vec<u8>) -> Option<()> {
    const WHOLE_END: f64 = 9_007_199_254_740_992.0;
    match time {
        ValueRef::Float(seconds) if seconds.abs() < WHOLE_END => {
            write_value(ValueRef::Whole(seconds as i64), out)
        }
        ValueRef::Float(_) => None,
        other => write_value(other, out),
    }
}

/// `Payload { repeated Metric metrics = 1 }`.
fn payload(message: &[u8], elements: &mut Elements) -> Result<(), Bad> {
    let mut fields = Fields(message);
    while let Some((number, value)) = fields.next()? {
        if let (1, Wire::Bytes(metric)) = (number, value) {
            self::metric(metric, elements)?;
        }
    }
    Ok(())
}

/// `Metric { string metric = 1; repeated Point points = 2 }`. The fields may come in any order.
fn metric(message: &[u8], elements: &mut Elements) -> Result<(), Bad> {
    let mut name: &[u8] = b"";
    let mut fields = Fields(message);
    while let Some((number, value)) = fields.next()? {
        if let (1, Wire::Bytes(text)) = (number, value) {
            name = text;
        }
    }
    let mut fields = Fields(message);
    while let Some((number, value)) = fields.next()? {
        if let (2, Wire::Bytes(point)) = (number, value) {
            let (time, value) = self::point(point)?;
            elements.add(name, |out| {
                write_float(value, out);
                out.push(b' ');
                write_value(ValueRef::Whole(i64::from(time)), out)
            })?;
        }
    }
    Ok(())
}

/// `Point { uint32 timestamp = 1; double value = 2 }`. What is 0 need not be there.
fn point(message: &[u8]) -> Result<(u32, f64), Bad> {
    let (mut time, mut value) = (0, 0.0);
    let mut fields = Fields(message);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Whole(number)) => time = number as u32,
            (2, Wire::Eight(bytes)) => value = f64::from_le_bytes(bytes),
            _ => {}
        }
    }
    Ok((time, value))
}

enum Wire<'a> {
    Whole(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four,
}

/// The fields of a protobuf message, those that are not known included.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, Bad> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.whole()?;
        let value = match key & 7 {
            0 => Wire::Whole(self.whole()?),
            1 => Wire::Eight(*self.take(8)?.first_chunk().ok_or(Bad)?),
            2 => {
                let len = usize::try_from(self.whole()?).map_err(|_| Bad)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Wire::Four)?,
            _ => return Err(Bad),
        };
        Ok(Some((key >> 3, value)))
    }

    fn whole(&mut self) -> Result<u64, Bad> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Bad)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Bad)?;
        self.0 = rest;
        Ok(taken)
    }
}
