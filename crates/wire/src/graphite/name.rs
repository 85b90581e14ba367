//! The Graphite name of a series: sanitised, with its tags as `;key=value`.
//!
//! Path of a name: `Encoder` -> **`Names::of`** -> the parts of a point's name. A clean name without tags is
//! borrowed; others are built in reused buffers.
//! Not here: prefixes and suffixes (`encoder`), the name that a dialect stores (`statsd`).
//! Invariant: a returned name contains no white space or control character, except white space other than LF at its
//! very end. Carbon can read its tags, unless they were part of the name itself: such tags are kept as they are (spec
//! statsd §8.1).

use std::ops::Range;

use memchr::{memchr, memchr2};
use model::SeriesRef;

use crate::number::is_js_space;

/// Longest name of a point with its tags. Carbon closes a connection on a line over 16,384 bytes; the difference is
/// room for the number (at most 317 bytes, `%.6f` of the largest double) and the time.
pub const NAME_BYTES_MAX: usize = 16_000;

/// The two parts of a name. Suffixes go between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The part before the first `;`.
    pub(super) head: &'a [u8],
    /// The tags, each with its `;`; may be empty.
    pub(super) tail: &'a [u8],
}

/// Builds names, one at a time.
#[derive(Debug)]
pub(super) struct Names {
    bare_tag_value: Vec<u8>,
    keep_commas: bool,
    head: Vec<u8>,
    tail: Vec<u8>,
    tags: Tags,
}

impl Names {
    /// `bare_tag_value` is the value of tags that have none; when it is empty such tags are omitted.
    /// `keep_commas`: names may contain `,`, as those of the `perl` dialect do (spec statsd §4).
    pub(super) fn new(bare_tag_value: &str, keep_commas: bool) -> Names {
        Names {
            bare_tag_value: plain(bare_tag_value).replace(';', "_").into_bytes(),
            keep_commas,
            head: Vec::new(),
            tail: Vec::new(),
            tags: Tags::default(),
        }
    }

    /// The series' name; `None` when the part after its first `;` cannot be written.
    #[inline]
    pub(super) fn of<'a>(&'a mut self, series: SeriesRef<'a>) -> Option<Name<'a>> {
        let (head, tail) = match memchr(b';', series.name) {
            None => (series.name, [].as_slice()),
            Some(at) => series.name.split_at(at),
        };
        if series.clean && series.tags.is_empty() {
            return Some(Name { head, tail });
        }
        self.of_other(head, tail, series)
    }

    fn of_other<'a>(
        &'a mut self,
        mut head: &'a [u8],
        mut tail: &'a [u8],
        series: SeriesRef<'a>,
    ) -> Option<Name<'a>> {
        if !series.clean {
            let ends_the_name = series.tags.is_empty();
            if !is_safe(if ends_the_name { without_blank_end(tail) } else { tail }) {
                return None;
            }
            self.head.clear();
            sanitise(head, self.keep_commas, &mut self.head);
            head = &self.head;
        }
        if !series.tags.is_empty() {
            self.tags.read(series.tags, &self.bare_tag_value);
            self.tail.clear();
            self.tail.extend_from_slice(tail);
            self.tags.write(&mut self.tail);
            tail = &self.tail;
        }
        Some(Name { head, tail })
    }
}

/// The tags of one series as Graphite tags.
#[derive(Debug, Default)]
struct Tags {
    text: Vec<u8>,
    each: Vec<Range<usize>>,
}

impl Tags {
    /// Parses `k:v,bare,…` by the mapping of spec statsd §5.7. A tag without key or value is omitted, since carbon
    /// rejects the whole name for it. A bare tag that contains a `=` becomes `key=value`.
    fn read(&mut self, tags: &[u8], bare_tag_value: &[u8]) {
        self.text.clear();
        self.each.clear();
        for tag in tags.split(|byte| *byte == b',') {
            let colon = memchr(b':', tag).or_else(|| memchr(b'=', tag));
            let (key, value) = match colon {
                Some(at) => (&tag[..at], &tag[at + 1..]),
                None => (tag, bare_tag_value),
            };
            if key.is_empty() || value.is_empty() {
                continue;
            }
            let begin = self.text.len();
            replace_bad_bytes(key, b";!^=", &mut self.text);
            self.text.push(b'=');
            let at_value = self.text.len();
            replace_bad_bytes(value, b";", &mut self.text);
            if self.text[at_value] == b'~' {
                self.text[at_value] = b'_';
            }
            self.each.push(begin..self.text.len());
        }
    }

    /// Appends them in byte order, without duplicates.
    fn write(&mut self, out: &mut Vec<u8>) {
        let text = self.text.as_slice();
        let tag = |range: &Range<usize>| &text[range.clone()];
        // Canonical tags arrive sorted; only the mapping can change their order.
        if !self.each.is_sorted_by(|a, b| tag(a) < tag(b)) {
            self.each.sort_by(|a, b| tag(a).cmp(tag(b)));
            self.each.dedup_by(|a, b| tag(a) == tag(b));
        }
        for range in &self.each {
            out.push(b';');
            out.extend_from_slice(tag(range));
        }
    }
}

/// `text` with each run of white space and control characters replaced by one `_`.
pub(super) fn plain(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    replace_bad_bytes(text.as_bytes(), b"", &mut out);
    String::from_utf8(out).expect("whole characters were copied or replaced by ASCII")
}

/// Appends `text` with `_` for each of the `bad` bytes (ASCII), for each run of white space and control
/// characters, and for each invalid UTF-8 sequence.
pub(crate) fn replace_bad_bytes(text: &[u8], bad: &[u8], out: &mut Vec<u8>) {
    let fine = |byte: &u8| byte.is_ascii_graphic() && !bad.contains(byte);
    if text.iter().all(fine) {
        out.extend_from_slice(text);
        return;
    }
    let mut in_run = false;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let space = is_blank(c);
            if space || c.is_ascii() && bad.contains(&(c as u8)) {
                if !(space && in_run) {
                    out.push(b'_');
                }
            } else {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            in_run = space;
        }
        if !chunk.invalid().is_empty() {
            out.push(b'_');
            in_run = false;
        }
    }
}

/// Characters that no field of a line may contain: Python splits lines at all of these.
fn is_blank(c: char) -> bool {
    c.is_control() || c.is_whitespace() || is_js_space(c)
}

/// `tail` without white space at its end, which carbon strips too. Node writes it, so we do: a CR after a tag occurs in
/// practice, from clients that end lines with CR LF. LF would end the line, and is not stripped.
fn without_blank_end(tail: &[u8]) -> &[u8] {
    let Ok(text) = std::str::from_utf8(tail) else { return tail };
    text.trim_end_matches(|c: char| c != '\n' && c.is_whitespace()).as_bytes()
}

/// True when carbon reads `tail` unchanged: UTF-8 without white space and control characters.
fn is_safe(tail: &[u8]) -> bool {
    tail.iter().all(u8::is_ascii_graphic)
        || std::str::from_utf8(tail).is_ok_and(|tail| !tail.chars().any(is_blank))
}

/// Appends `name` by node's three steps (spec statsd §2.6): each run of white space becomes `_`, each `/`
/// becomes `-`, and all bytes outside `a-z A-Z 0-9 _ - . ; =` are deleted; optionally commas are kept.
fn sanitise(name: &[u8], keep_commas: bool, out: &mut Vec<u8>) {
    let mut in_space = false;
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            let space = is_js_space(c);
            match c {
                _ if space && in_space => {}
                _ if space => out.push(b'_'),
                '/' => out.push(b'-'),
                ',' if keep_commas => out.push(b','),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | ';' | '=' => out.push(c as u8),
                _ => {}
            }
            in_space = space;
        }
        in_space &= chunk.invalid().is_empty();
    }
}

/// Appends `text` escaped for a quoted Python string.
pub(super) fn escape_quoted(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr2(b'\'', b'\\', text) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(&[b'\\', text[at]]);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}
