//! The edges of the graph: from names to ids, and all errors in `from`.
//!
//! Works on the named sections before they are plans, so that the name of a section with an unknown type is known. Ids
//! are indexes in the plan's lists: [`Names::new`] counts sections in the order in which `build` makes plans. Not here:
//! conflicts of addresses and files (`conflicts`).

use std::collections::VecDeque;

use foldhash::{HashMap, HashSet};
use model::{SourceId, TransformId};

use super::fields::Fields;
use super::value::{Checked, empty, repeated};
use super::{clusters, sources};
use crate::diagnostic::{Code, Diagnostic, Place, listed, nearest};
use crate::kinds::{NodeKind, RecordKind, words};
use crate::options::{Family, Section};
use crate::plan::{Feed, Plan, RELAYS_IN_A_ROW_MAX, SourceKind, TransformKind};

/// A named section, as far as it could be read.
pub(super) struct Named {
    pub(super) family: Family,
    pub(super) name: String,
    /// The place of the name.
    pub(super) place: Place,
    /// "output `carbon`".
    pub(super) whose: String,
    /// `None` when its type is unknown.
    pub(super) section: Option<Section>,
    pub(super) fields: Option<Fields>,
}

impl Named {
    pub(super) fn from(&self) -> &[(String, Place)] {
        match self
            .fields
            .as_ref()
            .filter(|_| self.family != Family::Sources)
            .and_then(|fields| fields.other("from"))
        {
            Some(Checked::Texts(from)) => from,
            _ => &[],
        }
    }

    /// Its row in the table of kinds; `None` when its type is unknown.
    fn kind(&self) -> Option<&'static NodeKind> {
        let section = self.section?;
        let fields = self.fields.as_ref().filter(|_| NodeKind::goes_by_encoding(section));
        NodeKind::of(section, fields.and_then(|fields| fields.word("encoding")))
    }

    /// Whether it takes a kind of record.
    fn takes(&self, kind: RecordKind) -> bool {
        self.kind().is_some_and(|node| node.takes.contains(&kind))
    }

    /// Whether an output takes unparsed packets and events, and not aggregates.
    fn takes_raw(&self) -> bool {
        self.family == Family::Outputs && (self.takes(RecordKind::Packets) || self.takes(RecordKind::Events))
    }

    /// Whether an output of packets also takes aggregates, as samples.
    fn takes_both(&self) -> bool {
        let is_cluster = self.fields.as_ref().is_some_and(clusters::is_wanted);
        self.takes(RecordKind::Packets) && self.takes(RecordKind::Aggregates) && !is_cluster
    }
}

/// The feeds of each named section.
pub(super) struct Links(Vec<Vec<Feed>>);

impl Links {
    pub(super) fn of(&self, at: usize) -> &[Feed] {
        &self.0[at]
    }
}

/// Resolves every `from`.
pub(super) fn check(named: &[Named], wrong: &mut Vec<Diagnostic>) -> Links {
    let names = Names::new(named, wrong);
    let mut used = HashSet::default();
    let mut links = Vec::with_capacity(named.len());
    for one in named {
        links.push(feeds(one, &names, &mut used, wrong));
    }
    cycles(named, &names, wrong);
    if names.cyclic.is_empty() {
        long_rows(named, wrong);
    }
    mixed_dialects(named, &names, wrong);
    // An invalid `from` may mean any name.
    let unclear = named.iter().any(|one| one.family != Family::Sources && one.from().is_empty());
    // A Riemann config has an index and outputs of its own.
    let may_end =
        |one: &Named| one.family == Family::Outputs || one.section == Some(Section::TransformStreams);
    for one in named.iter().filter(|one| !may_end(one) && !unclear) {
        if !used.contains(&*one.name) {
            let message = format!("no `from` names {}", one.whose);
            wrong.push(
                Diagnostic::warning(Code::Unused, message)
                    .at(one.place)
                    .label("its records end as `filtered`")
                    .hint(format!("name \"{}\" in the `from` of a transform or output", one.name)),
            );
        }
    }
    Links(links)
}

/// All names.
struct Names<'a> {
    named: &'a [Named],
    /// The index in `named`, and the id.
    feeds: HashMap<&'a str, (usize, Feed)>,
    outputs: HashSet<&'a str>,
    /// Transforms that feed themselves.
    cyclic: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn new(named: &'a [Named], wrong: &mut Vec<Diagnostic>) -> Names<'a> {
        let mut names = Names {
            named,
            feeds: HashMap::default(),
            outputs: HashSet::default(),
            cyclic: HashSet::default(),
        };
        let (mut sources, mut transforms) = (0, 0);
        for (at, one) in named.iter().enumerate() {
            let feed = match one.family {
                Family::Outputs => {
                    names.outputs.insert(&*one.name);
                    continue;
                }
                Family::Sources => Feed::Source(SourceId(sources)),
                Family::Transforms => Feed::Transform(TransformId(transforms)),
            };
            // There are at most `SECTIONS_MAX` of each. A section of unknown type has no id, because there is no plan
            // then.
            if one.fields.is_some() {
                match one.family {
                    Family::Sources => sources += 1,
                    _ => transforms += 1,
                }
            }
            if names.feeds.contains_key(&*one.name) {
                let message = format!("a source and a transform are both called `{}`", one.name);
                wrong.push(
                    Diagnostic::error(Code::DuplicateName, message)
                        .at(one.place)
                        .label("the second one")
                        .hint("rename one of the two: `from` could mean either"),
                );
            } else {
                names.feeds.insert(&*one.name, (at, feed));
            }
        }
        let transforms = named.iter().filter(|one| one.family == Family::Transforms);
        let cyclic = transforms.filter(|one| reached(one, &names).contains(&*one.name)).map(|one| &*one.name);
        names.cyclic = cyclic.collect();
        names
    }

    /// Whether a source gives a kind of record.
    fn source_gives(&self, name: &str, kind: RecordKind) -> bool {
        let Some(one) = self.feeds.get(name).map(|(at, _)| &self.named[*at]) else { return false };
        one.family == Family::Sources && one.kind().is_some_and(|node| node.gives.contains(&kind))
    }

    /// The row of a source or transform in the table of kinds; `None` when its type is unknown.
    fn kind_of(&self, name: &str) -> Option<&'static NodeKind> {
        self.feeds.get(name).and_then(|(at, _)| self.named[*at].kind())
    }

    /// The transform with a name.
    fn transform(&self, name: &str) -> Option<&'a Named> {
        match self.feeds.get(name) {
            Some((at, Feed::Transform(_))) => Some(&self.named[*at]),
            Some((_, Feed::Source(_))) | None => None,
        }
    }

    /// The sources that give a kind of record, for a hint.
    fn givers(&self, kind: RecordKind) -> String {
        let gives = |one: &&Named| {
            one.family == Family::Sources && one.kind().is_some_and(|node| node.gives.contains(&kind))
        };
        let names: Vec<&str> = self.named.iter().filter(gives).map(|one| &*one.name).collect();
        match names.is_empty() {
            true => format!("sources of type \"statsd\" give {}, and there is none", kind.word()),
            false => listed(&format!("sources of {}", kind.word()), &names),
        }
    }

    fn list(&self, family: Family) -> String {
        let names: Vec<&str> =
            self.named.iter().filter(|one| one.family == family).map(|one| &*one.name).collect();
        const SHOWN_MAX: usize = 12;
        match names.len() {
            0 => format!("there are no {}", family.key()),
            number if number > SHOWN_MAX => {
                format!("{} are: {}, … ({number} in all)", family.key(), names[..SHOWN_MAX].join(", "))
            }
            _ => format!("{} are: {}", family.key(), names.join(", ")),
        }
    }
}

/// The edges of one section; each invalid entry of its `from` is an error.
fn feeds<'a>(
    one: &'a Named,
    names: &Names<'a>,
    used: &mut HashSet<&'a str>,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<Feed> {
    if one.family == Family::Sources {
        return Vec::new();
    }
    if let Some(fields) = &one.fields
        && let Some(Checked::Texts(from)) = fields.other("from")
        && from.is_empty()
    {
        wrong.push(empty("from", fields.place_of("from").unwrap_or(one.place)));
    }
    let mut feeds = Vec::new();
    for (name, place) in one.from() {
        let Some((at, feed)) = names.feeds.get(&**name) else {
            wrong.push(unknown(one, name, *place, names, used));
            continue;
        };
        used.insert(&*names.named[*at].name);
        if feeds.contains(feed) {
            wrong.push(repeated("from", *place));
        } else if let Some(diagnostic) = mismatch(one, name, *feed, names) {
            wrong.push(diagnostic.at(*place));
        } else {
            if matches!(
                one.section,
                Some(
                    Section::OutputEventFile
                        | Section::OutputHttp
                        | Section::OutputEmail
                        | Section::OutputRiemann
                )
            ) && names.named[*at].section == Some(Section::SourceSelf)
            {
                let message = format!("{} gets nothing from `{name}`", one.whose);
                let label = "the daemon's self-metrics contain no events";
                wrong.push(Diagnostic::warning(Code::NoEffect, message).at(*place).label(label));
            }
            feeds.push(*feed);
        }
    }
    feeds
}

/// The family that a section should take from.
fn wanted_family(one: &Named) -> Family {
    if one.family == Family::Outputs && !one.takes_raw() { Family::Transforms } else { Family::Sources }
}

fn unknown<'a>(
    one: &Named,
    name: &str,
    place: Place,
    names: &Names<'a>,
    used: &mut HashSet<&'a str>,
) -> Diagnostic {
    let what = if names.outputs.contains(name) {
        "an output, which no section can read from"
    } else {
        "an unknown name"
    };
    let diagnostic = Diagnostic::error(Code::UnknownReference, format!("{} reads from {what}", one.whose))
        .at(place)
        .label(names.list(wanted_family(one)));
    let candidates = |wanted| {
        let family = move |one: &&Named| one.family == wanted;
        names.named.iter().filter(family).map(|one| &*one.name)
    };
    let near = nearest(name, candidates(wanted_family(one)));
    let near = near.or_else(|| nearest(name, candidates(Family::Sources)));
    let Some(near) = near else { return diagnostic };
    // It was probably meant: a warning that it is unused would be noise.
    used.insert(near);
    diagnostic.hint(format!("did you mean \"{near}\"?"))
}

/// The error for an edge with the wrong kind of records.
fn mismatch(one: &Named, name: &str, feed: Feed, names: &Names) -> Option<Diagnostic> {
    let giver = names.kind_of(name).filter(|giver| {
        one.section == Some(Section::TransformStreams) || giver.section == Section::TransformStreams
    });
    if let (Some(giver), Some(taker)) = (giver, one.kind()) {
        if taker.carries(giver).is_some() || names.cyclic.contains(&*one.name) {
            return None;
        }
        if giver.section == Section::TransformRelay {
            let message = format!("{} cannot read from `{name}`", one.whose);
            let label = "a relay sends to the outputs and relays of its clusters only";
            let hint =
                format!("name what feeds `{name}` in `from`: sources, and transforms of type `aggregate`");
            return Some(Diagnostic::error(Code::NeedsSource, message).label(label).hint(hint));
        }
        let hint = taker.takes.first().map_or_else(String::new, |kind| names.givers(*kind));
        return Some(cannot_take(one, name, giver, &words(taker.takes)).hint(hint));
    }
    match (one.family, feed) {
        // Points are not samples: other checks report their takers.
        (_, Feed::Source(_)) if names.source_gives(name, RecordKind::Points) => None,
        (_, Feed::Source(_)) if !names.source_gives(name, RecordKind::Samples) => {
            let (giver, taker) = (names.kind_of(name)?, one.kind()?);
            let hint = "outputs of type `event_file` take events";
            taker
                .carries(giver)
                .is_none()
                .then(|| cannot_take(one, name, giver, &words(taker.takes)).hint(hint))
        }
        (Family::Outputs, Feed::Source(_)) if !one.takes_raw() && one.section.is_some() => {
            let diagnostic = Diagnostic::error(
                Code::NeedsAggregate,
                format!("{} needs aggregates, not samples", one.whose),
            )
            .label(format!("`{name}` is a source"));
            let aggregate = names.named.iter().find(|other| {
                other.family == Family::Transforms && other.from().iter().any(|(from, _)| from == name)
            });
            Some(match aggregate {
                Some(aggregate) => diagnostic.hint(format!("use \"{}\" in `from`, which aggregates it", aggregate.name)),
                None => diagnostic
                    .hint(format!("add [transforms.stats] with type = \"aggregate\" and from = [\"{name}\"], and use \"stats\" in `from`")),
            })
        }
        (Family::Outputs, Feed::Transform(_)) if one.takes_raw() && !one.takes_both() => {
            let giver = names.kind_of(name)?;
            let is_of_events = one.takes(RecordKind::Events);
            let takes = if is_of_events { "events" } else { "StatsD lines as they were sent" };
            let wanted = if is_of_events { RecordKind::Events } else { RecordKind::Samples };
            let hint = match is_of_events {
                true => names.givers(wanted),
                false => format!("{}; {SHARING_POINTS}", names.givers(wanted)),
            };
            Some(cannot_take(one, name, giver, takes).hint(hint))
        }
        (Family::Transforms, Feed::Transform(_)) => {
            let (giver, taker) = (names.kind_of(name)?, one.kind()?);
            // A circle has its own error.
            if taker.carries(giver).is_some() || names.cyclic.contains(&*one.name) {
                return None;
            }
            let hint = taker.takes.first().map_or_else(String::new, |kind| names.givers(*kind));
            Some(cannot_take(one, name, giver, &words(taker.takes)).hint(hint))
        }
        // Edges from sources are checked where both have plans: `points`, `relay::feeds`.
        (Family::Outputs | Family::Transforms | Family::Sources, Feed::Source(_) | Feed::Transform(_)) => {
            None
        }
    }
}

/// The option for sharding points, for configs that tried the ring of StatsD lines.
pub(super) const SHARING_POINTS: &str = "a relay shares points out: a cluster of type \"carbon_ch\", whose members are outputs of type \"graphite\"";

/// An edge from a transform that carries no records.
fn cannot_take(one: &Named, name: &str, giver: &NodeKind, takes: &str) -> Diagnostic {
    let message = format!("{} cannot read from `{name}`", one.whose);
    let label = format!("`{name}` gives {}; `{}` takes {takes}", words(giver.gives), one.name);
    Diagnostic::error(Code::NeedsSource, message).label(label)
}

/// All transforms that a transform takes from, directly or indirectly.
fn reached<'a>(one: &Named, names: &Names<'a>) -> HashSet<&'a str> {
    let mut reached = HashSet::default();
    let mut next: Vec<&str> = one.from().iter().map(|(name, _)| &**name).collect();
    while let Some(name) = next.pop() {
        let Some(transform) = names.transform(name) else { continue };
        if reached.insert(&*transform.name) {
            next.extend(transform.from().iter().map(|(name, _)| &**name));
        }
    }
    reached
}

fn cycles(named: &[Named], names: &Names, wrong: &mut Vec<Diagnostic>) {
    let cyclic = |one: &&Named| one.family == Family::Transforms && names.cyclic.contains(&*one.name);
    for one in named.iter().filter(cyclic) {
        let circle = circle(one, names);
        let last = circle.iter().rev().nth(1);
        let place = one.from().iter().find(|(name, _)| Some(&&**name) == last);
        wrong.push(
            Diagnostic::error(Code::Cycle, format!("{} feeds itself", one.whose))
                .at(place.map_or(one.place, |(_, place)| *place))
                .label(format!("closes the circle {}", shown_circle(&circle)))
                .hint("remove one of these names from a `from`"),
        );
    }
}

/// The shortest circle from a transform to itself: each feeds the next one.
fn circle<'a>(one: &'a Named, names: &Names<'a>) -> Vec<&'a str> {
    // The transform that each visited one feeds.
    let mut feeds: HashMap<&str, &str> = HashMap::default();
    let mut next = VecDeque::from([one]);
    while let Some(taker) = next.pop_front() {
        for giver in taker.from().iter().filter_map(|(name, _)| names.transform(name)) {
            if giver.name == one.name {
                let mut circle = vec![&*one.name, &*taker.name];
                while let Some(after) = circle.last().and_then(|name| feeds.get(name)) {
                    circle.push(after);
                }
                return circle;
            }
            if !feeds.contains_key(&*giver.name) {
                feeds.insert(&*giver.name, &*taker.name);
                next.push_back(giver);
            }
        }
    }
    vec![&*one.name]
}

fn shown_circle(circle: &[&str]) -> String {
    const SHOWN_MAX: usize = 8;
    let mut names: Vec<String> = circle.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    if circle.len() > SHOWN_MAX {
        names.push("…".to_owned());
    }
    names.join(" -> ")
}

/// Reports chains of relays that are too long. There are no circles here.
fn long_rows(named: &[Named], wrong: &mut Vec<Diagnostic>) {
    let relays = || named.iter().filter(|one| one.section == Some(Section::TransformRelay));
    let mut rows: HashMap<&str, usize> = HashMap::default();
    loop {
        let mut is_changed = false;
        for one in relays() {
            let before = one.from().iter().filter_map(|(name, _)| rows.get(&**name)).max().copied();
            let row = before.map_or(1, |before| before + 1);
            if row > RELAYS_IN_A_ROW_MAX {
                let over = one.from().iter().find(|(name, _)| rows.get(&**name).copied() == before);
                let message = format!("{} is behind {RELAYS_IN_A_ROW_MAX} other relays", one.whose);
                let diagnostic = Diagnostic::error(Code::TooMany, message)
                    .at(over.map_or(one.place, |(_, place)| *place))
                    .label(format!("at most {RELAYS_IN_A_ROW_MAX} relays in a row"));
                wrong.push(diagnostic);
                return;
            }
            is_changed |= rows.insert(&*one.name, row) != Some(row);
        }
        if !is_changed {
            return;
        }
    }
}

/// The sources of one aggregation must parse lines in the same way.
fn mixed_dialects(named: &[Named], names: &Names, wrong: &mut Vec<Diagnostic>) {
    let source = |name: &str| match names.feeds.get(name) {
        Some((at, Feed::Source(_))) => {
            let source = &names.named[*at];
            source.fields.as_ref()
        }
        _ => None,
    };
    for one in named.iter().filter(|one| one.family == Family::Transforms) {
        let mut first = None;
        for (name, place) in one.from() {
            let Some(fields) = source(name) else { continue };
            let (plan, _) = sources::build(name, fields, &mut Vec::new());
            let SourceKind::Statsd(options) = plan.kind else { continue };
            let Some((first_name, first_options)) = first else {
                first = Some((name, options));
                continue;
            };
            if let Some(key) = sources::difference(&first_options, &options) {
                let message = format!("the sources of {} parse lines differently", one.whose);
                wrong.push(
                    Diagnostic::error(Code::MixedDialects, message)
                        .at(*place)
                        .label(format!("`{key}` of `{name}` is not that of `{first_name}`"))
                        .hint(format!("give both the same `{key}`, or an aggregation each")),
                );
            }
        }
    }
}

/// Makes the sources of every aggregation with `key_flush` collect names, and all sources that share an aggregation
/// with them, because they must parse in the same way.
pub(super) fn count_names(plan: &mut Plan) {
    let key_flush = |kind: &TransformKind| {
        kind.as_aggregate().is_some_and(|aggregate| aggregate.plan.key_flush.is_some())
    };
    let wants: Vec<(bool, Vec<SourceId>)> = plan
        .transforms
        .iter()
        .map(|transform| (key_flush(&transform.kind), transform.sources().collect()))
        .collect();
    loop {
        let mut changed = false;
        for (wanted, from) in &wants {
            let counts =
                |id: &SourceId| plan.sources.get(id.index()).is_some_and(|s| s.kind.reading().count_names);
            if !*wanted && !from.iter().any(counts) {
                continue;
            }
            for id in from {
                let Some(source) = plan.sources.get_mut(id.index()) else { continue };
                let SourceKind::Statsd(options) = &mut source.kind else { continue };
                changed |= !options.count_names;
                options.count_names = true;
            }
        }
        if !changed {
            return;
        }
    }
}
