//! `[transforms.NAME]` with `type = "relay"`: its tables to the plan by which points are routed.
//!
//! Path: `native::plan`, when outputs have their plans -> **[`build`]** -> `feeds` (what may take from a relay) -> `clusters`
//! (members are outputs) -> `rules` -> `verdict` (what the router says of it, at its place in the file).
//! `print` goes the other way.
//! Not here: what rules do and how keys are placed (`process`).
//! Invariant: what passes here, `Router::new` takes.

mod clusters;
mod feeds;
mod print;
mod rules;
mod verdict;

use std::ops::Range;

use foldhash::HashSet;
use model::TransformId;
use process::relay::{ClusterId, RelayPlan, To};

use super::fields::Fields;
use super::wiring::Named;
use crate::diagnostic::{Code, Diagnostic, Place, did_you_mean, has_errors, listed};
use crate::options::{Family, Section};
use crate::plan::{Plan, RelayTransform, TransformKind};

pub(super) use feeds::check as check_feeds;
pub(super) use print::fields;

/// Where a rule sends what nobody wants.
pub const BLACKHOLE: &str = "blackhole";

/// The sections of a file, and which outputs of the plan each has made.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) named: &'a [Named],
    pub(super) made: &'a [Range<usize>],
}

impl<'a> File<'a> {
    /// Sections of outputs.
    fn outputs(self) -> impl Iterator<Item = (&'a Named, Range<usize>)> {
        let all = self.named.iter().zip(self.made.iter().cloned());
        all.filter(|(named, _)| named.family == Family::Outputs)
    }
}

/// Gives each relay of the plan its statements.
pub(super) fn build(file: File<'_>, plan: &mut Plan, wrong: &mut Vec<Diagnostic>) {
    let transforms =
        file.named.iter().filter(|named| named.family == Family::Transforms && named.fields.is_some());
    for (at, named) in transforms.enumerate() {
        let (Some(Section::TransformRelay), Some(fields)) = (named.section, &named.fields) else { continue };
        let mut relay: RelayTransform = fields.read();
        let before = wrong.len();
        let clusters = clusters::read(file, fields, TransformId(at as u16), plan, wrong);
        let mut names = Names::new(clusters.iter().map(|cluster| &*cluster.name));
        let statements = rules::read(fields, &mut names, wrong);
        let statistics = fields.table("statistics");
        let statistics = statistics.map_or(To::Nowhere, |fields| names.to(fields, wrong));
        names.unused(fields.named_tables("clusters"), wrong);
        relay.plan = RelayPlan { clusters, statements, statistics, ..relay.plan };
        let is_whole = !has_errors(&wrong[before..]);
        verdict::of(&relay.plan, fields, is_whole, wrong);
        if let Some(transform) = plan.transforms.get_mut(at) {
            transform.kind = TransformKind::Relay(Box::new(relay));
        }
    }
}

/// The clusters of a relay by name.
struct Names<'a> {
    clusters: Vec<&'a str>,
    used: HashSet<ClusterId>,
    /// A name was wrong, and may have meant any of them.
    is_unclear: bool,
}

impl<'a> Names<'a> {
    fn new(clusters: impl Iterator<Item = &'a str>) -> Names<'a> {
        Names { clusters: clusters.collect(), used: HashSet::default(), is_unclear: false }
    }

    /// What `to` of a table says.
    fn to(&mut self, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> To {
        let (whose, texts) = (&fields.whose, fields.texts("to"));
        if fields.other("to").is_none() {
            self.is_unclear |= fields.place_of("to").is_some();
            return To::Nowhere;
        }
        if texts.is_empty() {
            wrong.push(super::value::empty("to", fields.at("to")));
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
    fn unused(&self, tables: &[(String, Fields)], wrong: &mut Vec<Diagnostic>) {
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
