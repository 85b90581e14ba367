//! Errors and warnings of a relay's plan, each with its place in it. `config` turns the place into a line.

use std::ops::Range;

use super::expression::Expression;
use super::replacement::Replacement;
use super::syntax::{NoteAbout, Refusal};
use super::{AggregateStatement, ClusterId, ExpressionPlan, MatchPlan, RelayPlan, Statement, To};

/// An error that makes a plan unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayMistake {
    /// Where it is.
    pub at: MistakeAt,
    /// Byte range in the expression at that place, if the expression is at fault.
    pub within: Option<Range<usize>>,
    /// The error as text, without capital and full stop.
    pub why: String,
    /// Suggested change, if there is an obvious one.
    pub hint: Option<String>,
}

impl RelayMistake {
    pub(super) fn new(at: MistakeAt, why: String) -> RelayMistake {
        RelayMistake { at, within: None, why, hint: None }
    }

    pub(super) fn refused(at: MistakeAt, refusal: Refusal) -> RelayMistake {
        let Refusal { at: within, message, hint, .. } = refusal;
        RelayMistake { at, within: Some(within), why: message, hint }
    }
}

/// A place in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MistakeAt {
    /// The whole plan.
    Plan,
    /// A cluster.
    Cluster(ClusterId),
    /// A statement, by its index in the plan.
    Statement {
        /// Index of the statement.
        statement: usize,
        /// Index of the faulty expression; None if something else is at fault.
        expression: Option<usize>,
    },
    /// An expression in a statement's `unless`.
    Unless {
        /// Index of the statement.
        statement: usize,
        /// Index of the expression.
        expression: usize,
    },
    /// The `validate` of a statement.
    Validate {
        /// Index of the statement.
        statement: usize,
    },
    /// The destination of statistics.
    Statistics,
}

/// A likely mistake in a valid plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayWarning {
    /// The statement is never reached: an earlier one matches every name.
    Unreachable {
        /// The statement.
        statement: usize,
        /// The earlier one: `match * … stop`, or to the blackhole.
        taken_by: usize,
    },
    /// `stop` without `send to` does nothing.
    StopAlone {
        /// The statement.
        statement: usize,
    },
    /// A match without `send to` and `validate` does nothing.
    DoesNothing {
        /// The statement.
        statement: usize,
    },
    /// The results of an aggregation match its own statement and feed it again.
    Loop {
        /// The statement.
        statement: usize,
        /// Index of the expression that matches one of its results.
        expression: usize,
    },
    /// The expression is matched by backtracking: slower, and with limits.
    Backtracks {
        /// The place of an expression.
        at: MistakeAt,
    },
}

impl RelayPlan {
    /// Warnings about a valid plan: one that [`Router::new`](super::Router::new) accepts.
    pub fn warnings(&self) -> Vec<RelayWarning> {
        let mut warnings = Vec::new();
        let mut taken_by = None;
        for (statement, plan) in self.statements.iter().enumerate() {
            if let Some(taken_by) = taken_by {
                warnings.push(RelayWarning::Unreachable { statement, taken_by });
                continue;
            }
            warnings.extend(backtracking(statement, plan));
            match plan {
                Statement::Match(plan) => {
                    warnings.extend(of_match(statement, plan));
                    taken_by = takes_all(plan).then_some(statement);
                }
                Statement::Rewrite(_) => {}
                Statement::Aggregate(plan) => warnings.extend(loops(statement, plan)),
            }
        }
        warnings
    }
}

/// The expressions of a statement that need backtracking.
fn backtracking(statement: usize, plan: &Statement) -> impl Iterator<Item = RelayWarning> {
    let (expressions, validate) = match plan {
        Statement::Match(plan) => (&plan.expressions[..], plan.validate.as_ref()),
        Statement::Rewrite(plan) => (std::slice::from_ref(&plan.expression), None),
        Statement::Aggregate(plan) => (&plan.expressions[..], None),
    };
    let names = expressions.iter().enumerate().map(move |(at, plan)| {
        let expression = Some(at);
        (MistakeAt::Statement { statement, expression }, plan)
    });
    let unless = match plan {
        Statement::Match(plan) => &plan.unless[..],
        Statement::Rewrite(_) | Statement::Aggregate(_) => &[],
    };
    let unless = unless.iter().enumerate();
    let unless = unless.map(move |(expression, plan)| (MistakeAt::Unless { statement, expression }, plan));
    let rest = validate.map(|validate| (MistakeAt::Validate { statement }, &validate.expression));
    let slow = |plan: &ExpressionPlan| {
        let notes = plan.outline(false).map(|outline| outline.notes).unwrap_or_default();
        notes.iter().any(|note| note.about == NoteAbout::Backtracking)
    };
    rest.into_iter()
        .chain(names)
        .chain(unless)
        .filter(move |(_, plan)| slow(plan))
        .map(|(at, _)| RelayWarning::Backtracks { at })
}

fn takes_all(plan: &MatchPlan) -> bool {
    plan.expressions.is_empty()
        && plan.unless.is_empty()
        && (plan.to == To::Blackhole || plan.stop && plan.to != To::Nowhere)
}

fn of_match(statement: usize, plan: &MatchPlan) -> Option<RelayWarning> {
    match (&plan.to, &plan.validate, plan.stop) {
        (To::Nowhere, _, true) => Some(RelayWarning::StopAlone { statement }),
        (To::Nowhere, None, false) => Some(RelayWarning::DoesNothing { statement }),
        _ => None,
    }
}

/// Sample texts for groups, to check whether a result would match.
const SAMPLES: [&str; 3] = ["x", "0", "a.b"];

/// Detects an aggregation whose results would feed it. Groups are filled with samples, so some loops are missed;
/// there are no false positives.
fn loops(statement: usize, plan: &AggregateStatement) -> Option<RelayWarning> {
    if plan.to != To::Nowhere {
        return None;
    }
    let compiled: Vec<Expression> =
        plan.expressions.iter().filter_map(|plan| Expression::new(plan, true).ok()).collect();
    let results = compiled.iter().flat_map(|source| {
        let names = plan.aggregation_rule.computes.iter().map(|compute| &compute.name);
        let name = |name: &String, sample| Replacement::parse(name, source.groups()).sampled(sample);
        names.flat_map(move |text| SAMPLES.map(|sample| name(text, sample)))
    });
    let names: Vec<Vec<u8>> = results.collect();
    let expression =
        compiled.iter().position(|known| names.iter().any(|name| known.is_in(name) == Ok(true)))?;
    Some(RelayWarning::Loop { statement, expression })
}
