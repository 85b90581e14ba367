//! Replacement strings, expanded with the groups of a match into a name, a key or the name of a result (spec
//! graphite §2.6).
//!
//! Parsed once, expanded for each name. Not here: the use of the result.
//! Invariant: any text is a valid replacement; escapes without a meaning are literal text.

use std::ops::Range;

use super::found::Found;

/// Longest name that a rewrite or an aggregation may produce. Longer names, empty names, and names with white space
/// or control characters are rejected: the next relay would read them as something else.
pub const NAME_BYTES_MAX: usize = 32_768;

/// True when a new name can be sent.
pub(super) fn can_be_sent(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}

/// A parsed replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    parts: Vec<Part>,
}

/// A reference to a group that the expression does not have. It expands to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostReference {
    /// Byte range in the replacement.
    pub at: Range<usize>,
    /// Number of the group.
    pub number: usize,
}

/// References of a replacement to groups that an expression with this number of groups does not have. For an
/// expression without groups a replacement is plain text, without references.
pub fn lost_references(text: &str, groups: usize) -> Vec<LostReference> {
    scan(text, groups).1
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Group(Group),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    /// From 1.
    number: usize,
    case: Case,
    /// Replace dots by underscores.
    flat: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Case {
    #[default]
    AsIs,
    Lower,
    Upper,
}

impl Replacement {
    /// Parses a replacement for an expression with this number of groups. Without groups it is plain text.
    pub(super) fn parse(text: &str, groups: usize) -> Replacement {
        Replacement { parts: read(text, groups).0 }
    }

    /// Appends the expansion for a match in `name` to `out`.
    pub(super) fn expand(&self, name: &[u8], found: &Found, out: &mut Vec<u8>) {
        for part in &self.parts {
            if out.len() > NAME_BYTES_MAX {
                return;
            }
            let group = match part {
                Part::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Part::Group(group) => group,
            };
            let Some(Some((begin, end))) = found.groups.get(group.number - 1) else { continue };
            out.extend(name[*begin..*end].iter().map(|byte| match group.case {
                _ if *byte == b'.' && group.flat => b'_',
                Case::AsIs => *byte,
                Case::Lower => byte.to_ascii_lowercase(),
                Case::Upper => byte.to_ascii_uppercase(),
            }));
        }
    }

    /// The expansion with every group set to `sample`.
    pub(super) fn sampled(&self, sample: &str) -> Vec<u8> {
        let group = Some((0, sample.len()));
        let groups = vec![group; super::GROUPS_MAX];
        let mut out = Vec::new();
        self.expand(sample.as_bytes(), &Found { span: (0, 0), groups }, &mut out);
        out
    }

    /// `name` with the match replaced. The result is cut soon after the maximum length of a name: it is rejected
    /// anyway.
    pub(super) fn replace(&self, name: &[u8], found: &Found) -> Vec<u8> {
        self.replace_all(name, std::slice::from_ref(found))
    }

    /// The same for several matches, in order.
    pub(super) fn replace_all(&self, name: &[u8], found: &[Found]) -> Vec<u8> {
        let mut out = Vec::with_capacity(name.len() + 16);
        let mut behind = 0;
        for one in found {
            out.extend_from_slice(&name[behind..one.span.0]);
            self.expand(name, one, &mut out);
            behind = one.span.1;
            if out.len() > NAME_BYTES_MAX {
                break;
            }
        }
        out.extend_from_slice(&name[behind..]);
        out
    }
}

/// Expands the `prefix with` of a `statistics` statement for a host: `\1` is the host name, `\2` the part before
/// the first dot, `\3` the rest with that dot.
pub fn statistics_prefix(text: &str, host: &str) -> Vec<u8> {
    let short = host.find('.').unwrap_or(host.len());
    if short == 0 {
        // Without a host name the original's expression does not match, and nothing is replaced.
        return host.into();
    }
    let domain = (short < host.len()).then_some((short, host.len()));
    let whole = (0, host.len());
    let found = Found { span: whole, groups: vec![Some(whole), Some((0, short)), domain] };
    Replacement::parse(text, 3).replace(host.as_bytes(), &found)
}

/// The parts of a replacement, and its references to missing groups.
fn read(text: &str, groups: usize) -> (Vec<Part>, Vec<LostReference>) {
    if groups == 0 {
        return (vec![Part::Text(text.into())], Vec::new());
    }
    scan(text, groups)
}

/// The same for an expression with groups.
fn scan(text: &str, groups: usize) -> (Vec<Part>, Vec<LostReference>) {
    let (mut parts, mut lost) = (Vec::new(), Vec::new());
    let mut rest = text.as_bytes();
    let mut plain = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        let start = text.len() - rest.len();
        rest = behind;
        if *first != b'\\' {
            plain.push(*first);
            continue;
        }
        let (group, behind) = group(rest, &mut plain);
        rest = behind;
        match group {
            Some(group) if (1..=groups).contains(&group.number) => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Group(group));
            }
            Some(Group { number, .. }) => {
                lost.push(LostReference { at: start..text.len() - rest.len(), number });
            }
            None => {}
        }
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    (parts, lost)
}

/// Parses what follows a backslash: flags, further backslashes and a number, or `g{…}` around them. Text that is no
/// group is appended to `plain`, without its backslashes. Returns the rest of the text.
fn group<'a>(text: &'a [u8], plain: &mut Vec<u8>) -> (Option<Group>, &'a [u8]) {
    if let Some(inner) = text.strip_prefix(b"g{") {
        let (group, behind) = number(inner);
        if let (Some(group), Some(behind)) = (group, behind.strip_prefix(b"}")) {
            return (Some(group), behind);
        }
    }
    let (group, behind) = number(text);
    match (group, behind.split_first()) {
        (None, Some((literal, behind))) => {
            plain.push(*literal);
            (None, behind)
        }
        (group, _) => (group, behind),
    }
}

/// Parses flags (one case and dots) and the digits after them, which form one number.
fn number(text: &[u8]) -> (Option<Group>, &[u8]) {
    let mut group = Group::default();
    let mut flagged = false;
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        match first {
            b'\\' => {}
            b'_' if !flagged => (group.case, flagged) = (Case::Lower, true),
            b'^' if !flagged => (group.case, flagged) = (Case::Upper, true),
            b'.' => (group.flat, flagged) = (true, true),
            _ => break,
        }
        rest = behind;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (None, rest);
    }
    // A number that overflows is too large for a group.
    let step =
        |number: usize, digit: &u8| number.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
    group.number = rest[..digits].iter().fold(0, step);
    (Some(group), &rest[digits..])
}

#[cfg(test)]
mod tests {
    use super::super::expression::Expression;
    use super::*;

    fn replaced(expression: &str, replacement: &str, name: &str) -> String {
        let expression = Expression::new(&expression.into(), true).expect("a valid expression");
        let found = expression.find(name.as_bytes()).expect("no limit").expect("a match");
        let replacement = Replacement::parse(replacement, expression.groups());
        String::from_utf8(replacement.replace(name.as_bytes(), &found)).expect("text")
    }

    #[test]
    fn an_expansion_beyond_the_maximum_name_length_is_cut() {
        let name = vec![b'x'; 30_000];
        let found = Found { span: (0, name.len()), groups: vec![Some((0, name.len()))] };
        let many = Replacement::parse(&r"\1".repeat(4_000), 1);
        let at = Replacement::parse(r"\1", 1);
        assert_eq!(at.replace(&name, &found).len(), name.len());
        let each: Vec<Found> = (0..name.len())
            .map(|at| Found { span: (at, at + 1), groups: vec![Some((0, name.len()))] })
            .collect();
        for long in [many.replace(&name, &found), many.replace_all(&name, &each)] {
            assert!((NAME_BYTES_MAX + 1..=NAME_BYTES_MAX + 2 * name.len()).contains(&long.len()));
        }
    }

    #[test]
    fn the_table_of_the_specification() {
        for (name, expression, into, want) in [
            ("a.b.c", r"^a\.([a-z]+)\.(.*)$", r"x.\2.\1", "x.c.b"),
            ("A.Foo.z", r"^A\.([A-Za-z]+)", r"n.\_1", "n.foo.z"),
            ("h.a.b.com.cpu", r"^h\.(.*\.com)", r"h.\.1", "h.a_b_com.cpu"),
            ("pre.foo.bar", "foo", "X", "pre.X.bar"),
            ("foo.bar", "foo", "X", "X.bar"),
            // The match is replaced in place, not put in front of the name.
            ("pre.foo.bar.post", "foo.bar", "X", "pre.X.post"),
            ("foo.bar", "bar$", "X", "foo.X"),
        ] {
            assert_eq!(replaced(expression, into, name), want, "{name} {expression} {into}");
        }
    }

    #[test]
    fn unusual_replacements_are_parsed_as_by_the_original() {
        // Output of carbon-c-relay 3.7.3, except for `\g{…}`, which 3.9 introduced.
        let table = [
            (r"x\_x", "xx"),
            (r"x\.", "x"),
            (r"x\.a", "xa"),
            (r"x\_.1", "xf_o"),
            (r"x\._1", "x_1"),
            (r"x\^.1", "xF_O"),
            (r"x\.^1", "x^1"),
            (r"x\_^1", "x^1"),
            (r"x\^_1", "x_1"),
            (r"\\\1", "F.o"),
            (r"\0z", "z"),
            (r"\12", ""),
            (r"a\\", "a"),
            (r"a\\b", "ab"),
            (r"\9\1", "F.o"),
            (r"\99999999999999999999999\1", "F.o"),
            (r"\002", "bb"),
            (r"\_.", ""),
            (r"\1.\2", "F.o.bb"),
            (r"\_\1", "f.o"),
            (r"\.\1", "F_o"),
            (r"\_\^1", "^1"),
            (r"\_x\1", "xF.o"),
            (r"\_1\1", "f.oF.o"),
            (r"\x1", "x1"),
            (r"\..1", "F_o"),
            (r"\-1", "-1"),
            (r"\g{1}2", "F.o2"),
            (r"\g{_1}\g{^.1}", "f.oF_O"),
            (r"\g{1", "g{1"),
            (r"\g{x}", "g{x}"),
            (r"\g{}", "g{}"),
        ];
        for (replacement, want) in table {
            let want = format!("{want}.Tail");
            assert_eq!(replaced(r"^(F.o)\.(b*)", replacement, "F.o.bb.Tail"), want, "{replacement}");
        }
    }

    #[test]
    fn references_to_missing_groups_are_reported() {
        let table: &[(&str, usize, &[&str])] = &[
            (r"x.\2.\1", 2, &[]),
            (r"\3a\\_4\0", 2, &[r"\3", r"\\_4", r"\0"]),
            (r"é\g{.2}", 1, &[r"\g{.2}"]),
            (r"\99999999999999999999999", 1, &[r"\99999999999999999999999"]),
            (r"\x\", 1, &[]),
            (r"\1.x", 0, &[r"\1"]),
            (r"x", 0, &[]),
        ];
        for (text, groups, want) in table {
            let lost = lost_references(text, *groups);
            assert_eq!(lost.iter().map(|lost| &text[lost.at.clone()]).collect::<Vec<_>>(), *want, "{text}");
        }
    }

    #[test]
    fn prefixes_of_statistics_are_expanded() {
        // The default, and the examples of spec graphite §2.4.
        for (text, host, want) in [
            (r"carbon.relays.\.1", "a.example.org", "carbon.relays.a_example_org"),
            (r"carbon.relays.\.1", "host", "carbon.relays.host"),
            (r"x.\2\3.\_1", "A.b", "x.A.b.a.b"),
            (r"x.\3y", "host", "x.y"),
            ("fixed", "host", "fixed"),
            ("fixed", ".", "."),
        ] {
            assert_eq!(String::from_utf8_lossy(&statistics_prefix(text, host)), want, "{text} of {host}");
        }
    }

    #[test]
    fn without_groups_a_replacement_is_plain_text() {
        assert_eq!(replaced("foo", r"a\1\_b", "x.foo.y"), r"x.a\1\_b.y");
        assert_eq!(replaced("(q)?o", r"<\1>", "foo"), "f<>o");
    }
}
