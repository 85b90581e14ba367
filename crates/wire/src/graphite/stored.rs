//! Lines of a queue back to points, for a store: `name value time`, as `Encoder` and the relay write them.
//!
//! The lines were checked when they came in, so only their form is read here. Not here: lines from outside (`input`).

use memchr::memrchr;

use crate::number::parse::double;

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredPoint<'a> {
    /// Its name with its tags.
    pub name: &'a [u8],
    /// Its value; also NaN, if the line says so.
    pub value: f64,
    /// Unix seconds.
    pub time: i64,
}

/// The point of a line without its line feed. None when the value or the time is not a number.
pub fn stored_point(line: &[u8]) -> Option<StoredPoint<'_>> {
    let (rest, time) = split_last(line)?;
    let (name, value) = split_last(rest)?;
    Some(StoredPoint { name, value: number(value)?, time: whole(time)? })
}

fn split_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memrchr(b' ', text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// A time of digits, or any number cut towards zero.
pub(crate) fn whole(text: &[u8]) -> Option<i64> {
    // 18 digits fit into 63 bits.
    if (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        return Some(text.iter().fold(0, |whole, digit| whole * 10 + i64::from(digit - b'0')));
    }
    number(text).filter(|number| number.is_finite()).map(|number| number as i64)
}

/// A number, or a word for one that is not finite.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    double(text).or_else(|| match &*text.to_ascii_lowercase() {
        b"nan" | b"-nan" | b"+nan" => Some(f64::NAN),
        b"inf" | b"+inf" | b"infinity" | b"+infinity" => Some(f64::INFINITY),
        b"-inf" | b"-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    })
}

#[test]
fn lines_become_points() {
    for (line, want) in [
        (&b"a.b 1.5 1700000000"[..], Some((&b"a.b"[..], 1.5, 1_700_000_000))),
        (b"a;b=c -1e3 1700000000.9", Some((b"a;b=c", -1000.0, 1_700_000_000))),
        (b"a +5 1e9", Some((b"a", 5.0, 1_000_000_000))),
        (b"a inf 1", Some((b"a", f64::INFINITY, 1))),
        (b"a b 1", None),
        (b"a 1 b", None),
        (b"a 1", None),
        (b"", None),
        (b"a 1 99999999999999999999", Some((b"a", 1.0, i64::MAX))),
    ] {
        let found = stored_point(line).map(|point| (point.name, point.value, point.time));
        assert_eq!(found, want, "{}", String::from_utf8_lossy(line));
    }
    assert!(stored_point(b"a NaN 1").is_some_and(|point| point.value.is_nan()));
}
