//! The names of a `del…` command: one pass over the series for all of them.
//!
//! Path of a series: the shard's thread calls [`Wanted::is`] -> [`Wanted::deleted`] here, which returns whether to
//! reply about it at once -> at the end [`Wanted::was_found`] for each name, in the command's order. Not here: patterns
//! of names (`wire::management`), the reply (`answers`).
//! Invariant: checking one series costs nearly the same for two names and for thirty thousand.

use std::collections::HashMap;

use wire::management::{Form, Names, Pattern};

/// The names of a command.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Names, with their indexes in [`Found::exact`].
    exact: HashMap<Vec<u8>, usize>,
    /// Sorted as bytes, each once.
    prefixes: Vec<Prefix>,
}

#[derive(Debug)]
struct Prefix {
    text: Vec<u8>,
    /// The longest other prefix that it begins with.
    within: Option<usize>,
}

/// The deleted series.
#[derive(Debug)]
pub(super) struct Found {
    exact: Vec<bool>,
    prefixes: Vec<bool>,
}

impl Wanted {
    pub(super) fn new(form: Form, names: Names<'_>) -> Wanted {
        let mut wanted = Wanted::default();
        let mut prefixes: Vec<&[u8]> = Vec::new();
        for name in names.iter() {
            match Pattern::of(form, name) {
                Pattern::Prefix(prefix) => prefixes.push(prefix),
                Pattern::Exact(name) => {
                    let place = wanted.exact.len();
                    wanted.exact.entry(name.to_vec()).or_insert(place);
                }
            }
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        for text in prefixes {
            let within = wanted.longest_of(text);
            wanted.prefixes.push(Prefix { text: text.to_vec(), within });
        }
        wanted
    }

    pub(super) fn nothing_found(&self) -> Found {
        Found { exact: vec![false; self.exact.len()], prefixes: vec![false; self.prefixes.len()] }
    }

    /// Whether a series is deleted.
    pub(super) fn is(&self, written: &[u8]) -> bool {
        !self.exact.is_empty() && self.exact.contains_key(written) || self.longest_of(written).is_some()
    }

    /// Notes a deleted series. True when the reply mentions it now, and not in the order of the names.
    pub(super) fn deleted(&self, written: &[u8], found: &mut Found) -> bool {
        let mut next = self.longest_of(written);
        while let Some(at) = next {
            found.prefixes[at] = true;
            next = self.prefixes[at].within;
        }
        let exact = self.exact.get(written);
        exact.inspect(|place| found.exact[**place] = true);
        exact.is_none()
    }

    /// Whether a name deleted anything. Of a repeated name, only the first counts.
    pub(super) fn was_found(&self, pattern: Pattern<'_>, found: &mut Found) -> bool {
        let place = match pattern {
            Pattern::Exact(name) => self.exact.get(name).map(|place| &mut found.exact[*place]),
            Pattern::Prefix(prefix) => {
                let place = self.prefixes.binary_search_by(|known| known.text.as_slice().cmp(prefix));
                place.ok().map(|place| &mut found.prefixes[place])
            }
        };
        place.is_some_and(std::mem::take)
    }

    /// The longest prefix of a name. All prefixes of the name contain each other, and also the last one that sorts at
    /// or before the name, or one that contains it.
    fn longest_of(&self, name: &[u8]) -> Option<usize> {
        let behind = self.prefixes.partition_point(|prefix| prefix.text.as_slice() <= name);
        let last = behind.checked_sub(1)?;
        let common = self.prefixes[last].text.iter().zip(name).take_while(|(a, b)| a == b).count();
        let mut next = Some(last);
        while let Some(at) = next {
            if self.prefixes[at].text.len() <= common {
                break;
            }
            next = self.prefixes[at].within;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::management::Command;

    use super::*;

    fn names(command: &[u8]) -> Names<'_> {
        match Command::parse(Form::Node, command) {
            Command::Delete { names, .. } => names,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_name_is_answered_in_order() {
        let command = b"delcounters a.* b a.x.* b c.* d";
        let wanted = Wanted::new(Form::Node, names(command));
        let mut found = wanted.nothing_found();
        for (series, goes, at_once) in [
            (&b"a.x.1"[..], true, true),
            (b"b", true, false),
            (b"bb", false, false),
            (b"a", false, false),
            (b"c", false, false),
        ] {
            assert_eq!(wanted.is(series), goes, "{}", series.escape_ascii());
            if goes {
                assert_eq!(wanted.deleted(series, &mut found), at_once);
            }
        }
        let deleted: Vec<bool> = names(command)
            .iter()
            .map(|name| wanted.was_found(Pattern::of(Form::Node, name), &mut found))
            .collect();
        assert_eq!(deleted, [true, true, true, false, false, false]);
    }

    proptest! {
        #[test]
        fn a_series_is_deleted_when_one_of_the_names_matches(
            asked in proptest::collection::vec("[ab.]{0,5}[*]?", 0..12),
            series in proptest::collection::vec("[ab.]{0,6}", 1..20),
        ) {
            let command = format!("delcounters {}", asked.join(" "));
            let wanted = Wanted::new(Form::Node, names(command.as_bytes()));
            let mut found = wanted.nothing_found();
            let is = |pattern: &Pattern<'_>, series: &str| match pattern {
                Pattern::Exact(name) => series.as_bytes() == *name,
                Pattern::Prefix(prefix) => series.as_bytes().starts_with(prefix),
            };
            let patterns: Vec<Pattern<'_>> = names(command.as_bytes())
                .iter()
                .map(|name| Pattern::of(Form::Node, name))
                .collect();
            for series in &series {
                let goes = patterns.iter().any(|pattern| is(pattern, series));
                prop_assert_eq!(wanted.is(series.as_bytes()), goes, "{}", series);
                if goes {
                    wanted.deleted(series.as_bytes(), &mut found);
                }
            }
            for (at, pattern) in patterns.iter().enumerate() {
                let want = !patterns[..at].contains(pattern) && series.iter().any(|series| is(pattern, series));
                prop_assert_eq!(wanted.was_found(*pattern, &mut found), want, "{:?}", pattern);
            }
        }
    }
}
