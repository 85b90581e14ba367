//! Normalises names and tags (spec graphite §1.1.1, §1.1.4), or passes them on as sent where that is configured.
//!
//! Leading and trailing dots of a name are removed and runs of dots become one, since carbon's files cannot tell such
//! names apart. Tags, whether as `name;tag=value` or as `name{tag="value"}`, become `;tag=value` in byte order; of a
//! repeated tag the last one counts.
//! Invariant: the output contains no space and no control character; normalising it again changes nothing.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use model::Reject;
use smallvec::SmallVec;

use super::options::{Compatibility, NameForm, Options};
use super::parsed::Parts;

/// A tag and its value. Values in OpenMetrics syntax may be unescaped copies.
type Tag<'a> = (&'a [u8], Cow<'a, [u8]>);

/// Tags of a line that need no allocation.
type Tags<'a> = SmallVec<[Tag<'a>; 16]>;

/// Appends the normal form of `text`.
pub(super) fn write(options: &Options, text: &[u8], out: &mut Vec<u8>) -> Result<Parts, Reject> {
    if has_bad_bytes(options.compatibility, text) {
        return Err(Reject::BadName);
    }
    if options.names == NameForm::AsSent {
        if text.iter().all(|byte| *byte == b'.') {
            return Err(Reject::NoName);
        }
        out.extend_from_slice(text);
        return Ok(Parts { name_len: text.len(), tags_len: 0 });
    }
    let begin = out.len();
    let name_len = if is_open_metrics(text) {
        let (name, mut tags) = open_metrics(text)?;
        let name_len = write_tagged_name(name, out)?;
        write_in_order(&mut tags, out);
        name_len
    } else if let Some(at) = memchr(b';', text) {
        let (name, tags) = text.split_at(at);
        // All tags come before the name: the reason of a line does not depend on their order.
        let sorted = if in_order(&tags[1..])? { None } else { Some(carbon(&tags[1..])?) };
        let name_len = write_tagged_name(name, out)?;
        match sorted {
            None => out.extend_from_slice(tags),
            Some(mut sorted) => write_in_order(&mut sorted, out),
        }
        name_len
    } else {
        write_dotted(text, out)?
    };
    // A text that was not a tag before might parse as one now.
    if is_open_metrics(&out[begin..]) {
        return Err(Reject::BadTag);
    }
    let whole_len = out.len() - begin;
    let name_len = if options.names == NameForm::Tagged { whole_len } else { name_len };
    Ok(Parts { name_len, tags_len: whole_len - name_len })
}

fn is_open_metrics(text: &[u8]) -> bool {
    text.ends_with(b"\"}") && text.contains(&b'{')
}

/// Appends the name of a line with tags, and returns its length.
fn write_tagged_name(name: &[u8], out: &mut Vec<u8>) -> Result<usize, Reject> {
    // The name is a tag's value, too (`name=…`), and no value may begin with `~`.
    let skipped = name.iter().take_while(|byte| matches!(byte, b'~' | b'.')).count();
    write_dotted(&name[skipped..], out)
}

fn write_in_order(tags: &mut Tags<'_>, out: &mut Vec<u8>) {
    order(tags);
    for (tag, value) in tags {
        out.push(b';');
        out.extend_from_slice(tag);
        out.push(b'=');
        out.extend_from_slice(value);
    }
}

/// True for control characters and, in valid UTF-8, for white space at which Python would split the name.
fn has_bad_bytes(compatibility: Compatibility, text: &[u8]) -> bool {
    // No early exit, so that the loop is vectorised.
    let bad = text.iter().fold(false, |bad, byte| bad | (*byte <= b' ') | (*byte == 0x7F));
    if bad {
        return true;
    }
    let looks = matches!(compatibility, Compatibility::Strict | Compatibility::Carbon) && !text.is_ascii();
    looks && std::str::from_utf8(text).is_ok_and(|text| text.chars().any(char::is_whitespace))
}

/// Appends `name` without dots at its ends, and with one dot for a run of them. Returns the length written.
fn write_dotted(name: &[u8], out: &mut Vec<u8>) -> Result<usize, Reject> {
    let begin = out.len();
    // No early exit, so that the loop is vectorised.
    let pairs = name.iter().zip(name.iter().skip(1));
    let doubled = pairs.fold(false, |doubled, (one, next)| doubled | ((*one == b'.') & (*next == b'.')));
    if !doubled && !matches!(name, [] | [b'.', ..] | [.., b'.']) {
        out.extend_from_slice(name);
        return Ok(name.len());
    }
    for piece in name.split(|byte| *byte == b'.').filter(|piece| !piece.is_empty()) {
        if out.len() > begin {
            out.push(b'.');
        }
        out.extend_from_slice(piece);
    }
    if out.len() == begin { Err(Reject::NoName) } else { Ok(out.len() - begin) }
}

/// `tag=value;tag=value`.
fn carbon(text: &[u8]) -> Result<Tags<'_>, Reject> {
    let pairs = text.split(|byte| *byte == b';').map(pair);
    pairs.map(|pair| pair.map(|(tag, value)| (tag, Cow::Borrowed(value)))).collect()
}

/// True when the tags can be copied unchanged, as from clients that sort them, or from another instance of ours.
fn in_order(mut text: &[u8]) -> Result<bool, Reject> {
    let (mut before, mut tag_before): (&[u8], &[u8]) = (b"", b"");
    loop {
        let (whole, rest) = text.split_at(memchr(b';', text).unwrap_or(text.len()));
        let (tag, _) = pair(whole)?;
        if whole <= before || tag == tag_before || tag == b"name" {
            return Ok(false);
        }
        (before, tag_before) = (whole, tag);
        match rest {
            [] => return Ok(true),
            rest => text = &rest[1..],
        }
    }
}

/// A tag and its value, which contain no `;`: the text was split there.
fn pair(text: &[u8]) -> Result<(&[u8], &[u8]), Reject> {
    let at = memchr(b'=', text).ok_or(Reject::BadTag)?;
    let (tag, value) = (&text[..at], &text[at + 1..]);
    let bad_tag = tag.is_empty() || tag.iter().any(|byte| matches!(byte, b'!' | b'^'));
    let bad_value = value.is_empty() || value[0] == b'~';
    if bad_tag || bad_value { Err(Reject::BadTag) } else { Ok((tag, value)) }
}

/// `name{tag="value",tag="value"}`, with `\"` and `\\` in values.
fn open_metrics(text: &[u8]) -> Result<(&[u8], Tags<'_>), Reject> {
    let at = memchr(b'{', text).ok_or(Reject::BadTag)?;
    let (name, mut rest) = (&text[..at], &text[at + 1..text.len() - 1]);
    if name.is_empty() {
        return Err(Reject::NoName);
    }
    // A name with a `;` would be written as a name with tags.
    if rest.contains(&b'{') || name.contains(&b';') {
        return Err(Reject::BadTag);
    }
    let mut tags = Tags::new();
    while !rest.is_empty() {
        let at = memchr(b'=', rest).filter(|at| rest.get(at + 1) == Some(&b'"')).ok_or(Reject::BadTag)?;
        let (value, len) = quoted(&rest[at + 2..]).ok_or(Reject::BadTag)?;
        let tag = &rest[..at];
        let bad_tag = tag.is_empty() || tag.iter().any(|byte| b";!^".contains(byte));
        if bad_tag || value.is_empty() || value.contains(&b';') || value[0] == b'~' {
            return Err(Reject::BadTag);
        }
        tags.push((tag, value));
        rest = &rest[at + 2 + len..];
        rest = match rest {
            [] => rest,
            [b',', rest @ ..] => rest,
            _ => return Err(Reject::BadTag),
        };
    }
    Ok((name, tags))
}

/// The value up to the closing quote, and the number of bytes consumed, with that quote.
fn quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, usize)> {
    let first = memchr2(b'"', b'\\', text)?;
    if text[first] == b'"' {
        return Some((Cow::Borrowed(&text[..first]), first + 1));
    }
    let mut value = text[..first].to_vec();
    let mut at = first;
    loop {
        match (text.get(at)?, text.get(at + 1)) {
            (b'"', _) => return Some((Cow::Owned(value), at + 1)),
            (b'\\', Some(escaped @ (b'"' | b'\\'))) => {
                value.push(*escaped);
                at += 2;
            }
            (b'\\', _) => return None,
            (byte, _) => {
                value.push(*byte);
                at += 1;
            }
        }
    }
}

/// Keeps of each tag the last one, drops tags called `name` (the name itself), and sorts them for output.
fn order(tags: &mut Tags<'_>) {
    // A stable sort keeps the order of arrival among equal tags, so the last of them is the last that arrived.
    tags.sort_by(|one, other| one.0.cmp(other.0));
    let mut kept = Tags::new();
    for tag in tags.drain(..).filter(|tag| tag.0 != b"name") {
        if kept.last().is_some_and(|last| last.0 == tag.0) {
            kept.pop();
        }
        kept.push(tag);
    }
    // As strings `a=1` and `a-b=1` sort the other way round than as tags: `-` is before `=`.
    kept.sort_by(|one, other| text(one).cmp(text(other)));
    *tags = kept;
}

fn text<'a>(tag: &'a Tag<'_>) -> impl Iterator<Item = &'a u8> {
    tag.0.iter().chain(b"=").chain(tag.1.iter())
}
