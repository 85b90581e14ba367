//! Writing client-supplied bytes as text for consoles and JSON. Write-only: the daemon does not read it back.

use std::fmt::{self, Display, Write};

use model::SeriesRef;

/// Appends the series' name as the `etsy` dialect stores it: the tags follow the name as `;key=value`, tags without a
/// value as `;word`.
///
/// Used by the consoles, the file outputs and the management port.
pub fn series_text(series: SeriesRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(series.name);
    if series.tags.is_empty() {
        return;
    }
    for tag in series.tags.split(|byte| *byte == b',') {
        out.push(b';');
        match memchr::memchr(b':', tag) {
            Some(colon) => {
                out.extend_from_slice(&tag[..colon]);
                out.push(b'=');
                out.extend_from_slice(&tag[colon + 1..]);
            }
            None => out.extend_from_slice(tag),
        }
    }
}

/// Text of a client: invalid UTF-8 becomes U+FFFD.
pub(crate) struct Lossy<'a>(pub(crate) &'a [u8]);

impl Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

/// Appends `text` as a JSON string. Invalid UTF-8 becomes U+FFFD.
pub(crate) fn json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    lossy(text, out, |byte, out| match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 | 0x7f => {
            out.extend_from_slice(b"\\u00");
            hex(byte, out);
        }
        _ => out.push(byte),
    });
    out.push(b'"');
}

/// Appends `text` as a single-quoted JavaScript string. Invalid UTF-8 becomes U+FFFD.
pub(crate) fn single_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    lossy(text, out, |byte, out| match byte {
        b'\'' => out.extend_from_slice(b"\\'"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 | 0x7f => {
            out.extend_from_slice(b"\\x");
            hex(byte, out);
        }
        _ => out.push(byte),
    });
    out.push(b'\'');
}

/// Appends `x` as a JSON number, as JavaScript prints it; `null` for NaN and the infinities.
pub(crate) fn json_number(x: f64, out: &mut Vec<u8>) {
    if x.is_finite() {
        crate::number::js_format(x, out);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends an integer.
pub(crate) fn integer(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Calls `ascii` for each ASCII byte and copies other characters whole.
fn lossy(text: &[u8], out: &mut Vec<u8>, ascii: impl Fn(u8, &mut Vec<u8>)) {
    for chunk in text.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            if byte.is_ascii() {
                ascii(byte, out);
            } else {
                out.push(byte);
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

#[test]
fn series_text_is_the_etsy_name() {
    let table: &[(&[u8], &[u8], &[u8])] = &[
        (b"n", b"", b"n"),
        (b"n;a=b", b"", b"n;a=b"),
        (b"n", b"a:b:c,bare", b"n;a=b:c;bare"),
        (b"n;x=y", b"k=v", b"n;x=y;k=v"),
    ];
    for (name, tags, want) in table {
        let mut out = Vec::new();
        series_text(SeriesRef { name, tags, clean: true }, &mut out);
        assert_eq!(out, *want);
    }
}

#[test]
fn quoted_texts_parse_back_to_the_same_text() {
    let table: &[(&[u8], &str, &str)] = &[
        (b"plain.name", r#""plain.name""#, "'plain.name'"),
        (br#"a'b"c\d"#, r#""a'b\"c\\d""#, r#"'a\'b"c\\d'"#),
        (b"a\n\r\t\x00\x1f\x7f", r#""a\n\r\t\u0000\u001f\u007f""#, r"'a\n\r\t\x00\x1f\x7f'"),
        ("caf\u{e9}".as_bytes(), "\"caf\u{e9}\"", "'caf\u{e9}'"),
        (b"a\xff\xc3", "\"a\u{fffd}\u{fffd}\"", "'a\u{fffd}\u{fffd}'"),
    ];
    for (text, json, quoted) in table {
        let mut out = Vec::new();
        json_string(text, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), *json);
        let mut out = Vec::new();
        single_quoted(text, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), *quoted);
    }
}
