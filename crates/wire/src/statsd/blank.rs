//! White space as the original programs define it, found in raw bytes.
//!
//! JavaScript's white space includes characters beyond ASCII. They are recognised by their UTF-8 bytes: each begins
//! with a lead byte, and a lead byte begins a character whatever precedes it, so the bytes need not be decoded first.

/// Bytes of the JavaScript white-space character that `text` begins with; 0 when it begins with none.
pub(super) fn js_blank_len(text: &[u8]) -> usize {
    match text {
        [b'\t'..=b'\r' | b' ', ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        [0xE1, 0x9A, 0x80, ..]
        | [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..]
        | [0xE2, 0x81, 0x9F, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

/// Bytes of the JavaScript white-space character that `text` ends with; 0 when it ends with none.
fn js_blank_len_at_end(text: &[u8]) -> usize {
    match text {
        [.., b'\t'..=b'\r' | b' '] => 1,
        [.., 0xC2, 0xA0] => 2,
        [.., 0xE1, 0x9A, 0x80]
        | [.., 0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF]
        | [.., 0xE2, 0x81, 0x9F]
        | [.., 0xE3, 0x80, 0x80]
        | [.., 0xEF, 0xBB, 0xBF] => 3,
        _ => 0,
    }
}

/// `text` without JavaScript white space at its end.
pub(super) fn js_trim_end(mut text: &[u8]) -> &[u8] {
    loop {
        match js_blank_len_at_end(text) {
            0 => return text,
            len => text = &text[..text.len() - len],
        }
    }
}

/// `text` without JavaScript white space at both ends.
pub(super) fn js_trim(mut text: &[u8]) -> &[u8] {
    loop {
        match js_blank_len(text) {
            0 => return js_trim_end(text),
            len => text = &text[len..],
        }
    }
}

/// True for bytes that Perl's `\s` matches.
pub(super) fn perl_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// `text` without Perl's white space at both ends.
pub(super) fn perl_trim(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|&byte| !perl_blank(byte)) else { return &[] };
    let end = text.iter().rposition(|&byte| !perl_blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// `text` without CR, spaces and tabs at its end.
pub(super) fn line_trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| !matches!(byte, b'\r' | b' ' | b'\t')).map_or(0, |last| last + 1);
    &text[..end]
}

#[test]
fn javascript_white_space_differs_from_rust_in_two_characters() {
    // U+0085 is white space to Unicode and not to JavaScript; U+FEFF the other way round.
    for code in 0..=0x10FFFF_u32 {
        let Some(char) = char::from_u32(code) else { continue };
        let blank = (char.is_whitespace() && char != '\u{85}') || char == '\u{feff}';
        let text = char.to_string();
        assert_eq!(js_blank_len(text.as_bytes()), if blank { text.len() } else { 0 }, "U+{code:04X}");
        assert_eq!(js_trim(text.as_bytes()).is_empty(), blank, "U+{code:04X}");
    }
}

#[test]
fn trimming_removes_white_space_at_both_ends_only() {
    let text = "\u{3000}\r a\u{a0}b \u{feff}\n".as_bytes();
    assert_eq!(js_trim(text), "a\u{a0}b".as_bytes());
    assert_eq!(js_trim(b" \t\r\n"), b"");
    assert_eq!(perl_trim(b" \x0b ms \r"), b"ms");
    assert_eq!(perl_trim(b" \r"), b"");
    assert_eq!(line_trim_end(b" c \t\r"), b" c");
    assert_eq!(line_trim_end(b"\r"), b"");
}
