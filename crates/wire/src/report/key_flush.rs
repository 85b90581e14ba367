//! Lines of the `keyFlush` report: the names with the most lines (spec statsd §7.9).

use super::date;
use crate::text::integer;

/// Date format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFlushEncoding {
    /// JavaScript's date text.
    Node,
    /// `YYYY-MM-DD HH:MM:SS`.
    Perl,
}

/// Appends one line for each name with its number of lines: `<date> count=<n> key=<name>`, in the order given.
/// A line end within a name becomes `_`.
pub fn key_flush_lines<'a>(
    form: KeyFlushEncoding,
    time_s: u64,
    names: impl IntoIterator<Item = (&'a [u8], u64)>,
    out: &mut Vec<u8>,
) {
    let date = match form {
        KeyFlushEncoding::Node => date::javascript(time_s),
        KeyFlushEncoding::Perl => date::numeric_date(time_s),
    };
    for (name, count) in names {
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(b" count=");
        integer(count, out);
        out.extend_from_slice(b" key=");
        out.extend(name.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b'_' } else { *byte }));
        out.push(b'\n');
    }
}
