//! Messages of many points, as pickle (spec graphite §1.2) or protobuf (§1.3), to lines.
//!
//! Path of a packet: a frame of the source's connection -> [`Opened::new`] -> [`Reader::piece`], as often as there is more: the
//! message is looked at as a whole, then each element becomes the line that carbon would have sent for it ->
//! [`Reader::packet`], whose compatibility then says what becomes of it.
//! Not here: cutting the stream into frames (`frame`), opcodes (`pickle`), fields (`protobuf`).
//! Invariants: a message gives all its points and a reject for each element that is none, or one reject for the whole; what
//! its elements refer to is added up before any of it is looked at, so that a message costs a bounded number of steps for
//! each of its bytes; a piece is bounded whatever the message, in what it gives and in what it takes to look at.

use model::{Reject, Span};

use super::number;
use super::protobuf::{self, Found};
use super::{Parsed, Reader};
use crate::cost::touch;
use crate::number::js_format;
use crate::pickle::{Items, Pickle, Reading, ValueRef};

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

/// Most bytes of the texts of one element: as much as a line of the same source may have.
const ELEMENT_BYTES_MAX: usize = 64 * 1024;

/// What a field that is no element costs in a piece: as long as the least one takes to look at.
const FIELD_BYTES: usize = 4;

/// Bytes of opcodes, elements and fields that are looked at in one step, before it is known whether the message is good: less
/// than a millisecond each.
const LOOK_MAX: usize = 32 * 1024;

/// What a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEncoding {
    /// A Python pickle of `[(name, (time, value)), …]`.
    Pickle,
    /// go-carbon's and carbon's protobuf `Payload`.
    Protobuf,
}

/// The message cannot be read.
#[derive(Debug)]
pub(super) struct Bad;

/// A message, and how far it has been read. Its bytes are lent for each step.
#[derive(Debug)]
pub struct Opened {
    state: State,
    /// Most bytes of texts that its elements may refer to.
    texts_max: usize,
}

#[derive(Debug)]
enum State {
    /// Its opcodes are run.
    Opcodes(Box<Reading>),
    Pickle {
        pickle: Pickle,
        /// The next element.
        next: usize,
        /// Bytes of texts before it, while they are added up.
        texts: Option<usize>,
    },
    /// Its fields are looked at.
    Fields(protobuf::Check),
    Points(protobuf::Points),
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
    pub fn message(&self, form: MessageEncoding, bytes: &[u8], message: Span, now_s: u64, into: &mut Parsed) {
        let mut opened = Opened::new(form, message.of(bytes));
        while self.piece(&mut opened, bytes, message, now_s, into) {}
    }

    /// Goes on with the message at `message` in `bytes`: looks at some more of it or, once it has been looked at as a whole, reads
    /// elements of [`PIECE_BYTES_MAX`] and one more, and appends to `into`: one reject when it is bad as a whole. True when there
    /// is more.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn piece(
        &self,
        opened: &mut Opened,
        bytes: &[u8],
        message: Span,
        now_s: u64,
        into: &mut Parsed,
    ) -> bool {
        let text = message.of(bytes);
        match opened.look(text) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(Bad) => {
                into.lines += 1;
                into.reject(Reject::BadMessage, message);
                return false;
            }
        }
        let mut lines = std::mem::take(&mut into.elements);
        let (mut bad, mut cost) = (0_u64, 0);
        let more = loop {
            if cost >= PIECE_BYTES_MAX {
                break true;
            }
            touch(1);
            match opened.next(text) {
                Next::Element(element) => {
                    cost += ELEMENT_BYTES + element.as_ref().map_or(0, Element::texts_bytes);
                    bad += u64::from(!element.is_some_and(|element| element.write(&mut lines)));
                }
                Next::Other => cost += FIELD_BYTES,
                Next::End => break false,
            }
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

/// What comes next in a message.
enum Next<'a> {
    /// An element: none when it is no point.
    Element(Option<Element<'a>>),
    /// Something that is none.
    Other,
    End,
}

impl Opened {
    /// A message of which nothing has been looked at.
    pub fn new(form: MessageEncoding, message: &[u8]) -> Opened {
        let most = TEXTS_BYTES_MAX.min(message.len().saturating_mul(TEXTS_RATIO_MAX));
        Opened::within(most, form, message)
    }

    /// With so many bytes of texts at most.
    pub(crate) fn within(texts_max: usize, form: MessageEncoding, message: &[u8]) -> Opened {
        let state = match form {
            MessageEncoding::Pickle => State::Opcodes(Box::default()),
            MessageEncoding::Protobuf => State::Fields(protobuf::Check::new(message)),
        };
        Opened { state, texts_max }
    }

    /// Looks at some more of it. True once it is good as a whole, which a short one is at once.
    pub(super) fn look(&mut self, message: &[u8]) -> Result<bool, Bad> {
        if let State::Opcodes(reading) = &mut self.state {
            let Some(pickle) = reading.step(message, LOOK_MAX).map_err(|_| Bad)? else { return Ok(false) };
            let ValueRef::Items(_) = pickle.root(message) else { return Err(Bad) };
            self.state = State::Pickle { pickle, next: 0, texts: Some(0) };
        }
        match &mut self.state {
            State::Opcodes(_) | State::Points(_) => {}
            State::Pickle { pickle, next, texts } => {
                let Some(sum) = texts else { return Ok(true) };
                let ValueRef::Items(points) = pickle.root(message) else { return Err(Bad) };
                for _ in 0..LOOK_MAX {
                    let Some(point) = points.nth(*next) else {
                        (*next, *texts) = (0, None);
                        return Ok(true);
                    };
                    *next += 1;
                    *sum += pickled_point(point).map_or(0, |element| element.texts_bytes());
                    if *sum > self.texts_max {
                        return Err(Bad);
                    }
                }
                return Ok(false);
            }
            State::Fields(check) => match check.step(message, LOOK_MAX, self.texts_max)? {
                true => self.state = State::Points(protobuf::Points::new(message)),
                false => return Ok(false),
            },
        }
        Ok(true)
    }

    fn next<'a>(&'a mut self, message: &'a [u8]) -> Next<'a> {
        match &mut self.state {
            State::Opcodes(_) | State::Fields(_) => Next::End,
            State::Pickle { pickle, next, .. } => {
                let ValueRef::Items(points) = pickle.root(message) else { return Next::End };
                let Some(point) = points.nth(*next) else { return Next::End };
                *next += 1;
                Next::Element(pickled_point(point))
            }
            State::Points(points) => match points.next(message) {
                Found::Point(name, time, value) => {
                    let (time, value) = (ValueRef::Whole(i64::from(time)), ValueRef::Float(value));
                    Next::Element(Some(Element { name: name.of(message), value, time }))
                }
                Found::Other => Next::Other,
                Found::End => Next::End,
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
        if self.texts_bytes() > ELEMENT_BYTES_MAX {
            return false;
        }
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
