//! Tags of a line: parsed in both styles, edited, written in either style.
//!
//! Not here: their position in a line (`parts`, `write`).

use std::ops::Range;

use memchr::memchr;
use smallvec::SmallVec;

use super::form::TagFormat;
use super::parts::without_cr;
use super::plan::{RewriteError, RewritePlan};
use crate::graphite::replace_bad_bytes;

/// The tags of a line or of a series as text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagTexts<'a> {
    /// `k=v;k=v`; `None` when the name has no `;`.
    pub(super) in_name: Option<&'a [u8]>,
    /// `k:v,bare`; `None` when there is no such field.
    pub(super) field: Option<&'a [u8]>,
}

/// One tag while it is edited.
#[derive(Clone, Copy, Debug)]
struct Tag<'a> {
    /// Its key; the whole text of a bare tag.
    key: &'a [u8],
    /// The text after the key in its own style: empty, or `:` or `=` and the value.
    rest: &'a [u8],
    /// True when it was in the name.
    in_name: bool,
}

type TagList<'a> = SmallVec<[Tag<'a>; 16]>;

impl<'a> Tag<'a> {
    /// A key ends at the first `:`, or if there is none at the first `=`.
    fn read(text: &'a [u8], in_name: bool) -> Tag<'a> {
        let key_end = memchr(b':', text).or_else(|| memchr(b'=', text)).unwrap_or(text.len());
        let (key, rest) = text.split_at(key_end);
        Tag { key, rest, in_name }
    }

    fn value(&self) -> Option<&'a [u8]> {
        self.rest.get(1..)
    }
}

/// Validated edits; all empty when there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct TagEdits {
    /// Keys; true for the beginning of a key.
    drop: Vec<(Vec<u8>, bool)>,
    rename: Vec<(Vec<u8>, Vec<u8>)>,
    add: Vec<Vec<u8>>,
    bare_tag_value: Vec<u8>,
}

impl TagEdits {
    pub(super) fn new(plan: &RewritePlan) -> Result<TagEdits, RewriteError> {
        for text in &plan.tags_add {
            check_tag(text, "", !text.starts_with([':', '=']))?;
        }
        for key in &plan.tags_drop {
            check_tag(key, ":=", !key.trim_end_matches('*').is_empty() || key == "*")?;
        }
        for key in plan.tags_rename.iter().flat_map(|(old, new)| [old, new]) {
            check_tag(key, ":=", true)?;
        }
        // Empty is valid: it means that bare tags are omitted.
        check_tag(&plan.bare_tag_value, ":~", true).or_else(|why| match plan.bare_tag_value.is_empty() {
            true => Ok(()),
            false => Err(why),
        })?;
        let bytes = |text: &String| text.clone().into_bytes();
        let dropped = |text: &String| match text.strip_suffix('*') {
            Some(start) => (start.as_bytes().to_vec(), true),
            None => (bytes(text), false),
        };
        Ok(TagEdits {
            drop: plan.tags_drop.iter().map(dropped).collect(),
            rename: plan.tags_rename.iter().map(|(old, new)| (bytes(old), bytes(new))).collect(),
            add: plan.tags_add.iter().map(bytes).collect(),
            bare_tag_value: bytes(&plan.bare_tag_value),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drop.is_empty() && self.rename.is_empty() && self.add.is_empty()
    }

    /// Adds the edited tags of `text` to `list`.
    fn read<'a>(&'a self, text: &'a [u8], in_name: bool, list: &mut TagList<'a>) {
        let border = if in_name { b';' } else { b',' };
        let mut rest = Some(text);
        while let Some(text) = rest {
            let end = memchr(border, text).unwrap_or(text.len());
            rest = text.get(end + 1..);
            if end == 0 {
                continue;
            }
            let mut tag = Tag::read(&text[..end], in_name);
            if self
                .drop
                .iter()
                .any(|(key, start)| if *start { tag.key.starts_with(key) } else { tag.key == key })
            {
                continue;
            }
            if let Some((_, new)) = self.rename.iter().find(|(old, _)| old == tag.key) {
                tag.key = new;
            }
            list.push(tag);
        }
    }

    /// Adds the plan's own tags whose keys are not in `list`.
    fn add<'a>(&'a self, in_name: bool, list: &mut TagList<'a>) {
        for text in &self.add {
            let tag = Tag::read(text, in_name);
            if !list.iter().any(|known| known.key == tag.key) {
                list.push(tag);
            }
        }
    }

    /// All tags of the texts, edited.
    fn list<'a>(&'a self, texts: TagTexts<'a>) -> TagList<'a> {
        let mut list = TagList::new();
        if let Some(in_name) = texts.in_name {
            self.read(in_name, true, &mut list);
        }
        if let Some(field) = texts.field {
            self.read(without_cr(field), false, &mut list);
        }
        if !self.add.is_empty() {
            let in_name = texts.in_name.is_some() && texts.field.is_none();
            self.add(in_name, &mut list);
        }
        list
    }
}

fn check_tag(text: &str, more: &str, shaped: bool) -> Result<(), RewriteError> {
    let bad = |c: char| matches!(c, ',' | '|' | ';') || c.is_control() || more.contains(c);
    if shaped && !text.is_empty() && !text.contains(bad) {
        Ok(())
    } else {
        Err(RewriteError::BadTag(text.to_owned()))
    }
}

/// Tags for output: prepared once for a line, for the name and for the field.
pub(super) struct Tags<'a> {
    form: TagFormat,
    list: TagList<'a>,
    /// Copied unchanged when nothing is edited.
    texts: Option<TagTexts<'a>>,
    bare_tag_value: &'a [u8],
}

impl<'a> Tags<'a> {
    pub(super) fn of(form: TagFormat, edits: &'a TagEdits, texts: TagTexts<'a>) -> Tags<'a> {
        let as_they_stand = form == TagFormat::Keep && edits.is_empty();
        let list = if as_they_stand || form == TagFormat::Drop { TagList::new() } else { edits.list(texts) };
        let texts = as_they_stand.then_some(texts);
        Tags { form, list, texts, bare_tag_value: &edits.bare_tag_value }
    }

    /// Appends the tags for the name, each with its `;`. Returns the number of tags that cannot be written.
    pub(super) fn write_in_name(&self, out: &mut Vec<u8>) -> u32 {
        if let Some(texts) = self.texts {
            if let Some(in_name) = texts.in_name {
                out.push(b';');
                out.extend_from_slice(in_name);
            }
            return 0;
        }
        match self.form {
            TagFormat::Drop | TagFormat::Dogstatsd => 0,
            TagFormat::Graphite => self.write_graphite(out),
            TagFormat::Keep => {
                for tag in self.list.iter().filter(|tag| tag.in_name) {
                    out.push(b';');
                    match tag.rest {
                        // One of the plan's own: `:` would end the name.
                        [b':', value @ ..] => {
                            out.extend_from_slice(tag.key);
                            out.push(b'=');
                            replace_bad_bytes(value, b":", out);
                        }
                        _ => write_kept(tag, out),
                    }
                }
                0
            }
        }
    }

    /// True when there is a `#` field to write.
    pub(super) fn has_field(&self) -> bool {
        match (self.texts, self.form) {
            (Some(texts), _) => texts.field.is_some(),
            (None, TagFormat::Dogstatsd) => !self.list.is_empty(),
            (None, TagFormat::Keep) => self.list.iter().any(|tag| !tag.in_name),
            (None, TagFormat::Drop | TagFormat::Graphite) => false,
        }
    }

    /// Appends `|#` and the tags of that field.
    pub(super) fn write_field(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"|#");
        if let Some(texts) = self.texts {
            return out.extend_from_slice(texts.field.unwrap_or_default());
        }
        let all = self.form == TagFormat::Dogstatsd;
        for (at, tag) in self.list.iter().filter(|tag| all || !tag.in_name).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if !tag.in_name {
                write_kept(tag, out);
                continue;
            }
            replace_bad_bytes(tag.key, b",|", out);
            if let Some(value) = tag.value() {
                out.push(b':');
                replace_bad_bytes(value, b",|", out);
            }
        }
    }

    /// Appends `;k=v` for each tag, in byte order, without duplicates.
    fn write_graphite(&self, out: &mut Vec<u8>) -> u32 {
        let begin = out.len();
        let mut each: SmallVec<[Range<usize>; 16]> = SmallVec::new();
        let mut left_out = 0;
        for tag in &self.list {
            let value = tag.value().unwrap_or(self.bare_tag_value);
            if tag.key.is_empty() || value.is_empty() {
                left_out += 1;
                continue;
            }
            let at = out.len();
            out.push(b';');
            replace_bad_bytes(tag.key, b";!^=:|", out);
            out.push(b'=');
            let at_value = out.len();
            replace_bad_bytes(value, b";:|", out);
            if out[at_value] == b'~' {
                out[at_value] = b'_';
            }
            each.push(at..out.len());
        }
        if !each.is_sorted_by(|a, b| out[a.clone()] < out[b.clone()]) {
            let written: SmallVec<[u8; 256]> = SmallVec::from_slice(&out[begin..]);
            let tag = |range: &Range<usize>| &written[range.start - begin..range.end - begin];
            each.sort_unstable_by(|a, b| tag(a).cmp(tag(b)));
            each.dedup_by(|a, b| tag(a) == tag(b));
            out.truncate(begin);
            each.iter().for_each(|range| out.extend_from_slice(tag(range)));
        }
        left_out
    }
}

fn write_kept(tag: &Tag<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(tag.key);
    out.extend_from_slice(tag.rest);
}
