//! aggregation-rules.conf: `OUTPUT (FREQUENCY) = METHOD INPUT`.

use std::collections::BTreeMap;

use process::aggregation_rules::{AggregationRulePlan, Compute, ComputePlan, Late, Stamp};
use process::relay::{AggregateStatement, ExpressionPlan, Statement, To};

use super::{RULES_MAX, expression, lines};
use crate::report::{Reports, keyword};
use config::diagnostic::{Code, Diagnostic, Place, has_errors, nearest};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationRule {
    /// Name of the result, in the relay's syntax: `\g{1}` for the first field.
    pub output: String,
    /// Length of a window in seconds.
    pub frequency_s: u32,
    /// The aggregate to compute.
    pub method: Compute,
    /// Input names, as an expression for the whole name.
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
    let mut firsts = BTreeMap::new();
    for (line, start) in lines(text).take(RULES_MAX) {
        let Some(rule) = rule(line, start, &mut wrong) else { continue };
        let form = (rule.method, rule.frequency_s);
        if *firsts.entry(rule.output.clone()).or_insert(form) != form {
            let message = "an earlier rule gives the same name with another method";
            let place = Place::new(start, start + line.len());
            let report = wrong.warning(Code::NotCarriedOver, place, message).label("two results of one name");
            report.hint("use another name: carbon applies the method of the first rule");
        }
        rules.push(rule);
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

fn rule(line: &str, start: usize, wrong: &mut Vec<Diagnostic>) -> Option<AggregationRule> {
    let place = |part: &str| {
        let at = start + (part.as_ptr() as usize - line.as_ptr() as usize);
        Place::new(at, at + part.len())
    };
    let form = "write OUTPUT (SECONDS) = METHOD INPUT";
    let parts = line.split_once('=').and_then(|(left, right)| {
        let ((output, frequency), (method, input)) = (two(left)?, two(right)?);
        Some((output, frequency.trim_start_matches('(').trim_end_matches(')'), method, input))
    });
    let Some((output, frequency, method, input)) = parts else {
        let report = wrong.error(Code::ImportSyntax, place(line), "this line is not an aggregation rule");
        report.label("cannot be parsed").hint(form);
        return None;
    };
    let before = wrong.len();
    let frequency_s = frequency.parse().ok().filter(|seconds| (1..=FREQUENCY_S_MAX).contains(seconds));
    if frequency_s.is_none() {
        let message = format!("`{frequency}` is not a number of seconds");
        wrong.error(Code::ImportBadValue, place(frequency), message).label("from 1 on").hint(form);
    }
    let found = keyword(&METHODS, method, "methods");
    if let Err(hint) = &found {
        let report =
            wrong.error(Code::ImportBadValue, place(method), format!("there is no method `{method}`"));
        report.label("carbon does not know it").hint(hint);
    }
    let mut fields = Vec::new();
    let written = expression_of(input, &mut fields);
    let first = wrong.len();
    let read = expression::read(&written, place(input).start, false, wrong);
    // The places are those in the expression that the pattern was translated to.
    wrong[first..].iter_mut().for_each(|wrong| wrong.place = Some(place(input)));
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("there are two fields <{}>", twice[0]);
        let report = wrong.error(Code::ImportBadValue, place(input), message);
        report.label("carbon does not start with it").hint("give each a name of its own");
    }
    let name = name_of(output, &fields, place(output).start, wrong);
    (!has_errors(&wrong[before..])).then_some(())?;
    Some(AggregationRule { output: name?, frequency_s: frequency_s?, method: found.ok()?, input: read?.text })
}

/// Both words of a text with two words.
fn two(text: &str) -> Option<(&str, &str)> {
    let mut words = text.split_whitespace();
    let both = (words.next()?, words.next()?);
    words.next().is_none().then_some(both)
}

/// Translates an input pattern to an expression; also returns the names of its fields with the numbers of their groups.
fn expression_of<'a>(input: &'a str, fields: &mut Vec<(&'a str, usize)>) -> String {
    let mut groups = 0;
    let part = |part: &'a str| {
        for (open, close, group) in [("<<", ">>", "(.+?)"), ("<", ">", "([^.]+?)")] {
            if let Some((before, rest)) = part.split_once(open)
                && let Some((field, behind)) = rest.split_once(close)
            {
                groups += expression::groups_in(before) + 1;
                fields.push((field, groups));
                groups += expression::groups_in(behind);
                return format!("{before}{group}{behind}");
            }
        }
        groups += expression::groups_in(part);
        if part == "*" { "[^.]+".to_owned() } else { part.replace('*', "[^.]*") }
    };
    let parts: Vec<String> = input.split('.').map(part).collect();
    let whole = parts.join("\\.");
    // Carbon anchors the start of every alternative, but the end of the last one only.
    if has_alternatives(&whole) { format!("^(?:{whole}$).*") } else { format!("^{whole}$") }
}

/// Whether there is a `|` outside of all groups.
fn has_alternatives(text: &str) -> bool {
    let (mut depth, mut escaped) = (0, false);
    text.bytes().any(|byte| {
        let plain = !std::mem::take(&mut escaped);
        match byte {
            b'\\' => escaped = plain,
            b'(' if plain => depth += 1,
            b')' if plain => depth -= 1,
            _ => {}
        }
        plain && byte == b'|' && depth == 0
    })
}

/// The name of the result with references in place of its fields.
fn name_of(
    output: &str,
    fields: &[(&str, usize)],
    start: usize,
    wrong: &mut Vec<Diagnostic>,
) -> Option<String> {
    let mut name = String::new();
    let mut rest = output;
    while let Some(open) = rest.find('<') {
        name.push_str(&rest[..open]);
        let Some((field, behind)) = rest[open + 1..].split_once('>') else { break };
        let Some((_, group)) = fields.iter().find(|(known, _)| *known == field) else {
            let from = start + output.len() - rest.len() + open;
            let hint = match nearest(field, fields.iter().map(|(known, _)| *known)) {
                Some(near) => format!("did you mean `<{near}>`?"),
                None => "fields are written <name> in the input".to_owned(),
            };
            let place = Place::new(from, from + field.len() + 2);
            let report =
                wrong.error(Code::ImportBadValue, place, format!("the input has no field `{field}`"));
            report.label("nothing to put here").hint(hint);
            return None;
        };
        name.push_str(&format!("\\g{{{group}}}"));
        rest = behind;
    }
    name.push_str(rest);
    Some(name)
}

/// The rules as statements; results go to `to`.
///
/// Rules with the same result name become one statement, as carbon has one buffer per name. Carbon sends a window again
/// when late points come. Here a window accepts points for one more `FREQUENCY` and is sent once; later points count in
/// the oldest open window.
pub fn aggregation_statements(rules: &[AggregationRule], to: &To) -> Vec<Statement> {
    let mut statements: Vec<AggregateStatement> = Vec::new();
    let mut of_result: BTreeMap<(&str, u32), Vec<usize>> = BTreeMap::new();
    for rule in rules {
        let aggregation_rule = AggregationRulePlan {
            every_s: rule.frequency_s,
            expire_s: rule.frequency_s * 2,
            stamp: Stamp::Start,
            computes: vec![ComputePlan { compute: rule.method, name: rule.output.clone() }],
            late: Late::Oldest,
            exact: true,
        };
        let expression = ExpressionPlan::from(&*rule.input);
        // One for each method at most.
        let alike = of_result.entry((&rule.output, rule.frequency_s)).or_default();
        match alike.iter().find(|at| statements[**at].aggregation_rule == aggregation_rule) {
            Some(at) => statements[*at].expressions.push(expression),
            None => {
                alike.push(statements.len());
                statements.push(AggregateStatement {
                    expressions: vec![expression],
                    aggregation_rule,
                    to: to.clone(),
                    stop: false,
                    replaces: true,
                });
            }
        }
    }
    statements.into_iter().map(Statement::Aggregate).collect()
}
