//! Blanks out comments, strings and tests of Rust source, so that a rule can search for words and count braces.
//!
//! Invariant: a masked text has the lines and the line lengths (in bytes) of its source.

/// The source with comments blanked, and the contents of strings too when `strings` is set.
pub(super) fn mask(source: &str, strings: bool) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => blank(&mut out, at, line_end(bytes, at)),
            b'/' if bytes[at..].starts_with(b"/*") => blank(&mut out, at, comment_end(bytes, at)),
            b'"' => {
                let end = string_end(bytes, at);
                if strings { blank(&mut out, at + 1, end.saturating_sub(1)) + 1 } else { end }
            }
            b'r' if !in_word(bytes, at) => match raw_string(bytes, at) {
                Some(end) if strings => blank(&mut out, at, end),
                Some(end) => end,
                None => at + 1,
            },
            b'\'' => match char_end(bytes, at) {
                Some(end) => blank(&mut out, at, end),
                None => at + 1,
            },
            _ => at + 1,
        };
        at = end.max(at + 1);
    }
    // Only complete characters were blanked, byte by byte.
    String::from_utf8_lossy(&out).into_owned()
}

fn blank(out: &mut [u8], from: usize, to: usize) -> usize {
    let to = to.min(out.len());
    for byte in &mut out[from.min(to)..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    to
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut next) = (0_usize, at);
    while next < bytes.len() {
        if bytes[next..].starts_with(b"/*") {
            depth += 1;
            next += 2;
        } else if bytes[next..].starts_with(b"*/") {
            depth -= 1;
            next += 2;
            if depth == 0 {
                return next;
            }
        } else {
            next += 1;
        }
    }
    next
}

/// End of the string that opens at `at`, after its closing quote.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'"' => return next + 1,
            _ => next += 1,
        }
    }
    bytes.len()
}

/// End of the raw string that starts with the `r` at `at`; `None` when it is not a raw string.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close)?;
    Some(open + 1 + length + close.len())
}

/// End of the character literal at `at`; `None` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes.get(at + 3..)?.iter().position(|&byte| byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    // One character of one to four bytes between two quotes.
    (2..=5)
        .find(|&length| bytes.get(at + length) == Some(&b'\''))
        .filter(|&length| {
            std::str::from_utf8(&bytes[at + 1..at + length]).is_ok_and(|text| text.chars().count() == 1)
        })
        .map(|length| at + length + 1)
}

/// Whether the byte at `at` continues a word. `b` before `r` starts a raw byte string.
fn in_word(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|index| bytes[index]) else { return false };
    let word = before.is_ascii_alphanumeric() || before == b'_';
    word && !(before == b'b' && (at < 2 || !(bytes[at - 2].is_ascii_alphanumeric() || bytes[at - 2] == b'_')))
}

/// The masked source with tests blanked too: items with `#[cfg(test)]` and functions with `#[test]`.
pub(super) fn without_tests(masked: &str) -> String {
    let mut out = masked.as_bytes().to_vec();
    for attribute in ["#[cfg(test)]", "#[test]", "#[cfg(all(test"] {
        let mut from = 0;
        while let Some(found) = masked[from..].find(attribute) {
            let start = from + found;
            let end = item_end(masked.as_bytes(), start + attribute.len());
            from = blank(&mut out, start, end).max(start + attribute.len());
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// End of the item at `at`: after its outermost braces, or its semicolon when it has none.
fn item_end(bytes: &[u8], at: usize) -> usize {
    let mut next = at;
    let mut square = 0_usize;
    while next < bytes.len() {
        match bytes[next] {
            b'[' => square += 1,
            b']' => square = square.saturating_sub(1),
            b';' if square == 0 => return next + 1,
            b'{' => return brace_end(bytes, next),
            _ => {}
        }
        next += 1;
    }
    next
}

/// Offset after the brace that closes the one at `at`.
pub(super) fn brace_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// Lines (counted from 1) that contain `word` as a whole identifier.
pub(super) fn lines_with(masked: &str, word: &str) -> Vec<usize> {
    let holds = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let part =
                |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            let before = at.checked_sub(1).and_then(|index| line.as_bytes().get(index));
            !part(before) && !part(line.as_bytes().get(at + word.len()))
        })
    };
    masked.lines().enumerate().filter(|(_, line)| holds(line)).map(|(index, _)| index + 1).collect()
}

#[test]
fn only_code_is_left() {
    let table = [
        ("a // b", "a     "),
        ("a /* b /* c */ d */ e", "a                   e"),
        ("f(\"{ // \\\" }\");", "f(\"         \");"),
        ("r#\"{\"# + 'x' + '{' + '\\''", "       +     +     +     "),
        ("br\"{\" b\"}\" for", "b     b\" \" for"),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("'é' {", "     {"),
    ];
    for (source, want) in table {
        assert_eq!(mask(source, true), want, "{source}");
    }
    assert_eq!(mask("f(\"x\"); // y", false), "f(\"x\");     ");
}

#[test]
fn tests_are_blanked_and_line_numbers_are_kept() {
    let source = "fn a() {}\n#[test]\nfn b() { x }\n#[cfg(test)]\nmod tests {\n fn c() { x }\n}\n#[cfg(test)]\nuse x;\nfn d() {}\n";
    let left = without_tests(&mask(source, true));
    assert_eq!(left.lines().count(), source.lines().count());
    assert!(lines_with(&left, "x").is_empty(), "{left}");
    assert_eq!(lines_with(&left, "fn"), [1, 10]);
}

#[test]
fn only_whole_words_match() {
    assert_eq!(lines_with("unsafe_code\nunsafe {\nnot_unsafe", "unsafe"), [2]);
}
