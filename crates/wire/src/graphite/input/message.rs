//! Messages of many points, as pickle (spec graphite §1.2) or protobuf (§1.3), to lines.
//!
//! Path of a packet: a frame of the source's connection -> [`Reader::open`] -> [`Reader::piece`], as often as there is more:
//! each element becomes the line that carbon would have sent for it -> [`Reader::packet`], whose personality then says what
//! becomes of it.
//! Not here: cutting the stream into frames (`frame`), opcodes (`pickle`).
//! Invariants: a message gives all its points and a reject for each element that is none, or one reject for the whole; what
//! its elements refer to is added up before any of it is looked at, so that a message costs a bounded number of steps for
//! each of its bytes; a piece is bounded whatever the message.

use model::{Reject, Span};

use super::number;
use super::{Parsed, Reader};
use crate::cost::touch;
use crate::number::js_format;
use crate::pickle::{self, Items, Pickle, ValueRef};

/// Most bytes of texts that the elements of one message may refer to. A pickle names a text once and may use it in every
/// element, and protobuf a name for all its points, so this is not bounded by the message's own length.
pub(super) const TEXTS_BYTES_MAX: usize = 16 << 20;

/// Most bytes of texts for each byte of the message. A point takes 17 bytes at least when its name stands elsewhere, so this
/// is met only by names of over 2,000 bytes, or by a message that repeats what is no whole point.
pub(super) const TEXTS_RATIO_MAX: usize = 128;

/// Bytes of lines, about, after which [`Reader::piece`] ends. An element more may be in it.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// What an element costs in a piece beside its texts: two numbers, at most so long, and what is between them.
const ELEMENT_BYTES: usize = 48;

/// What a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    /// A Python pickle of `[(name, (time, value)), …]`.
    Pickle,
    /// go-carbon's and carbon's protobuf `Payload`.
    Protobuf,
}

/// The message cannot be read.
#[derive(Debug)]
pub(crate) struct Bad;

/// A message that is good as a whole, and how far its elements have been read. Its bytes are lent for each step.
#[derive(Debug)]
pub struct Opened(Rest);

#[derive(Debug)]
enum Rest {
    Pickle {
        pickle: Pickle,
        /// The next element.
        next: usize,
    },
    Protobuf {
        /// The rest of the payload.
        payload: Fields,
        /// The metric that is being read: its name, and the rest of its fields.
        metric: Option<(Span, Fields)>,
    },
}

/// One element: its texts and numbers, borrowed from the message.
struct Element<'a> {
    name: &'a [u8],
    value: ValueRef<'a>,
    time: ValueRef<'a>,
}

impl Reader {
    /// Reads the whole message at `message` in `bytes`, which is one frame without its length, and appends to `into`.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn message(&self, form: MessageForm, bytes: &[u8], message: Span, now_s: u64, into: &mut Parsed) {
        let Some(mut opened) = self.open(form, bytes, message, into) else { return };
        while self.piece(&mut opened, bytes, message, now_s, into) {}
    }

    /// Looks at the whole message at `message` in `bytes`. None when it is bad, which is a reject in `into`.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn open(&self, form: MessageForm, bytes: &[u8], message: Span, into: &mut Parsed) -> Option<Opened> {
        let opened = Opened::new(form, message.of(bytes));
        if opened.is_err() {
            into.lines += 1;
            into.reject(Reject::BadMessage, message);
        }
        opened.ok()
    }

    /// Reads the next elements of the message at `message` in `bytes`, [`PIECE_BYTES_MAX`] or one more of them, and appends
    /// to `into`. True when there are more.
    pub fn piece(
        &self,
        opened: &mut Opened,
        bytes: &[u8],
        message: Span,
        now_s: u64,
        into: &mut Parsed,
    ) -> bool {
        let text = message.of(bytes);
        let mut lines = std::mem::take(&mut into.elements);
        let (mut bad, mut cost) = (0_u64, 0);
        let more = loop {
            if cost >= PIECE_BYTES_MAX {
                break true;
            }
            let Some(element) = opened.next(text) else { break false };
            touch(1);
            cost += ELEMENT_BYTES + element.as_ref().map_or(0, Element::texts_bytes);
            bad += u64::from(!element.is_some_and(|element| element.write(&mut lines)));
        };
        for _ in 0..bad {
            into.lines += 1;
            into.reject(Reject::BadElement, message);
        }
        let said = into.first_reject;
        self.packet(&lines, Span::new(0, lines.len()), now_s, into);
        // A complaint shows what came.
        into.first_reject = said.or(into.first_reject.map(|(why, _)| (why, message)));
        lines.clear();
        into.elements = lines;
        more
    }
}

impl Opened {
    pub(super) fn new(form: MessageForm, message: &[u8]) -> Result<Opened, Bad> {
        let most = TEXTS_BYTES_MAX.min(message.len().saturating_mul(TEXTS_RATIO_MAX));
        Opened::within(most, form, message)
    }

    /// With so many bytes of texts at most.
    pub(crate) fn within(most: usize, form: MessageForm, message: &[u8]) -> Result<Opened, Bad> {
        let mut opened = Opened::begin(form, message)?;
        let mut texts = 0_usize;
        while let Some(element) = opened.next(message) {
            texts += element.map_or(0, |element| element.texts_bytes());
            if texts > most {
                return Err(Bad);
            }
        }
        opened.rewind(message);
        Ok(opened)
    }

    /// At its first element; every field of a protobuf message has been looked at.
    fn begin(form: MessageForm, message: &[u8]) -> Result<Opened, Bad> {
        Ok(Opened(match form {
            MessageForm::Pickle => {
                let pickle = pickle::read(message).map_err(|_| Bad)?;
                let ValueRef::Items(_) = pickle.root(message) else { return Err(Bad) };
                Rest::Pickle { pickle, next: 0 }
            }
            MessageForm::Protobuf => {
                let payload = Fields::of(Span::new(0, message.len()));
                check_payload(message, payload)?;
                Rest::Protobuf { payload, metric: None }
            }
        }))
    }

    fn rewind(&mut self, message: &[u8]) {
        match &mut self.0 {
            Rest::Pickle { next, .. } => *next = 0,
            Rest::Protobuf { payload, metric } => {
                (*payload, *metric) = (Fields::of(Span::new(0, message.len())), None);
            }
        }
    }

    /// The next element: none when it is no point, and none at all behind the last one.
    fn next<'a>(&'a mut self, message: &'a [u8]) -> Option<Option<Element<'a>>> {
        match &mut self.0 {
            Rest::Pickle { pickle, next } => {
                let ValueRef::Items(points) = pickle.root(message) else { return None };
                let point = points.nth(*next)?;
                *next += 1;
                Some(pickled_point(point))
            }
            Rest::Protobuf { payload, metric } => loop {
                if let Some((name, fields)) = metric {
                    // What was checked does not fail.
                    while let Ok(Some((number, value))) = fields.next(message) {
                        if let (2, Wire::Bytes(point)) = (number, value) {
                            let (time, value) = self::point(message, point).ok()?;
                            let (time, value) = (ValueRef::Whole(i64::from(time)), ValueRef::Float(value));
                            return Some(Some(Element { name: name.of(message), value, time }));
                        }
                    }
                }
                *metric = None;
                let (number, value) = payload.next(message).ok()??;
                if let (1, Wire::Bytes(span)) = (number, value) {
                    *metric = Some((name_of(message, span).ok()?, Fields::of(span)));
                }
            },
        }
    }
}

impl Element<'_> {
    fn texts_bytes(&self) -> usize {
        let of = |value: ValueRef<'_>| if let ValueRef::Text(text) = value { text.len() } else { 0 };
        self.name.len() + of(self.value) + of(self.time)
    }

    /// Appends its line, or nothing and gives false.
    fn write(&self, out: &mut Vec<u8>) -> bool {
        touch(self.texts_bytes());
        let begin = out.len();
        if self.name.is_empty() || !self.name.iter().all(|byte| *byte > b' ') {
            return false;
        }
        out.extend_from_slice(self.name);
        out.push(b' ');
        let written = write_value(self.value, out).and_then(|()| {
            out.push(b' ');
            write_time(self.time, out)
        });
        match written {
            Some(()) => out.push(b'\n'),
            None => out.truncate(begin),
        }
        written.is_some()
    }
}

/// `(name, (time, value))`.
fn pickled_point(point: ValueRef<'_>) -> Option<Element<'_>> {
    let pair = |value| if let ValueRef::Items(items) = value { Items::pair(&items) } else { None };
    let (name, point) = pair(point)?;
    let (time, value) = pair(point)?;
    let ValueRef::Text(name) = name else { return None };
    Some(Element { name, value, time })
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
fn check_payload(message: &[u8], mut payload: Fields) -> Result<(), Bad> {
    while let Some((number, value)) = payload.next(message)? {
        let (1, Wire::Bytes(metric)) = (number, value) else { continue };
        let mut fields = Fields::of(metric);
        while let Some((number, value)) = fields.next(message)? {
            if let (2, Wire::Bytes(point)) = (number, value) {
                self::point(message, point)?;
            }
        }
    }
    Ok(())
}

/// The name of `Metric { string metric = 1; repeated Point points = 2 }`. The fields may come in any order.
fn name_of(message: &[u8], metric: Span) -> Result<Span, Bad> {
    let mut name = Span::default();
    let mut fields = Fields::of(metric);
    while let Some((number, value)) = fields.next(message)? {
        if let (1, Wire::Bytes(text)) = (number, value) {
            name = text;
        }
    }
    Ok(name)
}

/// `Point { uint32 timestamp = 1; double value = 2 }`. What is 0 need not be there.
fn point(message: &[u8], point: Span) -> Result<(u32, f64), Bad> {
    let (mut time, mut value) = (0, 0.0);
    let mut fields = Fields::of(point);
    while let Some(field) = fields.next(message)? {
        match field {
            (1, Wire::Whole(number)) => time = number as u32,
            (2, Wire::Eight(bytes)) => value = f64::from_le_bytes(bytes),
            _ => {}
        }
    }
    Ok((time, value))
}

enum Wire {
    Whole(u64),
    Eight([u8; 8]),
    Bytes(Span),
    Four,
}

/// The fields of a protobuf message, those that are not known included: what of them is still to be read.
#[derive(Clone, Copy, Debug)]
struct Fields {
    at: usize,
    end: usize,
}

impl Fields {
    fn of(span: Span) -> Fields {
        Fields { at: span.at as usize, end: span.at as usize + span.len as usize }
    }

    fn next(&mut self, message: &[u8]) -> Result<Option<(u64, Wire)>, Bad> {
        if self.at == self.end {
            return Ok(None);
        }
        let key = self.whole(message)?;
        let value = match key & 7 {
            0 => Wire::Whole(self.whole(message)?),
            1 => Wire::Eight(*self.take(8)?.of(message).first_chunk().ok_or(Bad)?),
            2 => {
                let len = usize::try_from(self.whole(message)?).map_err(|_| Bad)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Wire::Four)?,
            _ => return Err(Bad),
        };
        Ok(Some((key >> 3, value)))
    }

    fn whole(&mut self, message: &[u8]) -> Result<u64, Bad> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.of(message)[0];
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Bad)
    }

    fn take(&mut self, len: usize) -> Result<Span, Bad> {
        touch(1);
        if len > self.end - self.at {
            return Err(Bad);
        }
        let taken = Span::new(self.at, len);
        self.at += len;
        Ok(taken)
    }
}
