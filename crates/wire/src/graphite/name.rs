//! What a series is called in Graphite: its name made safe, its tags behind it as `;key=value`.
//!
//! Path of a name: `Encoder` -> **`Names::of`** -> the pieces of a point's name. A clean name without tags
//! is borrowed; everything else is put together in buffers that are used again.
//! Not here: prefixes and suffixes (`encoder`), what a dialect stores as the name (`statsd`).
//! Invariant: no byte of a name that is given out is white space or a control character, but for white space
//! other than LF at its very end; and its tags can be read by carbon, unless they stood in the name itself:
//! those are kept as they are (spec statsd §8.1).

use std::ops::Range;

use memchr::{memchr, memchr2};
use model::SeriesRef;

use crate::number::is_js_space;

/// The two parts of a name, between which the suffixes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// All before the first `;`.
    pub(super) head: &'a [u8],
    /// The tags, each with its `;`; may be empty.
    pub(super) tail: &'a [u8],
}

/// Makes names, one at a time.
#[derive(Debug)]
pub(super) struct Names {
    bare_tag_value: Vec<u8>,
    keep_commas: bool,
    head: Vec<u8>,
    tail: Vec<u8>,
    tags: Tags,
}

impl Names {
    /// `bare_tag_value` stands for the value of tags that have none; when it is empty they are left out.
    /// `keep_commas`: names may hold `,`, as those of the `perl` dialect do (spec statsd §4).
    pub(super) fn new(bare_tag_value: &str, keep_commas: bool) -> Names {
        Names {
            bare_tag_value: plain(bare_tag_value).replace(';', "_").into_bytes(),
            keep_commas,
            head: Vec::new(),
            tail: Vec::new(),
            tags: Tags::default(),
        }
    }

    /// The series' name; none when what stands behind its first `;` cannot be written.
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

/// The tags of one series in Graphite's form.
#[derive(Debug, Default)]
struct Tags {
    text: Vec<u8>,
    each: Vec<Range<usize>>,
}

impl Tags {
    /// Reads `k:v,bare,…` by the mapping of spec statsd §5.7. A tag without key or without value is left
    /// out, since carbon refuses the whole name for it. A bare tag that has a `=` is taken as `key=value`.
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
            mend(key, b";!^=", &mut self.text);
            self.text.push(b'=');
            let at_value = self.text.len();
            mend(value, b";", &mut self.text);
            if self.text[at_value] == b'~' {
                self.text[at_value] = b'_';
            }
            self.each.push(begin..self.text.len());
        }
    }

    /// Appends them in byte order, without doubles.
    fn write(&mut self, out: &mut Vec<u8>) {
        let text = self.text.as_slice();
        let tag = |range: &Range<usize>| &text[range.clone()];
        // Canonical tags come sorted; only what the mapping changed can be out of order.
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

/// `text` with each run of white space and control characters as one `_`.
pub(super) fn plain(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    mend(text.as_bytes(), b"", &mut out);
    String::from_utf8(out).expect("whole characters were copied or replaced by ASCII")
}

/// Appends `text` with `_` for each of the `bad` bytes (ASCII), for each run of white space and control
/// characters, and for each sequence that is no UTF-8.
pub(crate) fn mend(text: &[u8], bad: &[u8], out: &mut Vec<u8>) {
    let fine = |byte: &u8| byte.is_ascii_graphic() && !bad.contains(byte);
    if text.iter().all(fine) {
        out.extend_from_slice(text);
        return;
    }
    let mut in_run = false;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let blank = is_blank(c);
            if blank || c.is_ascii() && bad.contains(&(c as u8)) {
                if !(blank && in_run) {
                    out.push(b'_');
                }
            } else {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            in_run = blank;
        }
        if !chunk.invalid().is_empty() {
            out.push(b'_');
            in_run = false;
        }
    }
}

/// What no field of a line may hold: Python splits lines at all of these.
fn is_blank(c: char) -> bool {
    c.is_control() || c.is_whitespace() || is_js_space(c)
}

/// `tail` without the white space at its end, which carbon strips, too. Node writes it, so we do: a CR behind a
/// tag, from a client that ends its lines with CR LF, is met in practice. LF would end the line, and stays.
fn without_blank_end(tail: &[u8]) -> &[u8] {
    let Ok(text) = std::str::from_utf8(tail) else { return tail };
    text.trim_end_matches(|c: char| c != '\n' && c.is_whitespace()).as_bytes()
}

/// True when carbon reads `tail` back as it stands: UTF-8 without white space and control characters.
fn is_safe(tail: &[u8]) -> bool {
    tail.iter().all(u8::is_ascii_graphic)
        || std::str::from_utf8(tail).is_ok_and(|tail| !tail.chars().any(is_blank))
}

/// Appends `name` by node's three steps (spec statsd §2.6): each run of white space becomes `_`, each `/`
/// becomes `-`, and everything outside `a-z A-Z 0-9 _ - . ; =` goes; of the rest commas may be kept.
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

/// Appends `text` as it stands within a quoted Python string.
pub(super) fn escape_quoted(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr2(b'\'', b'\\', text) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(&[b'\\', text[at]]);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}
