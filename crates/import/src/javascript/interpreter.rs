//! Reads and evaluates tokens as one expression, with JavaScript's conversions. One function per precedence level, lowest
//! first.
//!
//! All tokens are read twice: the first time to find errors of syntax anywhere in the text, the second time to evaluate
//! it. Parts that JavaScript does not evaluate (the other branch of `? :`, the right side of `||`, statements after
//! `return`) are only read: [`Interpreter::is_skipped`].
//! Invariant: recursion is limited by [`DEPTH_MAX`], and chains (`a + b + c`, `a.b.c`) are loops. Every expression is
//! evaluated at most once (functions are only called where they are written), and all that an evaluation copies or
//! creates counts against [`MADE_MAX`]; so it ends soon, whatever the text is.
//! Not here: conversions of single values (`Value`, `number`), methods of strings (`strings`).

use std::collections::BTreeMap;

use config::diagnostic::Place;

use super::fault::Fault;
use super::lexer::{self, Grammar, Kind, Token};
use super::value::{Member, Members, Node, Value, array_index, join};
use super::{number, strings};

/// Deepest nesting of brackets, operators and values.
pub const DEPTH_MAX: usize = 64;
/// Most that one evaluation may create: bytes of text, and 64 for each value.
pub const MADE_MAX: usize = 8 << 20;

/// The environment of an expression.
pub struct Environment<'a> {
    /// Environment variables: `process.env`.
    pub vars: &'a dyn Fn(&str) -> Option<String>,
    /// Name of the machine: `require('os').hostname()`.
    pub hostname: String,
}

/// Cost of one value in [`MADE_MAX`], beside its text.
const NODE_COST: usize = 64;

/// Words that cannot be names.
const RESERVED: &str = "await break case catch class const continue debugger default delete do else enum export \
    extends finally for function if import in instanceof new return super switch this throw try typeof var void while \
    with yield let async";

/// Names of JavaScript and node that are not supported here, to tell them from misspelled names in messages.
const GLOBALS: &str = "Array BigInt Buffer Date Error Function Map Math Object Promise RegExp Set Symbol __dirname \
    __filename config console decodeURIComponent encodeURIComponent eval exports global globalThis isFinite isNaN \
    module setInterval setTimeout util";

/// Members that every JavaScript object inherits.
const INHERITED: &str = "__proto__ constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString \
    toString valueOf";

/// Whether a list of words has this one.
fn lists(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Evaluates the one expression of a file.
pub(super) fn run(tokens: &[Token], environment: &Environment<'_>) -> Read<Node> {
    let mut interpreter = Interpreter::new(tokens, Grammar::JavaScript, environment);
    interpreter.is_skipped = true;
    interpreter.program()?;
    (interpreter.at, interpreter.is_skipped) = (0, false);
    interpreter.program()
}

/// The one value of a text in JSON.
pub(super) fn json(tokens: &[Token], grammar: Grammar) -> Read<Node> {
    let environment = Environment { vars: &|_| None, hostname: String::new() };
    let mut interpreter = Interpreter::new(tokens, grammar, &environment);
    let value = interpreter.data()?;
    if interpreter.end() {
        Ok(value)
    } else {
        Err(interpreter.unexpected("the file continues after its value"))
    }
}

/// Result of an expression. Only `Data` can be kept in lists and objects.
#[derive(Clone, Debug)]
enum Got<'t> {
    Data(Node),
    /// One of [`HOST`].
    Host(&'static str),
    /// A method of a value, to be called.
    Method(Node, &'t str),
    /// A function without arguments, with the value that it returns: it is only useful when it is called at once.
    Function(Box<Got<'t>>),
}

impl Got<'_> {
    fn undefined(place: Place) -> Self {
        Got::Data(Node { value: Value::Undefined, place })
    }

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

/// Objects and functions of node that are supported: names, and paths from them. `os` is the module.
const HOST: &str =
    "process process.env os os.hostname JSON JSON.parse require parseInt parseFloat Number String Boolean";

/// Operators of two values that are applied from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Same,
    NotSame,
}

const EQUALITIES: [(&str, Binary); 4] =
    [("==", Binary::Equal), ("!=", Binary::NotEqual), ("===", Binary::Same), ("!==", Binary::NotSame)];
const SUMS: [(&str, Binary); 2] = [("+", Binary::Add), ("-", Binary::Subtract)];
const PRODUCTS: [(&str, Binary); 2] = [("*", Binary::Multiply), ("/", Binary::Divide)];

struct Interpreter<'e, 't> {
    tokens: &'t [Token],
    grammar: Grammar,
    at: usize,
    depth: usize,
    /// Expressions are only read, and their values have no meaning.
    is_skipped: bool,
    environment: &'e Environment<'e>,
    /// Variables of the functions being called, the innermost last.
    scopes: Vec<BTreeMap<&'t str, Got<'t>>>,
    /// Bytes and values created so far.
    made: usize,
}

type Read<T> = Result<T, Fault>;

/// Tokens.
impl<'e, 't> Interpreter<'e, 't> {
    fn new(tokens: &'t [Token], grammar: Grammar, environment: &'e Environment<'e>) -> Self {
        let (at, depth, made, scopes) = (0, 0, 0, Vec::new());
        Interpreter { tokens, grammar, at, depth, is_skipped: false, environment, scopes, made }
    }

    fn is_json(&self) -> bool {
        self.grammar != Grammar::JavaScript
    }

    fn peek(&self) -> &'t Token {
        self.look(0)
    }

    /// The token `ahead` places after the next one, or the end.
    fn look(&self, ahead: usize) -> &'t Token {
        let last = self.tokens.len() - 1; // The lexer always ends with `End`.
        &self.tokens[(self.at + ahead).min(last)]
    }

    fn place(&self) -> Place {
        self.peek().place
    }

    fn end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    fn sign(&self, sign: &str) -> bool {
        matches!(self.peek().kind, Kind::Sign(next) if next == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.sign(sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(&self.peek().kind, Kind::Word(next) if next == word);
        self.at += usize::from(found);
        found
    }

    /// From `start` to the end of the last read token.
    fn since(&self, start: Place) -> Place {
        let end = self.at.checked_sub(1).map_or(start.end, |at| self.tokens[at].place.end);
        Place::new(start.start, end.max(start.end))
    }

    fn wanted(&mut self, sign: &str) -> Read<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` is missing"))) }
    }

    fn unexpected(&self, message: &str) -> Fault {
        let label = match &self.peek().kind {
            Kind::End => "the file ends here".to_owned(),
            Kind::Word(word) => format!("`{word}` was not expected"),
            Kind::Sign(sign) => format!("`{sign}` was not expected"),
            Kind::Number(_) | Kind::Text(_) | Kind::Template { .. } | Kind::Regex(_) => {
                "not expected".to_owned()
            }
        };
        Fault::syntax(self.place(), message, label)
    }

    /// JSON has no such word.
    fn bare_word(&self, message: &str) -> Fault {
        let hint = "keys and strings need double quotes in a Perl file; is this a config of node's statsd?";
        self.unexpected(message).hint(hint)
    }

    fn unsupported<T>(&self, what: impl Into<String>) -> Read<T> {
        Err(Fault::unsupported(self.place(), what))
    }

    fn unsupported_operator<T>(&self, operator: &str) -> Read<T> {
        self.unsupported(format!("the operator `{operator}` is not supported"))
    }

    /// Runs `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEPTH_MAX {
            return Err(too_deep(self.place()));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Runs `read`, without evaluating anything if `is_skipped`.
    fn skipped_if<T>(&mut self, is_skipped: bool, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let before = self.is_skipped;
        self.is_skipped |= is_skipped;
        let result = read(self);
        self.is_skipped = before;
        result
    }
}

/// Expressions.
impl<'t> Interpreter<'_, 't> {
    /// The one expression of the file.
    fn program(&mut self) -> Read<Node> {
        while self.take(";") {}
        if self.end() {
            let message = "the file contains no value";
            return Err(Fault::syntax(self.place(), message, "an object is wanted: `{ … }`"));
        }
        self.module_exports()?;
        let value = self.data()?;
        while self.take(";") {}
        match self.peek().kind {
            Kind::End => Ok(value),
            Kind::Word(_) => self.unsupported("statements after the configuration's value are not supported"),
            _ => Err(self.unexpected("the file continues after its value")),
        }
    }

    /// `module.exports =` before the value.
    fn module_exports(&mut self) -> Read<()> {
        let words = [self.look(0), self.look(1), self.look(2), self.look(3)].map(|token| &token.kind);
        if let [Kind::Word(module), Kind::Sign("."), Kind::Word(exports), Kind::Sign("=")] = words
            && module == "module"
            && exports == "exports"
        {
            self.at += 4;
        }
        if let (Kind::Word(word), Kind::Word(_)) = (&self.look(0).kind, &self.look(1).kind)
            && matches!(word.as_str(), "var" | "let" | "const" | "export" | "import")
        {
            let message = format!("`{word}` is not supported outside a function");
            let hint = "node reads the file as one expression: write `(function () { … return { … }; })()`";
            return Err(Fault::unsupported(self.place(), message).hint(hint));
        }
        Ok(())
    }

    /// An expression whose value can be kept.
    fn data(&mut self) -> Read<Node> {
        let start = self.place();
        let got = self.expression()?;
        self.kept(got, start)
    }

    /// The value of an expression from `start` to here.
    fn kept(&self, got: Got<'t>, start: Place) -> Read<Node> {
        match got {
            Got::Data(node) => Ok(node),
            Got::Host(_) | Got::Method(..) | Got::Function(_) => {
                let place = self.since(start);
                Err(Fault::unsupported(place, "functions and modules as values are not supported"))
            }
        }
    }

    fn expression(&mut self) -> Read<Got<'t>> {
        self.deeper(if self.is_json() { Self::primary } else { Self::conditional })
    }

    fn conditional(&mut self) -> Read<Got<'t>> {
        let test = self.either()?;
        if let Kind::Sign(sign) = self.peek().kind
            && (sign == "=>"
                || sign.ends_with('=') && !matches!(sign, "==" | "===" | "!=" | "!==" | "<=" | ">="))
        {
            let what = if sign == "=>" { "functions with arguments" } else { "assignments" };
            return self.unsupported(format!("{what} are not supported"));
        }
        if !self.take("?") {
            return Ok(test);
        }
        let is_true = test.truthy();
        let yes = self.skipped_if(!is_true, Self::expression)?;
        self.wanted(":")?;
        let no = self.skipped_if(is_true, Self::expression)?;
        Ok(if is_true { yes } else { no })
    }

    /// `||` and `??`, which JavaScript does not allow to be mixed without brackets.
    fn either(&mut self) -> Read<Got<'t>> {
        let start = self.place();
        let (mut got, mut has_and) = self.both()?;
        let Kind::Sign(sign @ ("||" | "??")) = self.peek().kind else { return Ok(got) };
        while self.take(sign) {
            let is_decided = if sign == "||" { got.truthy() } else { !got.nullish() };
            let (next, is_and) = self.skipped_if(is_decided, Self::both)?;
            has_and |= is_and;
            if !is_decided {
                got = next;
            }
        }
        if self.sign("||") || self.sign("??") || sign == "??" && has_and {
            let message = "`??` beside `||` or `&&` needs brackets";
            return Err(Fault::syntax(self.since(start), message, "node refuses this"));
        }
        Ok(got)
    }

    /// `&&`, and whether there is one.
    fn both(&mut self) -> Read<(Got<'t>, bool)> {
        let mut got = self.equality()?;
        let is_and = self.sign("&&");
        while self.take("&&") {
            let is_decided = !got.truthy();
            let next = self.skipped_if(is_decided, Self::equality)?;
            if !is_decided {
                got = next;
            }
        }
        Ok((got, is_and))
    }

    fn equality(&mut self) -> Read<Got<'t>> {
        self.chain(&EQUALITIES, Self::sum)
    }

    fn sum(&mut self) -> Read<Got<'t>> {
        let sum = self.chain(&SUMS, Self::product)?;
        match self.peek().kind {
            Kind::Sign(sign @ ("<" | ">" | "<=" | ">=" | "<<" | ">>" | ">>>" | "&" | "|" | "^")) => {
                self.unsupported_operator(sign)
            }
            _ => Ok(sum),
        }
    }

    fn product(&mut self) -> Read<Got<'t>> {
        let product = self.chain(&PRODUCTS, Self::unary)?;
        match &self.peek().kind {
            Kind::Sign(sign @ ("%" | "**")) => self.unsupported_operator(sign),
            Kind::Word(word) if matches!(word.as_str(), "in" | "instanceof") => {
                self.unsupported_operator(word)
            }
            _ => Ok(product),
        }
    }

    /// Operators of one precedence, applied from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, Binary)],
        operand: fn(&mut Self) -> Read<Got<'t>>,
    ) -> Read<Got<'t>> {
        let start = self.place();
        let mut got = operand(self)?;
        while let Kind::Sign(sign) = self.peek().kind
            && let Some((_, operator)) = operators.iter().find(|(known, _)| *known == sign)
        {
            let left = self.kept(got, start)?;
            self.at += 1;
            let from = self.place();
            let right = operand(self)?;
            let right = self.kept(right, from)?;
            let place = self.since(start);
            got = match self.is_skipped {
                true => Got::undefined(place),
                false => Got::Data(self.binary(*operator, left, right, place)?),
            };
        }
        Ok(got)
    }

    fn binary(&mut self, operator: Binary, left: Node, right: Node, place: Place) -> Read<Node> {
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

    fn unary(&mut self) -> Read<Got<'t>> {
        let start = self.place();
        match &self.peek().kind {
            Kind::Sign(sign @ ("!" | "-" | "+")) => {
                self.at += 1;
                let from = self.place();
                let operand = self.deeper(Self::unary)?;
                let value = match *sign {
                    "!" => Value::Bool(!operand.truthy()),
                    "-" => Value::Number(-self.kept(operand, from)?.value.to_number()),
                    _ => Value::Number(self.kept(operand, from)?.value.to_number()),
                };
                Ok(Got::Data(Node { value, place: self.since(start) }))
            }
            Kind::Sign(sign @ ("~" | "++" | "--")) => self.unsupported_operator(sign),
            Kind::Word(word) if matches!(word.as_str(), "typeof" | "void" | "delete" | "await" | "new") => {
                self.unsupported(format!("`{word}` is not supported"))
            }
            _ => self.path(),
        }
    }

    /// A value followed by members, indexes and calls.
    fn path(&mut self) -> Read<Got<'t>> {
        let start = self.place();
        let mut got = self.primary()?;
        loop {
            if self.take(".") {
                let (Kind::Word(name), at) = (&self.peek().kind, self.place()) else {
                    return Err(self.unexpected("a name is missing behind `.`"));
                };
                self.at += 1;
                if !self.is_skipped {
                    got = self.member(got, name, at, self.since(start))?;
                }
            } else if self.take("[") {
                let index = self.data()?;
                self.wanted("]")?;
                if !self.is_skipped {
                    got = self.index(got, &index, self.since(start))?;
                }
            } else if self.take("(") {
                let arguments = self.list(")")?;
                if !self.is_skipped {
                    got = self.call(got, &arguments, self.since(start))?;
                }
            } else {
                break;
            }
        }
        match self.peek().kind {
            Kind::Sign(sign @ ("?." | "++" | "--")) => self.unsupported_operator(sign),
            Kind::Template { first: true, .. } => self.unsupported("tagged templates are not supported"),
            _ => Ok(got),
        }
    }

    /// Values between commas, up to and with `close`.
    fn list(&mut self, close: &str) -> Read<Vec<Node>> {
        let mut list = Vec::new();
        while !self.take(close) {
            let place = self.place();
            if close == "]" && !self.is_json() && self.take(",") {
                list.push(Node { value: Value::Undefined, place });
                continue;
            }
            list.push(self.data()?);
            self.comma(close)?;
        }
        Ok(list)
    }

    /// `,`, or nothing before `close`.
    fn comma(&mut self, close: &str) -> Read<()> {
        if self.sign(close) {
            return Ok(());
        }
        if self.take(",") {
            let is_missing = self.grammar == Grammar::Json && self.sign(close);
            return if is_missing { Err(self.unexpected("a value is missing")) } else { Ok(()) };
        }
        let fault = self.unexpected(&format!("`,` or `{close}` is missing"));
        Err(if self.sign(":") && close != "}" {
            fault.hint(format!("a `{close}` may be missing on a line before"))
        } else if self.peek().newline_before && !self.end() {
            fault.hint("a `,` may be missing at the end of the line before")
        } else {
            fault
        })
    }

    fn primary(&mut self) -> Read<Got<'t>> {
        let token = self.peek();
        let start = token.place;
        let literal = |value: Value| Got::Data(Node { value, place: start });
        let got = match &token.kind {
            Kind::Number(number) => literal(Value::Number(*number)),
            Kind::Text(text) => literal(Value::Text(text.clone())),
            Kind::Regex(regex) => literal(Value::Regex(regex.clone())),
            Kind::Template { first: true, .. } => return self.template(),
            Kind::Word(word) => match word.as_str() {
                "true" => literal(Value::Bool(true)),
                "false" => literal(Value::Bool(false)),
                "null" => literal(Value::Null),
                _ if self.is_json() => return Err(self.bare_word("a value is missing")),
                "function" => return self.function(),
                _ if lists(RESERVED, word) => return self.unsupported(format!("`{word}` is not supported")),
                _ => self.name(word, start)?,
            },
            Kind::Sign("[") => {
                self.at += 1;
                let value = Value::Array(self.list("]")?);
                return Ok(Got::Data(Node { value, place: self.since(start) }));
            }
            Kind::Sign("{") => {
                self.at += 1;
                let value = self.object()?;
                return Ok(Got::Data(Node { value, place: self.since(start) }));
            }
            Kind::Sign("(") => return self.bracket(),
            Kind::Sign("...") => return self.unsupported("`...` is not supported"),
            Kind::Sign(_) | Kind::Template { .. } | Kind::End => {
                return Err(self.unexpected("a value is missing"));
            }
        };
        self.at += 1;
        Ok(got)
    }

    /// At `(`: an expression in brackets, or an arrow function.
    fn bracket(&mut self) -> Read<Got<'t>> {
        self.at += 1;
        if let (Kind::Sign(")"), Kind::Sign("=>")) = (&self.look(0).kind, &self.look(1).kind) {
            self.at += 2;
            if self.take("{") {
                return self.body();
            }
            let got = self.expression()?;
            return Ok(self.returning(got));
        }
        let inner = self.expression()?;
        if self.sign(",") {
            return self.unsupported_operator(",");
        }
        self.wanted(")")?;
        Ok(inner)
    }

    fn template(&mut self) -> Read<Got<'t>> {
        let start = self.place();
        let (mut whole, mut is_first) = (String::new(), true);
        loop {
            match &self.peek().kind {
                Kind::Template { text, first, last } if *first == is_first => {
                    self.at += 1;
                    whole.push_str(text);
                    if *last {
                        return self.text(whole, self.since(start)).map(Got::Data);
                    }
                }
                _ => return Err(self.unexpected("`}` is missing")),
            }
            is_first = false;
            let value = self.data()?.value;
            if !self.is_skipped {
                whole.push_str(&value.to_text());
            }
        }
    }

    /// The members of an object, up to and with its `}`.
    fn object(&mut self) -> Read<Value> {
        let mut members = Members::default();
        while !self.take("}") {
            members.set(self.property()?);
            self.comma("}")?;
        }
        Ok(members.finish())
    }

    fn property(&mut self) -> Read<Member> {
        let key_place = self.place();
        let kind = &self.peek().kind;
        let key = match kind {
            Kind::Word(_) if self.is_json() => {
                return Err(self.bare_word("a key in double quotes is missing"));
            }
            Kind::Number(_) if self.is_json() => {
                return Err(self.unexpected("a key in double quotes is missing"));
            }
            Kind::Word(text) | Kind::Text(text) => text.clone(),
            Kind::Number(number) => number::to_text(*number),
            Kind::Sign("[") => return self.unsupported("computed keys are not supported"),
            Kind::Sign("...") => return self.unsupported("`...` is not supported"),
            Kind::Sign("*") => return self.unsupported("generators are not supported"),
            Kind::Sign(_) | Kind::Template { .. } | Kind::Regex(_) | Kind::End => {
                return Err(self.unexpected("a key is missing"));
            }
        };
        self.at += 1;
        if let Kind::Word(name) = kind
            && !lists(RESERVED, name)
            && (self.sign(",") || self.sign("}"))
        {
            let got = self.name(name, key_place)?;
            return Ok(Member { key, key_place, value: self.kept(got, key_place)? });
        }
        if self.sign("(") || matches!(key.as_str(), "get" | "set" | "async") && !self.sign(":") {
            return Err(Fault::unsupported(key_place, "functions as members are not supported"));
        }
        if !self.take(":") {
            return Err(self.unexpected(&format!("`:` is missing behind the key `{key}`")));
        }
        if key == "__proto__" && !self.is_json() {
            return Err(Fault::unsupported(key_place, "`__proto__` is not supported"));
        }
        Ok(Member { key, key_place, value: self.data()? })
    }
}

/// Functions.
impl<'t> Interpreter<'_, 't> {
    fn function(&mut self) -> Read<Got<'t>> {
        self.at += 1;
        if let Kind::Word(_) = self.peek().kind {
            self.at += 1;
        }
        self.wanted("(")?;
        if !self.take(")") {
            return self.unsupported("functions with arguments are not supported");
        }
        self.wanted("{")?;
        self.body()
    }

    /// A function that returns a value.
    fn returning(&self, got: Got<'t>) -> Got<'t> {
        if self.is_skipped { Got::undefined(self.place()) } else { Got::Function(Box::new(got)) }
    }

    /// Statements up to and with the `}` that closes a function.
    fn body(&mut self) -> Read<Got<'t>> {
        self.scopes.push(BTreeMap::new());
        let was_skipped = self.is_skipped;
        let mut result = Got::undefined(self.place());
        let mut is_first = true;
        while !self.take("}") {
            if self.take(";") {
                continue;
            }
            if self.take_word("return") {
                let returned = self.returned()?;
                if !self.is_skipped {
                    result = returned;
                }
                self.is_skipped = true;
            } else if self.take_word("var") || self.take_word("let") || self.take_word("const") {
                self.declarations()?;
            } else if let (true, Kind::Text(_)) = (is_first, &self.peek().kind) {
                self.at += 1; // 'use strict'
            } else if self.end() {
                return Err(self.unexpected("`}` is missing at the end of the function"));
            } else {
                return self
                    .unsupported("only `var`, `let`, `const` and `return` are supported in a function");
            }
            is_first = false;
            self.statement_end()?;
        }
        self.is_skipped = was_skipped;
        self.scopes.pop();
        Ok(self.returning(result))
    }

    fn returned(&mut self) -> Read<Got<'t>> {
        if self.sign(";") || self.sign("}") {
            return Ok(Got::undefined(self.place()));
        }
        if self.peek().newline_before {
            let place = self.tokens[self.at - 1].place;
            let message = "node reads a `return` that ends its line as `return undefined`";
            let hint = "write the value on the line of the `return`";
            return Err(Fault::syntax(place, message, "nothing is returned").hint(hint));
        }
        self.expression()
    }

    fn declarations(&mut self) -> Read<()> {
        loop {
            let place = self.place();
            let name = match &self.peek().kind {
                Kind::Word(name) if !lists(RESERVED, name) => name,
                Kind::Sign("{" | "[") => return self.unsupported("taking a value apart is not supported"),
                _ => return Err(self.unexpected("a name is missing")),
            };
            self.at += 1;
            let value = if self.take("=") { self.declared()? } else { Got::undefined(place) };
            if !self.is_skipped {
                let scope = self.scopes.last_mut().expect("a function's body has pushed its scope");
                scope.insert(name, value);
            }
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    /// The value of a variable. Not a function, which could then be called twice.
    fn declared(&mut self) -> Read<Got<'t>> {
        let start = self.place();
        match self.expression()? {
            Got::Function(_) | Got::Method(..) => {
                Err(Fault::unsupported(self.since(start), "functions as values are not supported"))
            }
            got @ (Got::Data(_) | Got::Host(_)) => Ok(got),
        }
    }

    /// `;`, or a place where JavaScript inserts it.
    fn statement_end(&mut self) -> Read<()> {
        if self.take(";") || self.sign("}") || self.end() || self.peek().newline_before {
            return Ok(());
        }
        Err(self.unexpected("`;` is missing"))
    }
}

/// Values.
impl<'t> Interpreter<'_, 't> {
    fn charge(&mut self, cost: usize, place: Place) -> Read<()> {
        self.made = self.made.saturating_add(cost);
        if self.made > MADE_MAX {
            return Err(Fault::syntax(place, "the configuration's value is too large", "too large"));
        }
        Ok(())
    }

    /// Creates a text.
    fn text(&mut self, text: String, place: Place) -> Read<Node> {
        self.charge(NODE_COST + text.len(), place)?;
        Ok(Node { value: Value::Text(text), place })
    }

    fn name(&mut self, name: &'t str, place: Place) -> Read<Got<'t>> {
        if self.is_skipped {
            return Ok(Got::undefined(place));
        }
        if let Some(got) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            if let Got::Data(node) = got {
                let cost = measure(node, 0).ok_or_else(|| too_deep(place))?;
                let got = got.clone();
                return self.charge(cost, place).map(|()| got);
            }
            return Ok(got.clone());
        }
        let value = match name {
            "undefined" => Value::Undefined,
            "NaN" => Value::Number(f64::NAN),
            "Infinity" => Value::Number(f64::INFINITY),
            _ => return host(name).filter(|_| name != "os").ok_or_else(|| self.unknown(name, place)),
        };
        Ok(Got::Data(Node { value, place }))
    }

    fn unknown(&self, name: &str, place: Place) -> Fault {
        if lists(GLOBALS, name) {
            return Fault::unsupported(place, format!("`{name}` is not supported"));
        }
        let known = self.scopes.iter().flat_map(|scope| scope.keys().copied());
        let known = known.chain(["undefined", "process", "require", "parseInt", "parseFloat"]);
        let hint = config::diagnostic::nearest(name, known).map(|word| format!("did you mean `{word}`?"));
        Fault { hint, ..Fault::syntax(place, format!("`{name}` is not defined"), "not defined here") }
    }

    /// `got.name`, where the name is at `at` and the whole expression at `place`.
    fn member(&mut self, got: Got<'t>, name: &'t str, at: Place, place: Place) -> Read<Got<'t>> {
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
            Got::Host("process.env") => self.variable(name, place).map(Got::Data),
            Got::Host(of) => host(&format!("{of}.{name}")).ok_or_else(|| {
                let message = match of {
                    "process" => format!("of `process` only `process.env` is supported, not `{name}`"),
                    _ => format!("`{name}` is not supported"),
                };
                Fault::unsupported(at, message)
            }),
            Got::Method(..) | Got::Function(_) => {
                Err(Fault::unsupported(at, format!("`{name}` is not supported")))
            }
        }
    }

    fn variable(&mut self, name: &str, place: Place) -> Read<Node> {
        match (self.environment.vars)(name) {
            Some(text) => self.text(text, place),
            None => Ok(Node { value: Value::Undefined, place }),
        }
    }

    fn index(&mut self, got: Got<'t>, key: &Node, place: Place) -> Read<Got<'t>> {
        let name = key.value.to_text();
        match got {
            Got::Data(node) => property(node, &name, key.place, place).map(Got::Data),
            Got::Host("process.env") => self.variable(&name, place).map(Got::Data),
            Got::Host(_) | Got::Method(..) | Got::Function(_) => {
                Err(Fault::unsupported(key.place, "this use of `[…]` is not supported"))
            }
        }
    }

    fn call(&mut self, got: Got<'t>, arguments: &[Node], place: Place) -> Read<Got<'t>> {
        match got {
            Got::Function(result) if arguments.is_empty() => Ok(*result),
            Got::Function(_) => {
                Err(Fault::unsupported(arguments[0].place, "functions with arguments are not supported"))
            }
            Got::Method(node, name) => self.method(&node.value, name, arguments, place).map(Got::Data),
            Got::Host("require") => match arguments {
                [Node { value: Value::Text(module), .. }] if module == "os" || module == "node:os" => {
                    Ok(Got::Host("os"))
                }
                _ => Err(Fault::unsupported(place, "only `require('os')` is supported")),
            },
            Got::Host(function) => self.host_call(function, arguments, place).map(Got::Data),
            Got::Data(node) => Err(Fault::syntax(
                place,
                format!("{} cannot be called", node.value.describe()),
                "not a function",
            )),
        }
    }

    fn method(&mut self, value: &Value, name: &str, arguments: &[Node], place: Place) -> Read<Node> {
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

    fn host_call(&mut self, function: &str, arguments: &[Node], place: Place) -> Read<Node> {
        let undefined = Value::Undefined;
        let first = arguments.first().map_or(&undefined, |node| &node.value);
        let value = match function {
            "os.hostname" => return self.text(self.environment.hostname.clone(), place),
            "JSON.parse" => {
                let text = first.to_text();
                let node = lexer::tokens(&text, Grammar::Json)
                    .and_then(|tokens| json(&tokens, Grammar::Json))
                    .map_err(|fault| {
                        Fault::syntax(place, format!("`JSON.parse` failed: {}", fault.message), "not JSON")
                    })?;
                let cost = measure(&node, 0).unwrap_or(MADE_MAX);
                self.charge(cost, place)?;
                return Ok(moved(node, place));
            }
            "parseInt" => {
                let radix = arguments.get(1).map_or(0.0, |node| node.value.to_number());
                // `radix as u32` turns NaN and numbers below 1 into 0, which means no radix, as in JavaScript.
                let radix =
                    if radix < 0.0 { Some(1) } else { Some(radix as u32).filter(|radix| *radix != 0) };
                Value::Number(number::parse_int(&first.to_text(), radix))
            }
            "parseFloat" => Value::Number(number::parse_float(&first.to_text())),
            "Number" if arguments.is_empty() => Value::Number(0.0),
            "Number" => Value::Number(first.to_number()),
            "String" if arguments.is_empty() => Value::Text(String::new()),
            "String" => return self.text(first.to_text(), place),
            "Boolean" => Value::Bool(first.truthy()),
            _ => return Err(Fault::unsupported(place, "this call is not supported")),
        };
        Ok(Node { value, place })
    }
}

fn host<'t>(path: &str) -> Option<Got<'t>> {
    HOST.split_whitespace().find(|known| *known == path).map(Got::Host)
}

/// `node.name` or `node['name']`.
fn property(node: Node, name: &str, at: Place, place: Place) -> Read<Node> {
    let index = array_index(name).map(|index| index as usize);
    let found = match node.value {
        Value::Undefined | Value::Null => {
            let message = format!("`{name}` of {} cannot be read", node.value.to_text());
            let hint = "for an environment variable that may not be set: (process.env.NAME || '')";
            return Err(Fault::syntax(place, message, "node stops here as well").hint(hint));
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
    if found.is_none() && lists(INHERITED, name) {
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

fn too_deep(place: Place) -> Fault {
    Fault::syntax(place, format!("nested more than {DEPTH_MAX} deep"), "too deep")
}
