//! OpenTSDB's line protocol: reading `put` lines as points, and writing points as such lines (`put`).
//!
//! Path of a line: the source's intake -> [`Reader::packet`] -> the same point as a Graphite line, `metric;tag=value value time` ->
//! `graphite::input`, which puts tags in order and checks the rest -> [`Parsed`].
//! Not here: splitting streams into lines (`frame`), the reply to `version` on the connection (`pipeline`).
//! Pure: no I/O, no clock, and no allocation per line once the vectors have grown.
//! Invariants: every line that is not empty and no command ends as one point or one counted reject; no input makes it panic (fuzz
//! target `opentsdb`).

mod put;
#[cfg(test)]
mod tests;

pub use put::{PUT_BYTES_MAX, Parts, PutReject, SECONDS_MAX, is_safe, put_line, put_lines};

use memchr::{memchr, memchr2};
use model::{Reject, Span};

use crate::graphite::input::{self, Compatibility, Options, Parsed};
use crate::steps::touch;

/// The reply to a line `version`, as Riemann's server gives it.
pub const VERSION_REPLY: &[u8] = b"net.opentsdb\nBuilt on ... (riemann-opentsdb)\n";

/// A Graphite tag of this name would be the metric's own name, and be left out.
const NAME_TAG: &[u8] = b"name";

/// Parses the lines of one source. Has no state that a line could change.
#[derive(Clone)]
pub struct Reader {
    points: input::Reader,
}

impl Reader {
    /// A reader that seeds the hashes of names with `seed`; use a random seed.
    pub fn new(seed: u64) -> Reader {
        Reader { points: input::Reader::new(Options::of(Compatibility::Strict), seed) }
    }

    /// Parses every line of the packet at `packet` in `bytes` and appends to `into`. Gives the number of lines `version`, to each of
    /// which the client wants [`VERSION_REPLY`].
    ///
    /// # Panics
    /// When `packet` does not lie in `bytes`.
    pub fn packet(&self, bytes: &[u8], packet: Span, into: &mut Parsed) -> usize {
        let (mut versions, mut written) = (0, Vec::new());
        let ended = |parsed: &Parsed| parsed.points.len() as u64 + parsed.rejected();
        let open = into.lines - ended(into);
        let (mut at, end) = (packet.at as usize, (packet.at + packet.len) as usize);
        while at < end {
            let len = memchr(b'\n', &bytes[at..end]).unwrap_or(end - at);
            let line = &bytes[at..at + len];
            touch(len + 1);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            versions += usize::from(self.line(line, at, &mut written, into));
            at += len + 1;
        }
        debug_assert_eq!(into.lines - ended(into), open, "each line is one point or one reject");
        versions
    }

    /// True for `version`.
    fn line(&self, line: &[u8], at: usize, written: &mut Vec<u8>, into: &mut Parsed) -> bool {
        let mut words = Words(line);
        // Riemann takes any first word for `put`.
        match words.next() {
            None => return false,
            Some(b"version") => return true,
            Some(_put) => {}
        }
        written.clear();
        let is_first = into.first_reject.is_none();
        match write_point(words, written) {
            // Times are written here: none is left out, so the time of now is not asked for.
            Ok(()) => self.points.packet(written, Span::new(0, written.len()), 0, into),
            Err(why) => {
                into.lines += 1;
                into.rejects[why.index()] += 1;
                into.first_reject.get_or_insert((why, Span::new(0, 0)));
            }
        }
        if let Some((_, place)) = into.first_reject.as_mut().filter(|_| is_first) {
            // The line as it came, not as it was written.
            *place = Span::new(at, line.len());
        }
        false
    }
}

/// Texts between runs of spaces and tabs.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let (word, rest) = self.0.split_at(memchr2(b' ', b'\t', self.0).unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}

/// Appends `metric;tag=value value time`, which is left to be checked where it can be written as that.
fn write_point<'a>(mut words: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> Result<(), Reject> {
    let metric = words.next().ok_or(Reject::NoName)?;
    let time = words.next().ok_or(Reject::NoTimestamp)?;
    let value = words.next().ok_or(Reject::NoValue)?;
    if splits(metric) {
        return Err(Reject::BadName);
    }
    let time_s = seconds(time).ok_or(Reject::BadTimestamp)?;
    out.extend_from_slice(metric);
    for tag in words {
        let at = memchr(b'=', tag).ok_or(Reject::BadTag)?;
        if splits(tag) {
            return Err(Reject::BadTag);
        }
        let (key, rest) = tag.split_at(at);
        out.push(b';');
        out.extend_from_slice(key);
        if key == NAME_TAG {
            out.extend_from_slice(b"tag");
        }
        out.extend_from_slice(rest);
    }
    out.push(b' ');
    out.extend_from_slice(value);
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(time_s).as_bytes());
    touch(out.len());
    Ok(())
}

/// True for a text that a Graphite line would read as more than one part: it has a tag's `;`, or the `{` of OpenMetrics.
fn splits(text: &[u8]) -> bool {
    memchr2(b';', b'{', text).is_some()
}

/// A time in seconds, of whole seconds or milliseconds.
fn seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let time: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(if time > SECONDS_MAX { time / 1000 } else { time })
}
