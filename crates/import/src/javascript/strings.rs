//! The methods of JavaScript strings that configuration files use.

/// `text.split(separator)`; an empty separator splits between all characters.
pub(super) fn split<'a>(text: &'a str, separator: &'a str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    if !separator.is_empty() {
        return Box::new(text.split(separator));
    }
    Box::new(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]))
}

/// `text.replace(sought, by)`: the first occurrence, with `$$`, `$&`, `` $` `` and `$'` in `by` resolved.
/// None when the result would be longer than `bytes_max`.
pub(super) fn replace(text: &str, sought: &str, by: &str, bytes_max: usize) -> Option<String> {
    let Some(at) = text.find(sought) else {
        return (text.len() <= bytes_max).then(|| text.to_owned());
    };
    let (before, after) = (&text[..at], &text[at + sought.len()..]);
    let mut out = before.to_owned();
    let mut rest = by;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let (piece, length) = match rest.as_bytes().get(dollar + 1) {
            Some(b'$') => ("$", 2),
            Some(b'&') => (sought, 2),
            Some(b'`') => (before, 2),
            Some(b'\'') => (after, 2),
            _ => ("$", 1),
        };
        out.push_str(piece);
        rest = &rest[dollar + length..];
        if out.len() > bytes_max {
            return None;
        }
    }
    out.push_str(rest);
    out.push_str(after);
    (out.len() <= bytes_max).then_some(out)
}

#[test]
fn replace_changes_the_first_match_and_resolves_dollar_patterns() {
    let table = [
        ("a.b.c", ".", "_", "a_b.c"),
        ("abc", "x", "y", "abc"),
        ("abc", "", "-", "-abc"),
        ("abc", "b", "[$&$$$`$']", "a[b$ac]c"),
        ("abc", "b", "$1$", "a$1$c"),
    ];
    for (text, sought, by, want) in table {
        assert_eq!(replace(text, sought, by, 100).as_deref(), Some(want), "{text} {sought} {by}");
    }
    assert_eq!(replace("abc", "b", &"$&".repeat(98), 100), Some(format!("a{}c", "b".repeat(98))));
    assert_eq!(replace("abc", "b", &"$&".repeat(99), 100), None);
}

#[test]
fn split_splits_at_each_separator() {
    let table: &[(&str, &str, &[&str])] = &[
        ("a.b", ".", &["a", "b"]),
        ("ab", ".", &["ab"]),
        ("", ".", &[""]),
        ("a..", ".", &["a", "", ""]),
        ("aé", "", &["a", "é"]),
        ("", "", &[]),
    ];
    for (text, separator, want) in table {
        assert_eq!(split(text, separator).collect::<Vec<_>>(), *want, "{text} {separator}");
    }
}
