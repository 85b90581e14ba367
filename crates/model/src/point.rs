//! One Graphite point: a whole line in its batch's arena, and where its name ends.

use crate::Span;

/// A line `name[;tag=value…] value time` in its final form. Value and time are the sender's text: forwarding a point
/// needs no number parsing.
///
/// The hash covers the name only, because routes match names only, unless configured otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Seeded hash of the name.
    pub hash: u64,
    /// The line without its LF, which follows it in the arena.
    pub line: Span,
    /// Length of the name at the start of the line.
    pub name_len: u32,
    /// Length of the tags after the name, including the first `;`. 0 when there are none.
    pub tags_len: u32,
}

impl Point {
    /// The name without tags.
    #[inline]
    pub fn name(self, arena: &[u8]) -> &[u8] {
        &self.line.of(arena)[..self.name_len as usize]
    }

    /// The tags, each with its `;`; empty when there are none.
    #[inline]
    pub fn tags(self, arena: &[u8]) -> &[u8] {
        &self.line.of(arena)[self.name_len as usize..][..self.tags_len as usize]
    }

    /// The text after the name, without the leading space: tags if there are any, value and time.
    pub fn rest(self, arena: &[u8]) -> &[u8] {
        let behind = &self.line.of(arena)[self.name_len as usize..];
        behind.strip_prefix(b" ").unwrap_or(behind)
    }

    /// The value's text. Empty when a relay accepted a line without one.
    pub fn value(self, arena: &[u8]) -> &[u8] {
        self.fields(arena).next().unwrap_or_default()
    }

    /// The time's text. Empty when a relay accepted a line without one.
    pub fn time(self, arena: &[u8]) -> &[u8] {
        self.fields(arena).nth(1).unwrap_or_default()
    }

    /// The fields after the name and its tags.
    fn fields(self, arena: &[u8]) -> impl Iterator<Item = &[u8]> {
        let behind = &self.line.of(arena)[(self.name_len + self.tags_len) as usize..];
        behind.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty())
    }
}

#[test]
fn a_point_is_split_into_its_fields() {
    let table: &[(&str, u32, u32, [&str; 4])] = &[
        ("a.b 1.50 1700000000", 3, 0, ["a.b", "", "1.50", "1700000000"]),
        ("a;k=v 1 2", 1, 4, ["a", ";k=v", "1", "2"]),
        ("a;k=v  1\t 2", 1, 4, ["a", ";k=v", "1", "2"]),
        ("a 1", 1, 0, ["a", "", "1", ""]),
        ("a ", 1, 0, ["a", "", "", ""]),
    ];
    for (line, name_len, tags_len, want) in table {
        let arena = format!("xy{line}\n");
        let point =
            Point { hash: 0, line: Span::new(2, line.len()), name_len: *name_len, tags_len: *tags_len };
        let bytes = arena.as_bytes();
        let got = [point.name(bytes), point.tags(bytes), point.value(bytes), point.time(bytes)];
        assert_eq!(got, want.map(str::as_bytes), "{line}");
        let joined = [point.name(bytes), b" ", point.rest(bytes)].concat();
        let spaced = line.replacen(';', " ;", 1);
        assert_eq!(joined, if point.tags_len > 0 { spaced } else { (*line).to_owned() }.into_bytes());
    }
}
