//! What the router says of a relay, at its place in the file.
//!
//! Not here: what can be told before there is a plan (`clusters`, `rules`).

use std::ops::Range;

use process::relay::{MistakeAt, RelayMistake, RelayPlan, RelayWarning, Router, Statement};

use super::clusters::ClusterPlaces;
use super::rules::RulePlaces;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::native::wiring::Named;

/// Where the parts of a relay stand.
pub(super) struct Places<'a> {
    pub(super) named: &'a Named,
    pub(super) cluster_places: Vec<ClusterPlaces>,
    pub(super) rule_places: Vec<RulePlaces>,
}

/// Tells what the router refuses, and what it runs but hardly as it was meant. Of a relay in which something is wrong
/// already that is only what it says of expressions: the rest may follow from what was left out.
pub(super) fn of(plan: &RelayPlan, places: &Places, is_whole: bool, wrong: &mut Vec<Diagnostic>) {
    match Router::new(plan) {
        Ok(_) if is_whole => {
            wrong.extend(plan.warnings().into_iter().map(|warning| places.warning(plan, warning)));
        }
        Ok(_) => {}
        Err(mistakes) => {
            wrong.extend(mistakes.into_iter().filter_map(|of| places.mistake(plan, of, is_whole)))
        }
    }
}

/// The text of the expression at a place.
fn text_of(plan: &RelayPlan, at: MistakeAt) -> Option<&str> {
    let expression = match at {
        MistakeAt::Statement { statement, expression: Some(expression) } => {
            match plan.statements.get(statement)? {
                Statement::Match(rule) => rule.expressions.get(expression)?,
                Statement::Rewrite(rule) => &rule.expression,
                Statement::Aggregate(rule) => rule.expressions.get(expression)?,
            }
        }
        MistakeAt::Unless { statement, expression } => match plan.statements.get(statement)? {
            Statement::Match(rule) => rule.unless.get(expression)?,
            Statement::Rewrite(_) | Statement::Aggregate(_) => return None,
        },
        MistakeAt::Validate { statement } => match plan.statements.get(statement)? {
            Statement::Match(rule) => &rule.validate.as_ref()?.expression,
            Statement::Rewrite(_) | Statement::Aggregate(_) => return None,
        },
        _ => return None,
    };
    Some(&expression.text)
}

/// Some bytes of a text as a place in the file, where the text stands as it is, with or without quotes, or with a `\`
/// before what must have one. Otherwise the whole of it.
fn inside(place: Place, text: &str, within: Range<usize>) -> Place {
    let escaped =
        |bytes: usize| bytes + text.bytes().take(bytes).filter(|byte| matches!(byte, b'"' | b'\\')).count();
    let length = place.end.saturating_sub(place.start);
    let at = |begin: usize, of: &dyn Fn(usize) -> usize| {
        // A place has at least one byte, so that there is something to underline.
        let (start, end) = (of(within.start), of(within.end).max(of(within.start) + 1));
        Place::new((place.start + begin + start).min(place.end), (place.start + begin + end).min(place.end))
    };
    match length {
        _ if length == text.len() => at(0, &|bytes| bytes),
        _ if length == text.len() + 2 => at(1, &|bytes| bytes),
        _ if length == escaped(text.len()) + 2 => at(1, &escaped),
        _ => place,
    }
}

impl Places<'_> {
    fn mistake(&self, plan: &RelayPlan, mistake: RelayMistake, is_whole: bool) -> Option<Diagnostic> {
        let rule = |statement: usize| self.rule_places.get(statement);
        let whose = |statement: usize| format!("rule {} of {}", statement + 1, self.named.whose);
        if let Some((statement, place)) = self.expression(mistake.at) {
            let message = format!("{} has an expression that cannot be used", whose(statement));
            let text = text_of(plan, mistake.at).unwrap_or_default();
            let place = mistake.within.map_or(place, |within| inside(place, text, within));
            let diagnostic = Diagnostic::error(Code::BadPattern, message).at(place).label(mistake.why);
            return Some(Diagnostic { hint: mistake.hint, ..diagnostic });
        }
        let (code, message, place) = match mistake.at {
            MistakeAt::Cluster(id) => {
                let places = self.cluster_places.get(id.index());
                let message = format!("a cluster of {} cannot be", self.named.whose);
                (Code::NoCluster, message, places.map_or(self.named.place, |places| places.to))
            }
            MistakeAt::Statement { statement, .. }
            | MistakeAt::Unless { statement, .. }
            | MistakeAt::Validate { statement } => {
                let message = format!("{} cannot be", whose(statement));
                (Code::BadRule, message, rule(statement).map_or(self.named.place, |rule| rule.rule))
            }
            MistakeAt::Plan | MistakeAt::Statistics => {
                (Code::BadRule, format!("{} cannot be", self.named.whose), self.named.place)
            }
        };
        is_whole.then(|| Diagnostic::error(code, message).at(place).label(mistake.why))
    }

    /// The statement of an expression, and where that stands.
    fn expression(&self, at: MistakeAt) -> Option<(usize, Place)> {
        let rule = |statement: usize| self.rule_places.get(statement);
        match at {
            MistakeAt::Statement { statement, expression: Some(at) } => {
                rule(statement).and_then(|rule| rule.expressions.get(at)).map(|place| (statement, *place))
            }
            MistakeAt::Unless { statement, expression } => {
                rule(statement).and_then(|rule| rule.unless.get(expression)).map(|place| (statement, *place))
            }
            MistakeAt::Validate { statement } => {
                rule(statement).and_then(|rule| rule.validate).map(|place| (statement, place))
            }
            _ => None,
        }
    }

    fn warning(&self, plan: &RelayPlan, warning: RelayWarning) -> Diagnostic {
        let whose = |statement: usize| format!("rule {} of {}", statement + 1, self.named.whose);
        let place_of = |statement: usize| {
            let rule = self.rule_places.get(statement);
            let first = rule.map(|rule| rule.expressions.first().copied().unwrap_or(rule.rule));
            first.unwrap_or(self.named.place)
        };
        let of = |statement: usize, message: String, label: &str, hint: &str| {
            let diagnostic = Diagnostic::warning(Code::IdleRule, message).at(place_of(statement));
            diagnostic.label(label.to_owned()).hint(hint.to_owned())
        };
        match warning {
            RelayWarning::Unreachable { statement, taken_by } => of(
                statement,
                format!("no name gets as far as {}", whose(statement)),
                &format!("rule {} takes every name", taken_by + 1),
                "move it up, or take the `stop` away from the other one",
            ),
            RelayWarning::StopAlone { statement } => of(
                statement,
                format!("`stop` of {} has no effect", whose(statement)),
                "a rule that sends nowhere does not stop",
                "write `to = \"blackhole\"` to drop what it matches",
            ),
            RelayWarning::DoesNothing { statement } => of(
                statement,
                format!("{} does nothing", whose(statement)),
                "it neither sends nor validates",
                "add `to`, or `to = \"blackhole\"` to drop what it matches",
            ),
            RelayWarning::Backtracks { at } => {
                let (statement, place) = self.expression(at).unwrap_or((0, self.named.place));
                let message = format!("an expression of {} is matched by backtracking", whose(statement));
                Diagnostic::warning(Code::Backtracks, message)
                    .at(place)
                    .label("look-around or a back reference")
                    .hint("avoid it if possible: match the excluded names in an earlier rule that stops")
            }
            RelayWarning::Loop { statement, expression } => {
                let rule = self.rule_places.get(statement);
                let place = rule.and_then(|rule| rule.expressions.get(expression)).copied();
                let place: Place = place.unwrap_or_else(|| place_of(statement));
                debug_assert!(matches!(plan.statements[statement], Statement::Aggregate(_)));
                Diagnostic::warning(Code::IdleRule, format!("results of {} feed it again", whose(statement)))
                    .at(place)
                    .label("matches a name that it gives")
                    .hint("set `to` for the results, or choose a name that does not match")
            }
        }
    }
}
