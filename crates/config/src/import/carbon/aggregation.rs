//! aggregation-rules.conf: `OUTPUT (FREQUENCY) = METHOD INPUT`.

use process::relay::{AggregateStatement, ExpressionPlan, Statement, To};
use process::rollup::{Compute, ComputePlan, Late, RollupPlan, Stamp};

use super::{RULES_MAX, lines};
use crate::diagnostic::{Code, Diagnostic, Place, has_errors, nearest};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationRule {
    /// Name of the result, in the relay's form: `\g{1}` for the first field.
    pub output: String,
    /// Length of a window in seconds.
    pub frequency_s: u32,
    /// What is computed.
    pub method: Compute,
    /// Names that count in, as an expression for the whole name.
    pub input: String,
}

const METHODS: [(&str, Compute); 12] = [
    ("sum", Compute::Sum),
    ("avg", Compute::Average),
    ("min", Compute::Min),
    ("max", Compute::Max),
    ("count", Compute::Count),
    ("p50", Compute::Interpolated(500)),
    ("p75", Compute::Interpolated(750)),
    ("p80", Compute::Interpolated(800)),
    ("p90", Compute::Interpolated(900)),
    ("p95", Compute::Interpolated(950)),
    ("p99", Compute::Interpolated(990)),
    ("p999", Compute::Interpolated(999)),
];

/// Longest frequency: a year.
const FREQUENCY_S_MAX: u32 = 366 * 86_400;

/// Reads the file.
pub fn aggregation_rules(text: &str) -> (Option<Vec<AggregationRule>>, Vec<Diagnostic>) {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for (line, start) in lines(text).take(RULES_MAX) {
        rules.extend(rule(line, start, &mut wrong));
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

fn rule(line: &str, start: usize, wrong: &mut Vec<Diagnostic>) -> Option<AggregationRule> {
    let place = |part: &str| {
        let at = start + (part.as_ptr() as usize - line.as_ptr() as usize);
        Place::new(at, at + part.len())
    };
    let form = || "write OUTPUT (SECONDS) = METHOD INPUT";
    let parts = line.split_once('=').and_then(|(left, right)| {
        let (output, frequency) = left.trim_end().strip_suffix(')')?.rsplit_once('(')?;
        let (method, input) = right.trim().split_once(char::is_whitespace)?;
        Some((output.trim(), frequency.trim(), method, input.trim()))
    });
    let Some((output, frequency, method, input)) = parts else {
        let diagnostic =
            Diagnostic::error(Code::ImportSyntax, "this line is no aggregation rule").at(place(line));
        wrong.push(diagnostic.label("cannot be taken apart").hint(form()));
        return None;
    };
    let before = wrong.len();
    let frequency_s = frequency.parse().ok().filter(|seconds| (1..=FREQUENCY_S_MAX).contains(seconds));
    if frequency_s.is_none() {
        let diagnostic =
            Diagnostic::error(Code::ImportBadValue, format!("`{frequency}` is no number of seconds"));
        wrong.push(diagnostic.at(place(frequency)).label("from 1 on").hint(form()));
    }
    let found = METHODS.iter().find(|(word, _)| *word == method).map(|(_, compute)| *compute);
    if found.is_none() {
        let words = METHODS.map(|(word, _)| word);
        let hint = match nearest(method, words.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("methods are {}", words.join(", ")),
        };
        let diagnostic = Diagnostic::error(Code::ImportBadValue, format!("there is no method `{method}`"));
        wrong.push(diagnostic.at(place(method)).label("not known to carbon").hint(hint));
    }
    let mut fields = Vec::new();
    let expression = expression_of(input, &mut fields);
    if super::expression(&expression, place(input).start, wrong).is_none()
        && let Some(last) = wrong.last_mut()
    {
        // The place was one of the expression that the pattern stands for.
        last.place = Some(place(input));
    }
    let name = name_of(output, &fields, place(output).start, wrong);
    (wrong.len() == before).then_some(())?;
    Some(AggregationRule { output: name?, frequency_s: frequency_s?, method: found?, input: expression })
}

/// The expression that an input pattern stands for, and the names of its fields in order.
fn expression_of<'a>(input: &'a str, fields: &mut Vec<&'a str>) -> String {
    let part = |part: &'a str| {
        for (open, close, group) in [("<<", ">>", "(.+?)"), ("<", ">", "([^.]+?)")] {
            if let Some((before, rest)) = part.split_once(open)
                && let Some((field, behind)) = rest.split_once(close)
            {
                fields.push(field);
                return format!("{before}{group}{behind}");
            }
        }
        if part == "*" { "[^.]+".to_owned() } else { part.replace('*', "[^.]*") }
    };
    let parts: Vec<String> = input.split('.').map(part).collect();
    format!("^{}$", parts.join("\\."))
}

/// The name of the result with references in place of its fields.
fn name_of(output: &str, fields: &[&str], start: usize, wrong: &mut Vec<Diagnostic>) -> Option<String> {
    let mut name = String::new();
    let mut rest = output;
    while let Some(open) = rest.find('<') {
        name.push_str(&rest[..open]);
        let Some((field, behind)) = rest[open + 1..].split_once('>') else { break };
        let Some(at) = fields.iter().position(|known| *known == field) else {
            let from = start + output.len() - rest.len() + open;
            let diagnostic =
                Diagnostic::error(Code::ImportBadValue, format!("the input has no field `{field}`"));
            let hint = match nearest(field, fields.iter().copied()) {
                Some(near) => format!("did you mean `<{near}>`?"),
                None => "fields are written <name> in the input".to_owned(),
            };
            let place = Place::new(from, from + field.len() + 2);
            wrong.push(diagnostic.at(place).label("nothing to put here").hint(hint));
            return None;
        };
        name.push_str(&format!("\\g{{{}}}", at + 1));
        rest = behind;
    }
    name.push_str(rest);
    Some(name)
}

/// The rules as statements; `to` is where results go.
///
/// Carbon sends a window again when late points came. Here a window takes points for one more `FREQUENCY` and is told
/// once; what comes later counts in the oldest window that is open.
pub fn aggregation_statements(rules: &[AggregationRule], to: &To) -> Vec<Statement> {
    let statement = |rule: &AggregationRule| {
        Statement::Aggregate(AggregateStatement {
            expressions: vec![ExpressionPlan::from(&*rule.input)],
            rollup: RollupPlan {
                every_s: rule.frequency_s,
                expire_s: rule.frequency_s * 2,
                stamp: Stamp::Start,
                computes: vec![ComputePlan { compute: rule.method, name: rule.output.clone() }],
                late: Late::Oldest,
            },
            to: to.clone(),
            stop: false,
        })
    };
    rules.iter().map(statement).collect()
}
