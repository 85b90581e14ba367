//! Rewrites forms of `where` and its relatives (spec riemann §9.1) and of the streams that are macros, as far as possible to data
//! that [`super::predicate`] runs without the interpreter. Pure: a form in, a form out.

use super::fields;
use super::predicate::Comparison;
use crate::collections::list::List;
use crate::event::Field;
use crate::language::error::{EvalError, Outcome};
use crate::value::Value;

/// Lists within each other, at most: what the reader accepts, and some more for what is built around it.
const DEPTH_MAX: u32 = crate::reader::names::DEPTH_MAX + 8;

/// The streams that are macros, with their arguments, as the reference shows them.
pub const MACROS: &[(&str, &str)] = &[
    ("by", "fields c…"),
    ("by-builder", "[name fields] form…"),
    ("changed-state", "[{opts}] c…"),
    ("where", "expr c… (else c…)"),
    ("split", "expr1 s1 expr2 s2 … [default]"),
    ("splitp", "p expr test1 s1 … [default]"),
    ("project", "[expr…] c…"),
    ("apdex", "dt satisfied tolerated c…"),
    ("pipe", "marker stage…"),
    ("exception-stream", "handler c…"),
    ("else", "c… (only in where)"),
];

/// What a form becomes whose head is one of [`MACROS`]. None for any other form.
///
/// # Errors
/// If it lacks arguments.
pub fn expand(form: &Value) -> Outcome<Option<Value>> {
    let Some((head, args)) = call(form) else { return Ok(None) };
    let expanded = match (head, &args[..]) {
        ("by", [fields, children @ ..]) => by(head, fields, &Value::symbol("_"), children),
        ("by-builder", [binding, children @ ..]) => match &fields::items(binding).unwrap_or_default()[..] {
            [name, fields] => by(head, fields, name, children),
            _ => return Err(wrong(head)),
        },
        ("changed-state", children) => {
            let changed = [stream("changed"), Value::keyword("state")];
            let changed = Value::list(changed.into_iter().chain(children.iter().cloned()));
            let fields = Value::vector([Value::keyword("host"), Value::keyword("service")]);
            by(head, &fields, &Value::symbol("_"), &[changed])
        }
        ("else", children) => tagged("else", children.iter().cloned()),
        ("where", [expression, children @ ..]) => {
            let head = [stream("where*"), predicate(expression)?];
            Value::list(head.into_iter().chain(children.iter().cloned()))
        }
        ("split", clauses) => {
            let clauses = clauses.chunks(2).map(|clause| match clause {
                [expression, stream] => Ok(vec![predicate(expression)?, stream.clone()]),
                other => Ok(other.to_vec()),
            });
            let clauses: Outcome<Vec<Vec<Value>>> = clauses.collect();
            Value::list(std::iter::once(stream("split*")).chain(clauses?.into_iter().flatten()))
        }
        ("splitp", [test, expression, clauses @ ..]) => {
            let head = [stream("splitp*"), test.clone(), predicate(expression)?];
            Value::list(head.into_iter().chain(clauses.iter().cloned()))
        }
        ("project", [expressions, children @ ..]) => {
            let expressions = fields::items(expressions).ok_or_else(|| wrong(head))?;
            let predicates: Outcome<Vec<Value>> = expressions.iter().map(predicate).collect();
            let head = [stream("project*"), Value::vector(predicates?)];
            Value::list(head.into_iter().chain(children.iter().cloned()))
        }
        ("apdex", [dt, satisfied, tolerated, children @ ..]) => {
            let head = [stream("apdex*"), dt.clone(), predicate(satisfied)?, predicate(tolerated)?];
            Value::list(head.into_iter().chain(children.iter().cloned()))
        }
        ("pipe", [marker, first, stages @ ..]) => {
            let bound = stages.iter().rev().flat_map(|stage| [marker.clone(), stage.clone()]);
            Value::list([Value::symbol("let"), Value::vector(bound), first.clone()])
        }
        ("exception-stream", [handler, children @ ..]) => {
            let make = function(&[], Value::vector(children.iter().cloned()));
            Value::list([stream("exception-stream*"), handler.clone(), make])
        }
        (head, _) if MACROS.iter().any(|(name, _)| *name == head) => return Err(wrong(head)),
        _ => return Ok(None),
    };
    Ok(Some(expanded))
}

/// The constructor of a stream, wherever the macro is used: the namespace there may not know it.
fn stream(name: &str) -> Value {
    Value::symbol(&format!("riemann.streams/{name}"))
}

fn wrong(head: &str) -> EvalError {
    let arguments = MACROS.iter().find(|(name, _)| *name == head).map_or("", |(_, arguments)| arguments);
    EvalError::illegal_argument(format!("({head} {arguments}) is how it is called"))
}

fn by(name: &str, fields: &Value, parameter: &Value, children: &[Value]) -> Value {
    let make = function(std::slice::from_ref(parameter), Value::vector(children.iter().cloned()));
    Value::list([stream("by-fn"), fields.clone(), make, Value::keyword(name)])
}

/// `(fn [parameter…] body)`
fn function(parameters: &[Value], body: Value) -> Value {
    Value::list([Value::symbol("fn"), Value::vector(parameters.iter().cloned()), body])
}

/// The head and the arguments of a list whose head is a symbol.
fn call(form: &Value) -> Option<(&str, Vec<Value>)> {
    let Value::List(list) = form else { return None };
    let head = list.first()?.as_symbol()?;
    Some((head.as_str(), list.iter().skip(1).cloned().collect()))
}

/// `[:riemann/name part…]`
fn tagged(name: &str, parts: impl IntoIterator<Item = Value>) -> Value {
    Value::vector(std::iter::once(Value::keyword(&format!("riemann/{name}"))).chain(parts))
}

/// The field that a symbol of an expression stands for.
fn field(name: &str) -> Option<&'static str> {
    match name {
        "metric_f" => Some("metric_f"),
        name => Field::of(name).map(Field::name),
    }
}

/// The expression of a predicate as ordinary code, in which `event` is the event (spec riemann §9.1).
///
/// # Errors
/// Of lists that are too deep.
pub fn rewrite(form: &Value) -> Outcome {
    rewrite_within(form, DEPTH_MAX)
}

fn rewrite_within(form: &Value, depth: u32) -> Outcome {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(EvalError::illegal_argument("an expression of too many lists within each other"));
    };
    if let Some(name) = form.as_symbol().and_then(|name| field(name)) {
        return Ok(Value::list([Value::keyword(name), Value::symbol("event")]));
    }
    let Value::List(list) = form else { return Ok(form.clone()) };
    if let Some((head, args)) = call(form) {
        let test: Option<&dyn Fn(&Value) -> Value> = match head {
            "tagged" | "tagged-all" => Some(&|arg| event_test("tagged-all?", arg)),
            "tagged-any" => Some(&|arg| event_test("tagged-any?", arg)),
            head if field(head).is_some() && !args.is_empty() => Some(&|arg| {
                let value = Value::list([Value::keyword(head), Value::symbol("event")]);
                Value::list([Value::symbol("riemann.common/match"), arg.clone(), value])
            }),
            _ => None,
        };
        if let Some(test) = test {
            return Ok(match &args[..] {
                [arg] => test(arg),
                args => Value::list(std::iter::once(Value::symbol("or")).chain(args.iter().map(test))),
            });
        }
    }
    let parts: Outcome<Vec<Value>> = list.iter().map(|part| rewrite_within(part, depth)).collect();
    Ok(Value::List(std::sync::Arc::new(List::at(list.at.clone(), parts?.into_iter()))))
}

fn event_test(name: &str, arg: &Value) -> Value {
    Value::list([Value::symbol(&format!("riemann.streams/{name}")), arg.clone(), Value::symbol("event")])
}

/// The form of a predicate for [`super::predicate::Predicate::of`]: a vector whose parts are to be evaluated. What must be code is
/// a function in it.
///
/// # Errors
/// Of lists that are too deep.
pub fn predicate(form: &Value) -> Outcome {
    predicate_within(form, DEPTH_MAX)
}

fn predicate_within(form: &Value, depth: u32) -> Outcome {
    let code = || Ok(tagged("call", [function(&[Value::symbol("event")], rewrite(form)?)]));
    if let Some(operand) = operand(form) {
        return Ok(operand);
    }
    let Some(depth) = depth.checked_sub(1) else { return code() };
    let Some((head, args)) = call(form) else { return code() };
    let all =
        |args: &[Value]| args.iter().map(|arg| predicate_within(arg, depth)).collect::<Result<Vec<_>, _>>();
    let or = |tests: Vec<Value>| match <[Value; 1]>::try_from(tests) {
        Ok([only]) => only,
        Err(tests) => tagged("or", tests),
    };
    Ok(match (head, &args[..]) {
        // `(and)` is true, `(or)` is nil: as code.
        ("and" | "or", [_, ..]) => tagged(head, all(&args)?),
        ("not", [arg]) => tagged("not", [predicate_within(arg, depth)?]),
        ("expired?", [event]) if is_event(event) => tagged("expired", []),
        ("nil?", [arg]) => match operand(arg) {
            Some(operand) => tagged("nil", [operand]),
            None => return code(),
        },
        ("tagged" | "tagged-all", [_, ..]) if args.iter().all(is_literal) => {
            or(args.iter().map(|arg| tagged("tagged-all", [arg.clone()])).collect())
        }
        ("tagged-any", [_, ..]) if args.iter().all(is_literal) => {
            or(args.iter().map(|arg| tagged("tagged-any", [arg.clone()])).collect())
        }
        (head, [_, ..]) if field(head).is_some() && args.iter().all(is_literal) => {
            let test = |arg: &Value| tagged("match", [Value::keyword(head), arg.clone()]);
            or(args.iter().map(test).collect())
        }
        (head, [_, _, ..]) if Comparison::of(head).is_some() => {
            let operands: Option<Vec<Value>> = args.iter().map(operand).collect();
            match operands {
                Some(operands) => tagged("compare", std::iter::once(Value::text(head)).chain(operands)),
                None => return code(),
            }
        }
        _ => return code(),
    })
}

fn is_event(form: &Value) -> bool {
    form.as_symbol().is_some_and(|name| name == "event")
}

/// A form whose value is the same for each event: what is written there, and no symbol, whose value a config may change.
fn is_literal(form: &Value) -> bool {
    match form {
        Value::Nil
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Char(_)
        | Value::Text(_)
        | Value::Keyword(_)
        | Value::Pattern(_) => true,
        Value::Vector(vector) => vector.iter().all(is_literal),
        Value::Set(set) => set.iter().all(is_literal),
        Value::Map(map) => map.iter().all(|(key, value)| is_literal(key) && is_literal(value)),
        _ => false,
    }
}

/// The operand that a form is, if it is a field of the event or a literal.
fn operand(form: &Value) -> Option<Value> {
    if let Some(name) = form.as_symbol().and_then(|name| field(name)) {
        return Some(tagged("field", [Value::keyword(name)]));
    }
    if is_literal(form) {
        return Some(tagged("constant", [form.clone()]));
    }
    match form {
        Value::List(list) if list.len() == 2 => {
            let mut parts = list.iter();
            match (parts.next()?, parts.next()?) {
                (Value::Keyword(name), event) if is_event(event) => {
                    Some(tagged("field", [Value::Keyword(name.clone())]))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
