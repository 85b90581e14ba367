//! Arguments of stream constructors: values of the language, taken one after the other, and then children.

use super::function::Function;
use super::plumbing::Call;
use super::{fields, predicate::Predicate};
use crate::form;
use crate::graph::{Called, Graph, Node, NodeId};
use crate::language::diagnostic::nearest;
use crate::language::error::{EvalError, Outcome};
use crate::number::Number;
use crate::position::Position;
use crate::value::Value;

/// The arguments of one call of a constructor.
#[derive(Debug)]
pub struct Args<'a> {
    /// The graph that gets the node.
    pub graph: &'a mut Graph,
    name: &'static str,
    /// Its name in the config.
    shown: &'static str,
    /// The arguments, as in the reference.
    reference: &'static str,
    all: &'a [Value],
    left: &'a [Value],
    /// How many arguments come before the children.
    own: Option<usize>,
    /// Where the constructor was called, while a config is loaded.
    at: Option<Position>,
}

impl<'a> Args<'a> {
    /// The arguments of a call: the constructor's name, its arguments as in the reference, and theirs.
    pub fn new(
        graph: &'a mut Graph,
        (name, reference): (&'static str, &'static str),
        all: &'a [Value],
    ) -> Args<'a> {
        // Arguments that make nodes come later than this.
        let at = graph.evaluation.here().cloned();
        Args { graph, name, shown: name, reference, all, left: all, own: None, at }
    }

    /// An exception about them.
    pub fn wrong(&self, what: impl std::fmt::Display) -> EvalError {
        EvalError::illegal_argument(format!("({}): {what}", self.shown))
    }

    /// An exception about the argument that was taken last.
    fn wrong_last(&self, what: &str) -> EvalError {
        let at = self.all.len() - self.left.len();
        // Optional arguments are in brackets: what comes after them has no fixed place.
        let words = self.reference.split(' ').take(at);
        let is_plain = words.clone().all(|word| !word.contains(['[', '{', '|']));
        let argument = match words.last() {
            Some(word) if is_plain => word.to_owned(),
            _ => format!("argument {at}"),
        };
        let given: String = self.all.get(at - 1).map_or_else(String::new, crate::print::excerpt);
        let given: String = given.chars().take(100).collect();
        EvalError::illegal_argument(format!(
            "({} {}): {argument} {what}, not {given}",
            self.shown, self.reference
        ))
    }

    fn missing(&self) -> EvalError {
        let (name, reference) = (self.shown, self.reference);
        EvalError::illegal_argument(format!(
            "({name} {reference}) is how it is called: an argument is missing"
        ))
    }

    /// The next one.
    ///
    /// # Errors
    /// If there is none.
    pub fn take(&mut self) -> Outcome<&'a Value> {
        let (next, left) = self.left.split_first().ok_or_else(|| self.missing())?;
        self.left = left;
        Ok(next)
    }

    /// The config has another name for what is made.
    pub fn named(&mut self, name: &'static str) {
        self.shown = name;
    }

    /// Notes an option that is none of these, with the nearest one.
    pub fn note_unknown(&mut self, key: &Value, known: &[&str]) {
        let given = crate::print::to_str(key);
        let name = given.trim_start_matches(':');
        if known.contains(&name) {
            return;
        }
        let near = nearest(name, known.iter().copied());
        let hint = near.map(|near| format!(": did you mean :{near}?")).unwrap_or_default();
        if let Some(at) = &self.at {
            let text = format!("{} has no option {given}{hint}", self.shown);
            self.graph.surroundings.declared.note(at.clone(), text);
        }
    }

    /// The next one, without taking it.
    pub fn peek(&self) -> Option<&'a Value> {
        self.left.first()
    }

    /// Whether only one is left.
    pub fn is_last(&self) -> bool {
        self.left.len() == 1
    }

    /// The next one if it is a map.
    pub fn options(&mut self) -> Option<&'a Value> {
        let options = self.left.first().filter(|next| matches!(next, Value::Map(_)))?;
        self.left = &self.left[1..];
        Some(options)
    }

    /// A number.
    ///
    /// # Errors
    /// If it is something else.
    pub fn number(&mut self) -> Outcome<Number> {
        let next = self.take()?;
        next.as_number().cloned().ok_or_else(|| self.wrong_last("must be a number"))
    }

    /// A duration over zero: its seconds, and its microseconds.
    ///
    /// # Errors
    /// If it is something else.
    pub fn seconds(&mut self) -> Outcome<(Number, i64)> {
        let seconds = self.number()?;
        match fields::to_us(&seconds) {
            us @ 1.. => Ok((seconds, us)),
            ..=0 => Err(self.wrong_last("must be a duration over zero")),
        }
    }

    /// A count.
    ///
    /// # Errors
    /// If it is no whole number from 0.
    pub fn count(&mut self) -> Outcome<usize> {
        let Number::Int(count) = self.number()? else {
            return Err(self.wrong_last("must be a whole number"));
        };
        usize::try_from(count).map_err(|_| self.wrong_last("must not be negative"))
    }

    /// A function.
    ///
    /// # Errors
    /// If it is missing.
    pub fn function(&mut self) -> Outcome<Function> {
        self.take().map(Function::of)
    }

    /// A predicate.
    ///
    /// # Errors
    /// If it is missing, or the data of a predicate are damaged.
    pub fn predicate(&mut self) -> Outcome<Predicate> {
        Predicate::of(self.take()?)
    }

    /// What is left makes or is children: the form of the stream ends here.
    pub fn end_form(&mut self) {
        let own = self.all.len() - self.left.len();
        self.own.get_or_insert(own);
    }

    /// All that is left: children.
    pub fn rest(&mut self) -> &'a [Value] {
        self.end_form();
        std::mem::take(&mut self.left)
    }

    /// All that is left, as children.
    pub fn children(&mut self) -> Vec<NodeId> {
        self.rest().iter().map(|child| self.graph.child(child)).collect()
    }

    /// Adds the node whose children are all that is left.
    pub fn add(&mut self, node: impl Node + 'static) -> Value {
        let children = self.children();
        self.add_with(node, &[&children])
    }

    /// Adds a node with these children.
    pub fn add_with(&mut self, node: impl Node + 'static, ports: &[&[NodeId]]) -> Value {
        let own = self.own.unwrap_or(self.all.len() - self.left.len());
        let form = form::of_arguments(self.name, &self.all[..own]);
        let node = self.graph.add_of(form, Box::new(node), ports);
        if let Some(at) = self.at.take() {
            self.graph.set_origin(node, self.shown, at);
            let called = Called::of(&self.all[..own]);
            called.into_iter().for_each(|called| self.graph.set_called(node, called));
        }
        Value::Stream(node)
    }
}

impl Graph {
    /// Notes a child that can do nothing, while the config is loaded.
    fn check_child(&mut self, child: &Value) {
        let is_stream = |value: &Value| matches!(value, Value::Stream(_));
        let what = match child {
            Value::Map(map) if map.iter().any(|(_, value)| is_stream(value)) => {
                let keys = map.iter().filter(|(_, value)| is_stream(value));
                let keys: Vec<String> = keys.map(|(key, _)| crate::print::excerpt(key)).take(3).collect();
                format!("a map of streams: take one of them, by {}", keys.join(", "))
            }
            Value::Nil
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::Pattern(_) => {
                let given: String = crate::print::excerpt(child).chars().take(100).collect();
                format!("{given}, which is neither a stream nor a function")
            }
            _ => return,
        };
        if let Some(at) = self.evaluation.here().cloned() {
            self.surroundings.declared.note(at, format!("what is to get the events here is {what}"));
        }
    }

    /// The node of a value that a config passes as a child: of a stream it is the stream, of anything else a node that calls it.
    pub fn child(&mut self, value: &Value) -> NodeId {
        match value {
            Value::Stream(node) => *node,
            other => {
                self.check_child(other);
                let node = self.add(Box::new(Call::new(other.clone())), &[]);
                let called = Called::of(std::slice::from_ref(other));
                if let (Some(called), Some(at)) = (called, self.evaluation.here().cloned()) {
                    self.set_origin(node, "function", at);
                    self.set_called(node, called);
                }
                node
            }
        }
    }
}
