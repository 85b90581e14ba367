//! JSON as Python's `json.dumps` writes it: `", "` and `": "` between values, ASCII only.

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
    let magnitude = value.abs();
    if magnitude < EXACT_INTEGER_END
        && value as i64 as f64 == value
        && !(value == 0.0 && value.is_sign_negative())
    {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
        if !is_integer {
            out.extend_from_slice(b".0");
        }
    } else if (1e-4..1e16).contains(&magnitude) && value.fract() != 0.0 {
        push_fraction(value, out);
    } else {
        out.extend_from_slice(repr(value).as_bytes());
    }
}

/// Appends a number between 1e-4 and 1e16 with a fraction: here the shortest digits have the same form in Python.
fn push_fraction(value: f64, out: &mut Vec<u8>) {
    /// Most values have few decimals.
    const SCALE: f64 = 1000.0;
    /// Texts of at most 15 digits are of one float each, so that one of them is the shortest.
    const DIGITS_END: f64 = 1e15;
    let scaled = (value * SCALE).round_ties_even();
    if scaled.abs() >= DIGITS_END || scaled / SCALE != value {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        return;
    }
    if scaled < 0.0 {
        out.push(b'-');
    }
    let scaled = scaled.abs() as u64;
    let (whole, thousandths) = (scaled / 1000, (scaled % 1000) as usize);
    out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    let digits = [thousandths / 100, thousandths / 10 % 10, thousandths % 10].map(|digit| b'0' + digit as u8);
    let places = 1 + digits[1..].iter().rposition(|digit| *digit != b'0').map_or(0, |at| at + 1);
    out.push(b'.');
    out.extend_from_slice(&digits[..places]);
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
        is_first = false;
        push_series(one, options, &mut times, &mut out);
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
    for (number, (_, value)) in points(one).enumerate() {
        if options.no_null_points && value.is_nan() {
            continue;
        }
        out.push(b'[');
        push_value(value, one.is_integer, out);
        out.extend_from_slice(times.text(number));
    }
    if out.len() > begin {
        // The last point is followed by no other.
        out.truncate(out.len() - b", ".len());
    }
    out.extend_from_slice(b"]}");
}

/// The times of a series as text: of an answer, most series have the same.
#[derive(Debug, Default)]
struct Times {
    /// Start, end and step of the series, and how many values it has.
    of: (i64, i64, i64, usize),
    /// `, TIME], ` for each value.
    text: Vec<u8>,
    /// Where each begins, and where the last one ends.
    begins: Vec<usize>,
}

impl Times {
    fn set(&mut self, one: &Series) {
        let of = (one.start, one.end, one.step, one.values.len());
        if self.of == of && !self.begins.is_empty() {
            return;
        }
        self.of = of;
        self.text.clear();
        self.begins.clear();
        let mut buffer = itoa::Buffer::new();
        for (time, _) in points(one) {
            self.begins.push(self.text.len());
            self.text.extend_from_slice(b", ");
            self.text.extend_from_slice(buffer.format(time).as_bytes());
            self.text.extend_from_slice(b"], ");
        }
        self.begins.push(self.text.len());
    }

    fn text(&self, number: usize) -> &[u8] {
        &self.text[self.begins[number]..self.begins[number + 1]]
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
            for value in [f64::from_bits(bits), decimal, decimal + f64::EPSILON, decimal * 1e9] {
                if value.is_finite() {
                    let mut text = Vec::new();
                    super::push_number(value, false, &mut text);
                    prop_assert_eq!(String::from_utf8_lossy(&text), crate::query::numbers::repr(value));
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
