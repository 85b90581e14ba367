//! Values as Clojure's `str` gives them (spec riemann §3.5): the texts of attributes that are sent.

use std::fmt::{self, Display, Formatter, Write};

use model::java::{JavaDouble, JavaSingle};
use model::{NumberRef, ValueRef};

use super::attributes::last_of_each;

/// A value as a text: a text as it is, `:name` of a keyword, `9/2`, `1.0E11`, and nothing for nil. Within lists and maps texts are
/// quoted, and nil is `nil`.
#[derive(Clone, Debug)]
pub struct StringForm<'a>(pub ValueRef<'a>);

impl Display for StringForm<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ValueRef::Nil => Ok(()),
            ValueRef::Text(text) => f.write_str(text),
            ValueRef::Number(NumberRef::BigInteger(digits)) => f.write_str(digits),
            ValueRef::Bool(_)
            | ValueRef::Number(_)
            | ValueRef::Keyword(_)
            | ValueRef::List(_)
            | ValueRef::Map(_) => readable(self.0.clone(), f),
        }
    }
}

/// As `pr` writes it. An event has a limit of nested values (`EVENT_NESTING_MAX`).
fn readable(value: ValueRef<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match value {
        ValueRef::Nil => f.write_str("nil"),
        ValueRef::Bool(is_true) => write!(f, "{is_true}"),
        ValueRef::Number(NumberRef::I64(number)) => write!(f, "{number}"),
        ValueRef::Number(NumberRef::F64(number)) => JavaDouble(number).fmt(f),
        ValueRef::Number(NumberRef::F32(number)) => JavaSingle(number).fmt(f),
        ValueRef::Number(NumberRef::Ratio(ratio)) => {
            write!(f, "{}/{}", ratio.numerator(), ratio.denominator())
        }
        ValueRef::Number(NumberRef::BigInteger(digits)) => write!(f, "{digits}N"),
        ValueRef::Text(text) => quoted(text, f),
        ValueRef::Keyword(name) => write!(f, ":{name}"),
        ValueRef::List(items) => {
            f.write_char('[')?;
            for (at, item) in items.enumerate() {
                f.write_str(if at == 0 { "" } else { " " })?;
                readable(item, f)?;
            }
            f.write_char(']')
        }
        ValueRef::Map(entries) => {
            f.write_char('{')?;
            for (at, (key, value)) in last_of_each(entries).into_iter().enumerate() {
                write!(f, "{}:{key} ", if at == 0 { "" } else { ", " })?;
                readable(value, f)?;
            }
            f.write_char('}')
        }
    }
}

fn quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for part in text.split_inclusive(['"', '\\', '\n', '\r', '\t']) {
        let last = part.chars().next_back();
        let escape = match last {
            Some('"') => "\\\"",
            Some('\\') => "\\\\",
            Some('\n') => "\\n",
            Some('\r') => "\\r",
            Some('\t') => "\\t",
            Some(_) | None => {
                f.write_str(part)?;
                continue;
            }
        };
        f.write_str(&part[..part.len() - 1])?;
        f.write_str(escape)?;
    }
    f.write_char('"')
}

#[test]
fn values_are_texts_as_clojure_prints_them() {
    use model::Ratio;

    let mut batch = model::EventsBuilder::default();
    let mut event = batch.event();
    let table: &[(ValueRef<'_>, &str)] = &[
        (ValueRef::Nil, ""),
        (ValueRef::Bool(true), "true"),
        (ValueRef::Text("a \"b\""), "a \"b\""),
        (ValueRef::Keyword("ns/name"), ":ns/name"),
        (ValueRef::Number(NumberRef::I64(-5)), "-5"),
        (ValueRef::Number(NumberRef::F64(1e11)), "1.0E11"),
        (ValueRef::Number(NumberRef::F32(0.1)), "0.1"),
        (ValueRef::Number(Ratio::of(9, 2).expect("it is small")), "9/2"),
        (ValueRef::Number(NumberRef::BigInteger("92233720368547758070")), "92233720368547758070"),
    ];
    event.begin_list("list").expect("there is room");
    for (value, want) in table {
        assert_eq!(StringForm(value.clone()).to_string(), *want);
        event.attribute("", value.clone()).expect("there is room");
    }
    event.begin_map("").expect("there is room");
    event.attribute("k", ValueRef::Text("\\\n\t\r")).expect("there is room");
    event.attribute("l", ValueRef::Text("")).expect("there is room");
    event.end();
    event.end();
    event.finish();
    let event = batch.view().iter().next().expect("one event");
    let list = event.attribute("list").expect("it was written");
    let want =
        r#"[nil true "a \"b\"" :ns/name -5 1.0E11 0.1 9/2 92233720368547758070N {:k "\\\n\t\r", :l ""}]"#;
    assert_eq!(StringForm(list).to_string(), want);
}
