//! `rules` of a relay: routes, rewrites and aggregation rules in their one order.
//!
//! A rule is a rewrite when it has `into`, an aggregation rule when it has `compute`, otherwise a route. Options of another kind are
//! mistakes: whoever writes `into` and `to` in one rule means two.
//! Not here: whether expressions can be compiled (`verdict` asks the router).

use process::aggregation_rules::{AggregationRulePlan, Compute, ComputePlan, Late, Stamp};
use process::relay::{
    AggregateStatement, ExpressionPlan, MatchPlan, RewritePlan, STATEMENTS_MAX, Statement, ValidatePlan,
};

use super::Names;
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::native::fields::{Fields, table};
use crate::native::tree::Value;
use crate::native::value::{self, Checked};
use crate::options::Section;
use crate::options::table::relay::AGGREGATION_RULE;

/// What matches every name.
const EVERYTHING: &str = "*";

/// Where a rule stands in the file.
pub(super) struct RulePlaces {
    pub(super) rule: Place,
    /// Of each expression, with its text.
    pub(super) expressions: Vec<Place>,
    /// Likewise those of `unless`.
    pub(super) unless: Vec<Place>,
    pub(super) validate: Option<Place>,
}

/// Options that each kind of rule has beside `match` and `ignore_case`.
const ROUTE: (&str, &[&str]) = ("a route", &["to", "stop", "unless", "validate", "on_invalid", "key"]);
const REWRITE: (&str, &[&str]) = ("a rewrite", &["into", "all"]);
const ROLLUP: (&str, &[&str]) = (
    "an aggregation rule",
    &["to", "stop", "compute", "every", "expire", "stamp", "late", "exact", "replaces"],
);

/// Statements in the order of the file, and where they stand.
pub(super) fn read(
    whose: &str,
    fields: &Fields,
    names: &mut Names,
    wrong: &mut Vec<Diagnostic>,
) -> (Vec<Statement>, Vec<RulePlaces>) {
    let (mut statements, mut places) = (Vec::new(), Vec::new());
    let Some(node) = fields.node("rules") else { return (statements, places) };
    let Value::List(list) = &node.value else {
        wrong.push(value::wrong_type("rules", "a list of tables", &node.value).at(node.place));
        return (statements, places);
    };
    if list.len() > STATEMENTS_MAX {
        let message = format!("{whose} has {} rules", list.len());
        let label = format!("at most {STATEMENTS_MAX}");
        wrong.push(Diagnostic::error(Code::TooMany, message).at(node.place).label(label));
        return (statements, places);
    }
    for (at, each) in list.iter().enumerate() {
        let whose = format!("rule {} of {whose}", at + 1);
        let Some(entries) = table("rules", each, wrong) else { continue };
        // The brackets of a table's header say little: what the rule is about stands in its first line.
        let place = entries.first().map_or(each.place, |entry| entry.key_place);
        let fields = Fields::read(Section::RelayRule, &whose, place, entries, wrong);
        let (statement, at) = Rule { whose: &whose, fields: &fields }.statement(names, wrong);
        statements.push(statement);
        places.push(at);
    }
    (statements, places)
}

struct Rule<'a> {
    whose: &'a str,
    fields: &'a Fields<'a>,
}

impl Rule<'_> {
    fn has(&self, key: &str) -> bool {
        self.fields.place_of(key).is_some()
    }

    fn statement(&self, names: &mut Names, wrong: &mut Vec<Diagnostic>) -> (Statement, RulePlaces) {
        let fields = self.fields;
        let kind = match (self.has("into"), self.has("compute")) {
            (true, _) => REWRITE,
            (false, true) => ROLLUP,
            (false, false) => ROUTE,
        };
        self.other_kinds(kind, wrong);
        let (expressions, places) = self.expressions(kind, wrong);
        let mut at =
            RulePlaces { rule: fields.place, expressions: places, unless: Vec::new(), validate: None };
        let statement = if kind == REWRITE {
            Statement::Rewrite(self.rewrite(expressions, wrong))
        } else if kind == ROLLUP {
            let (aggregation_rule, to) = (self.aggregation_rule(wrong), names.to(self.whose, fields, wrong));
            let flag = |key| fields.value(key).unwrap_or_default();
            let (stop, replaces) = (flag("stop"), flag("replaces"));
            Statement::Aggregate(AggregateStatement { expressions, aggregation_rule, to, stop, replaces })
        } else {
            at.validate = fields.place_of("validate");
            let (unless, places) = self.unless(wrong);
            at.unless = places;
            Statement::Match(MatchPlan { unless, ..self.route(expressions, names, wrong) })
        };
        (statement, at)
    }

    /// Tells of options that belong to another kind of rule.
    fn other_kinds(&self, kind: (&str, &[&str]), wrong: &mut Vec<Diagnostic>) {
        for (other, keys) in [ROUTE, REWRITE, ROLLUP] {
            for key in keys.iter().filter(|key| !kind.1.contains(key)) {
                // An option of two other kinds is told of once.
                let told = other == ROLLUP.0 && ROUTE.1.contains(key);
                let Some(place) = self.fields.place_of(key).filter(|_| !told) else { continue };
                let message = format!("{} is {}, and `{key}` belongs to {other}", self.whose, kind.0);
                let hint = match (kind == ROUTE, other == ROLLUP.0) {
                    (true, true) => "add `compute` to make it an aggregation rule, or remove the option",
                    (true, false) => "add `into` to make it a rewrite, or remove the option",
                    _ => "write it as a rule of its own, above or below",
                };
                wrong.push(Diagnostic::error(Code::BadRule, message).at(place).label("not here").hint(hint));
            }
        }
    }

    /// The expressions; none for a route of every name.
    fn expressions(
        &self,
        kind: (&str, &[&str]),
        wrong: &mut Vec<Diagnostic>,
    ) -> (Vec<ExpressionPlan>, Vec<Place>) {
        let fields = self.fields;
        let ignore_case = fields.value("ignore_case").unwrap_or_default();
        let texts = match fields.other("match") {
            Some(Checked::Texts(texts)) => &texts[..],
            _ => &[],
        };
        let needed = kind != ROUTE;
        if needed && !self.has("match") {
            let message = format!("{} needs `match`", self.whose);
            let label = format!("{} says which names it is for", kind.0);
            wrong.push(Diagnostic::error(Code::MissingKey, message).at(fields.place).label(label));
        } else if let Some(place) = fields.place_of("match")
            && texts.is_empty()
            && fields.other("match").is_some()
        {
            let hint = "leave `match` out for every name";
            wrong.push(value::empty("match", place).hint(if needed { "write an expression" } else { hint }));
        }
        if let Some((_, place)) = texts.iter().find(|(text, _)| text.is_empty()) {
            let message = format!("{} has an empty expression", self.whose);
            let diagnostic = Diagnostic::error(Code::BadPattern, message).at(*place).label("this is empty");
            wrong.push(diagnostic.hint("`*` is every name"));
        }
        let places = texts.iter().map(|(_, place)| *place).collect();
        if let ([(text, _)], false) = (texts, needed)
            && text == EVERYTHING
        {
            return (Vec::new(), places);
        }
        let expression = |text: &String| ExpressionPlan {
            text: if text == EVERYTHING { "^".to_owned() } else { text.clone() },
            ignore_case,
        };
        (texts.iter().map(|(text, _)| expression(text)).collect(), places)
    }

    /// The expressions of `unless`.
    fn unless(&self, wrong: &mut Vec<Diagnostic>) -> (Vec<ExpressionPlan>, Vec<Place>) {
        let Some(Checked::Texts(texts)) = self.fields.other("unless") else { return Default::default() };
        if texts.is_empty() {
            let place = self.fields.at("unless");
            wrong.push(value::empty("unless", place).hint("remove it to exclude no name"));
        }
        if let Some((_, place)) = texts.iter().find(|(text, _)| text.is_empty()) {
            let message = format!("{} has an empty expression", self.whose);
            let diagnostic = Diagnostic::error(Code::BadPattern, message).at(*place).label("this is empty");
            wrong.push(diagnostic.hint("it would exclude every name"));
        }
        let ignore_case = self.fields.value("ignore_case").unwrap_or_default();
        let expression = |text: &String| ExpressionPlan { text: text.clone(), ignore_case };
        let plans = texts.iter().map(|(text, _)| expression(text)).collect();
        (plans, texts.iter().map(|(_, place)| *place).collect())
    }

    fn route(
        &self,
        expressions: Vec<ExpressionPlan>,
        names: &mut Names,
        wrong: &mut Vec<Diagnostic>,
    ) -> MatchPlan {
        let fields = self.fields;
        let validate = fields.value("validate").map(|text| ValidatePlan {
            expression: ExpressionPlan { text, ignore_case: false },
            log: fields.word("on_invalid") != Some("drop"),
        });
        if !self.has("validate") {
            let message = format!("`on_invalid` of {} has no effect without `validate`", self.whose);
            fields.ignored("on_invalid", message, wrong);
        }
        MatchPlan {
            expressions,
            unless: Vec::new(),
            validate,
            route_using: fields.value("key"),
            to: names.to(self.whose, fields, wrong),
            stop: fields.value("stop").unwrap_or_default(),
        }
    }

    fn rewrite(&self, mut expressions: Vec<ExpressionPlan>, wrong: &mut Vec<Diagnostic>) -> RewritePlan {
        if expressions.len() > 1 {
            let message = format!("{} rewrites by {} expressions", self.whose, expressions.len());
            let place = self.fields.at("match");
            let hint = "join them with `|`, or write a rule for each";
            wrong.push(
                Diagnostic::error(Code::BadRule, message).at(place).label("a rewrite has one").hint(hint),
            );
        }
        RewritePlan {
            expression: expressions.pop().unwrap_or_else(|| ExpressionPlan::from("^")),
            into: self.fields.value("into").unwrap_or_default(),
            every_occurrence: self.fields.value("all").unwrap_or_default(),
        }
    }

    fn aggregation_rule(&self, wrong: &mut Vec<Diagnostic>) -> AggregationRulePlan {
        let (every_s, expire_s) = (self.seconds("every", wrong), self.seconds("expire", wrong));
        if let (Some(every), Some(expire)) = (every_s, expire_s)
            && expire <= every
        {
            let message = format!("windows of {} expire before they end", self.whose);
            let place = self.fields.at("expire");
            let label = "not longer than `every`";
            let hint = "points arrive late: use `every` plus some seconds";
            wrong.push(Diagnostic::error(Code::OutOfRange, message).at(place).label(label).hint(hint));
        }
        let mut plan = AggregationRulePlan {
            every_s: every_s.unwrap_or(1),
            expire_s: expire_s.unwrap_or(2),
            stamp: Stamp::End,
            computes: self.computes(wrong),
            late: Late::Dropped,
            exact: false,
        };
        self.fields.fill(&mut plan, &AGGREGATION_RULE);
        plan
    }

    fn seconds(&self, key: &str, wrong: &mut Vec<Diagnostic>) -> Option<u32> {
        if !self.has(key) {
            let message = format!("{} needs `{key}`", self.whose);
            let label = format!("`{key}` is missing: a duration such as \"60s\"");
            self.fields.wrong(key, Code::MissingKey, message, label, wrong);
            return None;
        }
        let ms: u64 = self.fields.value(key)?;
        if !ms.is_multiple_of(1000) {
            let message = format!("`{key}` is not a whole number of seconds");
            self.fields.wrong(key, Code::BadValue, message, "points have times in seconds", wrong);
            return None;
        }
        u32::try_from(ms / 1000).ok()
    }

    fn computes(&self, wrong: &mut Vec<Diagnostic>) -> Vec<ComputePlan> {
        let Some(Checked::Computes(pairs)) = self.fields.other("compute") else { return Vec::new() };
        if pairs.is_empty() {
            wrong.push(value::empty("compute", self.fields.at("compute")));
        }
        let mut computes = Vec::with_capacity(pairs.len());
        for ((word, place), name) in pairs {
            match compute_of(word) {
                Some(compute) => computes.push(ComputePlan { compute, name: name.clone() }),
                None => {
                    let message = format!("{} has an unknown computation", self.whose);
                    let known = WORDS.map(|(word, _)| word);
                    let near = nearest(word, known.into_iter()).map(|near| format!("did you mean `{near}`?"));
                    let all =
                        || format!("there are {}, p1 to p99, permille_1 to permille_999", known.join(", "));
                    let hint = Some(near.unwrap_or_else(all));
                    let label = "unknown";
                    let diagnostic = Diagnostic::error(Code::BadRule, message).at(*place).label(label);
                    wrong.push(Diagnostic { hint, ..diagnostic });
                }
            }
        }
        computes
    }
}

/// What can be computed, but for percentiles.
const WORDS: [(&str, Compute); 8] = [
    ("sum", Compute::Sum),
    ("count", Compute::Count),
    ("max", Compute::Max),
    ("min", Compute::Min),
    ("average", Compute::Average),
    ("median", Compute::Percentile(50)),
    ("variance", Compute::Variance),
    ("stddev", Compute::Stddev),
];

/// What a word of `compute` means.
fn compute_of(word: &str) -> Option<Compute> {
    if let Some((_, compute)) = WORDS.iter().find(|(known, _)| *known == word) {
        return Some(*compute);
    }
    let number = |prefix: &str, most: u16| {
        let digits = word.strip_prefix(prefix)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        digits.parse::<u16>().ok().filter(|number| plain && (1..=most).contains(number))
    };
    match number("p", 99) {
        Some(percent) => Some(Compute::Percentile(percent as u8)),
        None => number("permille_", 999).map(Compute::Interpolated),
    }
}

/// The word of `compute` that means it.
pub(in crate::native) fn compute_word(compute: Compute) -> String {
    match (compute, WORDS.iter().find(|(_, known)| *known == compute)) {
        (_, Some((word, _))) => (*word).to_owned(),
        (Compute::Interpolated(permille), None) => format!("permille_{permille}"),
        (Compute::Percentile(percent), None) => format!("p{percent}"),
        (
            Compute::Sum
            | Compute::Count
            | Compute::Max
            | Compute::Min
            | Compute::Average
            | Compute::Variance
            | Compute::Stddev,
            None,
        ) => String::new(),
    }
}
