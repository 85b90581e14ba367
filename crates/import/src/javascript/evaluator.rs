//! Evaluates expressions to values, with JavaScript's conversions.
//!
//! Invariant: every expression is evaluated at most once (functions are only called where they are written), and all
//! that an evaluation copies or creates counts against [`MADE_MAX`]; so it ends soon, whatever the text is.
//! Not here: conversions of single values (`Value`, `number`), methods of strings (`strings`).

use std::collections::BTreeMap;

use super::parser::{Binary, Expr, Form, Logical, Statement, Step};
use super::{
    DEPTH_MAX, Environment, Fault, MADE_MAX, Member, Members, Node, Place, Value, join, number, strings,
};
use crate::json;

/// Cost of one value in [`MADE_MAX`], beside its text.
const NODE_COST: usize = 64;

/// Names of JavaScript and node that are not supported here, to tell them from misspelled names in messages.
const GLOBALS: &[&str] = &[
    "Array",
    "BigInt",
    "Buffer",
    "Date",
    "Error",
    "Function",
    "Map",
    "Math",
    "Object",
    "Promise",
    "RegExp",
    "Set",
    "Symbol",
    "__dirname",
    "__filename",
    "config",
    "console",
    "decodeURIComponent",
    "encodeURIComponent",
    "eval",
    "exports",
    "global",
    "globalThis",
    "isFinite",
    "isNaN",
    "module",
    "setInterval",
    "setTimeout",
    "util",
];

/// Members that every JavaScript object inherits.
const INHERITED: &[&str] = &[
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// Evaluates a file's expression.
pub(super) fn run(program: &Expr, environment: &Environment<'_>) -> Result<Node, Fault> {
    let mut evaluator = Evaluator { environment, scopes: Vec::new(), made: 0 };
    evaluator.data(program)
}

/// Result of an expression. Only `Data` can be kept in lists and objects.
#[derive(Clone, Debug)]
enum Got<'p> {
    Data(Node),
    Host(Host),
    /// A method of a value, to be called.
    Method(Node, &'p str),
    Function(&'p [Statement]),
}

/// Objects of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Process,
    Env,
    Os,
    Json,
    Call(Call),
}

/// Functions of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Require,
    Hostname,
    JsonParse,
    ParseInt,
    ParseFloat,
    Number,
    String,
    Boolean,
}

struct Evaluator<'e, 'p> {
    environment: &'e Environment<'e>,
    /// Variables of the functions being called, the innermost last.
    scopes: Vec<BTreeMap<&'p str, Got<'p>>>,
    /// Bytes and values created so far.
    made: usize,
}

impl<'p> Evaluator<'_, 'p> {
    fn charge(&mut self, cost: usize, place: Place) -> Result<(), Fault> {
        self.made = self.made.saturating_add(cost);
        if self.made > MADE_MAX {
            return Err(Fault::syntax(place, "the configuration's value is too large", "too large"));
        }
        Ok(())
    }

    /// Creates a text.
    fn text(&mut self, text: String, place: Place) -> Result<Node, Fault> {
        self.charge(NODE_COST + text.len(), place)?;
        Ok(Node { value: Value::Text(text), place })
    }

    fn data(&mut self, expr: &'p Expr) -> Result<Node, Fault> {
        match self.eval(expr)? {
            Got::Data(node) => Ok(node),
            Got::Host(_) | Got::Method(..) | Got::Function(_) => {
                Err(Fault::unsupported(expr.place, "functions and modules as values are not supported"))
            }
        }
    }

    fn eval(&mut self, expr: &'p Expr) -> Result<Got<'p>, Fault> {
        let place = expr.place;
        let value = match &expr.form {
            Form::Literal(value) => value.clone(),
            Form::Template(pieces, values) => return self.template(pieces, values, place).map(Got::Data),
            Form::Array(items) => {
                Value::Array(items.iter().map(|item| self.data(item)).collect::<Result<_, _>>()?)
            }
            Form::Object(properties) => {
                let mut members = Members::default();
                for property in properties {
                    let value = self.data(&property.value)?;
                    members.set(Member { key: property.key.clone(), key_place: property.key_place, value });
                }
                members.finish()
            }
            Form::Name(name) => return self.name(name, place),
            Form::Function(body) => return Ok(Got::Function(body)),
            Form::Path(base, steps) => return self.path(base, steps),
            Form::Not(operand) => Value::Bool(!self.eval(operand)?.truthy()),
            Form::Negative(operand) => Value::Number(-self.data(operand)?.value.to_number()),
            Form::Positive(operand) => Value::Number(self.data(operand)?.value.to_number()),
            Form::Chain(first, rest) => {
                let mut sum = self.data(first)?;
                for (operator, operand) in rest {
                    let operand = self.data(operand)?;
                    sum = self.binary(*operator, sum, operand, place)?;
                }
                return Ok(Got::Data(sum));
            }
            Form::Logical(logical, operands) => return self.logical(*logical, operands, place),
            Form::Conditional(parts) => {
                let [test, yes, no] = &**parts;
                return if self.eval(test)?.truthy() { self.eval(yes) } else { self.eval(no) };
            }
        };
        Ok(Got::Data(Node { value, place }))
    }

    fn template(&mut self, pieces: &[String], values: &'p [Expr], place: Place) -> Result<Node, Fault> {
        let mut text = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            text.push_str(piece);
            if let Some(value) = values.get(at) {
                text.push_str(&self.data(value)?.value.to_text());
            }
        }
        self.text(text, place)
    }

    fn logical(&mut self, logical: Logical, operands: &'p [Expr], place: Place) -> Result<Got<'p>, Fault> {
        let mut last = Got::Data(Node { value: Value::Undefined, place });
        for operand in operands {
            last = self.eval(operand)?;
            let decided = match logical {
                Logical::Or => last.truthy(),
                Logical::And => !last.truthy(),
                Logical::Else => !last.nullish(),
            };
            if decided {
                break;
            }
        }
        Ok(last)
    }

    fn binary(&mut self, operator: Binary, left: Node, right: Node, place: Place) -> Result<Node, Fault> {
        let value = match operator {
            Binary::Add => {
                let (left, right) = (primitive(left.value), primitive(right.value));
                if matches!((&left, &right), (Value::Text(_), _) | (_, Value::Text(_))) {
                    return self.text(left.to_text() + &right.to_text(), place);
                }
                Value::Number(left.to_number() + right.to_number())
            }
            Binary::Subtract => Value::Number(left.value.to_number() - right.value.to_number()),
            Binary::Multiply => Value::Number(left.value.to_number() * right.value.to_number()),
            Binary::Divide => Value::Number(left.value.to_number() / right.value.to_number()),
            Binary::Equal => Value::Bool(equal(&left.value, &right.value, place)?),
            Binary::NotEqual => Value::Bool(!equal(&left.value, &right.value, place)?),
            Binary::Same => Value::Bool(same(&left.value, &right.value, place)?),
            Binary::NotSame => Value::Bool(!same(&left.value, &right.value, place)?),
        };
        Ok(Node { value, place })
    }

    fn name(&mut self, name: &'p str, place: Place) -> Result<Got<'p>, Fault> {
        if let Some(got) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            let got = match got {
                Got::Data(node) => {
                    let cost = measure(node, 0).ok_or_else(|| {
                        Fault::syntax(place, format!("nested more than {DEPTH_MAX} deep"), "")
                    })?;
                    self.made = self.made.saturating_add(cost);
                    (self.made <= MADE_MAX).then(|| Got::Data(node.clone()))
                }
                other => Some(other.clone()),
            };
            return got
                .ok_or_else(|| Fault::syntax(place, "the configuration's value is too large", "too large"));
        }
        let value = match name {
            "undefined" => Value::Undefined,
            "NaN" => Value::Number(f64::NAN),
            "Infinity" => Value::Number(f64::INFINITY),
            _ => return host(name).map(Got::Host).ok_or_else(|| self.unknown(name, place)),
        };
        Ok(Got::Data(Node { value, place }))
    }

    fn unknown(&self, name: &str, place: Place) -> Fault {
        if GLOBALS.contains(&name) {
            return Fault::unsupported(place, format!("`{name}` is not supported"));
        }
        let mut fault = Fault::syntax(place, format!("`{name}` is not defined"), "not defined here");
        let known = self.scopes.iter().flat_map(|scope| scope.keys().copied());
        let known = known.chain(["undefined", "process", "require", "parseInt", "parseFloat"]);
        fault.hint = config::diagnostic::nearest(name, known).map(|word| format!("did you mean `{word}`?"));
        fault
    }

    fn path(&mut self, base: &'p Expr, steps: &'p [Step]) -> Result<Got<'p>, Fault> {
        let mut got = self.eval(base)?;
        for step in steps {
            let end = match step {
                Step::Member(_, place) | Step::Call(_, place) => place.end,
                Step::Index(index) => index.place.end + 1,
            };
            let place = Place::new(base.place.start, end);
            got = match step {
                Step::Member(name, at) => self.member(got, name, *at, place)?,
                Step::Index(index) => {
                    let key = self.data(index)?;
                    self.index(got, &key, place)?
                }
                Step::Call(arguments, _) => {
                    let mut values = Vec::with_capacity(arguments.len());
                    for argument in arguments {
                        values.push(self.data(argument)?);
                    }
                    self.call(got, &values, place)?
                }
            };
        }
        Ok(got)
    }

    /// `got.name`, where the name is at `at` and the whole expression at `place`.
    fn member(&mut self, got: Got<'p>, name: &'p str, at: Place, place: Place) -> Result<Got<'p>, Fault> {
        match got {
            Got::Data(node) => {
                let method = match node.value {
                    Value::Text(_) => {
                        matches!(name, "toLowerCase" | "toUpperCase" | "trim" | "split" | "replace")
                    }
                    Value::Array(_) => name == "join",
                    _ => false,
                };
                if method || name == "toString" && !matches!(node.value, Value::Undefined | Value::Null) {
                    return Ok(Got::Method(node, name));
                }
                property(node, name, at, place).map(Got::Data)
            }
            Got::Host(Host::Process) if name == "env" => Ok(Got::Host(Host::Env)),
            Got::Host(Host::Env) => self.variable(name, place).map(Got::Data),
            Got::Host(Host::Os) if name == "hostname" => Ok(Got::Host(Host::Call(Call::Hostname))),
            Got::Host(Host::Json) if name == "parse" => Ok(Got::Host(Host::Call(Call::JsonParse))),
            Got::Host(Host::Process) => Err(Fault::unsupported(
                at,
                format!("of `process` only `process.env` is supported, not `{name}`"),
            )),
            _ => Err(Fault::unsupported(at, format!("`{name}` is not supported"))),
        }
    }

    fn variable(&mut self, name: &str, place: Place) -> Result<Node, Fault> {
        match (self.environment.vars)(name) {
            Some(text) => self.text(text, place),
            None => Ok(Node { value: Value::Undefined, place }),
        }
    }

    fn index(&mut self, got: Got<'p>, key: &Node, place: Place) -> Result<Got<'p>, Fault> {
        let name = key.value.to_text();
        match got {
            Got::Data(node) => property(node, &name, key.place, place).map(Got::Data),
            Got::Host(Host::Env) => self.variable(&name, place).map(Got::Data),
            _ => Err(Fault::unsupported(key.place, "this use of `[…]` is not supported")),
        }
    }

    fn call(&mut self, got: Got<'p>, arguments: &[Node], place: Place) -> Result<Got<'p>, Fault> {
        match got {
            Got::Function(body) if arguments.is_empty() => self.function(body, place),
            Got::Function(_) => {
                Err(Fault::unsupported(arguments[0].place, "functions with arguments are not supported"))
            }
            Got::Method(node, name) => self.method(&node.value, name, arguments, place).map(Got::Data),
            Got::Host(Host::Call(Call::Require)) => match arguments {
                [Node { value: Value::Text(module), .. }] if module == "os" || module == "node:os" => {
                    Ok(Got::Host(Host::Os))
                }
                _ => Err(Fault::unsupported(place, "only `require('os')` is supported")),
            },
            Got::Host(Host::Call(call)) => self.host_call(call, arguments, place).map(Got::Data),
            Got::Data(node) => Err(Fault::syntax(
                place,
                format!("{} cannot be called", node.value.describe()),
                "not a function",
            )),
            Got::Host(_) => Err(Fault::unsupported(place, "this call is not supported")),
        }
    }

    fn function(&mut self, body: &'p [Statement], place: Place) -> Result<Got<'p>, Fault> {
        self.scopes.push(BTreeMap::new());
        let mut result = Got::Data(Node { value: Value::Undefined, place });
        for statement in body {
            match statement {
                Statement::Declare(name, value) => {
                    let got = match value {
                        Some(value) => self.declared(value)?,
                        None => Got::Data(Node { value: Value::Undefined, place }),
                    };
                    let scope = self.scopes.last_mut().expect("this call has pushed its scope");
                    scope.insert(name, got);
                }
                Statement::Return(value) => {
                    if let Some(value) = value {
                        result = self.eval(value)?;
                    }
                    break;
                }
            }
        }
        self.scopes.pop();
        Ok(result)
    }

    /// The value of a variable. Not a function: called twice, it would be evaluated twice.
    fn declared(&mut self, value: &'p Expr) -> Result<Got<'p>, Fault> {
        match self.eval(value)? {
            Got::Function(_) | Got::Method(..) => {
                Err(Fault::unsupported(value.place, "functions as values are not supported"))
            }
            got => Ok(got),
        }
    }

    fn method(&mut self, value: &Value, name: &str, arguments: &[Node], place: Place) -> Result<Node, Fault> {
        if let Some(bad) = arguments.iter().find(|node| matches!(node.value, Value::Regex(_))) {
            return Err(Fault::unsupported(
                bad.place,
                format!("regular expressions in `{name}` are not supported"),
            ));
        }
        let text = value.to_text();
        let argument = |at: usize| arguments.get(at).map(|node| node.value.to_text());
        let defined = arguments.first().is_some_and(|node| node.value != Value::Undefined);
        match (name, arguments.len()) {
            ("toLowerCase", 0) => self.text(text.to_lowercase(), place),
            ("toUpperCase", 0) => self.text(text.to_uppercase(), place),
            ("trim", 0) => self.text(number::trim(&text).to_owned(), place),
            ("toString", 0) => self.text(text, place),
            ("replace", 2) => {
                let (sought, by) = (argument(0).unwrap_or_default(), argument(1).unwrap_or_default());
                let left = MADE_MAX.saturating_sub(self.made);
                match strings::replace(&text, &sought, &by, left) {
                    Some(text) => self.text(text, place),
                    None => Err(Fault::syntax(place, "the configuration's value is too large", "too large")),
                }
            }
            ("split", 0 | 1) => {
                let separator = argument(0).unwrap_or_default();
                let pieces = if defined { strings::split(&text, &separator).collect() } else { vec![&*text] };
                self.charge(pieces.len().saturating_mul(NODE_COST).saturating_add(text.len()), place)?;
                let node = |piece: &str| Node { value: Value::Text(piece.to_owned()), place };
                Ok(Node { value: Value::Array(pieces.into_iter().map(node).collect()), place })
            }
            ("join", 0 | 1) => {
                let separator = if defined { argument(0).unwrap_or_default() } else { ",".into() };
                let Value::Array(nodes) = value else {
                    return Err(Fault::unsupported(place, "`join` of this value is not supported"));
                };
                self.charge(separator.len().saturating_mul(nodes.len()), place)?;
                let mut joined = String::new();
                join(nodes, &separator, &mut joined);
                self.text(joined, place)
            }
            _ => Err(Fault::unsupported(place, format!("`{name}` with these arguments is not supported"))),
        }
    }

    fn host_call(&mut self, call: Call, arguments: &[Node], place: Place) -> Result<Node, Fault> {
        let undefined = Value::Undefined;
        let first = arguments.first().map_or(&undefined, |node| &node.value);
        let value = match call {
            Call::Hostname => return self.text(self.environment.hostname.clone(), place),
            Call::JsonParse => {
                let text = first.to_text();
                let node = json::read(&text, json::Grammar::Strict).map_err(|fault| {
                    Fault::syntax(place, format!("`JSON.parse` failed: {}", fault.message), "not JSON")
                })?;
                let cost = measure(&node, 0).unwrap_or(MADE_MAX);
                self.charge(cost, place)?;
                return Ok(moved(node, place));
            }
            Call::ParseInt => {
                let radix = arguments.get(1).map_or(0.0, |node| node.value.to_number());
                // `radix as u32` turns NaN and numbers below 1 into 0, which means no radix, as in JavaScript.
                let radix =
                    if radix < 0.0 { Some(1) } else { Some(radix as u32).filter(|radix| *radix != 0) };
                Value::Number(number::parse_int(&first.to_text(), radix))
            }
            Call::ParseFloat => Value::Number(number::parse_float(&first.to_text())),
            Call::Number if arguments.is_empty() => Value::Number(0.0),
            Call::Number => Value::Number(first.to_number()),
            Call::String if arguments.is_empty() => Value::Text(String::new()),
            Call::String => return self.text(first.to_text(), place),
            Call::Boolean => Value::Bool(first.truthy()),
            Call::Require => return Err(Fault::unsupported(place, "only `require('os')` is supported")),
        };
        Ok(Node { value, place })
    }
}

impl Got<'_> {
    fn truthy(&self) -> bool {
        match self {
            Got::Data(node) => node.value.truthy(),
            Got::Host(_) | Got::Method(..) | Got::Function(_) => true,
        }
    }

    fn nullish(&self) -> bool {
        matches!(self, Got::Data(Node { value: Value::Undefined | Value::Null, .. }))
    }
}

fn host(name: &str) -> Option<Host> {
    Some(match name {
        "process" => Host::Process,
        "JSON" => Host::Json,
        "require" => Host::Call(Call::Require),
        "parseInt" => Host::Call(Call::ParseInt),
        "parseFloat" => Host::Call(Call::ParseFloat),
        "Number" => Host::Call(Call::Number),
        "String" => Host::Call(Call::String),
        "Boolean" => Host::Call(Call::Boolean),
        _ => return None,
    })
}

/// `node.name` or `node['name']`.
fn property(node: Node, name: &str, at: Place, place: Place) -> Result<Node, Fault> {
    let index = super::array_index(name).map(|index| index as usize);
    let found = match node.value {
        Value::Undefined | Value::Null => {
            let message = format!("`{name}` of {} cannot be read", node.value.to_text());
            let fault = Fault::syntax(place, message, "node stops here as well");
            let hint = "for an environment variable that may not be set: (process.env.NAME || '')";
            return Err(Fault { hint: Some(hint.into()), ..fault });
        }
        Value::Object(members) => {
            members.into_iter().find(|member| member.key == name).map(|member| member.value)
        }
        Value::Array(nodes) if name == "length" => {
            Some(Node { value: Value::Number(nodes.len() as f64), place })
        }
        Value::Array(mut nodes) if index.is_some() => {
            index.filter(|index| *index < nodes.len()).map(|index| nodes.swap_remove(index))
        }
        Value::Text(text) if name == "length" => {
            Some(Node { value: Value::Number(text.encode_utf16().count() as f64), place })
        }
        Value::Text(text) if index.is_some() => {
            // One UTF-16 unit in JavaScript; half of a surrogate pair is U+FFFD here.
            let unit = index.and_then(|index| text.encode_utf16().nth(index));
            unit.map(|unit| Node { value: Value::Text(String::from_utf16_lossy(&[unit])), place })
        }
        Value::Array(_) | Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Regex(_) => {
            return Err(Fault::unsupported(at, format!("`{name}` is not supported")));
        }
    };
    if found.is_none() && INHERITED.contains(&name) {
        return Err(Fault::unsupported(at, format!("`{name}` is not supported")));
    }
    Ok(found.unwrap_or(Node { value: Value::Undefined, place }))
}

/// Converts lists, objects and regular expressions to texts, as `+` and `==` do.
fn primitive(value: Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Regex(_) => Value::Text(value.to_text()),
        other => other,
    }
}

fn compound(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_) | Value::Regex(_))
}

/// `===`. Two lists or objects have no identity here.
fn same(left: &Value, right: &Value, place: Place) -> Result<bool, Fault> {
    if compound(left) && compound(right) {
        return Err(Fault::unsupported(place, "comparing lists or objects with each other is not supported"));
    }
    Ok(match (left, right) {
        (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        _ => false,
    })
}

/// `==`.
fn equal(left: &Value, right: &Value, place: Place) -> Result<bool, Fault> {
    let nullish = |value: &Value| matches!(value, Value::Undefined | Value::Null);
    Ok(match (left, right) {
        _ if compound(left) && compound(right) => return same(left, right, place),
        _ if nullish(left) || nullish(right) => nullish(left) && nullish(right),
        _ if compound(left) => equal(&primitive(left.clone()), right, place)?,
        _ if compound(right) => equal(left, &primitive(right.clone()), place)?,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        // The rest are mixtures of texts, numbers and booleans: all are compared as numbers.
        _ => left.to_number() == right.to_number(),
    })
}

/// Cost of a copy of `node`; none when it is nested too deep.
fn measure(node: &Node, depth: usize) -> Option<usize> {
    if depth > DEPTH_MAX {
        return None;
    }
    let inner: usize = match &node.value {
        Value::Text(text) | Value::Regex(text) => text.len(),
        Value::Array(nodes) => nodes.iter().map(|node| measure(node, depth + 1)).sum::<Option<_>>()?,
        Value::Object(members) => {
            let cost = |member: &Member| {
                measure(&member.value, depth + 1).map(|cost| cost + member.key.len() + NODE_COST)
            };
            members.iter().map(cost).sum::<Option<_>>()?
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    Some(inner + NODE_COST)
}

/// `node` with `place` as the place of all its parts.
fn moved(mut node: Node, place: Place) -> Node {
    node.place = place;
    match &mut node.value {
        Value::Array(nodes) => nodes.iter_mut().for_each(|inner| *inner = moved(take(inner), place)),
        Value::Object(members) => {
            for member in members {
                member.key_place = place;
                member.value = moved(take(&mut member.value), place);
            }
        }
        _ => {}
    }
    node
}

fn take(node: &mut Node) -> Node {
    let place = node.place;
    std::mem::replace(node, Node { value: Value::Undefined, place })
}
