//! Splits one StatsD line into its parts, for any dialect, without parsing numbers.
//!
//! Path of a line: **[`parts()`]** -> `process::stage` -> `Rewrite::write`. The syntax is `union`'s (spec statsd §1):
//! DogStatsD's fields, node's several types in one line, `;k=v` tags in the name. It is lenient: every line that at
//! least one dialect accepts has parts.
//! Not here: the tag styles of §6 that need an option to be distinguished from names (`,k=v`, `#k=v`, `[k=v]`): they
//! are part of the name.

use memchr::{memchr, memmem};
use model::Reject;

use super::super::blank::js_trim;
use super::super::event::split_event;
use crate::steps::touch;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// One or several values of a name.
    Samples,
    /// A DogStatsD event (`_e{…}`).
    Event,
    /// A DogStatsD service check (`_sc|…`).
    Check,
}

/// A line's parts, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    pub(super) line: &'a [u8],
    pub(super) kind: LineKind,
    pub(super) name: &'a [u8],
    /// The text after the name's first `;`, if there is one.
    pub(super) name_tags: Option<&'a [u8]>,
    pub(super) tags: Option<&'a [u8]>,
    /// Text of the last rate field, without its `@`.
    pub(super) rate: Option<&'a [u8]>,
    /// The text between the name's colon and the fields; of events and checks all before their fields.
    pub(super) body: &'a [u8],
    /// The fields, each with the `|` before it.
    pub(super) fields: &'a [u8],
    /// True for several `value|type` in the body, which only node supports.
    pub(super) several: bool,
    /// CRs at the end.
    pub(super) end: &'a [u8],
}

/// One `value|type`, or `value:value|type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit<'a> {
    /// The value, or several values joined with `:`.
    pub values: &'a [u8],
    /// The type as it was sent. `None` when the bit has none; every dialect rejects it then.
    pub type_text: Option<&'a [u8]>,
    /// The text after the type, up to the next bit: its own rate first. Empty in a line of one bit.
    pub rest: &'a [u8],
}

/// One field after the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Which field it is.
    pub kind: FieldKind,
    /// Its text with its marker, such as `@0.1`.
    pub text: &'a [u8],
}

/// The fields of DogStatsD (spec statsd §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `@`, the sample rate.
    Rate,
    /// `#`, the tags.
    Tags,
    /// `T`, Unix seconds.
    Time,
    /// `c:`, the container id.
    Container,
    /// `e:`, external data.
    External,
    /// `card:`, the tags' cardinality.
    Cardinality,
    /// Any other, including the own fields of events and checks.
    Other,
}

/// Splits a line into parts. `line` is one line without its LF; CRs at its end are kept separately.
///
/// # Errors
/// `EmptyLine`, `NoType` (no colon, or no `|` after it), `BadEvent` and `BadCheck`: lines that no dialect accepts.
pub fn parts(line: &[u8]) -> Result<Parts<'_>, Reject> {
    let text = without_cr(line);
    let end = &line[text.len()..];
    match text {
        [] => Err(Reject::EmptyLine),
        [b'_', b'e', b'{', ..] => event_parts(line, text, end),
        [b'_', b's', b'c', b'|', ..] => check_parts(line, text, end),
        _ => sample_parts(line, text, end),
    }
}

/// The text without CRs at its end.
pub(super) fn without_cr(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|&byte| byte != b'\r').map_or(0, |last| last + 1)]
}

fn sample_parts<'a>(line: &'a [u8], text: &'a [u8], end: &'a [u8]) -> Result<Parts<'a>, Reject> {
    let colon = memchr(b':', text).ok_or(Reject::NoType)?;
    let (key, rest) = (&text[..colon], &text[colon + 1..]);
    let pipe = memchr(b'|', rest).ok_or(Reject::NoType)?;
    let type_end = memchr(b'|', &rest[pipe + 1..]).map_or(rest.len(), |len| pipe + 1 + len);
    let (name, name_tags) = match memchr(b';', key) {
        None => (key, None),
        Some(at) => (&key[..at], Some(&key[at + 1..])),
    };
    // DogStatsD rejects a colon in a type, and lines without a name: such lines are split as in node.
    let classic = name.is_empty() || memchr(b':', &rest[pipe + 1..type_end]).is_some();
    let whole = if classic { None } else { scan(&rest[type_end..]) };
    let (body, fields, scanned, several) = match whole {
        Some(scanned) => (&rest[..type_end], &rest[type_end..], scanned, false),
        None => {
            // Node splits off the tags first, and then the bits.
            let tags_at = memmem::find(&rest[pipe + 1..], b"|#").map_or(rest.len(), |len| pipe + 1 + len);
            let (body, fields) = rest.split_at(tags_at);
            (body, fields, scan(fields).unwrap_or_default(), true)
        }
    };
    let Scanned { rate, tags } = scanned;
    Ok(Parts { line, kind: LineKind::Samples, name, name_tags, tags, rate, body, fields, several, end })
}

fn event_parts<'a>(line: &'a [u8], text: &'a [u8], end: &'a [u8]) -> Result<Parts<'a>, Reject> {
    let (title, _, fields) = split_event(text).ok_or(Reject::BadEvent)?;
    Ok(other_parts(line, LineKind::Event, title, &text[..text.len() - fields.len()], fields, end))
}

fn check_parts<'a>(line: &'a [u8], text: &'a [u8], end: &'a [u8]) -> Result<Parts<'a>, Reject> {
    let mut pieces = text.split(|&byte| byte == b'|').skip(1);
    let name = pieces.next().filter(|name| !name.is_empty()).ok_or(Reject::BadCheck)?;
    let status = pieces.next().filter(|text| matches!(text, [b'0'..=b'3'])).ok_or(Reject::BadCheck)?;
    let (body, fields) = text.split_at(b"_sc||".len() + name.len() + status.len());
    Ok(other_parts(line, LineKind::Check, name, body, fields, end))
}

/// Parts of a line that is not a sample.
fn other_parts<'a>(
    line: &'a [u8],
    kind: LineKind,
    name: &'a [u8],
    body: &'a [u8],
    fields: &'a [u8],
    end: &'a [u8],
) -> Parts<'a> {
    let tags = Fields { rest: fields }.filter(|field| field.kind == FieldKind::Tags).last();
    let tags = tags.map(|field| &field.text[1..]);
    Parts { line, kind, name, name_tags: None, tags, rate: None, body, fields, several: false, end }
}

/// The effective fields: of a repeated one the last.
#[derive(Clone, Copy, Debug, Default)]
struct Scanned<'a> {
    rate: Option<&'a [u8]>,
    tags: Option<&'a [u8]>,
}

/// Finds rate and tags. `None` when a rate before the tags contains a colon: a bit of node's begins there.
#[inline]
fn scan(fields: &[u8]) -> Option<Scanned<'_>> {
    let mut scanned = Scanned::default();
    for field in (Fields { rest: fields }) {
        match field.kind {
            FieldKind::Rate if scanned.tags.is_none() && memchr(b':', field.text).is_some() => return None,
            FieldKind::Rate => scanned.rate = Some(&field.text[1..]),
            FieldKind::Tags => scanned.tags = Some(&field.text[1..]),
            _ => {}
        }
    }
    Some(scanned)
}

impl<'a> Parts<'a> {
    /// The line as it arrived, without LF.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The kind of the line.
    pub fn kind(&self) -> LineKind {
        self.kind
    }

    /// The name up to its first `;`; an event's title; a check's name. May be empty.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Tags in the name: `k=v;k=v`, without the first `;`. Empty when there are none.
    pub fn name_tags(&self) -> &'a [u8] {
        self.name_tags.unwrap_or_default()
    }

    /// Tags of the last `#` field, without the `#`. Empty when there are none.
    pub fn tags(&self) -> &'a [u8] {
        self.tags.unwrap_or_default()
    }

    /// The texts of both tag styles: they distinguish the line's series from others of the same name.
    pub fn tag_texts(&self) -> [&'a [u8]; 2] {
        [self.name_tags(), self.tags()]
    }

    /// Text of the rate field, without the `@`; `None` when there is none. Bits may have their own in [`Bit::rest`].
    pub fn rate(&self) -> Option<&'a [u8]> {
        self.rate
    }

    /// The values with their types, in order; empty for events and checks.
    pub fn bits(&self) -> impl Iterator<Item = Bit<'a>> + use<'a> {
        let rest = (self.kind == LineKind::Samples).then_some(self.body);
        Bits { rest, several: self.several }
    }

    /// The fields after the type, or after an event's text or a check's status, in order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        Fields { rest: self.fields }
    }

    /// True when a rate of the line contains a colon, which only one after the tags can.
    pub(super) fn has_bad_rate(&self) -> bool {
        self.rate.is_some()
            && self.fields().any(|field| field.kind == FieldKind::Rate && memchr(b':', field.text).is_some())
    }

    /// True when a sample rate is valid for all of the line: its types are `c`, `ms`, `h` and `d` only.
    ///
    /// Only such lines can be sampled: the rate of the kept lines accounts for the others (spec statsd §14 R5).
    pub fn is_sampled_type(&self) -> bool {
        self.kind == LineKind::Samples && self.bits().all(|bit| bit.is_sampled_type())
    }
}

impl<'a> Bit<'a> {
    /// True for the types `c`, `ms`, `h` and `d`.
    pub fn is_sampled_type(&self) -> bool {
        touch(self.type_text.map_or(0, <[u8]>::len));
        matches!(self.type_text.map(js_trim), Some(b"c" | b"ms" | b"h" | b"d"))
    }

    /// The values, one by one. A set's member may contain colons and is one value; empty values among several are
    /// skipped, as in DogStatsD.
    pub fn values(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let is_set = self.type_text.map(js_trim) == Some(b"s");
        let packed = !is_set && memchr(b':', self.values).is_some();
        let whole = (!packed).then_some(self.values);
        let pieces = packed.then(|| self.values.split(|&byte| byte == b':')).into_iter().flatten();
        whole.into_iter().chain(pieces.filter(|piece| !piece.is_empty()))
    }

    /// The bit's own rate, without the `@`.
    pub(super) fn rate(&self) -> Option<&'a [u8]> {
        let text = self.rest.strip_prefix(b"|@")?;
        Some(&text[..memchr(b'|', text).unwrap_or(text.len())])
    }
}

struct Bits<'a> {
    rest: Option<&'a [u8]>,
    several: bool,
}

impl<'a> Iterator for Bits<'a> {
    type Item = Bit<'a>;

    #[inline]
    fn next(&mut self) -> Option<Bit<'a>> {
        let mut text = self.rest.take()?;
        if self.several
            && let Some(colon) = memchr(b':', text)
        {
            self.rest = Some(&text[colon + 1..]);
            text = &text[..colon];
        }
        let Some(pipe) = memchr(b'|', text) else {
            return Some(Bit { values: text, type_text: None, rest: &text[text.len()..] });
        };
        let (values, text) = (&text[..pipe], &text[pipe + 1..]);
        let (type_text, rest) = text.split_at(memchr(b'|', text).unwrap_or(text.len()));
        Some(Bit { values, type_text: Some(type_text), rest })
    }
}

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let [b'|', rest @ ..] = self.rest else { return None };
        let (text, rest) = rest.split_at(memchr(b'|', rest).unwrap_or(rest.len()));
        self.rest = rest;
        let kind = match text {
            [b'@', ..] => FieldKind::Rate,
            [b'#', ..] => FieldKind::Tags,
            [b'T', ..] => FieldKind::Time,
            [b'c', b':', ..] => FieldKind::Container,
            [b'e', b':', ..] => FieldKind::External,
            [b'c', b'a', b'r', b'd', b':', ..] => FieldKind::Cardinality,
            _ => FieldKind::Other,
        };
        Some(Field { kind, text })
    }
}
