//! Bytes as flow files write them: UTF-8 text with `\n`, `\r`, `\t`, `\xNN` and `\\`.

/// Decodes the escapes in `text`.
///
/// # Errors
/// A sentence about the first unknown escape.
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = after;
            continue;
        }
        let (escaped, len) = match after {
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => (hex(*high, *low).ok_or_else(|| unknown(after))?, 3),
            _ => return Err(unknown(after)),
        };
        out.push(escaped);
        rest = &after[len..];
    }
    Ok(out)
}

/// The reverse: escapes all bytes that are not plain text, so that the result can be written into a flow file.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\\' => out.push_str("\\\\"),
                c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn unknown(after: &[u8]) -> String {
    let shown = &after[..after.len().min(if after.first() == Some(&b'x') { 3 } else { 1 })];
    let shown = String::from_utf8_lossy(shown);
    format!("`\\{shown}` is no escape: there are `\\n`, `\\r`, `\\t`, `\\xNN` and `\\\\`")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_decoded_or_rejected() {
        let table: &[(&str, Option<&[u8]>)] = &[
            ("a:1|c", Some(b"a:1|c")),
            (r"a\nb\r\t\\", Some(b"a\nb\r\t\\")),
            (r"\x00\xfF\x20", Some(b"\x00\xff ")),
            ("é", Some(b"\xc3\xa9")),
            (r"\", None),
            (r"\q", None),
            (r"\x1", None),
            (r"\xg0", None),
        ];
        for (text, want) in table {
            assert_eq!(unescape(text).ok().as_deref(), *want, "{text}");
        }
        assert!(unescape(r"\é").expect_err("no such escape").contains("is no escape"));
    }

    proptest! {
        #[test]
        fn escaped_bytes_decode_to_themselves(bytes: Vec<u8>) {
            prop_assert_eq!(unescape(&escape(&bytes)), Ok(bytes));
        }
    }
}
