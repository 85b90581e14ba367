//! Names of series as the catalog stores them: a path of components, or a metric with tags (spec graphite §1.1.4, §4.7).
//!
//! Accepts the forms `metric;tag=value` and `metric{tag="value"}`; both become `metric;tag=value` with the pairs in byte
//! order. Of a repeated tag the last one counts, and a tag `name` is dropped: the metric is its value.
//! Not here: limits on a line, spaces and control characters (`wire`).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use model::limits::KEY_BYTES_MAX;

/// Longest name in bytes, in its normal form.
pub const NAME_BYTES_MAX: usize = KEY_BYTES_MAX;
/// Most components of a name without tags.
pub const LEVELS_MAX: usize = 100;

/// Why a name cannot be in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// Nothing in front of the tags, or an empty name.
    Empty,
    /// Longer than [`NAME_BYTES_MAX`].
    TooLong,
    /// More components than [`LEVELS_MAX`].
    TooDeep,
    /// Two dots in a row, or a dot at an end: the component between them would be a hidden file.
    EmptyComponent,
    /// A tag without `=`, an empty tag or value, a value that begins with `~`, or `;`, `!`, `^` or `=` where they may
    /// not be; or a normal form that would be read as the other form.
    Tag,
}

impl fmt::Display for BadName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Empty => to.write_str("the name is empty"),
            BadName::TooLong => write!(to, "the name is longer than {NAME_BYTES_MAX} bytes"),
            BadName::TooDeep => write!(to, "the name has more than {LEVELS_MAX} components"),
            BadName::EmptyComponent => {
                to.write_str("the name has an empty component: two dots, or one at an end")
            }
            BadName::Tag => to.write_str("the tags are not of the form `;tag=value`"),
        }
    }
}

impl std::error::Error for BadName {}

/// A name in its normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// Components with dots between them.
    Path(&'a [u8]),
    Tagged(Tagged<'a>),
}

/// A metric and its tags in byte order of `tag=value`, without `name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tagged<'a> {
    pub(super) metric: &'a [u8],
    pub(super) tags: Vec<(&'a [u8], Cow<'a, [u8]>)>,
}

impl Tagged<'_> {
    /// The value of the tag `name`.
    pub(super) fn name_value(&self) -> &[u8] {
        name_value(self.metric)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.metric);
        for (tag, value) in &self.tags {
            out.push(b';');
            out.extend_from_slice(tag);
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }

    /// True when its normal form would be read as `metric{tag="value"}`, and so as another name.
    fn reads_as_open_metrics(&self) -> bool {
        let last = self.tags.last().map_or(self.metric, |(_, value)| &**value);
        if !last.ends_with(b"\"}") {
            return false;
        }
        let mut normal = Vec::with_capacity(self.len());
        self.write(&mut normal);
        is_open_metrics(&normal)
    }

    fn len(&self) -> usize {
        self.metric.len() + self.tags.iter().map(|(tag, value)| tag.len() + value.len() + 2).sum::<usize>()
    }
}

/// A metric without the `~` in front of it.
fn name_value(metric: &[u8]) -> &[u8] {
    &metric[metric.iter().take_while(|byte| **byte == b'~').count()..]
}

/// The normal form of a name, as `tagSeries` answers it.
///
/// # Errors
/// [`BadName`] with the reason.
pub fn normal_name(name: &[u8]) -> Result<Vec<u8>, BadName> {
    match parse(name)? {
        Name::Path(path) => Ok(path.to_vec()),
        Name::Tagged(tagged) => {
            let mut out = Vec::with_capacity(tagged.len());
            tagged.write(&mut out);
            Ok(out)
        }
    }
}

pub(super) fn parse(name: &[u8]) -> Result<Name<'_>, BadName> {
    // An escape takes two bytes for one.
    if name.len() > 2 * NAME_BYTES_MAX {
        return Err(BadName::TooLong);
    }
    let tagged = if is_open_metrics(name) {
        open_metrics(name)?
    } else if name.contains(&b';') {
        carbon(name)?
    } else {
        return path(name);
    };
    if tagged.len() > NAME_BYTES_MAX {
        return Err(BadName::TooLong);
    }
    if tagged.name_value().is_empty() {
        return Err(BadName::Empty);
    }
    if tagged.reads_as_open_metrics() {
        return Err(BadName::Tag);
    }
    if tagged.tags.is_empty() { path(tagged.metric) } else { Ok(Name::Tagged(tagged)) }
}

fn is_open_metrics(name: &[u8]) -> bool {
    name.ends_with(b"\"}") && name.contains(&b'{')
}

fn path(name: &[u8]) -> Result<Name<'_>, BadName> {
    if name.is_empty() {
        return Err(BadName::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(BadName::TooLong);
    }
    let mut levels = 0;
    for component in name.split(|byte| *byte == b'.') {
        if component.is_empty() {
            return Err(BadName::EmptyComponent);
        }
        levels += 1;
    }
    if levels > LEVELS_MAX { Err(BadName::TooDeep) } else { Ok(Name::Path(name)) }
}

fn carbon(name: &[u8]) -> Result<Tagged<'_>, BadName> {
    let mut parts = name.split(|byte| *byte == b';');
    let metric = parts.next().unwrap_or_default();
    let mut tags = Vec::new();
    for part in parts {
        let at = part.iter().position(|byte| *byte == b'=').ok_or(BadName::Tag)?;
        tags.push((&part[..at], Cow::Borrowed(&part[at + 1..])));
    }
    in_order(metric, tags)
}

/// Checks the tags, sorts them, and drops all but the last one of each.
fn in_order<'a>(metric: &'a [u8], mut tags: Vec<(&'a [u8], Cow<'a, [u8]>)>) -> Result<Tagged<'a>, BadName> {
    if metric.is_empty() {
        return Err(BadName::Empty);
    }
    for (tag, value) in &tags {
        let bad_tag = tag.is_empty() || tag.iter().any(|byte| b";!^=".contains(byte));
        if bad_tag || value.is_empty() || value[0] == b'~' || value.contains(&b';') {
            return Err(BadName::Tag);
        }
    }
    let is_name = |(tag, _): &(&[u8], Cow<'_, [u8]>)| *tag == b"name";
    // Equal tags are neighbours in byte order, since no tag contains a `=`.
    let follows = |pair: &[(&[u8], Cow<'_, [u8]>)]| {
        pair[0].0 != pair[1].0 && by_bytes(&pair[0], &pair[1]) == Ordering::Less
    };
    if tags.windows(2).all(follows) && !tags.iter().any(is_name) {
        return Ok(Tagged { metric, tags });
    }
    // A stable sort: of equal tags the last one is last.
    tags.sort_by_key(|(tag, _)| *tag);
    tags.reverse();
    tags.dedup_by(|(a, _), (b, _)| a == b);
    tags.retain(|tag| !is_name(tag));
    tags.sort_by(by_bytes);
    Ok(Tagged { metric, tags })
}

/// The order of `tag=value`.
fn by_bytes((tag_a, a): &(&[u8], Cow<'_, [u8]>), (tag_b, b): &(&[u8], Cow<'_, [u8]>)) -> Ordering {
    let whole_a = tag_a.iter().chain(b"=").chain(a.iter());
    whole_a.cmp(tag_b.iter().chain(b"=").chain(b.iter()))
}

fn open_metrics(name: &[u8]) -> Result<Tagged<'_>, BadName> {
    let at = name.iter().position(|byte| *byte == b'{').ok_or(BadName::Tag)?;
    let (metric, mut rest) = (&name[..at], &name[at + 1..name.len() - 1]);
    if metric.contains(&b';') {
        return Err(BadName::Tag);
    }
    let mut tags = Vec::new();
    while !rest.is_empty() {
        let at = rest.iter().position(|byte| *byte == b'=').ok_or(BadName::Tag)?;
        let tag = &rest[..at];
        rest = rest[at + 1..].strip_prefix(b"\"").ok_or(BadName::Tag)?;
        let (value, after) = quoted(rest)?;
        tags.push((tag, value));
        rest = match after {
            [] => after,
            [b',', after @ ..] => after,
            _ => return Err(BadName::Tag),
        };
    }
    in_order(metric, tags)
}

/// A value up to its closing quote, and the bytes behind it.
fn quoted(text: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), BadName> {
    let first = text.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(BadName::Tag)?;
    if text[first] == b'"' {
        return Ok((Cow::Borrowed(&text[..first]), &text[first + 1..]));
    }
    let mut value = text[..first].to_vec();
    let mut rest = &text[first..];
    loop {
        match rest {
            [b'"', after @ ..] => return Ok((Cow::Owned(value), after)),
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [b'\\', ..] | [] => return Err(BadName::Tag),
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
        }
    }
}

/// The component of a file in a tree of whisper files: its name up to the first dot. None for a hidden file, which
/// begins with a dot.
pub fn component_of_file(file: &[u8]) -> Option<&[u8]> {
    file.split(|byte| *byte == b'.').next().filter(|component| !component.is_empty())
}

#[test]
fn names_are_normalised_or_rejected_with_the_reason() {
    let table: &[(&str, Result<&str, BadName>)] = &[
        ("a.b", Ok("a.b")),
        ("a;b=c", Ok("a;b=c")),
        ("disk;server=w;dc=1", Ok("disk;dc=1;server=w")),
        ("a;b=1;b=2;name=x", Ok("a;b=2")),
        ("a;b=1;b-=2", Ok("a;b-=2;b=1")),
        ("~a;b=x=y", Ok("~a;b=x=y")),
        (r#"a{b="x\"y",a="\\"}"#, Ok(r#"a;a=\;b=x"y"#)),
        (r#"a{b="x",}"#, Ok(r#"a{b="x",}"#)),
        ("", Err(BadName::Empty)),
        (";a=b", Err(BadName::Empty)),
        ("~~;a=b", Err(BadName::Empty)),
        ("a..b", Err(BadName::EmptyComponent)),
        (".a", Err(BadName::EmptyComponent)),
        ("a.", Err(BadName::EmptyComponent)),
        ("a;b", Err(BadName::Tag)),
        ("a;b=", Err(BadName::Tag)),
        ("a;=b", Err(BadName::Tag)),
        ("a;b!=c", Err(BadName::Tag)),
        ("a;b=~c", Err(BadName::Tag)),
        (r#"a{b="x;y"}"#, Err(BadName::Tag)),
        (r#"a{b=x"}"#, Err(BadName::Tag)),
        (r#"a{b="x\"}"#, Err(BadName::Tag)),
    ];
    for (name, want) in table {
        let want = want.map(|name| name.as_bytes().to_vec());
        assert_eq!(normal_name(name.as_bytes()), want, "{name}");
        if let Ok(normal) = want {
            assert_eq!(normal_name(&normal), Ok(normal.clone()), "{name} again");
        }
    }
    for (name, want) in
        [("x".repeat(NAME_BYTES_MAX), None), ("x".repeat(NAME_BYTES_MAX + 1), Some(BadName::TooLong))]
    {
        assert_eq!(normal_name(name.as_bytes()).err(), want);
        let tagged = format!("x;y={}", &name[4..]);
        assert_eq!(normal_name(tagged.as_bytes()).err(), want);
    }
    for (levels, want) in [(LEVELS_MAX, None), (LEVELS_MAX + 1, Some(BadName::TooDeep))] {
        assert_eq!(normal_name(vec!["a"; levels].join(".").as_bytes()).err(), want);
    }
}

#[test]
fn a_files_component_ends_at_its_first_dot() {
    for (file, want) in
        [("cpu.wsp", Some("cpu")), ("cpu.x.wsp", Some("cpu")), ("dir", Some("dir")), (".wsp", None)]
    {
        assert_eq!(component_of_file(file.as_bytes()), want.map(str::as_bytes), "{file}");
    }
}
