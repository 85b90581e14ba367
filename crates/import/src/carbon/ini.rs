//! Sections and keys as Python's ConfigParser reads them: `[name]`, `key = value` or `key: value`, comments on lines of
//! their own, values continued on indented lines.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::Reports;
use config::diagnostic::{Code, Diagnostic, Place, nearest};

/// One section.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub name: &'a str,
    /// Place of its name.
    pub place: Place,
    entries: Vec<Entry<'a>>,
    /// Indices of the entries by key.
    by_key: BTreeMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// In lower case.
    key: String,
    key_place: Place,
    /// Its lines joined by spaces.
    pub value: String,
    /// Place of the first line of the value.
    pub place: Place,
    written: &'a str,
}

impl Entry<'_> {
    /// The place of a piece of the value; for a value of several lines, of the first line.
    pub(super) fn place_of(&self, piece: &str) -> Place {
        let at = (piece.as_ptr() as usize).wrapping_sub(self.value.as_ptr() as usize);
        self.place_in(at..at.saturating_add(piece.len()))
    }

    /// The place of some bytes of the value; for a value of several lines, of the first line.
    pub(super) fn place_in(&self, at: std::ops::Range<usize>) -> Place {
        if self.place.end - self.place.start != self.value.len() || at.start > self.value.len() {
            return self.place;
        }
        Place::new(self.place.start + at.start, self.place.start + at.end)
    }
}

impl<'a> Section<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&Entry<'a>> {
        self.by_key.get(key).map(|at| &self.entries[*at])
    }

    /// Its keys as written, with their values, and the places of the keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a str, &str, Place)> + '_ {
        self.entries.iter().map(|entry| (entry.written, &*entry.value, entry.key_place))
    }

    /// A boolean key; false when it is missing.
    pub(super) fn flag(&self, key: &str, wrong: &mut Vec<Diagnostic>) -> bool {
        let Some(entry) = self.get(key) else { return false };
        match entry.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            _ => {
                let message = format!("`{key}` is neither true nor false");
                let report = wrong.error(Code::ImportBadValue, entry.place, message);
                report.label("neither").hint("write true or false");
                false
            }
        }
    }

    /// Warns about keys that are not in `known`: carbon ignores them.
    pub(super) fn warn_unknown(&self, known: &[&str], wrong: &mut Vec<Diagnostic>) {
        for entry in self.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let message = format!("carbon knows no key `{}` here", entry.written);
            let warning = Diagnostic::warning(Code::ImportUnknownKey, message).at(entry.key_place);
            let near = nearest(&entry.key, known.iter().copied());
            wrong.push(match near {
                Some(near) => warning.label("ignored").hint(format!("did you mean `{near}`?")),
                None => warning.label(format!("ignored; keys are {}", known.join(", "))),
            });
        }
    }
}

/// All sections in the order of the file.
pub(super) fn sections<'a>(text: &'a str, wrong: &mut Vec<Diagnostic>) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    let mut names = BTreeSet::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let place = Place::new(start + (line.len() - line.trim_start().len()), start + line.trim_end().len());
        let last = sections.last_mut().and_then(|section| section.entries.last_mut());
        if line.starts_with([' ', '\t'])
            && let Some(last) = last
        {
            last.value.push(' ');
            last.value.push_str(trimmed);
        } else if let Some(name) = trimmed.strip_prefix('[') {
            if let Some(section) = section(name, place, wrong) {
                if !names.insert(section.name) {
                    let message = format!("there are two sections `{}`", section.name);
                    wrong.error(Code::Repeated, place, message).label("the second one").hint("rename it");
                }
                sections.push(section);
            }
        } else {
            entry(trimmed, place, &mut sections, wrong);
        }
    }
    sections
}

/// A section whose name begins here.
fn section<'a>(name: &'a str, place: Place, wrong: &mut Vec<Diagnostic>) -> Option<Section<'a>> {
    let Some((name, _)) = name.split_once(']') else {
        wrong.error(Code::ImportSyntax, place, "this section's name is not closed").label("no `]`");
        return None;
    };
    Some(Section { name, place, entries: Vec::new(), by_key: BTreeMap::new() })
}

fn entry<'a>(line: &'a str, place: Place, sections: &mut [Section<'a>], wrong: &mut Vec<Diagnostic>) {
    let Some(split) = line.find(['=', ':']) else {
        let message = "this line is neither a section nor a key with a value";
        wrong.error(Code::ImportSyntax, place, message).label("no `=`");
        return;
    };
    let (written, rest) = (line[..split].trim_end(), &line[split + 1..]);
    let value = rest.trim();
    let value_start = place.end - rest.trim_start().len();
    let key_place = Place::new(place.start, place.start + written.len());
    let Some(section) = sections.last_mut() else {
        let message = format!("`{written}` is before the first section");
        let report = wrong.error(Code::ImportSyntax, key_place, message);
        report.label("not in a section").hint("begin with [NAME]");
        return;
    };
    let key = written.to_ascii_lowercase();
    if section.get(&key).is_some() {
        let message = format!("`{key}` is set twice in this section");
        wrong.error(Code::Repeated, key_place, message).label("the second one");
        return;
    }
    let place = Place::new(value_start, place.end);
    section.by_key.insert(key.clone(), section.entries.len());
    section.entries.push(Entry { key, key_place, value: value.to_owned(), place, written });
}
