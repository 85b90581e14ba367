//! One Graphite point as it travels: a whole line of its batch's arena, and where the name in it ends.

use crate::Span;

/// A line `name[;tag=value…] value time` in the form in which it goes on. Its numbers are the sender's own text: nobody
/// has to read them to send the point on.
///
/// The hash is of the name alone, since routes look at nothing else unless they say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Seeded hash of the name.
    pub hash: u64,
    /// The line without its LF, which stands right behind it in the arena.
    pub line: Span,
    /// Bytes of the name, with which the line begins.
    pub name_len: u32,
    /// Bytes of the tags, which follow the name; the first `;` counts. 0 when there are none.
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

    /// The value's text. Empty when a relay let a line without one pass.
    pub fn value(self, arena: &[u8]) -> &[u8] {
        self.fields(arena).next().unwrap_or_default()
    }

    /// The time's text. Empty when a relay let a line without one pass.
    pub fn time(self, arena: &[u8]) -> &[u8] {
        self.fields(arena).nth(1).unwrap_or_default()
    }

    /// What stands behind the name and its tags, between blanks.
    fn fields(self, arena: &[u8]) -> impl Iterator<Item = &[u8]> {
        let behind = &self.line.of(arena)[(self.name_len + self.tags_len) as usize..];
        behind.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty())
    }
}

#[test]
fn a_point_finds_its_fields() {
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
    }
}
