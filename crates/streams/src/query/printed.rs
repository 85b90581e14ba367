//! Prints a tree, as lists and as the text of a query.

use std::fmt::{self, Display, Formatter, Write};

use super::quoted::write_quoted;
use super::tree::{Operand, Tree};
use crate::number::Number;
use crate::value::Value;

/// The list form (spec riemann §5.5). `and` and `or` have two parts each, as upstream's parser makes them.
impl Display for Tree {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Value(value) => write_operand(value, Style::List, out),
            Tree::Equal(a, b) => call("=", a, b, out),
            Tree::NotEqual(a, b) => call("not=", a, b, out),
            Tree::Compare(comparison, a, b) => call(comparison.name(), a, b, out),
            Tree::Like(pattern, of) => {
                out.write_str("(:like ")?;
                write_quoted(pattern, out)?;
                end_of_call(of, out)
            }
            Tree::Regex(pattern, of) => {
                // A regular expression is written as it is, but for quotes.
                write!(out, "(:regex #\"{}\"", pattern.text().replace('"', "\\\""))?;
                end_of_call(of, out)
            }
            Tree::Tagged(tag) => {
                out.write_str("(:tagged ")?;
                write_quoted(tag, out)?;
                out.write_char(')')
            }
            Tree::Not(inner) => write!(out, "(not {inner})"),
            Tree::And(parts) => nested("and", parts, out),
            Tree::Or(parts) => nested("or", parts, out),
        }
    }
}

fn call(name: &str, a: &Operand, b: &Operand, out: &mut Formatter<'_>) -> fmt::Result {
    write!(out, "({name} ")?;
    write_operand(a, Style::List, out)?;
    end_of_call(b, out)
}

fn end_of_call(last: &Operand, out: &mut Formatter<'_>) -> fmt::Result {
    out.write_char(' ')?;
    write_operand(last, Style::List, out)?;
    out.write_char(')')
}

/// `(and (and a b) c)`, without a recursion over the parts: there may be thousands.
fn nested(name: &str, parts: &[Tree], out: &mut Formatter<'_>) -> fmt::Result {
    for _ in 1..parts.len() {
        write!(out, "({name} ")?;
    }
    for (at, part) in parts.iter().enumerate() {
        match at {
            0 => write!(out, "{part}")?,
            _ => write!(out, " {part})")?,
        }
    }
    Ok(())
}

impl Tree {
    /// The text of a query with this tree. For a tree that no query has (a field's name that is none in queries, a literal
    /// that queries do not have) it is only similar.
    pub fn to_query(&self) -> String {
        let mut out = String::new();
        write_query(self, &mut out).expect("a String takes any text");
        out
    }
}

fn write_query(tree: &Tree, out: &mut String) -> fmt::Result {
    let mut infix = |a: &Operand, operator: &str, b: &Operand| {
        write_operand(a, Style::Query, out)?;
        write!(out, " {operator} ")?;
        write_operand(b, Style::Query, out)
    };
    match tree {
        Tree::Value(value) => write_operand(value, Style::Query, out),
        Tree::Equal(a, b) => infix(a, "=", b),
        Tree::NotEqual(a, b) => infix(a, "!=", b),
        Tree::Compare(comparison, a, b) => infix(a, comparison.name(), b),
        Tree::Like(pattern, of) => infix(of, "=~", &Operand::Literal(Value::Text(pattern.clone()))),
        Tree::Regex(pattern, of) => infix(of, "~=", &Operand::text(pattern.text())),
        Tree::Tagged(tag) => {
            out.push_str("tagged ");
            write_quoted(tag, out)
        }
        Tree::Not(inner) => {
            out.push_str("not ");
            write_part(inner, matches!(**inner, Tree::And(_) | Tree::Or(_)), out)
        }
        Tree::And(parts) => {
            write_chain(parts, " and ", |part| matches!(part, Tree::And(_) | Tree::Or(_)), out)
        }
        Tree::Or(parts) => write_chain(parts, " or ", |part| matches!(part, Tree::Or(_)), out),
    }
}

fn write_chain(
    parts: &[Tree],
    between: &str,
    needs: impl Fn(&Tree) -> bool,
    out: &mut String,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        write_part(part, needs(part), out)?;
    }
    Ok(())
}

fn write_part(part: &Tree, in_parentheses: bool, out: &mut String) -> fmt::Result {
    if !in_parentheses {
        return write_query(part, out);
    }
    out.push('(');
    write_query(part, out)?;
    out.push(')');
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `:host`
    List,
    /// `host`
    Query,
}

fn write_operand(operand: &Operand, style: Style, out: &mut impl Write) -> fmt::Result {
    match operand {
        Operand::Field(name) => {
            if style == Style::List {
                out.write_char(':')?;
            }
            out.write_str(name)
        }
        Operand::Literal(value) => write_literal(value, out),
    }
}

fn write_literal(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Nil => out.write_str("nil"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Number(number) => write_number(number, out),
        Value::Char(letter) => write!(out, "\\{letter}"),
        Value::Text(text) => write_quoted(text, out),
        Value::Keyword(name) => write!(out, ":{name}"),
        // Only trees that configs build have them.
        Value::Symbol(_)
        | Value::List(_)
        | Value::Vector(_)
        | Value::Map(_)
        | Value::Set(_)
        | Value::Seq(_)
        | Value::Event(_)
        | Value::Pattern(_)
        | Value::Closure(_)
        | Value::Native(_)
        | Value::Bound(_)
        | Value::Stream(_)
        | Value::Var(_)
        | Value::Atom(_)
        | Value::Delay(_)
        | Value::Exception(_)
        | Value::Class(_)
        | Value::Namespace(_)
        | Value::Moment(_) => out.write_char('…'),
    }
}

fn write_number(number: &Number, out: &mut impl Write) -> fmt::Result {
    match number {
        Number::Int(value) => write!(out, "{value}"),
        Number::Big(value) => write!(out, "{value}N"),
        Number::Ratio(value) => write!(out, "{value}"),
        Number::Float(value) => write_double(f64::from(*value), out),
        Number::Double(value) => write_double(*value, out),
    }
}

fn write_double(value: f64, out: &mut impl Write) -> fmt::Result {
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    write!(out, "{value:?}")
}
