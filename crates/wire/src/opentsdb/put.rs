//! Writing points as `put METRIC TIME VALUE TAG=VALUE …`, for a TSD.
//!
//! Path of a point: `pipeline::encode` -> [`put_line`], or for lines that the Graphite encoder made [`put_lines`].
//! Names and tags keep letters, digits, `-`, `_`, `.`, `/` and all that is not ASCII; every other byte becomes `_`.

use memchr::memchr;

use crate::number::{double, is_decimal};
use crate::steps::touch;

/// Times above it are milliseconds: as seconds they would be after the year 2106.
pub const SECONDS_MAX: u64 = u32::MAX as u64;

/// Longest line that a TSD reads, without its LF: it closes the connection of a longer one, and so does Riemann.
pub const PUT_BYTES_MAX: usize = 1024;

/// Why a point cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutReject {
    /// Value or time are missing or not numbers, the value is not finite, or the time is not after 1970 and before 2106.
    NotANumber,
    /// The name is empty, or what should be tags is none.
    UnsafeName,
    /// The line would be longer than [`PUT_BYTES_MAX`].
    TooBig,
}

/// A point as a Graphite line has it.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The name; tags may follow it here, each behind a `;`.
    pub name: &'a [u8],
    /// Tags, each behind a `;`.
    pub tags: &'a [u8],
    /// The value's text.
    pub value: &'a [u8],
    /// The time's text, in seconds.
    pub time: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Those of a whole line `name[;tag=value…] value time`, without its LF.
    pub fn of_line(line: &'a [u8]) -> Parts<'a> {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let (name, value, time) = (word(), word(), word());
        Parts { name, tags: b"", value, time }
    }
}

/// Appends the line with its LF. A point without tags gets `default_tag`, as a TSD wants at least one. Appends nothing on an
/// error.
///
/// # Errors
/// Why the point cannot be written.
pub fn put_line(point: Parts<'_>, default_tag: &[u8], out: &mut Vec<u8>) -> Result<(), PutReject> {
    let begin = out.len();
    let written = write(point, default_tag, out);
    let written = match written {
        Ok(()) if out.len() - begin > PUT_BYTES_MAX => Err(PutReject::TooBig),
        written => written,
    };
    touch(out.len() - begin);
    match written {
        Ok(()) => out.push(b'\n'),
        Err(_) => out.truncate(begin),
    }
    written
}

/// Appends each of `lines`, which end in LF. Gives the number of those that were written, and each reason why one was not to
/// `lost`.
pub fn put_lines(
    lines: &[u8],
    default_tag: &[u8],
    out: &mut Vec<u8>,
    mut lost: impl FnMut(PutReject),
) -> u32 {
    let mut written = 0;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match put_line(Parts::of_line(line), default_tag, out) {
            Ok(()) => written += 1,
            Err(why) => lost(why),
        }
    }
    written
}

fn write(point: Parts<'_>, default_tag: &[u8], out: &mut Vec<u8>) -> Result<(), PutReject> {
    let Parts { name, tags, value, time } = point;
    let (name, named_tags) = name.split_at(memchr(b';', name).unwrap_or(name.len()));
    if name.is_empty() {
        return Err(PutReject::UnsafeName);
    }
    let unsigned = value.strip_prefix(b"-").or(value.strip_prefix(b"+")).unwrap_or(value);
    if !is_decimal(unsigned) || !double(unsigned).is_some_and(f64::is_finite) {
        return Err(PutReject::NotANumber);
    }
    let time_s = seconds(time).ok_or(PutReject::NotANumber)?;
    out.extend_from_slice(b"put ");
    write_safe(name, out);
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(time_s).as_bytes());
    out.push(b' ');
    out.extend_from_slice(value.strip_prefix(b"+").unwrap_or(value));
    let mut number = 0;
    for tag in [named_tags, tags].into_iter().flat_map(|tags| tags.split(|byte| *byte == b';')) {
        if tag.is_empty() {
            continue;
        }
        let at = memchr(b'=', tag).filter(|at| *at > 0 && at + 1 < tag.len());
        let at = at.ok_or(PutReject::UnsafeName)?;
        out.push(b' ');
        write_safe(&tag[..at], out);
        out.push(b'=');
        write_safe(&tag[at + 1..], out);
        number += 1;
    }
    if number == 0 {
        out.push(b' ');
        out.extend_from_slice(default_tag);
    }
    Ok(())
}

/// True for a byte that names and tags of OpenTSDB may have. Of what is not ASCII it takes letters, and the others are its to refuse.
pub fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/') || !byte.is_ascii()
}

fn write_safe(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(|byte| if is_safe(*byte) { *byte } else { b'_' }));
}

/// Whole seconds of a time that a TSD takes for seconds.
fn seconds(text: &[u8]) -> Option<u64> {
    let time = double(text).filter(|_| is_decimal(text))?;
    let in_range = time >= 1.0 && time < SECONDS_MAX as f64 + 1.0;
    in_range.then_some(time as u64)
}

#[test]
fn points_are_put_lines_or_say_why_not() {
    use PutReject::{NotANumber, UnsafeName};
    let table: &[(&str, Result<&str, PutReject>)] = &[
        ("a.b 1 1700000000", Ok("put a.b 1700000000 1 source=staunch")),
        ("a.b;host=h;cpu=0 -1.5 1700000000", Ok("put a.b 1700000000 -1.5 host=h cpu=0")),
        ("a +1e3 1.7e9", Ok("put a 1700000000 1e3 source=staunch")),
        ("a 1 1700000000.9", Ok("put a 1700000000 1 source=staunch")),
        ("a 1 4294967295", Ok("put a 4294967295 1 source=staunch")),
        ("a:b%c/d-e_f;k k=v:w 1 1", Err(NotANumber)),
        ("a:b%c/d-e_f;k:k=v=w 1 1", Ok("put a_b_c/d-e_f 1 1 k_k=v_w")),
        ("é;ö=ü 1 1", Ok("put é 1 1 ö=ü")),
        ("a 1 4294967296", Err(NotANumber)),
        ("a 1 0", Err(NotANumber)),
        ("a 1 -1", Err(NotANumber)),
        ("a 1 now", Err(NotANumber)),
        ("a 1", Err(NotANumber)),
        ("a nan 1", Err(NotANumber)),
        ("a 1e999 1", Err(NotANumber)),
        ("a 0x1 1", Err(NotANumber)),
        (";k=v 1 1", Err(UnsafeName)),
        (" 1 1", Err(UnsafeName)),
        ("a;k 1 1", Err(UnsafeName)),
        ("a;k= 1 1", Err(UnsafeName)),
        ("a;=v 1 1", Err(UnsafeName)),
    ];
    for (line, want) in table {
        let mut out = b"before\n".to_vec();
        let got = put_line(Parts::of_line(line.as_bytes()), b"source=staunch", &mut out);
        let text = String::from_utf8_lossy(&out[7..]).into_owned();
        assert_eq!(got.map(|()| text.trim_end()), *want, "{line:?}");
        assert_eq!(text.is_empty(), want.is_err(), "{line:?} leaves nothing behind");
    }
}

#[test]
fn a_line_over_the_limit_is_not_written() {
    let rest = "put  1 1 k=v".len();
    for (len, want) in [(PUT_BYTES_MAX, Ok(())), (PUT_BYTES_MAX + 1, Err(PutReject::TooBig))] {
        let line = format!("{};k=v 1 1", "a".repeat(len - rest));
        let mut out = Vec::new();
        assert_eq!(put_line(Parts::of_line(line.as_bytes()), b"x=y", &mut out), want, "{len} bytes");
        assert_eq!(out.len(), if want.is_ok() { len + 1 } else { 0 });
    }
}

#[test]
fn lines_that_were_not_written_are_counted() {
    let (mut out, mut lost) = (Vec::new(), Vec::new());
    let written = put_lines(b"a 1 1\nb x 1\nc 1 1\n", b"k=v", &mut out, |why| lost.push(why));
    assert_eq!((written, &lost[..]), (2, &[PutReject::NotANumber][..]));
    assert_eq!(String::from_utf8_lossy(&out), "put a 1 1 k=v\nput c 1 1 k=v\n");
}
