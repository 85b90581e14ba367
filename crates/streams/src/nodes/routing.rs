//! Streams that choose where a value goes: `where`, `split`, `splitp`, `match`, `tagged`.

use super::arguments::Args;
use super::predicate::{self, Comparison, Matcher, Predicate};
use crate::graph::{CHILDREN, Node, NodeId, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::value::Value;

/// The port of the children of `else`.
const OTHERWISE: u16 = CHILDREN + 1;

/// `where`, and the streams that are a `where` of one predicate.
#[derive(Debug)]
struct Where(Predicate);

impl Node for Where {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let is_true = self.0.is_true(value, turn)?;
        turn.emit_at(if is_true { CHILDREN } else { OTHERWISE }, std::mem::take(value));
        Ok(is_true)
    }
}

fn add_where(args: &mut Args<'_>, predicate: Predicate) -> Value {
    let (mut children, mut otherwise): (Vec<NodeId>, Vec<NodeId>) = (Vec::new(), Vec::new());
    for child in args.rest() {
        match predicate::otherwise(child) {
            Some(all) => otherwise.extend(all.iter().map(|child| args.graph.child(child))),
            None => children.push(args.graph.child(child)),
        }
    }
    args.add_with(Where(predicate), &[&children, &otherwise])
}

/// `(where* f c… (else c…))`
pub(super) fn where_all(args: &mut Args<'_>) -> Outcome {
    let predicate = args.predicate()?;
    Ok(add_where(args, predicate))
}

/// `(tagged tags c…)`, `(tagged-all tags c…)`
pub(super) fn tagged_all(args: &mut Args<'_>) -> Outcome {
    let tags = predicate::tags_of(args.take()?)?;
    Ok(add_where(args, Predicate::Tagged { all: true, tags }))
}

/// `(tagged-any tags c…)`
pub(super) fn tagged_any(args: &mut Args<'_>) -> Outcome {
    let tags = predicate::tags_of(args.take()?)?;
    Ok(add_where(args, Predicate::Tagged { all: false, tags }))
}

/// `(match f value c…)`
pub(super) fn matching(args: &mut Args<'_>) -> Outcome {
    let function = args.function()?;
    let matcher = Matcher::of(args.take()?);
    Ok(add_where(args, Predicate::Match(function, matcher)))
}

/// `split`: the port of the first predicate that is true; the last one is of the default.
#[derive(Debug)]
struct Split(Box<[Predicate]>);

impl Node for Split {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let mut port = CHILDREN;
        for predicate in &self.0 {
            if predicate.is_true(value, turn)? {
                break;
            }
            port += 1;
        }
        turn.emit_at(port, std::mem::take(value));
        Ok(true)
    }
}

/// Pairs of something and a stream, and perhaps one stream more: what is before the streams, the streams, and whether the last one
/// is alone.
fn clauses<'a>(args: &mut Args<'a>) -> Outcome<(Vec<&'a Value>, Vec<NodeId>, bool)> {
    let (mut tests, mut streams) = (Vec::new(), Vec::new());
    let rest = args.rest();
    for clause in rest.chunks(2) {
        match clause {
            [test, stream] => {
                tests.push(test);
                streams.push(args.graph.child(stream));
            }
            [stream] => streams.push(args.graph.child(stream)),
            _ => {}
        }
    }
    // Ports have 16 bits.
    if streams.len() > usize::from(u16::MAX) {
        return Err(args.wrong("too many clauses"));
    }
    Ok((tests, streams, rest.len() % 2 == 1))
}

/// `(split* f1 s1 f2 s2 … [default])`
pub(super) fn split_all(args: &mut Args<'_>) -> Outcome {
    let (tests, streams, _) = clauses(args)?;
    let predicates: Outcome<_> = tests.into_iter().map(Predicate::of).collect();
    let ports: Vec<&[NodeId]> = streams.iter().map(std::slice::from_ref).collect();
    Ok(args.add_with(Split(predicates?), &ports))
}

/// `splitp`: how tests compare with the value of an expression.
#[derive(Debug)]
struct SplitBy {
    predicate: Value,
    comparison: Option<Comparison>,
    of: Predicate,
    tests: Box<[Value]>,
    has_default: bool,
}

impl Node for SplitBy {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let of = self.of.value(value, turn)?;
        let mut port = CHILDREN;
        for test in &self.tests {
            let is_true = match self.comparison {
                Some(comparison) => comparison.holds(test, &of)?,
                None => turn.call(&self.predicate, &[test.clone(), of.clone()])?.is_true(),
            };
            if is_true {
                turn.emit_at(port, std::mem::take(value));
                return Ok(true);
            }
            port += 1;
        }
        if !self.has_default {
            return Err(EvalError::illegal_argument("no clause of splitp matches"));
        }
        turn.emit_at(port, std::mem::take(value));
        Ok(true)
    }
}

/// `(splitp* predicate f test1 s1 test2 s2 … [default])`
pub(super) fn splitp_all(args: &mut Args<'_>) -> Outcome {
    let predicate = args.take()?.clone();
    let of = args.predicate()?;
    let (tests, streams, has_default) = clauses(args)?;
    let ports: Vec<&[NodeId]> = streams.iter().map(std::slice::from_ref).collect();
    let comparison = Comparison::of_function(&predicate);
    let tests = tests.into_iter().cloned().collect();
    Ok(args.add_with(SplitBy { predicate, comparison, of, tests, has_default }, &ports))
}
