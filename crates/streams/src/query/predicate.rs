//! Trees compiled to predicates over events (spec riemann §5.3).

use std::sync::Arc;

use arcstr::ArcStr;

use super::error::QueryError;
use super::like::Like;
use super::limits::{DEPTH_MAX, PATTERNS_MAX};
use super::meter::Meter;
use super::parser::ast;
use super::pattern::Pattern;
use super::tree::{Comparison, Operand, Tree};
use crate::collections::element::Element;
use crate::event::{Event, Field};
use crate::number::Number;
use crate::value::Value;

/// A compiled query. Immutable: threads may share it.
#[derive(Debug)]
pub struct Query {
    tree: Tree,
    root: Node,
    /// Regular expressions in it.
    patterns: usize,
}

#[derive(Debug)]
enum Node {
    Value(Source),
    Equal(Source, Source),
    NotEqual(Source, Source),
    Compare(Comparison, Source, Source),
    Like(Like, Source),
    Regex(Arc<Pattern>, Source),
    Tagged(ArcStr),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// Where a value comes from.
#[derive(Debug)]
enum Source {
    Standard(Field),
    Custom(ArcStr),
    Literal(Value),
}

impl Query {
    /// Parses and compiles a text.
    ///
    /// # Errors
    /// The text is not a query, or beyond the limits.
    pub fn new(text: &str) -> Result<Query, QueryError> {
        Query::of(ast(text)?)
    }

    /// Compiles a tree (`riemann.query/fun`).
    ///
    /// # Errors
    /// A tree that was built by hand is nested too deep or has too many regular expressions.
    pub fn of(tree: Tree) -> Result<Query, QueryError> {
        let mut patterns = 0;
        // A parser's tree has at most three levels for each parenthesis: `or`, `and` and a part.
        let root = compiled(&tree, 3 * (DEPTH_MAX + 1), &mut patterns)?;
        if patterns > PATTERNS_MAX {
            return Err(QueryError::new(0, format!("more than {PATTERNS_MAX} regular expressions")));
        }
        Ok(Query { tree, root, patterns })
    }

    /// Number of its regular expressions.
    pub fn patterns(&self) -> usize {
        self.patterns
    }

    /// Its tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether an event matches. The work is linear in the query and in the texts of the event, and is counted.
    pub fn matches(&self, event: &Event, meter: &mut Meter) -> bool {
        self.root.matches(event, meter)
    }
}

fn compiled(tree: &Tree, depth: usize, patterns: &mut usize) -> Result<Node, QueryError> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(QueryError::new(0, "nested too deep"));
    };
    let mut all = |parts: &[Tree]| -> Result<Vec<Node>, QueryError> {
        parts.iter().map(|part| compiled(part, below, patterns)).collect()
    };
    Ok(match tree {
        Tree::Value(value) => Node::Value(Source::of(value)),
        Tree::Equal(a, b) => Node::Equal(Source::of(a), Source::of(b)),
        Tree::NotEqual(a, b) => Node::NotEqual(Source::of(a), Source::of(b)),
        Tree::Compare(comparison, a, b) => Node::Compare(*comparison, Source::of(a), Source::of(b)),
        Tree::Like(pattern, of) => Node::Like(Like::new(pattern), Source::of(of)),
        Tree::Regex(pattern, of) => {
            *patterns += 1;
            Node::Regex(Arc::clone(pattern), Source::of(of))
        }
        Tree::Tagged(tag) => Node::Tagged(tag.clone()),
        Tree::Not(inner) => Node::Not(Box::new(compiled(inner, below, patterns)?)),
        Tree::And(parts) => Node::And(all(parts)?),
        Tree::Or(parts) => Node::Or(all(parts)?),
    })
}

impl Source {
    fn of(operand: &Operand) -> Source {
        match operand {
            Operand::Literal(value) => Source::Literal(value.clone()),
            Operand::Field(name) => {
                Field::of(name).map_or_else(|| Source::Custom(name.clone()), Source::Standard)
            }
        }
    }

    fn value<'v>(&'v self, event: &'v Event, meter: &mut Meter) -> &'v Value {
        match self {
            Source::Standard(field) => event.get(*field),
            Source::Custom(name) => {
                meter.steps += (event.attributes().len() / 8) as u64;
                event.attribute(name).unwrap_or(&Value::Nil)
            }
            Source::Literal(value) => value,
        }
    }
}

impl Node {
    /// The depth of the recursion is limited by `Query::of`.
    fn matches(&self, event: &Event, meter: &mut Meter) -> bool {
        meter.steps += 1;
        match self {
            Node::Value(source) => source.value(event, meter).is_true(),
            Node::Equal(a, b) => same(a, b, event, meter),
            Node::NotEqual(a, b) => !same(a, b, event, meter),
            Node::Compare(comparison, a, b) => {
                let numbers = number(a.value(event, meter)).zip(number(b.value(event, meter)));
                numbers.is_some_and(|(a, b)| comparison.holds(a, b))
            }
            Node::Like(like, of) => {
                text(of.value(event, meter)).is_some_and(|text| like.matches(text, meter))
            }
            Node::Regex(pattern, of) => {
                text(of.value(event, meter)).is_some_and(|text| pattern.is_in(text, meter))
            }
            Node::Tagged(tag) => {
                tag_texts(event.get(Field::Tags)).inspect(|_| meter.steps += 1).any(|other| other == tag)
            }
            Node::Not(inner) => !inner.matches(event, meter),
            Node::And(parts) => parts.iter().all(|part| part.matches(event, meter)),
            Node::Or(parts) => parts.iter().any(|part| part.matches(event, meter)),
        }
    }
}

fn same(a: &Source, b: &Source, event: &Event, meter: &mut Meter) -> bool {
    let (a, b) = (a.value(event, meter), b.value(event, meter));
    if let Some((a, b)) = text(a).zip(text(b)) {
        meter.text(if a.len() == b.len() { a.len() } else { 0 });
    }
    Value::equal(a, b)
}

/// The texts among an event's tags, a vector, list or set: those that `tagged` looks at.
pub fn tag_texts(tags: &Value) -> impl Iterator<Item = &ArcStr> {
    let vector = if let Value::Vector(members) = tags { Some(members) } else { None };
    let list = if let Value::List(members) = tags { Some(members) } else { None };
    let set = if let Value::Set(members) = tags { Some(members) } else { None };
    let vector = vector.into_iter().flat_map(|members| members.iter());
    let list = list.into_iter().flat_map(|members| members.iter());
    let set = set.into_iter().flat_map(|members| members.iter());
    vector.chain(list).chain(set).filter_map(text)
}

fn text(value: &Value) -> Option<&ArcStr> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn number(value: &Value) -> Option<&Number> {
    if let Value::Number(number) = value { Some(number) } else { None }
}
