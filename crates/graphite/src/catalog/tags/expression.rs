//! Expressions over tags: `tag=v`, `tag!=v`, `tag=~re`, `tag!=~re`.
//!
//! A series without the tag has the empty value. Regular expressions take time linear in the value and have bounded
//! memory. They must match at the start of the value, not up to its end; one that begins with `^` is used as it is.

use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input, MatchKind};

use crate::python_regex::{Names, Options, RegexFault, compile};

/// Longest expression in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 16 * 1024;
/// Most expressions of one query.
pub const EXPRESSIONS_MAX: usize = 64;
/// Most memory of a compiled regular expression.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Most memory of all compiled regular expressions of a query.
pub const ALL_COMPILED_BYTES_MAX: usize = 8 << 20;
/// Memory of the states that a search makes on the way.
const CACHE_BYTES_MAX: usize = 256 * 1024;

/// Why an expression or a query of expressions is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadExpression {
    /// Not of the form of an expression.
    Form(String),
    /// Longer than [`EXPRESSION_BYTES_MAX`].
    TooLong,
    /// More than [`EXPRESSIONS_MAX`].
    TooMany,
    /// A regular expression that cannot be compiled, with the reason.
    Regex(String, RegexFault),
    /// The regular expressions need more than [`ALL_COMPILED_BYTES_MAX`] together.
    AllTooLarge,
    /// Every expression accepts series without its tag.
    AllAcceptEmpty,
    /// No expression at all.
    None,
}

impl fmt::Display for BadExpression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadExpression::Form(text) => write!(to, "Invalid tagspec {text}"),
            BadExpression::TooLong => write!(to, "Invalid tagspec: longer than {EXPRESSION_BYTES_MAX} bytes"),
            BadExpression::TooMany => write!(to, "More than {EXPRESSIONS_MAX} tag expressions"),
            BadExpression::Regex(text, why) => write!(to, "Invalid tagspec {text}: {why}"),
            BadExpression::AllTooLarge => {
                let max = ALL_COMPILED_BYTES_MAX >> 20;
                write!(to, "The regular expressions need more than {max} MiB once they are compiled")
            }
            BadExpression::AllAcceptEmpty => {
                to.write_str("At least one tagspec must not match the empty string")
            }
            BadExpression::None => to.write_str("no tag expressions specified"),
        }
    }
}

impl std::error::Error for BadExpression {}

/// A regular expression over values and tags, which matches at their start.
#[derive(Clone, Debug)]
pub struct Filter {
    regex: Regex,
    anchored: Anchored,
    /// Cost of a byte, in quarters of a step.
    weight: u64,
}

impl Filter {
    /// Compiles it: bytes of UTF-8, case-sensitive.
    ///
    /// # Errors
    /// [`BadExpression::Regex`] when it is invalid or too large.
    pub fn new(text: &str) -> Result<Filter, BadExpression> {
        let options = Options {
            names: Names::UncheckedText,
            match_kind: MatchKind::LeftmostFirst,
            pattern_bytes_max: EXPRESSION_BYTES_MAX,
            compiled_bytes_max: COMPILED_BYTES_MAX,
            cache_bytes_max: CACHE_BYTES_MAX,
        };
        let regex = compile(&[text], options).map_err(|error| match error.fault {
            RegexFault::TooLong(_) => BadExpression::TooLong,
            fault => BadExpression::Regex(text.to_owned(), fault),
        })?;
        let anchored = if text.starts_with('^') { Anchored::No } else { Anchored::Yes };
        let weight = 1 + text.len() as u64 / 16 + regex.memory_usage() as u64 / 16_384;
        Ok(Filter { regex, anchored, weight })
    }

    /// True when it matches at the start of the text.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.regex.is_match(Input::new(text).anchored(self.anchored))
    }

    fn memory(&self) -> usize {
        self.regex.memory_usage()
    }

    /// Steps that a match costs.
    pub(super) fn cost(&self, text: &[u8]) -> u64 {
        1 + text.len() as u64 * self.weight / 4
    }
}

#[derive(Clone, Debug)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Match(Filter),
    NotMatch(Filter),
}

/// One expression.
#[derive(Clone, Debug)]
pub struct Expression {
    pub(super) tag: Box<[u8]>,
    pub(super) operator: Operator,
    pub(super) value: Box<[u8]>,
    pub(super) accepts_empty: bool,
}

impl Expression {
    /// Parses an expression: a tag without `;`, `!` and `=`, an operator, a value without `;`.
    ///
    /// # Errors
    /// [`BadExpression`] with the reason.
    pub fn parse(text: &[u8]) -> Result<Expression, BadExpression> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(BadExpression::TooLong);
        }
        let bad = || BadExpression::Form(String::from_utf8_lossy(text).into_owned());
        let at = text.iter().position(|byte| b";!=".contains(byte)).filter(|at| *at > 0).ok_or_else(bad)?;
        let (tag, rest) = text.split_at(at);
        let (negated, rest) = match rest.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let rest = rest.strip_prefix(b"=").ok_or_else(bad)?;
        let (is_regex, value) = match rest.strip_prefix(b"~") {
            Some(value) => (true, value),
            None => (false, rest),
        };
        if value.contains(&b';') {
            return Err(bad());
        }
        let operator = match (is_regex, negated) {
            (false, false) => Operator::Equal,
            (false, true) => Operator::NotEqual,
            (true, negated) => {
                let filter = Filter::new(std::str::from_utf8(value).map_err(|_| bad())?)?;
                if negated { Operator::NotMatch(filter) } else { Operator::Match(filter) }
            }
        };
        let mut expression =
            Expression { tag: tag.into(), operator, value: value.into(), accepts_empty: false };
        expression.accepts_empty = expression.accepts(b"");
        Ok(expression)
    }

    /// The tag.
    pub fn tag(&self) -> &[u8] {
        &self.tag
    }

    /// True when a series with this value of the tag is accepted; the empty value is that of a series without it.
    pub fn accepts(&self, value: &[u8]) -> bool {
        match &self.operator {
            Operator::Equal => *self.value == *value,
            Operator::NotEqual => *self.value != *value,
            Operator::Match(filter) => filter.matches(value),
            Operator::NotMatch(filter) => !filter.matches(value),
        }
    }

    /// Bytes of its compiled regular expression.
    fn memory(&self) -> usize {
        match &self.operator {
            Operator::Equal | Operator::NotEqual => 0,
            Operator::Match(filter) | Operator::NotMatch(filter) => filter.memory(),
        }
    }

    /// Steps that [`Expression::accepts`] costs.
    pub(super) fn cost(&self, value: &[u8]) -> u64 {
        match &self.operator {
            Operator::Equal | Operator::NotEqual => 1,
            Operator::Match(filter) | Operator::NotMatch(filter) => filter.cost(value),
        }
    }
}

/// Expressions that a series must all satisfy; at least one refuses the empty value.
#[derive(Clone, Debug)]
pub struct Expressions(Vec<Expression>);

impl Expressions {
    /// Parses the expressions of a query.
    ///
    /// # Errors
    /// [`BadExpression`] of the first bad one, or of all together.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Result<Expressions, BadExpression> {
        let mut all = Vec::new();
        for text in texts {
            if all.len() == EXPRESSIONS_MAX {
                return Err(BadExpression::TooMany);
            }
            all.push(Expression::parse(text)?);
            limit_memory(&all)?;
        }
        Expressions::new(all)
    }

    /// The same of expressions that are parsed.
    ///
    /// # Errors
    /// [`BadExpression`]: there are none or too many, they are too large, or all accept the empty value.
    pub fn new(all: Vec<Expression>) -> Result<Expressions, BadExpression> {
        limit_memory(&all)?;
        if all.is_empty() {
            Err(BadExpression::None)
        } else if all.len() > EXPRESSIONS_MAX {
            Err(BadExpression::TooMany)
        } else if all.iter().all(|expression| expression.accepts_empty) {
            Err(BadExpression::AllAcceptEmpty)
        } else {
            Ok(Expressions(all))
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    pub(super) fn as_slice(&self) -> &[Expression] {
        &self.0
    }
}

/// The memory of all compiled expressions is limited, because each may need [`COMPILED_BYTES_MAX`].
fn limit_memory(all: &[Expression]) -> Result<(), BadExpression> {
    let memory: usize = all.iter().map(Expression::memory).sum();
    if memory > ALL_COMPILED_BYTES_MAX { Err(BadExpression::AllTooLarge) } else { Ok(()) }
}

#[test]
fn expressions_accept_values_as_their_operators_say() {
    // (expression, values that it accepts, values that it does not; `-` is the empty value)
    let table = [
        ("a=b", "b", "- c bb"),
        ("a=", "-", "b"),
        ("a!=b", "- c bb", "b"),
        ("a!=", "b", "-"),
        ("a=~b", "b bc", "- ab"),
        ("a=~b$", "b", "bc"),
        ("a=~.*", "- b", ""),
        ("a=~", "- b", ""),
        ("a=~^b|c", "b xc", "a"),
        ("a=~b|c", "b c cx", "xc"),
        ("a=~(b|c)$", "b c", "cx"),
        ("a!=~b", "- ab", "b bc"),
        ("a!=~^$", "b", "-"),
        (r"a=~\d+$", "12", "- x"),
        ("a=~é.$", "éü", "é"),
        ("a=~B", "B", "b"),
        ("a=b=c", "b=c", "b"),
        ("a=~(?i)B", "b B", "c"),
        (r"a=~\w{10}$", "ééééééüüüü", "é"),
        (r"a=~\07$", "\u{7}", "7"),
        ("a=~[a[]+$", "a[", "b"),
    ];
    for (text, good, bad) in table {
        let expression = Expression::parse(text.as_bytes()).expect(text);
        let value = |text: &str| if text == "-" { Vec::new() } else { text.as_bytes().to_vec() };
        for text in good.split(' ') {
            assert!(expression.accepts(&value(text)), "{:?} accepts {text}", expression.value);
        }
        for text in bad.split(' ').filter(|text| !text.is_empty()) {
            assert!(!expression.accepts(&value(text)), "{:?} refuses {text}", expression.value);
        }
        assert_eq!(expression.accepts_empty, good.split(' ').any(|text| text == "-"), "{text}");
    }
}

#[test]
fn invalid_expressions_have_graphite_webs_messages() {
    for text in ["", "a", "=b", "!=b", "a!b", "a;b=c", "a=b;c", "a!~b"] {
        let error = Expression::parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.to_string(), format!("Invalid tagspec {text}"));
    }
    for text in ["a=~(", "a=~[b", "a=~(?P<n>b)(?P=n)", r"a=~(b)\1", "a=~a++", "a=~(((a{100}){100}){100})"] {
        assert!(matches!(Expression::parse(text.as_bytes()), Err(BadExpression::Regex(..))), "{text}");
    }
    let long = |len: usize| Expression::parse(format!("a={}", "b".repeat(len - 2)).as_bytes());
    assert!(long(EXPRESSION_BYTES_MAX).is_ok());
    assert_eq!(long(EXPRESSION_BYTES_MAX + 1).err(), Some(BadExpression::TooLong));
    let parse = |texts: &[&str]| Expressions::parse(texts.iter().map(|text| text.as_bytes())).err();
    assert_eq!(parse(&[]), Some(BadExpression::None));
    assert_eq!(parse(&["a!=b", "c=~.*"]), Some(BadExpression::AllAcceptEmpty));
    assert_eq!(parse(&["a!=b", "c=d"]), None);
    assert_eq!(
        (parse(&["a=b"; EXPRESSIONS_MAX]), parse(&["a=b"; EXPRESSIONS_MAX + 1])),
        (None, Some(BadExpression::TooMany))
    );
    // Each is within its limit.
    let large = r"a=~\w{12}";
    let memory = Expression::parse(large.as_bytes()).expect("within the limit").memory();
    let many = |count: usize| Expressions::parse(vec![large.as_bytes(); count]).err();
    assert_eq!(many(ALL_COMPILED_BYTES_MAX / memory), None, "{memory} bytes each");
    assert_eq!(
        many(ALL_COMPILED_BYTES_MAX / memory + 1),
        Some(BadExpression::AllTooLarge),
        "{memory} bytes each"
    );
}
