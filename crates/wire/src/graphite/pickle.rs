//! Encodes points as frames of Python pickle, protocol 0, as node writes them (spec statsd §8.4).
//!
//! A frame is a length of four bytes, big-endian, and a list of `(name, (time, value))` with text opcodes; the value
//! is a string. Names have no control characters here, so LF occurs only where the opcodes need it.

use memchr::memmem;

use super::name::NAME_BYTES_MAX;
use crate::number::{double, is_decimal};

pub(super) use super::name::escape_quoted as escape;

/// Longest body of a frame: carbon closes the connection without a message on a longer one.
pub const FRAME_BYTES_MAX: usize = 1_048_576;

/// Most bytes of points in one frame.
pub const FRAME_POINTS_BYTES_MAX: usize = FRAME_BYTES_MAX - LIST_BEGIN.len() - LIST_END.len();

const LIST_BEGIN: &[u8] = b"(l";
const LIST_END: &[u8] = b".";

pub(super) const POINT_BEGIN: &[u8] = b"(S'";
pub(super) const TIME_BEGIN: &[u8] = b"'\n(L";
pub(super) const VALUE_BEGIN: &[u8] = b"L\nS'";
pub(super) const POINT_END: &[u8] = b"'\ntta";

/// Why a point that arrived as a line cannot be written as a pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickleReject {
    /// Value or time are missing or not decimal numbers: carbon would discard the whole frame.
    NotANumber,
    /// The name with its tags is not UTF-8, or longer than [`NAME_BYTES_MAX`].
    UnsafeName,
}

/// This many digits without an exponent are within the range of a double.
const DIGITS_FINITE: usize = 300;

/// Longest text of a number.
const NUMBER_BYTES_MAX: usize = 1_024;

/// Appends a point that arrived as a line: `named` is its name and tags, the numbers are the sender's text. Appends
/// nothing on an error.
///
/// # Errors
/// Why the point cannot be pickled.
pub fn pickle_point(
    (name, tags): (&[u8], &[u8]),
    (value, time): (&[u8], &[u8]),
    out: &mut Vec<u8>,
) -> Result<(), PickleReject> {
    if !is_number(value) || !is_number(time) {
        return Err(PickleReject::NotANumber);
    }
    let is_text = |part| std::str::from_utf8(part).is_ok();
    if !is_text(name) || !is_text(tags) || name.len() + tags.len() > NAME_BYTES_MAX {
        return Err(PickleReject::UnsafeName);
    }
    out.extend_from_slice(POINT_BEGIN);
    escape(name, out);
    escape(tags, out);
    let whole = time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let pieces: [&[u8]; 3] = if whole { [TIME_BEGIN, time, VALUE_BEGIN] } else { [b"'\n(F", time, b"\nS'"] };
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(value);
    out.extend_from_slice(POINT_END);
    Ok(())
}

/// Whether carbon reads it as a finite double. It closes the connection for an integer out of range.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if !is_decimal(digits) || text.len() > NUMBER_BYTES_MAX {
        return false;
    }
    let is_small = text.len() <= DIGITS_FINITE && !digits.iter().any(|byte| byte.eq_ignore_ascii_case(&b'e'));
    is_small || double(digits).is_some_and(f64::is_finite)
}

/// Appends one frame with `points`.
///
/// # Panics
/// When they are more than [`FRAME_POINTS_BYTES_MAX`] bytes: use [`pickle_frames`] then.
pub fn pickle_frame(points: &[u8], out: &mut Vec<u8>) {
    assert!(points.len() <= FRAME_POINTS_BYTES_MAX, "{} bytes of points in one frame", points.len());
    let body = LIST_BEGIN.len() + points.len() + LIST_END.len();
    out.reserve(4 + body);
    let length = u32::try_from(body).expect("a body is at most FRAME_BYTES_MAX");
    out.extend_from_slice(&length.to_be_bytes());
    for piece in [LIST_BEGIN, points, LIST_END] {
        out.extend_from_slice(piece);
    }
}

/// Appends as few frames as `points` need, and to `ends` the end offset of each frame in `out` with its number of
/// points. Appends no frame for no points.
pub fn pickle_frames(mut points: &[u8], out: &mut Vec<u8>, ends: &mut Vec<(u32, u32)>) {
    while !points.is_empty() {
        let (now, later) = points.split_at(whole_points(points));
        let count = memmem::find_iter(now, POINT_END).count();
        pickle_frame(now, out);
        let end = u32::try_from(out.len()).expect("a block of frames is far below 4 GiB");
        ends.push((end, u32::try_from(count).expect("a point has more than one byte")));
        points = later;
    }
}

/// Length of the points that fit into one frame.
fn whole_points(points: &[u8]) -> usize {
    if points.len() <= FRAME_POINTS_BYTES_MAX {
        return points.len();
    }
    // `POINT_END` contains an LF, which no name and no number contains: it occurs nowhere else.
    let last = memmem::rfind(&points[..FRAME_POINTS_BYTES_MAX], POINT_END);
    last.expect("one point is at most NAME_BYTES_MAX and a number") + POINT_END.len()
}

#[test]
fn lines_are_pickled_or_rejected_with_a_reason() {
    let longest = "n".repeat(NAME_BYTES_MAX);
    let too_long = format!("{longest}n");
    let huge = "9".repeat(309);
    // (name, tags, value, time, what)
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, Result<&'a str, PickleReject>);
    let table: &[Case<'_>] = &[
        ("a.b", "", "1.50", "1700000000", Ok("(S'a.b'\n(L1700000000L\nS'1.50'\ntta")),
        ("a", ";k=v", "-.5e3", "-1", Ok("(S'a;k=v'\n(L-1L\nS'-.5e3'\ntta")),
        ("it's", ";k=\\", "+1", "1.7e9", Ok("(S'it\\'s;k=\\\\'\n(F1.7e9\nS'+1'\ntta")),
        ("café", "", "1", "2", Ok("(S'café'\n(L2L\nS'1'\ntta")),
        ("a", "", "", "", Err(PickleReject::NotANumber)),
        ("a", "", "1", "", Err(PickleReject::NotANumber)),
        ("a", "", "x", "1", Err(PickleReject::NotANumber)),
        ("a", "", "nan", "1", Err(PickleReject::NotANumber)),
        ("a", "", "1", "-", Err(PickleReject::NotANumber)),
        ("a", "", "1", &huge, Err(PickleReject::NotANumber)),
        ("a", "", &huge, "1", Err(PickleReject::NotANumber)),
        ("a", "", "1", "-1e309", Err(PickleReject::NotANumber)),
        ("a", "", "1e308", "1", Ok("(S'a'\n(L1L\nS'1e308'\ntta")),
        (&too_long, "", "1", "2", Err(PickleReject::UnsafeName)),
        (&longest, ";", "1", "2", Err(PickleReject::UnsafeName)),
    ];
    for (name, tags, value, time, want) in table {
        let mut out = Vec::new();
        let key = (name.as_bytes(), tags.as_bytes());
        let result = pickle_point(key, (value.as_bytes(), time.as_bytes()), &mut out);
        let got = result.map(|()| String::from_utf8_lossy(&out).into_owned());
        assert_eq!(got, want.map(str::to_owned), "{value} {time}");
        assert_eq!(result.is_err(), out.is_empty());
    }
    let mut out = Vec::new();
    assert_eq!(pickle_point((b"\xff", b""), (b"1", b"2"), &mut out), Err(PickleReject::UnsafeName));
    let number = format!("0.{}", "1".repeat(NUMBER_BYTES_MAX - 2));
    assert!(pickle_point((longest.as_bytes(), b""), (number.as_bytes(), b"2"), &mut out).is_ok());
    let more = format!("{number}1");
    assert_eq!(pickle_point((b"a", b""), (more.as_bytes(), b"2"), &mut out), Err(PickleReject::NotANumber));
}
