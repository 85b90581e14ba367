//! Converts messages of many points, as pickle (spec graphite §1.2) or protobuf (§1.3), to lines.
//!
//! Path of a packet: a frame of the source's connection -> [`MessageReader::new`] -> [`Reader::piece`], repeated
//! until the message is done: first the whole message is validated, then each element becomes the line that carbon
//! would have sent for it -> [`Reader::packet`], which parses it in the listener's compatibility mode.
//! Not here: splitting the stream into frames (`frame`), opcodes (`pickle`), fields (`protobuf`).
//! Invariants: a message gives all its points and a reject for each invalid element, or one reject for the whole
//! message. The bytes that its elements reference are summed up before any of them is read, so a message costs a
//! bounded number of steps for each of its bytes. A piece is bounded for any message, in its output and in its work.

use model::{Reject, Span};

use super::number;
use super::protobuf::{self, BadMessage, Found};
use super::{Parsed, Reader};
use crate::number::js_format;
use crate::pickle::{Items, Pickle, PickleReader, ValueRef};
use crate::steps::touch;

/// Most bytes of text that the elements of one message may reference. A pickle stores a text once and may reference
/// it in every element, and protobuf a name in all its points, so the message's own length is no bound.
pub(super) const TEXTS_BYTES_MAX: usize = 16 << 20;

/// Most bytes of referenced text for each byte of the message. A point takes at least 17 bytes when its name is stored
/// elsewhere, so only names of over 2,000 bytes reach this, or a message that repeats incomplete points.
pub(super) const TEXTS_RATIO_MAX: usize = 128;

/// Approximate bytes of lines after which [`Reader::piece`] ends. It may contain one element more.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Cost of an element in a piece in addition to its texts: two numbers of this length at most, and the separators.
const ELEMENT_BYTES: usize = 48;

/// Most bytes of the texts of one element: as many as a line of the same source may have.
const ELEMENT_BYTES_MAX: usize = 64 * 1024;

/// Cost in a piece of a field that is not an element: the work of the smallest one.
const FIELD_BYTES: usize = 4;

/// Bytes of opcodes, elements and fields that one validation step reads: less than a millisecond each.
const VALIDATE_BYTES_MAX: usize = 32 * 1024;

/// Encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEncoding {
    /// A Python pickle of `[(name, (time, value)), …]`.
    Pickle,
    /// go-carbon's and carbon's protobuf `Payload`.
    Protobuf,
}

/// A message, and how far it has been read. Each step borrows its bytes.
#[derive(Debug)]
pub struct MessageReader {
    state: State,
    /// Most bytes of text that its elements may reference.
    texts_max: usize,
}

#[derive(Debug)]
enum State {
    /// Decoding the pickle's opcodes.
    Opcodes(Box<PickleReader>),
    Pickle {
        pickle: Pickle,
        /// The next element.
        next: usize,
        /// Bytes of text before it, during validation.
        texts: Option<usize>,
    },
    /// Validating the protobuf fields.
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
    /// Reads the whole message at `message` in `bytes`, one frame without its length, and appends to `into`.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn message(&self, form: MessageEncoding, bytes: &[u8], message: Span, now_s: u64, into: &mut Parsed) {
        let mut opened = MessageReader::new(form, message.of(bytes));
        while self.piece(&mut opened, bytes, message, now_s, into) {}
    }

    /// Continues with the message at `message` in `bytes`: validates some more of it or, once all of it is validated,
    /// reads elements up to [`PIECE_BYTES_MAX`] and one more. Appends to `into`; an invalid message gives one reject.
    /// Returns true when there is more.
    ///
    /// # Panics
    /// When `message` does not lie in `bytes`.
    pub fn piece(
        &self,
        opened: &mut MessageReader,
        bytes: &[u8],
        message: Span,
        now_s: u64,
        into: &mut Parsed,
    ) -> bool {
        let text = message.of(bytes);
        match opened.validate(text) {
            Ok(true) => {}
            Ok(false) => return true,
            Err(BadMessage) => {
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
        // The log quotes the bytes that arrived.
        into.first_reject = said.or(into.first_reject.map(|(why, _)| (why, message)));
        lines.clear();
        into.elements = lines;
        more
    }
}

/// The next item of a message.
enum Next<'a> {
    /// An element: `None` when it is not a point.
    Element(Option<Element<'a>>),
    /// An item that is not an element.
    Other,
    End,
}

impl MessageReader {
    /// A reader at the beginning of a message.
    pub fn new(form: MessageEncoding, message: &[u8]) -> MessageReader {
        let most = TEXTS_BYTES_MAX.min(message.len().saturating_mul(TEXTS_RATIO_MAX));
        MessageReader::within(most, form, message)
    }

    /// A reader with this limit of referenced text.
    pub(crate) fn within(texts_max: usize, form: MessageEncoding, message: &[u8]) -> MessageReader {
        let state = match form {
            MessageEncoding::Pickle => State::Opcodes(Box::default()),
            MessageEncoding::Protobuf => State::Fields(protobuf::Check::new(message)),
        };
        MessageReader { state, texts_max }
    }

    /// Validates some more of it. True once all of it is valid; a short message takes one call.
    pub(super) fn validate(&mut self, message: &[u8]) -> Result<bool, BadMessage> {
        if let State::Opcodes(reading) = &mut self.state {
            let Some(pickle) = reading.step(message, VALIDATE_BYTES_MAX).map_err(|_| BadMessage)? else {
                return Ok(false);
            };
            let ValueRef::Items(_) = pickle.root(message) else { return Err(BadMessage) };
            self.state = State::Pickle { pickle, next: 0, texts: Some(0) };
        }
        match &mut self.state {
            State::Opcodes(_) | State::Points(_) => {}
            State::Pickle { pickle, next, texts } => {
                let Some(sum) = texts else { return Ok(true) };
                let ValueRef::Items(points) = pickle.root(message) else { return Err(BadMessage) };
                for _ in 0..VALIDATE_BYTES_MAX {
                    let Some(point) = points.nth(*next) else {
                        (*next, *texts) = (0, None);
                        return Ok(true);
                    };
                    *next += 1;
                    *sum += pickled_point(point).map_or(0, |element| element.texts_bytes());
                    if *sum > self.texts_max {
                        return Err(BadMessage);
                    }
                }
                return Ok(false);
            }
            State::Fields(check) => match check.step(message, VALIDATE_BYTES_MAX, self.texts_max)? {
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

    /// Appends the element's line. False, and nothing appended, when it is invalid.
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

/// The shortest digits that parse to the same number.
fn write_float(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        js_format(number, out);
    } else if number.is_nan() {
        out.extend_from_slice(b"nan");
    } else {
        out.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    }
}

/// Floats lose their fraction, as in carbon's own line client.
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
