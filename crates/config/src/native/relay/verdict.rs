//! The router's errors about a relay, at their places in the file.
//!
//! Not here: checks that need no plan (`clusters`, `rules`).

use std::ops::Range;

use process::relay::{MistakeAt, RelayMistake, RelayPlan, RelayWarning, Router};

use crate::diagnostic::{Code, Diagnostic, Place};
use crate::native::fields::Fields;

/// Reports errors that the router finds, and warns about rules that probably do not do what was intended. If the relay
/// already has an error, only expressions are reported: other errors may follow from the missing part.
pub(super) fn of(plan: &RelayPlan, fields: &Fields, is_whole: bool, wrong: &mut Vec<Diagnostic>) {
    let relay = Relay { fields };
    match Router::new(plan) {
        Ok(_) if is_whole => wrong.extend(plan.warnings().into_iter().map(|warning| relay.warning(warning))),
        Ok(_) => {}
        Err(mistakes) => wrong.extend(mistakes.into_iter().filter_map(|of| relay.mistake(of, is_whole))),
    }
}

/// A part of a text as a place in the file, if the text is written there unchanged, with or without quotes, or with a
/// `\` before escaped characters. Otherwise the whole text.
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

/// A relay in the file.
struct Relay<'a> {
    fields: &'a Fields,
}

impl Relay<'_> {
    /// The table of a rule; after an error, that of the relay.
    fn rule(&self, statement: usize) -> &Fields {
        self.fields.tables("rules").get(statement).unwrap_or(self.fields)
    }

    fn mistake(&self, mistake: RelayMistake, is_whole: bool) -> Option<Diagnostic> {
        if let Some((rule, text, place)) = self.expression(mistake.at) {
            let message = format!("{} has an expression that cannot be used", rule.whose);
            let place = mistake.within.map_or(place, |within| inside(place, &text, within));
            let diagnostic = Diagnostic::error(Code::BadPattern, message).at(place).label(mistake.why);
            return Some(Diagnostic { hint: mistake.hint, ..diagnostic });
        }
        let (code, message, place) = match mistake.at {
            MistakeAt::Cluster(id) => {
                let cluster = self.fields.named_tables("clusters").get(id.index());
                let place = cluster.map_or(self.fields.place, |(_, fields)| fields.at("to"));
                (Code::NoCluster, format!("a cluster of {} cannot be", self.fields.whose), place)
            }
            MistakeAt::Statement { statement, .. }
            | MistakeAt::Unless { statement, .. }
            | MistakeAt::Validate { statement } => {
                let rule = self.rule(statement);
                (Code::BadRule, format!("{} cannot be", rule.whose), rule.place)
            }
            MistakeAt::Plan | MistakeAt::Statistics => {
                (Code::BadRule, format!("{} cannot be", self.fields.whose), self.fields.place)
            }
        };
        is_whole.then(|| Diagnostic::error(code, message).at(place).label(mistake.why))
    }

    /// The rule of an expression, the expression, and its place.
    fn expression(&self, at: MistakeAt) -> Option<(&Fields, String, Place)> {
        let (statement, key, at) = match at {
            MistakeAt::Statement { statement, expression } => (statement, "match", expression?),
            MistakeAt::Unless { statement, expression } => (statement, "unless", expression),
            MistakeAt::Validate { statement } => {
                let rule = self.rule(statement);
                return Some((rule, rule.value("validate")?, rule.at("validate")));
            }
            MistakeAt::Cluster(_) | MistakeAt::Plan | MistakeAt::Statistics => return None,
        };
        let rule = self.rule(statement);
        let (text, place) = rule.texts(key).get(at)?;
        Some((rule, text.clone(), *place))
    }

    fn warning(&self, warning: RelayWarning) -> Diagnostic {
        let whose = |statement: usize| &self.rule(statement).whose;
        let place_of = |statement: usize| {
            let rule = self.rule(statement);
            rule.texts("match").first().map_or(rule.place, |(_, place)| *place)
        };
        let of = |statement: usize, message: String, label: &str, hint: &str| {
            let diagnostic = Diagnostic::warning(Code::IdleRule, message).at(place_of(statement));
            diagnostic.label(label.to_owned()).hint(hint.to_owned())
        };
        match warning {
            RelayWarning::Unreachable { statement, taken_by } => of(
                statement,
                format!("no name gets as far as {}", whose(statement)),
                &format!("rule {} matches every name", taken_by + 1),
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
                let expression = self.expression(at);
                let (rule, place) =
                    expression.map_or((self.fields, self.fields.place), |(rule, _, at)| (rule, at));
                let message = format!("an expression of {} is matched by backtracking", rule.whose);
                Diagnostic::warning(Code::Backtracks, message)
                    .at(place)
                    .label("look-around or a back reference")
                    .hint("avoid it if possible: match the excluded names in an earlier rule that stops")
            }
            RelayWarning::Loop { statement, expression } => {
                let place = self.rule(statement).texts("match").get(expression).map(|(_, place)| *place);
                Diagnostic::warning(Code::IdleRule, format!("results of {} feed it again", whose(statement)))
                    .at(place.unwrap_or_else(|| place_of(statement)))
                    .label("matches a name that it gives")
                    .hint("set `to` for the results, or choose a name that does not match")
            }
        }
    }
}
