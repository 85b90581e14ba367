//! Tokens to a tree (spec riemann §5.2), with upstream's error messages where the spec binds them (§5.4).
//!
//! A text that upstream rejects is read once more with operators that need no spaces around them (§17.17).

use std::sync::Arc;

use num_bigint::BigInt;

use super::error::QueryError;
use super::limits::{DEPTH_MAX, DIGITS_MAX, PATTERNS_MAX, QUERY_BYTES_MAX};
use super::pattern::Pattern;
use super::quoted::unquoted;
use super::token::{Kind, Spacing, Token, next, shown};
use super::tree::{Comparison, Operand, Tree};
use crate::number::Number;
use crate::value::Value;

/// The tree of a text (`riemann.query/ast`).
///
/// # Errors
/// The text is not a query, or beyond the limits.
pub fn ast(text: &str) -> Result<Tree, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("the query has {} bytes; at most {QUERY_BYTES_MAX}", text.len());
        return Err(QueryError::new(0, message));
    }
    let strict = Parser::read(text, Spacing::Required);
    let is_sure = strict.as_ref().is_ok_and(|(_, names_operator)| !names_operator);
    if !is_sure && let Ok((tree, _)) = Parser::read(text, Spacing::Optional) {
        return Ok(tree);
    }
    strict.map(|(tree, _)| tree)
}

/// What a predicate may begin with.
const PREDICATE: &[Kind] = &[
    Kind::Not,
    Kind::Open,
    Kind::Tagged,
    Kind::String,
    Kind::Float,
    Kind::Long,
    Kind::BigInt,
    Kind::Nil,
    Kind::True,
    Kind::False,
    Kind::Name,
];

/// What both sides of a comparison may be.
const VALUE: &[Kind] =
    &[Kind::String, Kind::Float, Kind::Long, Kind::BigInt, Kind::Nil, Kind::True, Kind::False, Kind::Name];

const NUMBER: &[Kind] = &[Kind::Float, Kind::Long, Kind::BigInt];

struct Parser<'t> {
    text: &'t str,
    spacing: Spacing,
    token: Token,
    /// Open parentheses and `not`s.
    depth: usize,
    patterns: usize,
    /// A field with an operator in its name is a whole predicate (`metric>5`), which is more likely a comparison.
    names_operator: bool,
}

impl<'t> Parser<'t> {
    /// The whole text as a tree, and `names_operator`.
    fn read(text: &'t str, spacing: Spacing) -> Result<(Tree, bool), QueryError> {
        let token = next(text, 0, spacing)?;
        let mut parser = Parser { text, spacing, token, depth: 0, patterns: 0, names_operator: false };
        let tree = parser.any_of()?;
        match parser.token.kind {
            Kind::End => Ok((tree, parser.names_operator)),
            _ => Err(parser.mismatch(&[Kind::End, Kind::And, Kind::Or])),
        }
    }

    fn any_of(&mut self) -> Result<Tree, QueryError> {
        let mut parts = vec![self.all_of()?];
        while self.take(Kind::Or)? {
            parts.push(self.all_of()?);
        }
        Ok(Tree::or(parts))
    }

    fn all_of(&mut self) -> Result<Tree, QueryError> {
        let mut parts = vec![self.negated()?];
        while self.take(Kind::And)? {
            parts.push(self.negated()?);
        }
        Ok(Tree::and(parts))
    }

    fn negated(&mut self) -> Result<Tree, QueryError> {
        match self.token.kind {
            Kind::Not => self.deeper(|parser| {
                parser.bump()?;
                Ok(Tree::Not(Box::new(parser.negated()?)))
            }),
            Kind::Open => self.deeper(|parser| {
                parser.bump()?;
                let inner = parser.any_of()?;
                if !parser.take(Kind::Close)? {
                    return Err(parser.mismatch(&[Kind::And, Kind::Or, Kind::Close]));
                }
                Ok(inner)
            }),
            Kind::Tagged => {
                self.bump()?;
                Ok(Tree::Tagged(self.string()?.into()))
            }
            _ => self.simple(),
        }
    }

    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Tree, QueryError>,
    ) -> Result<Tree, QueryError> {
        if self.depth == DEPTH_MAX {
            let message = format!("nested too deep: at most {DEPTH_MAX} parentheses and `not`");
            return Err(QueryError::new(self.token.start, message));
        }
        self.depth += 1;
        let tree = inner(self);
        self.depth -= 1;
        tree
    }

    /// A comparison, or a value alone.
    fn simple(&mut self) -> Result<Tree, QueryError> {
        let left = self.value(PREDICATE)?;
        let operator = self.token.kind;
        let comparison = match operator {
            Kind::Equal | Kind::NotEqual | Kind::Like | Kind::Matches => None,
            Kind::Less => Some(Comparison::Less),
            Kind::Greater => Some(Comparison::Greater),
            Kind::LessOrEqual => Some(Comparison::LessOrEqual),
            Kind::GreaterOrEqual => Some(Comparison::GreaterOrEqual),
            _ => {
                self.names_operator |=
                    matches!(&left, Operand::Field(name) if name.contains(['=', '<', '>']));
                return Ok(Tree::Value(left));
            }
        };
        self.bump()?;
        if let Some(comparison) = comparison {
            return Ok(Tree::Compare(comparison, left, self.value(NUMBER)?));
        }
        match operator {
            Kind::Equal => Ok(Tree::Equal(left, self.value(VALUE)?)),
            Kind::NotEqual => Ok(Tree::NotEqual(left, self.value(VALUE)?)),
            Kind::Like => Ok(Tree::Like(self.string()?.into(), left)),
            _ => Ok(Tree::Regex(self.pattern()?, left)),
        }
    }

    /// A value of one of these kinds. `expected` also has what else could stand here, for the message.
    fn value(&mut self, expected: &[Kind]) -> Result<Operand, QueryError> {
        let token = self.token;
        let text = &self.text[token.start..token.end];
        let literal = match token.kind {
            kind if !expected.contains(&kind) => return Err(self.mismatch(expected)),
            Kind::Name => {
                self.bump()?;
                return Ok(Operand::field(text));
            }
            Kind::String => Value::Text(unquoted(text, token.start)?.into()),
            Kind::Nil => Value::Nil,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Float | Kind::Long | Kind::BigInt => Value::Number(
                number(token.kind, text).map_err(|message| QueryError::new(token.start, message))?,
            ),
            _ => return Err(self.mismatch(expected)),
        };
        self.bump()?;
        Ok(Operand::Literal(literal))
    }

    fn string(&mut self) -> Result<String, QueryError> {
        let Token { kind, start, end } = self.token;
        if kind != Kind::String {
            return Err(self.mismatch(&[Kind::String]));
        }
        let text = unquoted(&self.text[start..end], start)?;
        self.bump()?;
        Ok(text)
    }

    fn pattern(&mut self) -> Result<Arc<Pattern>, QueryError> {
        let at = self.token.start;
        let text = self.string()?;
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(QueryError::new(at, format!("more than {PATTERNS_MAX} regular expressions")));
        }
        match Pattern::new(&text) {
            Ok(pattern) => Ok(Arc::new(pattern)),
            Err(error) => Err(QueryError::new(at, error.to_string())),
        }
    }

    fn take(&mut self, kind: Kind) -> Result<bool, QueryError> {
        let is_next = self.token.kind == kind;
        if is_next {
            self.bump()?;
        }
        Ok(is_next)
    }

    fn bump(&mut self) -> Result<(), QueryError> {
        self.token = next(self.text, self.token.end, self.spacing)?;
        Ok(())
    }

    /// Upstream's sentence for a token that does not fit.
    fn mismatch(&self, expected: &[Kind]) -> QueryError {
        let Token { kind, start, end } = self.token;
        let found = match kind {
            Kind::End => Kind::End.label().to_owned(),
            _ => shown(&self.text[start..], end - start),
        };
        let labels: Vec<&str> = expected.iter().map(|kind| kind.label()).collect();
        let list = match labels[..] {
            [one] => one.to_owned(),
            _ => format!("{{{}}}", labels.join(", ")),
        };
        QueryError::new(start, format!("mismatched input '{found}' expecting {list}"))
    }
}

/// The value of a number's token.
fn number(kind: Kind, text: &str) -> Result<Number, String> {
    let not_a_number = || format!("For input string: \"{}\"", shown(text, text.len()));
    match kind {
        Kind::Float if text.ends_with("NaN") => Ok(Number::Double(f64::NAN)),
        Kind::Float => text.parse().map(Number::Double).map_err(|_| not_a_number()),
        Kind::BigInt if text.len() > DIGITS_MAX => Err(format!("more than {DIGITS_MAX} digits")),
        Kind::BigInt => {
            let digits: BigInt = text[..text.len() - 1].parse().map_err(|_| not_a_number())?;
            Ok(Number::Big(Arc::new(digits)))
        }
        // With the suffix `l` upstream's conversion fails, too.
        _ => text.parse().map(Number::Int).map_err(|_| not_a_number()),
    }
}
