//! A small interpreter that makes streams from text, and a notation for events and outputs.
//!
//! An event is one word: `a` has service a, `:ok` state ok, `^h` host h, `#x` tag x, `m5t10l3` metric 5, time 10 and ttl 3, `dc=x`
//! any field; joined by commas, and `{}` without any. `[a b]` is a vector, `3`, `nil`, `true` are themselves. In inputs `+2`
//! advances the clock by two seconds. In outputs `@2` stands before what came at second 2, `!` is an exception, and `T:a` was sent to
//! `(to T)`.

use std::sync::{Arc, Mutex};

use arcstr::{ArcStr, literal};

use crate::arithmetic;
use crate::collections::map::Map;
use crate::event::{Event, Field};
use crate::folds::{self, Folding};
use crate::graph::{Caller, Graph, Limits, Node, NodeId, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::nodes::predicate::{Comparison, Matcher, is_tagged, tags_of};
use crate::nodes::{construct, fields, forms, table};
use crate::number::Number;
use crate::object::class;
use crate::print::to_str;
use crate::reader::Reader;
use crate::reader::names::NoNames;
use crate::value::Value;

type Log = Arc<Mutex<Vec<(i64, String)>>>;

/// Notes what it gets.
#[derive(Debug)]
struct Note(String, Log);

impl Node for Note {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.1.lock().unwrap().push((turn.now_us(), format!("{}{}", self.0, show(value))));
        Ok(true)
    }
}

/// Evaluates forms.
#[derive(Debug)]
pub(super) struct Interpreter {
    log: Log,
}

fn wrong(what: &str) -> EvalError {
    EvalError::throw(&class::RUNTIME_EXCEPTION, what)
}

impl Caller for Interpreter {
    fn call(&self, graph: &mut Graph, function: &Value, args: &[Value]) -> Outcome {
        match function {
            Value::Keyword(name) => Ok(fields::named(&args[0], name).clone()),
            Value::Set(set) => Ok(set.get(&args[0]).cloned().unwrap_or_default()),
            Value::Stream(stream) => Ok(Value::Bool(graph.push(NodeId::of(*stream), &args[0])?)),
            Value::Symbol(name) => self.builtin(graph, &name.name, args),
            Value::List(closure) => {
                let parts: Vec<Value> = closure.iter().cloned().collect();
                let [_, Value::Vector(parameters), body, Value::Map(env)] = &parts[..] else {
                    return Err(wrong("no closure"));
                };
                let mut env = (**env).clone();
                parameters.iter().zip(args).for_each(|(name, value)| env.insert(name.clone(), value.clone()));
                self.eval(graph, body, &env)
            }
            _ => Err(EvalError::throw(&class::CLASS_CAST, "not a function")),
        }
    }
}

impl Interpreter {
    fn eval(&self, graph: &mut Graph, form: &Value, env: &Map<Value>) -> Outcome {
        match form {
            Value::Symbol(_) => Ok(env.get(form).unwrap_or(form).clone()),
            Value::Vector(vector) => {
                let values: Outcome<Vec<Value>> =
                    vector.iter().map(|part| self.eval(graph, part, env)).collect();
                values.map(Value::vector)
            }
            Value::Map(map) => {
                let entry = |(key, value): (&Value, &Value)| Ok((key.clone(), self.eval(graph, value, env)?));
                map.iter().map(entry).collect::<Outcome<Vec<_>>>().map(Value::map)
            }
            Value::List(list) if !list.is_empty() => self.eval_list(graph, form, env),
            _ => Ok(form.clone()),
        }
    }

    fn eval_list(&self, graph: &mut Graph, form: &Value, env: &Map<Value>) -> Outcome {
        if let Some(expanded) = forms::expand(form)? {
            return self.eval(graph, &expanded, env);
        }
        let parts = fields::items(form).unwrap();
        let head = parts[0].as_symbol().cloned().unwrap_or_default();
        match (head.as_str(), &parts[1..]) {
            ("fn", [parameters, body]) => {
                let env = Value::Map(Arc::new(env.clone()));
                return Ok(Value::list([Value::symbol("closure"), parameters.clone(), body.clone(), env]));
            }
            ("let", [bound, body]) => {
                let mut env = env.clone();
                for pair in fields::items(bound).unwrap().chunks(2) {
                    let value = self.eval(graph, &pair[1], &env)?;
                    env.insert(pair[0].clone(), value);
                }
                return self.eval(graph, body, &env);
            }
            ("or", tests) => {
                for test in tests {
                    let value = self.eval(graph, test, env)?;
                    if value.is_true() {
                        return Ok(value);
                    }
                }
                return Ok(Value::Nil);
            }
            ("to", [name]) => {
                let note = Note(format!("{}:", name.as_symbol().unwrap()), Arc::clone(&self.log));
                return Ok(Value::Stream(graph.add(Box::new(note), &[]).number()));
            }
            _ => {}
        }
        let args: Outcome<Vec<Value>> = parts[1..].iter().map(|arg| self.eval(graph, arg, env)).collect();
        let args = args?;
        if table::find(&head).is_some() && !env.get(&parts[0]).is_some_and(Value::is_true) {
            return construct(graph, &head, &args);
        }
        let function = self.eval(graph, &parts[0], env)?;
        self.call(graph, &function, &args)
    }

    fn builtin(&self, graph: &mut Graph, name: &str, args: &[Value]) -> Outcome {
        let number = |at: usize| fields::number(&args[at]);
        let now_us = graph.now_us();
        if let Some(fold) = name.strip_prefix("folds/").and_then(folds::table::find) {
            let mut call = |function: &Value, args: &[Value]| self.call(graph, function, args);
            return fold.call(args, &mut Folding { now_us, call: &mut call });
        }
        if let Some(comparison) = Comparison::of(name) {
            return comparison.holds(&args[0], &args[1]).map(Value::Bool);
        }
        let result = match (name, args) {
            ("+", []) => Ok(Number::Int(0)),
            ("+", [_, _]) => arithmetic::add(number(0)?, number(1)?),
            ("*", [_, _]) => arithmetic::multiply(number(0)?, number(1)?),
            ("identity", [value]) => return Ok(value.clone()),
            ("total", [list]) => {
                let total = fields::items(list).unwrap();
                return total
                    .iter()
                    .try_fold(Number::Int(0), |sum, value| fields::add(&sum, fields::number(value)?))
                    .map(Value::Number);
            }
            ("max-metric", [a, b]) => {
                let (a_metric, b_metric) = (fields::metric(a)?, fields::metric(b)?);
                let (Some(a_metric), Some(b_metric)) = (a_metric, b_metric) else { return Err(wrong("nil")) };
                return Ok(if fields::is_less(a_metric, b_metric) { b.clone() } else { a.clone() });
            }
            ("nothing", _) => return Ok(Value::Nil),
            ("conj", [Value::Nil, new]) => return Ok(Value::vector([new.clone()])),
            ("conj", [list, new]) => {
                let all = fields::items(list).unwrap().into_iter().chain([new.clone()]);
                return Ok(Value::vector(all));
            }
            ("note", shown) => {
                let text: Vec<String> = shown.iter().map(show).collect();
                self.log.lock().unwrap().push((now_us, text.join("-")));
                return Ok(Value::Nil);
            }
            ("riemann.common/match", [pattern, value]) => {
                let node = graph.add(Box::new(Matches(Matcher::of(pattern))), &[]);
                return Ok(Value::Bool(graph.push(node, value)?));
            }
            ("riemann.streams/tagged-all?", [tags, event]) => {
                return Ok(Value::Bool(is_tagged(event, &tags_of(tags)?, true)));
            }
            ("service-of", [event]) => return Ok(fields::get(event, Field::Service).clone()),
            _ => return Err(wrong(name)),
        };
        fields::computed(result).map(Value::Number)
    }
}

#[derive(Debug)]
struct Matches(Matcher);

impl Node for Matches {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.0.is_match(value, turn)
    }
}

/// A stream and what it passed.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) graph: Graph,
    pub(super) stream: NodeId,
    log: Log,
    throws: bool,
}

impl Rig {
    /// A stream of this text; `out` in it is the child whose values are noted.
    pub(super) fn new(text: &str) -> Rig {
        Rig::with_limits(text, Limits::default())
    }

    pub(super) fn with_limits(text: &str, limits: Limits) -> Rig {
        Rig::at(text, limits, 0).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    pub(super) fn at(text: &str, limits: Limits, now_us: i64) -> Outcome<Rig> {
        let log = Log::default();
        let interpreter = Arc::new(Interpreter { log: Arc::clone(&log) });
        let mut graph = Graph::new(Arc::clone(&interpreter) as _, now_us).with_limits(limits);
        let out = graph.add(Box::new(Note(String::new(), Arc::clone(&log))), &[]);
        let form = read(text);
        let env = Map::from_iter([(Value::symbol("out"), Value::Stream(out.number()))]);
        let stream = interpreter.eval(&mut graph, &form, &env)?;
        let Value::Stream(stream) = stream else { panic!("{text} is no stream") };
        Ok(Rig { graph, stream: NodeId::of(stream), log, throws: false })
    }

    /// Gives it the inputs.
    pub(super) fn run(&mut self, inputs: &str) {
        for input in parse(inputs) {
            match input {
                Input::Advance(us) => self.advance(us),
                Input::Value(value) => self.push(&value),
            }
        }
    }

    pub(super) fn advance(&mut self, us: i64) {
        let now_us = self.graph.now_us() + us;
        assert!(self.graph.advance(now_us, 1_000_000), "timers end");
    }

    pub(super) fn push(&mut self, value: &Value) {
        if self.graph.push(self.stream, value).is_err() {
            let now_us = self.graph.now_us();
            self.log.lock().unwrap().push((now_us, "!".to_owned()));
            self.throws = true;
        }
    }

    /// What came since the last call.
    pub(super) fn log(&self) -> Vec<(i64, String)> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// What came, in the notation.
    pub(super) fn outputs(&self) -> String {
        let (mut shown, mut last_us) = (Vec::new(), 0);
        for (at_us, text) in self.log() {
            if at_us != last_us {
                shown.push(format!("@{}", to_str(&Value::of_time_us(at_us))));
                last_us = at_us;
            }
            shown.push(text);
        }
        shown.join(" ")
    }
}

/// The form of a text.
pub(super) fn read(text: &str) -> Value {
    let form = Reader::new(text, literal!("test")).next(&NoNames);
    form.unwrap_or_else(|error| panic!("{text}: {error}")).unwrap()
}

#[derive(Debug)]
pub(super) enum Input {
    Advance(i64),
    Value(Value),
}

/// The inputs of a text.
pub(super) fn parse(text: &str) -> Vec<Input> {
    let spaced = text.replace('[', " [ ").replace(']', " ] ");
    let mut words = spaced.split_whitespace();
    let mut inputs = Vec::new();
    while let Some(word) = words.next() {
        inputs.push(match word.strip_prefix('+') {
            Some(seconds) => Input::Advance((seconds.parse::<f64>().unwrap() * 1e6) as i64),
            None => Input::Value(parse_value(word, &mut words)),
        });
    }
    inputs
}

fn parse_value<'t>(word: &'t str, words: &mut impl Iterator<Item = &'t str>) -> Value {
    if word == "[" {
        let mut values = Vec::new();
        loop {
            match words.next().expect("a bracket is closed") {
                "]" => return Value::vector(values),
                word => values.push(parse_value(word, words)),
            }
        }
    }
    match word {
        "nil" | "true" | "false" => read(word),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => read(word),
        _ => event(word),
    }
}

/// The event of a word.
pub(super) fn event(word: &str) -> Value {
    let (mut event, mut tags) = (Event::default(), Vec::new());
    for part in word.split(',').filter(|part| *part != "{}") {
        match part.split_at(1) {
            (":", state) => event.set(Field::State, Value::text(state)),
            ("^", host) => event.set(Field::Host, Value::text(host)),
            ("#", tag) => tags.push(Value::text(tag)),
            _ if part.contains('=') => {
                let (name, value) = part.split_once('=').unwrap();
                let value = match read(value) {
                    Value::Symbol(text) => Value::Text(text.name.clone()),
                    value => value,
                };
                match Field::of(name) {
                    Some(field) => event.set(field, value),
                    None => event.set_attribute(ArcStr::from(name), value),
                }
            }
            ("m" | "t" | "l", number) if number.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                for number in part.split_inclusive(|c: char| c.is_ascii_digit() || "./-".contains(c)).fold(
                    Vec::<String>::new(),
                    |mut numbers, piece| {
                        if piece.starts_with(|c: char| "mtl".contains(c)) {
                            numbers.push(piece.to_owned());
                        } else if let Some(last) = numbers.last_mut() {
                            last.push_str(piece);
                        }
                        numbers
                    },
                ) {
                    let field = match &number[..1] {
                        "m" => Field::Metric,
                        "t" => Field::Time,
                        _ => Field::Ttl,
                    };
                    event.set(field, read(&number[1..]));
                }
            }
            _ => event.set(Field::Service, Value::text(part)),
        }
    }
    if !tags.is_empty() {
        event.set(Field::Tags, Value::vector(tags));
    }
    Value::Event(Arc::new(event))
}

/// A value in the notation.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Event(_) | Value::Map(_) => show_event(value),
        Value::Vector(vector) => {
            format!("[{}]", vector.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        Value::Nil => "nil".to_owned(),
        Value::Number(Number::Double(double)) => format!("{}", (double * 1e5).round() / 1e5),
        other => to_str(other),
    }
}

fn show_event(event: &Value) -> String {
    let get = |field| fields::get(event, field);
    let mut parts: Vec<String> = Vec::new();
    if !get(Field::Service).is_nil() {
        parts.push(to_str(get(Field::Service)));
    }
    let numbers = [("m", Field::Metric), ("t", Field::Time), ("l", Field::Ttl)];
    let numbers = numbers.map(|(letter, field)| match get(field) {
        Value::Nil => String::new(),
        number => format!("{letter}{}", show(number)),
    });
    parts.push(numbers.concat());
    for (sign, field) in [(":", Field::State), ("^", Field::Host), ("description=", Field::Description)] {
        if !get(field).is_nil() {
            parts.push(format!("{sign}{}", to_str(get(field))));
        }
    }
    parts.extend(fields::items(get(Field::Tags)).unwrap().iter().map(|tag| format!("#{}", to_str(tag))));
    if let Value::Event(event) = event {
        parts.extend(event.attributes().iter().map(|(name, value)| format!("{name}={}", show(value))));
    }
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { "{}".to_owned() } else { parts.join(",") }
}
