//! Streams from the text of a config, and a notation for events and outputs.
//!
//! An event is one word: `a` has service a, `:ok` state ok, `^h` host h, `#x` tag x, `m5t10l3` metric 5, time 10 and ttl 3, `dc=x`
//! any field; joined by commas, and `{}` without any. `[a b]` is a vector, `3`, `nil`, `true` are themselves. In inputs `+2`
//! advances the clock by two seconds. In outputs `@2` stands before what came at second 2, `!` is an exception, and `T:a` was sent to
//! `(to T)`.

use std::any::Any;
use std::sync::{Arc, Mutex};

use arcstr::{ArcStr, literal};

use crate::event::{Event, Field};
use crate::graph::{Graph, Limits, Node, NodeId, Turn};
use crate::language::budget;
use crate::language::error::Outcome;
use crate::language::evaluation::Evaluation;
use crate::language::host::{Host, Level};
use crate::language::load::LoadError;
use crate::language::machine::{ANY, Machine};
use crate::nodes::fields;
use crate::nodes::predicate::{Matcher, is_tagged, tags_of};
use crate::number::Number;
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

/// What a test's streams call besides Clojure's functions.
const PRELUDE: &str = "
    (defmacro to [name] (list 'to-note (str name)))
    (defn nothing [& _] nil)
    (defn add-last [all value] (conj (or all []) value))
    (defn total [numbers] (reduce + 0 numbers))
    (defn service-of [event] (:service event))
    (defn max-metric [a b] (if (< (:metric a) (:metric b)) b a))";

/// The log of the rig that calls a native.
fn log_of(machine: &mut Machine<'_>) -> Log {
    let host = machine.host.as_any().downcast_mut::<Notes>();
    Arc::clone(&host.expect("the natives of a rig are called in a rig").0)
}

crate::natives! {
    NOTES = {
        "to-note", 1, 1, "A stream that notes what it gets.", |m, a| {
            let note = Note(format!("{}:", to_str(&a[0])), log_of(m));
            Ok(Value::Stream(m.graph.add(Box::new(note), &[])))
        };
        "note", 0, ANY, "Notes values.", |m, a| {
            let text: Vec<String> = a.iter().map(show).collect();
            let now_us = m.graph.now_us();
            log_of(m).lock().unwrap().push((now_us, text.join("-")));
            Ok(Value::Nil)
        };
    }

    COMMON = {
        "match", 2, 2, "Whether a pattern matches.", |m, a| {
            let node = m.graph.add(Box::new(Matches(Matcher::of(&a[0]))), &[]);
            m.graph.push(node, &a[1]).map(Value::Bool)
        };
    }

    STREAMS = {
        "tagged-all?", 2, 2, "Whether an event has all tags.", |_, a| Ok(is_tagged(&a[1], &tags_of(&a[0])?, true).into());
    }
}

/// A world without files that has the log.
#[derive(Debug)]
struct Notes(Log);

impl Host for Notes {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn read_file(&mut self, _: &str) -> Result<String, String> {
        Err("there are no files here".to_owned())
    }

    fn environment(&mut self, _: &str) -> Option<String> {
        None
    }

    fn host_name(&self) -> String {
        "localhost".to_owned()
    }

    fn random(&mut self) -> u64 {
        4
    }

    fn print(&mut self, _: &str) {}

    fn log(&mut self, _: Level, _: &str) {}
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

    pub(super) fn at(text: &str, limits: Limits, now_us: i64) -> Result<Rig, LoadError> {
        let log = Log::default();
        let world = crate::language::clojure();
        crate::nodes::library::add(&world);
        for (namespace, natives) in
            [("user", NOTES), ("riemann.common", COMMON), ("riemann.streams", STREAMS)]
        {
            world.add_functions(namespace, natives);
        }
        let user = literal!("user");
        world.refer_all(&user, "riemann.streams");
        world.alias(&user, "folds", "riemann.folds");
        let evaluation = Evaluation::new(Arc::new(world), Box::new(Notes(Arc::clone(&log))));
        let mut graph = Graph::new(evaluation, now_us).with_limits(limits);
        let out = graph.add(Box::new(Note(String::new(), Arc::clone(&log))), &[]);
        graph.evaluation.world.intern(&user, &literal!("out")).set(Value::Stream(out));
        let mut machine = Machine::new(&mut graph, budget::Limits::LOAD);
        machine.load(PRELUDE, "prelude").expect("it is right");
        let stream = machine.load(text, "test")?;
        let Value::Stream(stream) = stream else { panic!("{text} is no stream") };
        Ok(Rig { graph, stream, log, throws: false })
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
pub(crate) fn read(text: &str) -> Value {
    let form = Reader::new(text, literal!("test")).next(&NoNames);
    form.unwrap_or_else(|error| panic!("{text}: {error}")).unwrap()
}

#[derive(Debug)]
pub(crate) enum Input {
    Advance(i64),
    Value(Value),
}

/// The inputs of a text.
pub(crate) fn parse(text: &str) -> Vec<Input> {
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
pub(crate) fn event(word: &str) -> Value {
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
pub(crate) fn show(value: &Value) -> String {
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
