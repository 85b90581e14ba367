//! Functions and macros of `riemann.test` and `clojure.test`.

use std::sync::Arc;

use arcstr::ArcStr;

use super::recorded::{Failure, TESTS_MAX, TIMERS_MAX, Test};
use crate::collections::element::Element;
use crate::collections::list::List;
use crate::event::Field;
use crate::graph::{Node, Turn};
use crate::language::error::{EvalError, Outcome, Reason};
use crate::language::machine::{ANY, Expansion, Machine};
use crate::nodes::{construct, fields};
use crate::number::Number;
use crate::object::class;
use crate::position::Position;
use crate::print::{to_str, to_text};
use crate::riemann::dispatch;
use crate::value::Value;
use crate::{macros, natives};

natives! {
    /// Functions of `riemann.test`.
    pub(in crate::riemann) FUNCTIONS = {
        "io", 0, ANY, "Passes everything; in tests nothing.", |m, a| match m.graph.surroundings.testing.is_some() {
            true => construct(m.graph, "bit-bucket", &[]),
            false => construct(m.graph, "sdo", a),
        };
        "tap*", 2, ANY, "Passes everything and records it: name, place, children.", tap;
        "inject!", 1, 2, "Sends events through streams, under a virtual clock; what the taps recorded.", inject;
        "lookup", 3, 3, "The last event of a list with that host and service.", |m, a| {
            let events = m.collect(&a[0])?;
            let is_it = |event: &&Value| fields::get(event, Field::Host).equal(&a[1]) && fields::get(event, Field::Service).equal(&a[2]);
            Ok(events.iter().rev().find(is_it).cloned().unwrap_or_default())
        };
        "deftest*", 2, 2, "Adds a test.", |m, a| add_test(m, &a[0], &a[1]);
        "is*", 4, 4, "Checks that a function gives neither nil nor false: form, function, message, place.", is_true;
        "is-equal*", 4, 4, "Checks that the values of a function are equal: form, function, message, place.", is_equal;
        "is-thrown*", 5, 5, "Checks that a function throws: class, regular expression, function, message, place.", is_thrown;
    }

    /// Functions of `riemann.time.controlled`.
    pub(in crate::riemann) CONTROLLED = {
        "advance!", 1, 1, "Lets the virtual clock go on to a time, in Unix seconds.", |m, a| {
            let now_us = fields::to_us(fields::number(&a[0])?);
            advance(m, now_us).map(|()| Value::Nil)
        };
    }
}

macros! {
    /// Macros of `riemann.test` and `clojure.test`.
    pub(in crate::riemann) MACROS = {
        "tests", 0, ANY, "Tests of the config: only for test mode.", tests;
        "tap", 1, ANY, "Passes everything; in tests its events are recorded under a name.", expand_tap;
        "deftest", 1, ANY, "A test.", |e, a| {
            let function = list("fn", [Value::vector([])].into_iter().chain(a[1..].iter().cloned()));
            Ok(list("riemann.test/deftest*", [quoted(&a[0]), at(function, &e.at)]))
        };
        "is", 1, 2, "Checks that a form gives neither nil nor false.", is;
        "are", 2, ANY, "Checks a form with several sets of values.", are;
        "testing", 1, ANY, "Its forms; the text says what they test.", |_, a| Ok(list("do", a[1..].iter().cloned()));
        "use-fixtures", 0, ANY, "Accepted: each test has the config anew.", |_, _| Ok(Value::Nil);
        "run-stream", 2, 2, "What a stream passes of some events.", |e, a| run_stream(e, &a[0], &a[1], false);
        "run-stream-intervals", 2, 2, "What a stream passes of events with seconds between them.", |e, a| run_stream(e, &a[0], &a[1], true);
        "test-stream", 3, 3, "Checks what a stream passes of some events.", |_, a| {
            let run = list("riemann.test/run-stream", [a[0].clone(), a[1].clone()]);
            Ok(list("riemann.test/is", [list("=", [a[2].clone(), run])]))
        };
        "test-stream-intervals", 3, 3, "Checks what a stream passes of events with seconds between them.", |_, a| {
            let run = list("riemann.test/run-stream-intervals", [a[0].clone(), a[1].clone()]);
            Ok(list("riemann.test/is", [list("=", [a[2].clone(), run])]))
        };
    }
}

fn list(head: &str, rest: impl IntoIterator<Item = Value>) -> Value {
    Value::list(std::iter::once(Value::symbol(head)).chain(rest))
}

fn quoted(form: &Value) -> Value {
    list("quote", [form.clone()])
}

/// A list with a place, for errors.
fn at(form: Value, at: &Position) -> Value {
    match form {
        Value::List(list) => {
            let items: Vec<Value> = list.iter().cloned().collect();
            Value::List(Arc::new(List::at(at.clone(), items.into_iter())))
        }
        other => other,
    }
}

fn thunk(form: &Value, place: &Position) -> Value {
    at(list("fn", [Value::vector([]), form.clone()]), place)
}

fn place(at: &Position) -> Value {
    Value::vector([Value::Text(at.file.clone()), i64::from(at.line).into(), i64::from(at.column).into()])
}

fn place_of(value: &Value) -> Position {
    let parts = fields::items(value).unwrap_or_default();
    let number = |part: Option<&Value>| match part {
        Some(Value::Number(Number::Int(number))) => u32::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    Position {
        file: parts.first().and_then(Value::as_text).cloned().unwrap_or_default(),
        line: number(parts.get(1)),
        column: number(parts.get(2)),
    }
}

/// `(tests form…)`: in test mode the forms, in a namespace of their own.
fn tests(expansion: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    if expansion.machine.graph.surroundings.testing.is_none() {
        return Ok(Value::Nil);
    }
    let current = expansion.machine.namespace.clone();
    let require = |space: &str, options: Vec<Value>| {
        Value::vector(std::iter::once(Value::symbol(space)).chain(options))
    };
    let all = || vec![Value::keyword("refer"), Value::keyword("all")];
    let own = Value::list([
        Value::keyword("require"),
        require("riemann.streams", all()),
        require("riemann.time", all()),
        require("riemann.test", all()),
        require("riemann.folds", vec![Value::keyword("as"), Value::symbol("folds")]),
        require(&current, all()),
    ]);
    let space = list("ns", [Value::symbol(&format!("{current}-test")), own]);
    let back = list("in-ns", [quoted(&Value::symbol(&current))]);
    Ok(list("do", std::iter::once(space).chain(forms.iter().cloned()).chain([back])))
}

fn is(expansion: &mut Expansion<'_, '_>, arguments: &[Value]) -> Outcome {
    let (form, here) = (&arguments[0], expansion.at.clone());
    let message = arguments.get(1).cloned().unwrap_or_default();
    let parts = match form {
        Value::List(list) => list.iter().cloned().collect(),
        _ => Vec::new(),
    };
    let head = parts.first().and_then(Value::as_symbol).map(ArcStr::as_str);
    Ok(match (head, &parts[..]) {
        (Some("="), [_, _, _, ..]) => {
            let values = Value::vector(parts[1..].iter().cloned());
            list("riemann.test/is-equal*", [quoted(form), thunk(&values, &here), message, place(&here)])
        }
        (Some("thrown?"), [_, class, body @ ..]) => {
            let body = thunk(&list("do", body.iter().cloned()), &here);
            list("riemann.test/is-thrown*", [class.clone(), Value::Nil, body, message, place(&here)])
        }
        (Some("thrown-with-msg?"), [_, class, pattern, body @ ..]) => {
            let body = thunk(&list("do", body.iter().cloned()), &here);
            list("riemann.test/is-thrown*", [class.clone(), pattern.clone(), body, message, place(&here)])
        }
        _ => list("riemann.test/is*", [quoted(form), thunk(form, &here), message, place(&here)]),
    })
}

/// `(are [x y] form 1 2 3 4)`: the form with the symbols replaced by values.
fn are(expansion: &mut Expansion<'_, '_>, arguments: &[Value]) -> Outcome {
    let [names, form, values @ ..] = arguments else {
        return Err(EvalError::illegal_argument("(are [names] form values…)"));
    };
    let names = fields::items(names).unwrap_or_default();
    if names.is_empty() || values.len() % names.len() != 0 {
        let message =
            "(are [names] form values…): the number of values must be a multiple of the number of names";
        return Err(EvalError::illegal_argument(message).within(&expansion.at));
    }
    let each = values.chunks(names.len()).map(|values| {
        let replaced = replace(form, &names, values);
        at(list("riemann.test/is", [replaced]), &expansion.at)
    });
    Ok(list("do", each))
}

/// A form with symbols replaced; the reader limits how deep it is.
fn replace(form: &Value, names: &[Value], values: &[Value]) -> Value {
    let all = |items: &mut dyn Iterator<Item = &Value>| -> Vec<Value> {
        items.map(|item| replace(item, names, values)).collect()
    };
    match form {
        Value::Symbol(symbol) => {
            let found = names.iter().position(|name| name.as_symbol() == Some(&symbol.name));
            found.map_or_else(|| form.clone(), |found| values[found].clone())
        }
        Value::List(list) => {
            let items = all(&mut list.iter());
            Value::List(Arc::new(List::at(list.at.clone(), items.into_iter())))
        }
        Value::Vector(vector) => Value::vector(all(&mut vector.iter())),
        Value::Set(set) => Value::set(all(&mut set.iter())),
        Value::Map(map) => Value::map(
            map.iter().map(|(key, value)| (replace(key, names, values), replace(value, names, values))),
        ),
        other => other.clone(),
    }
}

/// `(run-stream (stream…) events)`: the stream with a child that keeps what it gets. With intervals, each second value is the
/// seconds until the next event, or nil.
fn run_stream(expansion: &mut Expansion<'_, '_>, stream: &Value, inputs: &Value, intervals: bool) -> Outcome {
    let Value::List(call) = stream else {
        return Err(EvalError::illegal_argument("(run-stream (stream …) events)"));
    };
    let (out, made, input) = (expansion.unique("out"), expansion.unique("stream"), expansion.unique("input"));
    let pause = expansion.unique("pause");
    let keeps = list("riemann.streams/append", [out.clone()]);
    let call = Value::list(call.iter().cloned().chain([keeps]));
    let bindings = [out.clone(), list("atom", [Value::vector([])]), made.clone(), call];
    let give = Value::list([made, input.clone()]);
    let each = match intervals {
        // An event with a time comes at that time.
        false => {
            let time = Value::list([Value::keyword("time"), input.clone()]);
            let go_on = list("riemann.time.controlled/advance!", [time.clone()]);
            list("doseq", [Value::vector([input, inputs.clone()]), list("when", [time, go_on]), give])
        }
        true => {
            let now = list("+", [list("riemann.time/unix-time", []), pause.clone()]);
            let go_on = list("when", [pause.clone(), list("riemann.time.controlled/advance!", [now])]);
            let pairs = list("partition-all", [Value::from(2_i64), inputs.clone()]);
            list("doseq", [Value::vector([Value::vector([input, pause]), pairs]), give, go_on])
        }
    };
    Ok(list("let", [Value::vector(bindings), each, list("deref", [out])]))
}

/// `(tap name c…)`: the tap is there from then on, also if no fork of `by` makes its stream, or if many do.
fn expand_tap(expansion: &mut Expansion<'_, '_>, arguments: &[Value]) -> Outcome {
    let (name, children) = arguments.split_first().expect("the table says that there is a name");
    let Some(testing) = &mut expansion.machine.graph.surroundings.testing else {
        return Ok(list("riemann.streams/sdo", children.iter().cloned()));
    };
    if matches!(name, Value::Keyword(_) | Value::Text(_) | Value::Number(_)) {
        testing.add_tap(name.clone(), expansion.at.clone())?;
    }
    let given = [name.clone(), place(&expansion.at)];
    Ok(list("riemann.test/tap*", given.into_iter().chain(children.iter().cloned())))
}

/// `(tap* name place c…)`
fn tap(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let here = place_of(&arguments[1]);
    let Some(testing) = &mut machine.graph.surroundings.testing else {
        return construct(machine.graph, "sdo", &arguments[2..]);
    };
    let tap = testing.add_tap(arguments[0].clone(), here)?;
    let children: Vec<_> = arguments[2..].iter().map(|child| machine.graph.child(child)).collect();
    Ok(Value::Stream(machine.graph.add(Box::new(Record { tap }), &[&children])))
}

/// Records what passes.
#[derive(Debug)]
struct Record {
    tap: usize,
}

impl Node for Record {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if let Some(testing) = &mut turn.graph().surroundings.testing {
            testing.record(self.tap, value.clone())?;
        }
        turn.emit(std::mem::take(value));
        Ok(true)
    }
}

/// The clock goes on to a time with all timers until then. If it is there already nothing happens: what is due at once waits for the
/// events of the same time, as in Riemann.
fn advance(machine: &mut Machine<'_>, now_us: i64) -> Outcome<()> {
    if now_us <= machine.graph.now_us() {
        return Ok(());
    }
    match dispatch::advance(machine.graph, now_us, TIMERS_MAX) {
        true => Ok(()),
        false => {
            let message = format!("more than {TIMERS_MAX} timers are due until this time");
            Err(EvalError::throw(&class::ILLEGAL_STATE, message))
        }
    }
}

/// `(inject! [streams] events)`
fn inject(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    if machine.graph.surroundings.testing.is_none() {
        return Err(EvalError::throw(&class::ILLEGAL_STATE, "inject! works only in test mode"));
    }
    let streams = match arguments {
        [streams, _] => Some(machine.collect(streams)?),
        _ => None,
    };
    let events = machine.collect(&arguments[arguments.len() - 1])?;
    for event in events {
        if let Some(time) = fields::time(&event)? {
            let time_us = fields::to_us(time);
            advance(machine, time_us)?;
        }
        match &streams {
            // What a stream throws is logged, as with an event of a client.
            None => _ = dispatch::push(machine.graph, event),
            Some(streams) => {
                for stream in streams {
                    machine.call(stream, &mut [event.clone()])?;
                }
                dispatch::drain(machine.graph);
            }
        }
    }
    let testing = machine.graph.surroundings.testing.as_ref();
    let taps = testing.map_or(&[][..], |testing| &testing.taps);
    Ok(Value::map(taps.iter().map(|tap| (tap.name.clone(), Value::vector(tap.events.iter().cloned())))))
}

fn add_test(machine: &mut Machine<'_>, name: &Value, function: &Value) -> Outcome {
    let (here, namespace) = (machine.here().clone(), machine.namespace.clone());
    let name = name.as_symbol().cloned();
    let name = name.ok_or_else(|| EvalError::illegal_argument("(deftest name …): the name is a symbol"))?;
    let Some(testing) = &mut machine.graph.surroundings.testing else { return Ok(Value::Nil) };
    if testing.tests.len() == TESTS_MAX {
        return Err(EvalError::illegal_argument(format!("a config can have {TESTS_MAX} tests")));
    }
    // As with any var, a later one of the same name takes its place.
    testing.tests.retain(|test| (&test.namespace, &test.name) != (&namespace, &name));
    testing.tests.push(Test { namespace, name, at: here, function: function.clone() });
    Ok(Value::Nil)
}

/// Counts an assertion; `failed` is what should be and what is, if it does not hold.
fn count(
    machine: &mut Machine<'_>,
    failed: Option<(String, String, bool)>,
    message: &Value,
    at: &Value,
) -> Outcome {
    let is_good = failed.is_none();
    let Some(testing) = &mut machine.graph.surroundings.testing else { return Ok(is_good.into()) };
    testing.assertions += 1;
    if let Some((expected, actual, is_error)) = failed {
        let message = (!message.is_nil()).then(|| to_str(message));
        testing.failures.push(Failure { at: place_of(at), message, expected, actual, is_error });
    }
    Ok(is_good.into())
}

/// The value of a function, or what it threw. Limits end the test.
fn tried(machine: &mut Machine<'_>, function: &Value) -> Outcome<Result<Value, EvalError>> {
    match machine.call(function, &mut []) {
        Ok(value) => machine.realize(&value).map(Ok),
        Err(error) if matches!(error.reason(), Reason::Thrown(_)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

fn is_true(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [form, function, message, at] = arguments else { unreachable!("the table says how many there are") };
    let expected = to_text(form, true);
    let failed = match tried(machine, function)? {
        Ok(value) if value.is_true() => None,
        Ok(value) => Some((expected, format!("(not {})", to_text(&value, true)), false)),
        Err(error) => Some((expected, error.to_string(), true)),
    };
    count(machine, failed, message, at)
}

fn is_equal(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [form, function, message, at] = arguments else { unreachable!("the table says how many there are") };
    let expected = to_text(form, true);
    let failed = match tried(machine, function)? {
        Ok(values) => {
            let values = fields::items(&values).unwrap_or_default();
            let is_good = values.windows(2).all(|pair| pair[0].equal(&pair[1]));
            let shown: Vec<String> = values.iter().map(|value| to_text(value, true)).collect();
            (!is_good).then(|| (expected, format!("(not (= {}))", shown.join(" ")), false))
        }
        Err(error) => Some((expected, error.to_string(), true)),
    };
    count(machine, failed, message, at)
}

fn is_thrown(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let [class, pattern, function, message, at] = arguments else {
        unreachable!("the table says how many there are")
    };
    let Value::Class(class) = class else { return Err(fields::cannot("expect an exception of", class)) };
    let expected = format!("(thrown? {})", class.short_name());
    let failed = match tried(machine, function)? {
        Ok(value) => Some((expected, to_text(&value, true), false)),
        Err(error) if !error.class().is_a(class) => Some((expected, error.to_string(), true)),
        Err(error) => {
            let is_found = match pattern {
                Value::Pattern(pattern) => {
                    pattern.search().is_match(error.to_string().as_str()).unwrap_or(false)
                }
                _ => true,
            };
            (!is_found).then(|| (expected, error.to_string(), false))
        }
    };
    count(machine, failed, message, at)
}
