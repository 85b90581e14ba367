//! What names in a relay's tables refer to: outputs of the file, and the relay's own clusters.

use std::ops::Range;

use foldhash::HashSet;
use process::relay::{ClusterId, To};

use crate::diagnostic::{Code, Diagnostic, Place, did_you_mean, listed};
use crate::native::fields::Fields;
use crate::native::value;
use crate::native::wiring::Named;
use crate::options::section::Family;
use crate::plan::BLACKHOLE;

/// The sections of a file, and the outputs of the plan that each has made.
#[derive(Clone, Copy)]
pub(in crate::native) struct File<'a> {
    pub(in crate::native) named: &'a [Named],
    pub(in crate::native) made: &'a [Range<usize>],
}

impl<'a> File<'a> {
    /// Sections of outputs.
    pub(super) fn outputs(self) -> impl Iterator<Item = (&'a Named, Range<usize>)> {
        let all = self.named.iter().zip(self.made.iter().cloned());
        all.filter(|(named, _)| named.family == Family::Outputs)
    }
}

/// The clusters of a relay by name.
pub(super) struct Names<'a> {
    clusters: Vec<&'a str>,
    used: HashSet<ClusterId>,
    /// A name was invalid, and may have meant any of them.
    is_unclear: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(clusters: impl Iterator<Item = &'a str>) -> Names<'a> {
        Names { clusters: clusters.collect(), used: HashSet::default(), is_unclear: false }
    }

    /// What `to` of a table says.
    pub(super) fn to(&mut self, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> To {
        let (whose, texts) = (&fields.whose, fields.texts("to"));
        if fields.other("to").is_none() {
            self.is_unclear |= fields.place_of("to").is_some();
            return To::Nowhere;
        }
        if texts.is_empty() {
            wrong.push(value::empty("to", fields.at("to")));
        }
        if let Some((_, place)) = texts.iter().find(|(name, _)| name == BLACKHOLE) {
            if texts.len() > 1 {
                let message = format!("{whose} sends to the blackhole and to clusters");
                let label = "would drop the points for the clusters";
                wrong.push(Diagnostic::error(Code::BadRule, message).at(*place).label(label));
            }
            return To::Blackhole;
        }
        let mut ids: Vec<ClusterId> = Vec::with_capacity(texts.len());
        for (name, place) in texts {
            let Some(at) = self.clusters.iter().position(|known| known == name) else {
                self.is_unclear = true;
                wrong.push(self.unknown(whose, name, *place));
                continue;
            };
            let id = ClusterId(at as u16);
            self.used.insert(id);
            ids.push(id);
        }
        To::Clusters(ids)
    }

    fn unknown(&self, whose: &str, name: &str, place: Place) -> Diagnostic {
        let message = format!("{whose} sends to a cluster that does not exist");
        let mistake = Diagnostic::error(Code::UnknownReference, message).at(place);
        let hint = did_you_mean(name, self.clusters.iter().copied().chain([BLACKHOLE]));
        Diagnostic { hint, ..mistake.label(listed("clusters", &self.clusters)) }
    }

    /// Warns of clusters that get nothing.
    pub(super) fn unused(&self, tables: &[(String, Fields)], wrong: &mut Vec<Diagnostic>) {
        for (at, (name, fields)) in tables.iter().enumerate() {
            if self.is_unclear || self.used.contains(&ClusterId(at as u16)) {
                continue;
            }
            let message = format!("no rule sends to cluster `{name}`");
            let diagnostic = Diagnostic::warning(Code::Unused, message).at(fields.place);
            wrong.push(
                diagnostic.label("gets nothing").hint(format!("name \"{name}\" in the `to` of a rule")),
            );
        }
    }
}
