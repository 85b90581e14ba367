//! `rules` of a relay: routes, rewrites and aggregation rules in one order.
//!
//! A rule with `into` is a rewrite, a rule with `compute` is an aggregation rule, any other rule is a route. Options of
//! another kind are errors: a rule with `into` and `to` should be two rules. Not here: whether expressions can be
//! compiled (the router checks this for `verdict`).

use process::aggregation_rules::{AggregationRulePlan, Compute, ComputePlan, Late, Stamp};
use process::relay::{AggregateStatement, ExpressionPlan, MatchPlan, RewritePlan, Statement, ValidatePlan};

use super::names::Names;
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::native::fields::Fields;
use crate::native::value;
use crate::options::table::relay::RuleOptions;

/// Matches every name.
const EVERYTHING: &str = "*";

/// Options of each kind of rule, in addition to `match` and `ignore_case`.
const ROUTE: (&str, &[&str]) = ("a route", &["to", "stop", "unless", "validate", "on_invalid", "key"]);
const REWRITE: (&str, &[&str]) = ("a rewrite", &["into", "all"]);
const AGGREGATION: (&str, &[&str]) = (
    "an aggregation rule",
    &["to", "stop", "compute", "every", "expire", "stamp", "late", "exact", "replaces"],
);

/// Statements in the order of the file.
pub(super) fn read(fields: &Fields, names: &mut Names, wrong: &mut Vec<Diagnostic>) -> Vec<Statement> {
    let rules = fields.tables("rules").iter();
    rules.map(|fields| Rule { fields, options: fields.read() }.statement(names, wrong)).collect()
}

struct Rule<'a> {
    fields: &'a Fields,
    options: RuleOptions,
}

impl Rule<'_> {
    fn has(&self, key: &str) -> bool {
        self.fields.place_of(key).is_some()
    }

    /// An error in an option, or in the rule.
    fn mistake(&self, key: &str, code: Code, message: String, label: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.fields.at(key)).label(label)
    }

    fn statement(self, names: &mut Names, wrong: &mut Vec<Diagnostic>) -> Statement {
        let kind = match (self.has("into"), self.has("compute")) {
            (true, _) => REWRITE,
            (false, true) => AGGREGATION,
            (false, false) => ROUTE,
        };
        self.other_kinds(kind, wrong);
        let expressions = self.expressions(kind, wrong);
        if kind == REWRITE {
            Statement::Rewrite(self.rewrite(expressions, wrong))
        } else if kind == AGGREGATION {
            let aggregation_rule = self.aggregation_rule(wrong);
            let (to, RuleOptions { stop, replaces, .. }) = (names.to(self.fields, wrong), self.options);
            Statement::Aggregate(AggregateStatement { expressions, aggregation_rule, to, stop, replaces })
        } else {
            Statement::Match(self.route(expressions, names, wrong))
        }
    }

    /// Reports options of another kind of rule.
    fn other_kinds(&self, kind: (&str, &[&str]), wrong: &mut Vec<Diagnostic>) {
        for (other, keys) in [ROUTE, REWRITE, AGGREGATION] {
            for key in keys.iter().filter(|key| !kind.1.contains(key)) {
                // An option of two other kinds is reported once.
                let is_reported = other == AGGREGATION.0 && ROUTE.1.contains(key);
                let Some(place) = self.fields.place_of(key).filter(|_| !is_reported) else { continue };
                let message = format!("{} is {}, and `{key}` belongs to {other}", self.fields.whose, kind.0);
                let hint = match (kind == ROUTE, other == AGGREGATION.0) {
                    (true, true) => "add `compute` to make it an aggregation rule, or remove the option",
                    (true, false) => "add `into` to make it a rewrite, or remove the option",
                    _ => "write it as a rule of its own, above or below",
                };
                wrong.push(Diagnostic::error(Code::BadRule, message).at(place).label("not here").hint(hint));
            }
        }
    }

    /// The expressions; empty for a route of all names.
    fn expressions(&self, kind: (&str, &[&str]), wrong: &mut Vec<Diagnostic>) -> Vec<ExpressionPlan> {
        let needed = kind != ROUTE;
        if needed && !self.has("match") {
            let message = format!("{} needs `match`", self.fields.whose);
            let label = format!("{} says which names it is for", kind.0);
            wrong.push(self.mistake("match", Code::MissingKey, message, label));
        }
        let hint = if needed { "write an expression" } else { "leave `match` out for every name" };
        self.check_expressions("match", hint, "`*` is every name", wrong);
        if !needed && matches!(&*self.options.expressions, [text] if text == EVERYTHING) {
            return Vec::new();
        }
        let text = |text: &String| if text == EVERYTHING { "^".to_owned() } else { text.clone() };
        self.plans(self.options.expressions.iter().map(text))
    }

    fn plans(&self, texts: impl Iterator<Item = String>) -> Vec<ExpressionPlan> {
        texts.map(|text| ExpressionPlan { text, ignore_case: self.options.ignore_case }).collect()
    }

    /// Reports a list without expressions, and an empty expression.
    fn check_expressions(&self, key: &str, no_hint: &str, empty_hint: &str, wrong: &mut Vec<Diagnostic>) {
        let texts = self.fields.texts(key);
        if self.fields.other(key).is_some() && texts.is_empty() {
            wrong.push(value::empty(key, self.fields.at(key)).hint(no_hint));
        }
        if let Some((_, place)) = texts.iter().find(|(text, _)| text.is_empty()) {
            let message = format!("{} has an empty expression", self.fields.whose);
            let mistake = Diagnostic::error(Code::BadPattern, message).at(*place);
            wrong.push(mistake.label("this is empty").hint(empty_hint));
        }
    }

    fn route(
        self,
        expressions: Vec<ExpressionPlan>,
        names: &mut Names,
        wrong: &mut Vec<Diagnostic>,
    ) -> MatchPlan {
        self.check_expressions(
            "unless",
            "remove it to exclude no name",
            "it would exclude every name",
            wrong,
        );
        if !self.has("validate") {
            let message = format!("`on_invalid` of {} has no effect without `validate`", self.fields.whose);
            self.fields.ignored("on_invalid", message, wrong);
        }
        let unless = self.plans(self.options.unless.iter().cloned());
        let RuleOptions { validate, silent, key, stop, .. } = self.options;
        let validate = validate.map(|text| ValidatePlan {
            expression: ExpressionPlan { text, ignore_case: false },
            log: !silent,
        });
        MatchPlan { expressions, unless, validate, route_using: key, to: names.to(self.fields, wrong), stop }
    }

    fn rewrite(self, mut expressions: Vec<ExpressionPlan>, wrong: &mut Vec<Diagnostic>) -> RewritePlan {
        if expressions.len() > 1 {
            let message = format!("{} rewrites by {} expressions", self.fields.whose, expressions.len());
            let mistake = self.mistake("match", Code::BadRule, message, "a rewrite has one");
            wrong.push(mistake.hint("join them with `|`, or write a rule for each"));
        }
        RewritePlan {
            expression: expressions.pop().unwrap_or_else(|| ExpressionPlan::from("^")),
            into: self.options.into.unwrap_or_default(),
            every_occurrence: self.options.every_occurrence,
        }
    }

    fn aggregation_rule(&self, wrong: &mut Vec<Diagnostic>) -> AggregationRulePlan {
        let every_s = self.seconds("every", self.options.every_ms, wrong);
        let expire_s = self.seconds("expire", self.options.expire_ms, wrong);
        if let (Some(every), Some(expire)) = (every_s, expire_s)
            && expire <= every
        {
            let message = format!("windows of {} expire before they end", self.fields.whose);
            let mistake = self.mistake("expire", Code::OutOfRange, message, "not longer than `every`");
            wrong.push(mistake.hint("points arrive late: use `every` plus some seconds"));
        }
        let RuleOptions { stamp, late, exact, .. } = self.options;
        AggregationRulePlan {
            every_s: every_s.unwrap_or(1),
            expire_s: expire_s.unwrap_or(2),
            stamp: stamp.unwrap_or(Stamp::End),
            computes: self.computes(wrong),
            late: late.unwrap_or(Late::Dropped),
            exact,
        }
    }

    fn seconds(&self, key: &str, ms: Option<u64>, wrong: &mut Vec<Diagnostic>) -> Option<u32> {
        if !self.has(key) {
            let message = format!("{} needs `{key}`", self.fields.whose);
            let label = format!("`{key}` is missing: a duration such as \"60s\"");
            wrong.push(self.mistake(key, Code::MissingKey, message, label));
        }
        if !ms?.is_multiple_of(1000) {
            let message = format!("`{key}` is not a whole number of seconds");
            wrong.push(self.mistake(key, Code::BadValue, message, "points have times in seconds"));
            return None;
        }
        u32::try_from(ms? / 1000).ok()
    }

    fn computes(&self, wrong: &mut Vec<Diagnostic>) -> Vec<ComputePlan> {
        let pairs = &self.options.computes;
        if self.fields.other("compute").is_some() && pairs.is_empty() {
            wrong.push(value::empty("compute", self.fields.at("compute")));
        }
        let mut computes = Vec::with_capacity(pairs.len());
        for ((word, place), name) in pairs {
            let Some(compute) = compute_of(word) else {
                let message = format!("{} has an unknown computation", self.fields.whose);
                let known = WORDS.map(|(word, _)| word);
                let near = nearest(word, known.into_iter()).map(|near| format!("did you mean `{near}`?"));
                let all = || format!("there are {}, p1 to p99, permille_1 to permille_999", known.join(", "));
                let mistake = Diagnostic::error(Code::BadRule, message).at(*place).label("unknown");
                wrong.push(mistake.hint(near.unwrap_or_else(all)));
                continue;
            };
            computes.push(ComputePlan { compute, name: name.clone() });
        }
        computes
    }
}

/// Computations, except for percentiles.
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

/// The meaning of a word in `compute`.
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

/// The word in `compute` for a computation.
pub(super) fn compute_word(compute: Compute) -> String {
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
