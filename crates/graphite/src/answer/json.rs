//! JSON as Python's `json.dumps` writes it: `", "` and `": "` between values, ASCII only.

use std::cmp::Ordering;

use crate::query::Series;
use crate::query::numbers::repr;

/// Integers of a smaller magnitude are exact in a double.
const EXACT_INTEGER_END: f64 = 9_007_199_254_740_992.0;

/// Appends a text with its quotes. Bytes that are not UTF-8 are replaced.
pub fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    let safe = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    while plain < text.len() && safe(text[plain]) {
        plain += 1;
    }
    out.extend_from_slice(&text[..plain]);
    for c in String::from_utf8_lossy(&text[plain..]).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            ' '..='~' => out.push(c as u8),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
        }
    }
    out.push(b'"');
}

/// Appends a number as Python's `repr`: `31.0`, `1e-05`; without a fraction if it is an integer for Python.
pub fn push_number(value: f64, is_integer: bool, out: &mut Vec<u8>) {
    let mut cell = [0; CELL_BYTES];
    match short_decimal(value, is_integer, &mut cell, 0) {
        Some(end) => out.extend_from_slice(&cell[..end]),
        None => push_other_number(value, is_integer, out),
    }
}

/// Numbers that [`short_decimal`] does not write.
fn push_other_number(value: f64, is_integer: bool, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    if magnitude < EXACT_INTEGER_END && value as i64 as f64 == value && !is_negative_zero {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
        if !is_integer {
            out.extend_from_slice(b".0");
        }
    } else if (1e-4..EXACT_INTEGER_END).contains(&magnitude) {
        // With a fraction; in this range the shortest digits of both languages have the same form.
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(repr(value).as_bytes());
    }
}

/// A point with its brackets fits, if its number is a short decimal.
const CELL_BYTES: usize = 64;

/// Writes a number with at most three decimals into `cell` from `at` on: most values are such. Gives its end, or none for other numbers.
///
/// The decimal of at most 15 digits that reads as this float is the only such one, and so the shortest.
fn short_decimal(value: f64, is_integer: bool, cell: &mut [u8; CELL_BYTES], at: usize) -> Option<usize> {
    const SCALE: f64 = 1000.0;
    const DIGITS_END: f64 = 1e15;
    let scaled = value.abs() * SCALE;
    // Neither NaN nor infinite.
    if !matches!(scaled.partial_cmp(&DIGITS_END), Some(Ordering::Less)) {
        return None;
    }
    let thousandths = (scaled + 0.5) as u64;
    let is_negative = value.is_sign_negative();
    if thousandths as f64 / SCALE != value.abs() || (thousandths == 0 && is_negative) {
        return None;
    }
    let (mut whole, fraction) = (thousandths / 1000, (thousandths % 1000) as u16);
    if is_integer && fraction != 0 {
        return None;
    }
    let mut end = at;
    if is_negative {
        cell[end] = b'-';
        end += 1;
    }
    end += 1 + whole.checked_ilog10().unwrap_or(0) as usize;
    let mut place = end;
    loop {
        place -= 1;
        cell[place] = b'0' + (whole % 10) as u8;
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    if is_integer {
        return Some(end);
    }
    let digits = [fraction / 100, fraction / 10 % 10, fraction % 10].map(|digit| b'0' + digit as u8);
    cell[end] = b'.';
    cell[end + 1..end + 4].copy_from_slice(&digits);
    Some(
        end + if fraction % 10 != 0 {
            4
        } else if fraction % 100 != 0 {
            3
        } else {
            2
        },
    )
}

/// The same for other numbers with a fraction, of a usual magnitude: in this range the shortest digits of Rust and Python have one form.
fn long_decimal(value: f64, is_integer: bool, cell: &mut [u8; CELL_BYTES], at: usize) -> Option<usize> {
    if is_integer || !(1e-4..EXACT_INTEGER_END).contains(&value.abs()) || value as i64 as f64 == value {
        return None;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    let end = at + text.len();
    // Copies of a fixed length need no call.
    match (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        (Some(first), Some(last)) => {
            cell[at..at + 16].copy_from_slice(first);
            cell[end - 16..end].copy_from_slice(last);
        }
        _ => cell[at..end].copy_from_slice(text),
    }
    Some(end)
}

/// Appends the first bytes of a cell: all of it, by a copy of a fixed length, and then without the rest.
fn push_cell(cell: &[u8; CELL_BYTES], length: usize, out: &mut Vec<u8>) {
    let end = out.len() + length;
    out.extend_from_slice(cell);
    out.truncate(end);
}

fn push_value(value: f64, is_integer: bool, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"null");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"1e9999" } else { b"-1e9999" });
    } else {
        push_number(value, is_integer, out);
    }
}

/// What a client wants of the series.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonOptions {
    /// Null points are left out, and series without points.
    pub no_null_points: bool,
}

/// Most bytes that are reserved because the first series was long.
const RESERVED_BYTES_MAX: usize = 64 << 20;

/// The series as a list of objects (spec graphite §6.3).
pub fn series(all: &[Series], options: JsonOptions) -> Vec<u8> {
    let values: usize = all.iter().map(|one| one.values.len()).sum();
    let mut out = Vec::with_capacity(64 + all.len() * 128 + values * 24);
    out.push(b'[');
    let mut is_first = true;
    let mut times = Times::default();
    for one in all {
        let known = || one.values.iter().any(|value| !value.is_nan());
        if options.no_null_points && !known() {
            continue;
        }
        if !is_first {
            out.extend_from_slice(b", ");
        }
        push_series(one, options, &mut times, &mut out);
        if std::mem::take(&mut is_first) {
            // The others are about as long.
            out.reserve(out.len().saturating_mul(all.len() - 1).min(RESERVED_BYTES_MAX));
        }
    }
    out.push(b']');
    out
}

fn push_series(one: &Series, options: JsonOptions, times: &mut Times, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"target\": ");
    push_text(one.name.as_bytes(), out);
    out.extend_from_slice(b", \"tags\": {");
    for (number, (tag, value)) in one.tags.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        push_text(tag.as_bytes(), out);
        out.extend_from_slice(b": ");
        push_text(value.as_bytes(), out);
    }
    out.extend_from_slice(b"}, \"datapoints\": [");
    times.set(one);
    let begin = out.len();
    let mut cell = [0; CELL_BYTES];
    cell[0] = b'[';
    for ((_, value), (text, length)) in points(one).zip(&times.texts) {
        if options.no_null_points && value.is_nan() {
            continue;
        }
        let short = short_decimal(value, one.is_integer, &mut cell, 1);
        match short.or_else(|| long_decimal(value, one.is_integer, &mut cell, 1)) {
            Some(end) => {
                cell[end..end + TIME_BYTES].copy_from_slice(text);
                push_cell(&cell, end + usize::from(*length), out);
            }
            None => {
                out.push(b'[');
                push_value(value, one.is_integer, out);
                out.extend_from_slice(&text[..usize::from(*length)]);
            }
        }
    }
    if out.len() > begin {
        // The last point is followed by no other.
        out.truncate(out.len() - b", ".len());
    }
    out.extend_from_slice(b"]}");
}

/// Most bytes of `, TIME], `.
const TIME_BYTES: usize = 28;

/// The times of a series as text: of an answer, most series have the same.
#[derive(Debug, Default)]
struct Times {
    /// Start, end and step of the series, and how many values it has.
    of: (i64, i64, i64, usize),
    /// `, TIME], ` for each value, and its length. All have the same size, so that copying one is a few instructions.
    texts: Vec<([u8; TIME_BYTES], u8)>,
}

impl Times {
    fn set(&mut self, one: &Series) {
        let of = (one.start, one.end, one.step, one.values.len());
        if self.of == of {
            return;
        }
        self.of = of;
        self.texts.clear();
        let mut buffer = itoa::Buffer::new();
        self.texts.extend(points(one).map(|(time, _)| {
            let mut text = [0; TIME_BYTES];
            let time = buffer.format(time).as_bytes();
            let length = 2 + time.len() + 3;
            text[..2].copy_from_slice(b", ");
            text[2..length - 3].copy_from_slice(time);
            text[length - 3..length].copy_from_slice(b"], ");
            (text, length as u8)
        }));
    }
}

/// The points that an answer has: up to and including the end of the series, if values remain.
pub(super) fn points(one: &Series) -> impl Iterator<Item = (i64, f64)> + '_ {
    let (start, end, step) = (one.start, one.end, one.step.max(1));
    let times = (0..).map(move |number: i64| start.saturating_add(number.saturating_mul(step)));
    times.take_while(move |time| *time <= end).zip(one.values.iter().copied())
}

/// A list of texts.
pub fn texts<'t>(all: impl IntoIterator<Item = &'t [u8]>) -> Vec<u8> {
    let mut out = vec![b'['];
    push_texts(all, &mut out);
    out.push(b']');
    out
}

pub(super) fn push_texts<'t>(all: impl IntoIterator<Item = &'t [u8]>, out: &mut Vec<u8>) {
    for (number, text) in all.into_iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        push_text(text, out);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_have_the_digits_of_repr(bits in any::<u64>(), small in -20_000_000_i64..20_000_000, places in 0..8_i32) {
            let decimal = small as f64 / 10_f64.powi(places);
            for value in [f64::from_bits(bits), decimal, decimal + f64::EPSILON, decimal * 1e9, decimal.trunc()] {
                if value.is_finite() {
                    let mut text = Vec::new();
                    super::push_number(value, false, &mut text);
                    prop_assert_eq!(String::from_utf8_lossy(&text), crate::query::numbers::repr(value));
                    let mut cell = [0; super::CELL_BYTES];
                    if let Some(end) = super::long_decimal(value, false, &mut cell, 1) {
                        prop_assert_eq!(&cell[1..end], &text);
                    }
                }
            }
        }
    }

    use super::*;
    use crate::query::{Fetch, FetchError, Fetched, Request, render};

    /// A series that is its own store.
    pub(crate) struct One(pub(crate) Fetched);

    impl Fetch for One {
        fn fetch(
            &mut self,
            asks: &[crate::query::Ask],
            _room: crate::query::Room,
        ) -> Result<Vec<Vec<Fetched>>, FetchError> {
            Ok(asks.iter().map(|_| vec![self.0.clone()]).collect())
        }

        fn keep_going(&mut self) -> Result<(), crate::query::Stop> {
            Ok(())
        }
    }

    /// The series of the spec: 31 to 40 at minutes from 1710001860 on.
    pub(crate) fn vector(target: &str, values: &[f64]) -> Vec<Series> {
        let (start, step) = (1_710_001_860, 60);
        let end = start + step * values.len() as i64;
        let mut store = One(Fetched { name: "vec.lin".into(), start, end, step, values: values.to_vec() });
        let request = Request {
            range: crate::query::Range { from: start - step, until: end - step },
            now: 1_710_003_600,
            zone: &crate::query::TimeZone::UTC,
            x_files_factor: None,
            template: &[],
            compat: crate::query::Compat::default(),
            limits: crate::query::Limits::default(),
            seed: 1,
        };
        render(&[target], &request, &mut store).expect("a valid target")
    }

    #[test]
    fn numbers_are_those_of_python() {
        for (value, want) in [
            (31.0, "31.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (123_456_789.125, "123456789.125"),
            (1e22, "1e+22"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
        ] {
            let mut out = Vec::new();
            push_number(value, false, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
            assert_eq!(repr(value), want, "the plain version");
        }
        let mut out = Vec::new();
        push_number(7.0, true, &mut out);
        assert_eq!(out, b"7");
    }

    #[test]
    fn texts_are_ascii() {
        for (text, want) in [
            ("a b", r#""a b""#),
            ("a\"\\\n\t\u{1}", r#""a\"\\\n\t\u0001""#),
            ("é", r#""\u00e9""#),
            ("\u{1f600}", r#""\ud83d\ude00""#),
            ("\u{7f}", r#""\u007f""#),
        ] {
            let mut out = Vec::new();
            push_text(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
            let read: String = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(read, text);
        }
    }

    #[test]
    fn series_are_written_as_graphite_web_does() {
        let all = vector("vec.lin", &[31.0, f64::NAN, f64::INFINITY]);
        let text = String::from_utf8(series(&all, JsonOptions::default())).expect("text");
        let want = r#"[{"target": "vec.lin", "tags": {"name": "vec.lin"}, "datapoints": [[31.0, 1710001860], [null, 1710001920], [1e9999, 1710001980]]}]"#;
        assert_eq!(text, want);
        let text = series(&all, JsonOptions { no_null_points: true });
        assert!(!String::from_utf8_lossy(&text).contains("null"));
        let none = series(&vector("vec.lin", &[f64::NAN]), JsonOptions { no_null_points: true });
        assert_eq!(none, b"[]");
    }
}
