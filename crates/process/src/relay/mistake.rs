//! Why a relay's plan cannot be, or will not do what it seems to say. `config` points at the lines.

use std::ops::Range;

use super::expression::Expression;
use super::replacement::Replacement;
use super::syntax::{NoteAbout, Refusal};
use super::{AggregateStatement, ClusterId, ExpressionPlan, MatchPlan, RelayPlan, Statement, To};

/// What keeps a plan from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayMistake {
    /// The place.
    pub at: MistakeAt,
    /// Bytes of the expression there, when that is what is wrong.
    pub within: Option<Range<usize>>,
    /// A sentence without a capital and a full stop.
    pub why: String,
    /// What to write instead, where that is clear.
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
    /// The whole.
    Plan,
    /// A cluster.
    Cluster(ClusterId),
    /// A statement, by its place in the plan.
    Statement {
        /// Its place.
        statement: usize,
        /// The place of the expression in it that is wrong; none when it is something else.
        expression: Option<usize>,
    },
    /// An expression of a statement's `unless`.
    Unless {
        /// The statement's place.
        statement: usize,
        /// The expression's place in it.
        expression: usize,
    },
    /// The `validate` of a statement.
    Validate {
        /// The statement's place.
        statement: usize,
    },
    /// Where statistics go.
    Statistics,
}

/// What runs, but hardly as it was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayWarning {
    /// The statement never sees a name: an earlier one takes all.
    Unreachable {
        /// The statement.
        statement: usize,
        /// The one before it: `match * … stop`, or to the blackhole.
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
    /// The results of the aggregation meet the statements again and feed it.
    Loop {
        /// The statement.
        statement: usize,
        /// Which of its expressions matches a result of it.
        expression: usize,
    },
    /// The expression there is matched by backtracking: slower, and with limits.
    Backtracks {
        /// The place of an expression.
        at: MistakeAt,
    },
}

impl RelayPlan {
    /// What runs, but hardly as it was meant. Call it with a plan that [`Router::new`](super::Router::new) takes.
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

/// The expressions of a statement that are matched by backtracking.
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

/// Texts that groups are taken for when it is asked whether a result would match.
const SAMPLES: [&str; 3] = ["x", "0", "a.b"];

/// Whether an aggregation's results would feed it. Groups are filled with samples, so that some loops stay unseen; none
/// is seen where there is none.
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
