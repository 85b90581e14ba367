//! Which events a query has to look at: the smallest set that contains all that can match.
//!
//! Only `host`, `service` and tags have sets. A plan may contain events that do not match, since each is checked; it never
//! lacks one that does. Parts of the tree that say nothing about sets (`not`, comparisons) are [`Access::All`].

use std::sync::Arc;

use arcstr::ArcStr;

use super::slot_set::SlotSet;
use super::table::{Index, Part};
use super::terms::Terms;
use crate::collections::element::Element;
use crate::event::Field;
use crate::query::{Like, Meter, Operand, Pattern, Tree};
use crate::value::Value;

/// Sets that are united at most, and parts of an `and` that are considered; more are a scan.
const SETS_MAX: usize = 64;

/// Texts that are counted to estimate the size of a plan.
const COUNTED_MAX: usize = 64;

/// Longest text that is tested for an estimate; a longer one counts as one that matches. So a query with many patterns costs little before
/// its first slice, however long the hosts are that clients have sent.
const ESTIMATED_BYTES_MAX: usize = 256;

/// The events to look at.
#[derive(Debug)]
pub(super) enum Access {
    /// None: nothing can match.
    Nothing,
    /// The one with this host and service.
    Key { host: Value, service: Value },
    /// Those in any of these sets, in the order of slots.
    Sets(Vec<SetOf>),
    /// Those whose host or service passes one of these tests, by text and then by slot.
    Texts { part: PartOf, prefix: String, tests: Vec<TextTest> },
    /// All.
    All,
}

/// A set of the index, by name: the set itself may come and go between two slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetOf {
    /// Events with this host or service; None for nil.
    Part(PartOf, Option<ArcStr>),
    /// Events with this tag.
    Tag(ArcStr),
}

/// Which part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartOf {
    Host,
    Service,
}

/// A test of a text.
#[derive(Clone, Debug)]
pub(super) enum TextTest {
    Like(Like),
    Matches(Arc<Pattern>),
}

impl SetOf {
    pub(super) fn slots<'i>(&self, index: &'i Index) -> Option<&'i SlotSet> {
        match self {
            SetOf::Part(part, text) => part.of(index).slots(text.as_deref()),
            SetOf::Tag(tag) => index.tags.slots(tag),
        }
    }

    fn len(&self, index: &Index) -> usize {
        self.slots(index).map_or(0, SlotSet::len)
    }
}

impl PartOf {
    fn named(name: &str) -> Option<PartOf> {
        match Field::of(name)? {
            Field::Host => Some(PartOf::Host),
            Field::Service => Some(PartOf::Service),
            Field::State | Field::Description | Field::Metric | Field::Tags | Field::Time | Field::Ttl => {
                None
            }
        }
    }

    fn of(self, index: &Index) -> &Part {
        match self {
            PartOf::Host => &index.hosts,
            PartOf::Service => &index.services,
        }
    }

    pub(super) fn texts(self, index: &Index) -> &Terms {
        &self.of(index).texts
    }
}

impl TextTest {
    pub(super) fn passes(&self, text: &str, meter: &mut Meter) -> bool {
        match self {
            TextTest::Like(like) => like.matches(text, meter),
            TextTest::Matches(pattern) => pattern.is_in(text, meter),
        }
    }
}

impl TextTest {
    /// For an estimate: expressions and long texts may take long, so they are not searched.
    fn may_pass(&self, text: &str, meter: &mut Meter) -> bool {
        meter.steps += 1;
        match self {
            TextTest::Like(like) => text.len() > ESTIMATED_BYTES_MAX || like.matches(text, meter),
            TextTest::Matches(_) => true,
        }
    }
}

/// The plan for a tree, and what it costs to make it. The depth of the recursion is that of the tree, which `Query` limits.
pub(super) fn plan(tree: &Tree, index: &Index, meter: &mut Meter) -> Access {
    meter.steps += 1;
    match tree {
        Tree::Value(Operand::Literal(value)) => always(value.is_true()),
        Tree::Equal(Operand::Literal(a), Operand::Literal(b)) => always(Value::equal(a, b)),
        Tree::NotEqual(Operand::Literal(a), Operand::Literal(b)) => always(!Value::equal(a, b)),
        Tree::Equal(Operand::Field(name), Operand::Literal(value))
        | Tree::Equal(Operand::Literal(value), Operand::Field(name)) => with_value(name, value),
        Tree::Like(pattern, Operand::Field(name)) => {
            let Some(part) = PartOf::named(name) else {
                return Access::All;
            };
            let like = Like::new(pattern);
            match like.literal() {
                Some(text) => Access::Sets(vec![SetOf::Part(part, Some(text.clone()))]),
                None => {
                    let prefix = like.prefix().to_owned();
                    Access::Texts { part, prefix, tests: vec![TextTest::Like(like)] }
                }
            }
        }
        Tree::Regex(pattern, Operand::Field(name)) => PartOf::named(name).map_or(Access::All, |part| {
            let tests = vec![TextTest::Matches(Arc::clone(pattern))];
            Access::Texts { part, prefix: String::new(), tests }
        }),
        Tree::Tagged(tag) => Access::Sets(vec![SetOf::Tag(tag.clone())]),
        Tree::And(parts) => smallest(parts, index, meter),
        Tree::Or(parts) if parts.len() > SETS_MAX => Access::All,
        Tree::Or(parts) => {
            let plans = parts.iter().map(|part| plan(part, index, meter));
            plans.fold(Access::Nothing, united)
        }
        Tree::Value(Operand::Field(_))
        | Tree::Equal(Operand::Field(_), Operand::Field(_))
        | Tree::NotEqual(..)
        | Tree::Compare(..)
        | Tree::Like(_, Operand::Literal(_))
        | Tree::Regex(_, Operand::Literal(_))
        | Tree::Not(_) => Access::All,
    }
}

fn always(is_true: bool) -> Access {
    if is_true { Access::All } else { Access::Nothing }
}

/// `field = literal`.
fn with_value(name: &str, value: &Value) -> Access {
    match (PartOf::named(name), value) {
        (Some(part), Value::Text(text)) => Access::Sets(vec![SetOf::Part(part, Some(text.clone()))]),
        (Some(part), Value::Nil) => Access::Sets(vec![SetOf::Part(part, None)]),
        // Other values have no sets.
        (_, _) => Access::All,
    }
}

/// The plan of the part that looks at the fewest events; both parts of the key together are one event.
fn smallest(parts: &[Tree], index: &Index, meter: &mut Meter) -> Access {
    // What is left out is checked with each event, as everything is.
    let plans: Vec<Access> = parts.iter().take(SETS_MAX).map(|part| plan(part, index, meter)).collect();
    let part_of_key = |wanted: PartOf| {
        plans.iter().find_map(|plan| match plan {
            Access::Sets(sets) => match &sets[..] {
                [SetOf::Part(part, text)] if *part == wanted => {
                    Some(text.clone().map_or(Value::Nil, Value::Text))
                }
                _ => None,
            },
            Access::Nothing | Access::Key { .. } | Access::Texts { .. } | Access::All => None,
        })
    };
    if let (Some(host), Some(service)) = (part_of_key(PartOf::Host), part_of_key(PartOf::Service)) {
        return Access::Key { host, service };
    }
    plans.into_iter().min_by_key(|plan| size(plan, index, meter)).unwrap_or(Access::All)
}

/// About how many events a plan looks at.
fn size(plan: &Access, index: &Index, meter: &mut Meter) -> usize {
    match plan {
        Access::Nothing => 0,
        Access::Key { .. } => 1,
        Access::Sets(sets) => sets.iter().map(|set| set.len(index)).sum(),
        Access::Texts { part, prefix, tests } => {
            let mut found = 0;
            let counted_max = COUNTED_MAX / tests.len().max(1);
            for (count, (text, slots)) in part.texts(index).with_prefix(prefix, None).enumerate() {
                if count == counted_max {
                    // Unknown; less than a scan.
                    return index.len() / 2 + found;
                }
                let passes = tests.iter().any(|test| test.may_pass(text, meter));
                found += 1 + if passes { slots.len() } else { 0 };
            }
            found
        }
        Access::All => index.len().saturating_add(1),
    }
}

/// The plan for events that either plan looks at.
fn united(a: Access, b: Access) -> Access {
    match (as_sets(a), as_sets(b)) {
        (Access::Nothing, other) | (other, Access::Nothing) => other,
        (Access::Sets(mut sets), Access::Sets(others)) => {
            for other in others {
                if !sets.contains(&other) {
                    sets.push(other);
                }
            }
            if sets.len() > SETS_MAX { Access::All } else { Access::Sets(sets) }
        }
        (
            Access::Texts { part, prefix, mut tests },
            Access::Texts { part: other, prefix: second, tests: more },
        ) if part == other && tests.len() + more.len() <= SETS_MAX => {
            tests.extend(more);
            Access::Texts { part, prefix: common_prefix(prefix, &second), tests }
        }
        (texts @ Access::Texts { .. }, Access::Sets(sets))
        | (Access::Sets(sets), texts @ Access::Texts { .. }) => with_sets(texts, sets),
        (_, _) => Access::All,
    }
}

/// A key as one of its sets: a union needs an order that both sides have.
fn as_sets(plan: Access) -> Access {
    match plan {
        Access::Key { host: Value::Text(host), .. } => {
            Access::Sets(vec![SetOf::Part(PartOf::Host, Some(host))])
        }
        Access::Key { .. } => Access::Sets(vec![SetOf::Part(PartOf::Host, None)]),
        plan @ (Access::Nothing | Access::Sets(_) | Access::Texts { .. } | Access::All) => plan,
    }
}

/// Texts of one part of the key, and sets: possible if the sets are texts of that part.
fn with_sets(texts: Access, sets: Vec<SetOf>) -> Access {
    sets.into_iter().fold(texts, |plan, set| match (plan, set) {
        (Access::Texts { part, prefix, mut tests }, SetOf::Part(other, Some(text)))
            if part == other && tests.len() < SETS_MAX =>
        {
            let prefix = common_prefix(prefix, &text);
            // A `%` in the text matches itself, and more: each event is checked.
            tests.push(TextTest::Like(Like::new(&text)));
            Access::Texts { part, prefix, tests }
        }
        (_, _) => Access::All,
    })
}

fn common_prefix(mut prefix: String, other: &str) -> String {
    let same = prefix.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let len = same.map(|(letter, _)| letter.len_utf8()).sum();
    prefix.truncate(len);
    prefix
}
