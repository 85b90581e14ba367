//! Parses tokens into expressions. One function per precedence level, lowest first.
//!
//! Invariant: recursion is limited by [`DEPTH_MAX`]; chains (`a + b + c`, `a.b.c`) are lists, so neither parsing,
//! evaluating nor dropping them needs a deep stack. Unsupported JavaScript is reported as such.

use super::lexer::{Kind, Token};
use super::{DEPTH_MAX, Fault, Place, Value};

/// An expression and its place.
#[derive(Debug)]
pub(super) struct Expr {
    pub form: Form,
    pub place: Place,
}

#[derive(Debug)]
pub(super) enum Form {
    /// Number, text, true, false, null, regular expression.
    Literal(Value),
    /// Pieces of text with expressions between them: one piece more than expressions.
    Template(Vec<String>, Vec<Expr>),
    Array(Vec<Expr>),
    Object(Vec<Property>),
    Name(String),
    /// A function without arguments; only useful when it is called at once.
    Function(Vec<Statement>),
    /// `base.a[b](c)`
    Path(Box<Expr>, Vec<Step>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    /// Operators of one precedence, applied from left to right.
    Chain(Box<Expr>, Vec<(Binary, Expr)>),
    /// `||`, `&&` or `??` from left to right.
    Logical(Logical, Vec<Expr>),
    Conditional(Box<[Expr; 3]>),
}

#[derive(Debug)]
pub(super) struct Property {
    pub key: String,
    pub key_place: Place,
    pub value: Expr,
}

/// One step of a path, with the place of the part after the dot or in the brackets.
#[derive(Debug)]
pub(super) enum Step {
    Member(String, Place),
    Index(Expr),
    /// Arguments, and the place of their brackets.
    Call(Vec<Expr>, Place),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Same,
    NotSame,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    Or,
    And,
    /// `??`
    Else,
}

/// A statement in a function's body.
#[derive(Debug)]
pub(super) enum Statement {
    /// `var name = value`; without a value `undefined`.
    Declare(String, Option<Expr>),
    Return(Option<Expr>),
}

/// Words that cannot be names.
const RESERVED: &[&str] = &[
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "new",
    "return",
    "super",
    "switch",
    "this",
    "throw",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "let",
    "async",
];

/// The one expression of the file.
pub(super) fn program(tokens: &[Token]) -> Result<Expr, Fault> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    while parser.take(";") {}
    if parser.end() {
        return Err(Fault::syntax(
            parser.place(),
            "the file contains no value",
            "an object is wanted: `{ … }`",
        ));
    }
    parser.module_exports()?;
    let value = parser.expression()?;
    while parser.take(";") {}
    if parser.end() {
        return Ok(value);
    }
    if let Kind::Word(_) = parser.peek().kind {
        return Err(parser.unsupported("statements after the configuration's value are not supported"));
    }
    Err(parser.unexpected("the file continues after its value"))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a Token {
        self.look(0)
    }

    /// The token `ahead` places after the next one, or the end.
    fn look(&self, ahead: usize) -> &'a Token {
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

    fn word(&self, word: &str) -> bool {
        matches!(&self.peek().kind, Kind::Word(next) if next == word)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.sign(sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.word(word);
        self.at += usize::from(found);
        found
    }

    /// From `start` to the end of the last read token.
    fn since(&self, start: Place) -> Place {
        let end = self.at.checked_sub(1).map_or(start.end, |at| self.tokens[at].place.end);
        Place::new(start.start, end.max(start.end))
    }

    fn wanted(&mut self, sign: &str) -> Result<(), Fault> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` is missing"))) }
    }

    fn unexpected(&self, message: &str) -> Fault {
        let label = match &self.peek().kind {
            Kind::End => "the file ends here".to_owned(),
            Kind::Word(word) => format!("`{word}` was not expected"),
            Kind::Sign(sign) => format!("`{sign}` was not expected"),
            _ => "not expected".to_owned(),
        };
        Fault::syntax(self.place(), message, label)
    }

    fn unsupported(&self, message: impl Into<String>) -> Fault {
        Fault::unsupported(self.place(), message)
    }

    /// Runs `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= DEPTH_MAX {
            return Err(Fault::syntax(
                self.place(),
                format!("nested more than {DEPTH_MAX} deep"),
                "too deep",
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// `module.exports =` or `exports =` before the value.
    fn module_exports(&mut self) -> Result<(), Fault> {
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
            let fault = self.unsupported(format!("`{word}` is not supported outside a function"));
            let hint = "node reads the file as one expression: write `(function () { … return { … }; })()`";
            return Err(Fault { hint: Some(hint.into()), ..fault });
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<Expr, Fault> {
        self.deeper(Parser::conditional)
    }

    fn conditional(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let test = self.either()?;
        if let Kind::Sign(sign) = self.peek().kind
            && (sign == "=>"
                || sign.ends_with('=') && !matches!(sign, "==" | "===" | "!=" | "!==" | "<=" | ">="))
        {
            let what = if sign == "=>" { "functions with arguments" } else { "assignments" };
            return Err(self.unsupported(format!("{what} are not supported")));
        }
        if !self.take("?") {
            return Ok(test);
        }
        let yes = self.expression()?;
        self.wanted(":")?;
        let no = self.expression()?;
        let place = self.since(start);
        Ok(Expr { form: Form::Conditional(Box::new([test, yes, no])), place })
    }

    /// `||` and `??`, which JavaScript does not allow to be mixed without brackets.
    fn either(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let first = self.both()?;
        let (sign, logical) = match self.peek().kind {
            Kind::Sign("||") => ("||", Logical::Or),
            Kind::Sign("??") => ("??", Logical::Else),
            _ => return Ok(first),
        };
        let bare = |operand: &Expr| matches!(operand.form, Form::Logical(Logical::And, _));
        let mixed = |parser: &Self| {
            Fault::syntax(parser.since(start), "`??` beside `||` or `&&` needs brackets", "node refuses this")
        };
        if logical == Logical::Else && bare(&first) {
            return Err(mixed(self));
        }
        let mut operands = vec![first];
        while self.take(sign) {
            let next = self.both()?;
            if logical == Logical::Else && bare(&next) {
                return Err(mixed(self));
            }
            operands.push(next);
        }
        if self.sign("||") || self.sign("??") {
            return Err(mixed(self));
        }
        Ok(Expr { form: Form::Logical(logical, operands), place: self.since(start) })
    }

    fn both(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let first = self.equality()?;
        if !self.sign("&&") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take("&&") {
            operands.push(self.equality()?);
        }
        Ok(Expr { form: Form::Logical(Logical::And, operands), place: self.since(start) })
    }

    fn equality(&mut self) -> Result<Expr, Fault> {
        self.chain(Parser::sum, |sign| match sign {
            "==" => Some(Binary::Equal),
            "!=" => Some(Binary::NotEqual),
            "===" => Some(Binary::Same),
            "!==" => Some(Binary::NotSame),
            _ => None,
        })
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        let sum = self.chain(Parser::product, |sign| match sign {
            "+" => Some(Binary::Add),
            "-" => Some(Binary::Subtract),
            _ => None,
        })?;
        match self.peek().kind {
            Kind::Sign(sign @ ("<" | ">" | "<=" | ">=" | "<<" | ">>" | ">>>" | "&" | "|" | "^")) => {
                Err(self.unsupported(format!("the operator `{sign}` is not supported")))
            }
            _ => Ok(sum),
        }
    }

    fn product(&mut self) -> Result<Expr, Fault> {
        let product = self.chain(Parser::unary, |sign| match sign {
            "*" => Some(Binary::Multiply),
            "/" => Some(Binary::Divide),
            _ => None,
        })?;
        match &self.peek().kind {
            Kind::Sign(sign @ ("%" | "**")) => {
                Err(self.unsupported(format!("the operator `{sign}` is not supported")))
            }
            Kind::Word(word) if matches!(word.as_str(), "in" | "instanceof") => {
                Err(self.unsupported(format!("the operator `{word}` is not supported")))
            }
            _ => Ok(product),
        }
    }

    fn chain(
        &mut self,
        operand: impl Fn(&mut Self) -> Result<Expr, Fault>,
        operator: impl Fn(&str) -> Option<Binary>,
    ) -> Result<Expr, Fault> {
        let start = self.place();
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Kind::Sign(sign) = self.peek().kind
            && let Some(binary) = operator(sign)
        {
            self.at += 1;
            rest.push((binary, operand(self)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Expr { form: Form::Chain(Box::new(first), rest), place: self.since(start) })
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let form = match &self.peek().kind {
            Kind::Sign("!") => Form::Not,
            Kind::Sign("-") => Form::Negative,
            Kind::Sign("+") => Form::Positive,
            Kind::Sign(sign @ ("~" | "++" | "--")) => {
                return Err(self.unsupported(format!("the operator `{sign}` is not supported")));
            }
            Kind::Word(word) if matches!(word.as_str(), "typeof" | "void" | "delete" | "await" | "new") => {
                return Err(self.unsupported(format!("`{word}` is not supported")));
            }
            _ => return self.path(),
        };
        self.at += 1;
        let operand = self.deeper(Parser::unary)?;
        Ok(Expr { form: form(Box::new(operand)), place: self.since(start) })
    }

    /// A value followed by members, indexes and calls.
    fn path(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            let place = self.place();
            if self.take(".") {
                let Kind::Word(name) = &self.peek().kind else {
                    return Err(self.unexpected("a name is missing behind `.`"));
                };
                steps.push(Step::Member(name.clone(), self.place()));
                self.at += 1;
            } else if self.take("[") {
                let index = self.expression()?;
                self.wanted("]")?;
                steps.push(Step::Index(index));
            } else if self.take("(") {
                let arguments = self.list(")")?;
                steps.push(Step::Call(arguments, self.since(place)));
            } else {
                break;
            }
        }
        match self.peek().kind {
            Kind::Sign(sign @ ("?." | "++" | "--")) => {
                return Err(self.unsupported(format!("the operator `{sign}` is not supported")));
            }
            Kind::Template { first: true, .. } => {
                return Err(self.unsupported("tagged templates are not supported"));
            }
            _ => {}
        }
        if steps.is_empty() {
            return Ok(base);
        }
        Ok(Expr { form: Form::Path(Box::new(base), steps), place: self.since(start) })
    }

    /// Expressions between commas, up to and with `close`.
    fn list(&mut self, close: &str) -> Result<Vec<Expr>, Fault> {
        let mut list = Vec::new();
        loop {
            if self.take(close) {
                return Ok(list);
            }
            let hole = self.place();
            if close == "]" && self.take(",") {
                list.push(Expr { form: Form::Literal(Value::Undefined), place: hole });
                continue;
            }
            if self.sign("...") {
                return Err(self.unsupported("`...` is not supported"));
            }
            list.push(self.expression()?);
            if !self.sign(close) {
                self.comma(close)?;
            }
        }
    }

    fn comma(&mut self, close: &str) -> Result<(), Fault> {
        if self.take(",") {
            return Ok(());
        }
        let mut fault = self.unexpected(&format!("`,` or `{close}` is missing"));
        if self.sign(":") && close != "}" {
            fault.hint = Some(format!("a `{close}` may be missing on a line before"));
        } else if self.peek().newline_before && !self.end() {
            fault.hint = Some("a `,` may be missing at the end of the line before".into());
        }
        Err(fault)
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let token = self.peek();
        let start = token.place;
        let form = match &token.kind {
            Kind::Number(number) => Form::Literal(Value::Number(*number)),
            Kind::Text(text) => Form::Literal(Value::Text(text.clone())),
            Kind::Regex(regex) => Form::Literal(Value::Regex(regex.clone())),
            Kind::Template { first: true, .. } => return self.template(),
            Kind::Word(word) => return self.named(word),
            Kind::Sign("[") => {
                self.at += 1;
                Form::Array(self.list("]")?)
            }
            Kind::Sign("{") => {
                self.at += 1;
                Form::Object(self.properties()?)
            }
            Kind::Sign("(") if self.arrow_follows() => return self.arrow(),
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                if self.sign(",") {
                    return Err(self.unsupported("the operator `,` is not supported"));
                }
                self.wanted(")")?;
                // A path without steps distinguishes `(a && b) ?? c` from `a && b ?? c`, which JavaScript rejects.
                let form = match inner.form {
                    Form::Logical(..) => Form::Path(Box::new(inner), Vec::new()),
                    other => other,
                };
                return Ok(Expr { form, place: self.since(start) });
            }
            Kind::Sign("...") => return Err(self.unsupported("`...` is not supported")),
            _ => return Err(self.unexpected("a value is missing")),
        };
        if matches!(form, Form::Literal(_)) {
            self.at += 1;
        }
        Ok(Expr { form, place: self.since(start) })
    }

    fn named(&mut self, word: &str) -> Result<Expr, Fault> {
        let place = self.place();
        let literal = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "function" => return self.function(),
            _ if RESERVED.contains(&word) => {
                return Err(self.unsupported(format!("`{word}` is not supported")));
            }
            _ => {
                self.at += 1;
                return Ok(Expr { form: Form::Name(word.to_owned()), place });
            }
        };
        self.at += 1;
        Ok(Expr { form: Form::Literal(literal), place })
    }

    fn template(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        let (mut pieces, mut values) = (Vec::new(), Vec::new());
        loop {
            let Kind::Template { text, first, last } = &self.peek().kind else {
                return Err(self.unexpected("`}` is missing"));
            };
            if *first != pieces.is_empty() {
                return Err(self.unexpected("`}` is missing"));
            }
            self.at += 1;
            pieces.push(text.clone());
            if *last {
                return Ok(Expr { form: Form::Template(pieces, values), place: self.since(start) });
            }
            values.push(self.expression()?);
        }
    }

    fn properties(&mut self) -> Result<Vec<Property>, Fault> {
        let mut properties = Vec::new();
        loop {
            if self.take("}") {
                return Ok(properties);
            }
            properties.push(self.property()?);
            if !self.sign("}") {
                self.comma("}")?;
            }
        }
    }

    fn property(&mut self) -> Result<Property, Fault> {
        let key_place = self.place();
        let (key, shorthand) = match &self.peek().kind {
            Kind::Word(word) => (word.clone(), !RESERVED.contains(&word.as_str())),
            Kind::Text(text) => (text.clone(), false),
            Kind::Number(number) => (super::to_text(*number), false),
            Kind::Sign("[") => return Err(self.unsupported("computed keys are not supported")),
            Kind::Sign("...") => return Err(self.unsupported("`...` is not supported")),
            Kind::Sign("*") => return Err(self.unsupported("generators are not supported")),
            _ => return Err(self.unexpected("a key is missing")),
        };
        self.at += 1;
        if shorthand && (self.sign(",") || self.sign("}")) {
            let value = Expr { form: Form::Name(key.clone()), place: key_place };
            return Ok(Property { key, key_place, value });
        }
        if self.sign("(") || matches!(key.as_str(), "get" | "set" | "async") && !self.sign(":") {
            return Err(Fault::unsupported(key_place, "functions as members are not supported"));
        }
        if !self.take(":") {
            return Err(self.unexpected(&format!("`:` is missing behind the key `{key}`")));
        }
        if key == "__proto__" {
            return Err(Fault::unsupported(key_place, "`__proto__` is not supported"));
        }
        Ok(Property { key, key_place, value: self.expression()? })
    }

    /// At `(`: whether `) =>` or arguments of an arrow function follow.
    fn arrow_follows(&self) -> bool {
        matches!((&self.look(1).kind, &self.look(2).kind), (Kind::Sign(")"), Kind::Sign("=>")))
    }

    fn arrow(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        self.at += 3;
        let body =
            if self.take("{") { self.body()? } else { vec![Statement::Return(Some(self.expression()?))] };
        Ok(Expr { form: Form::Function(body), place: self.since(start) })
    }

    fn function(&mut self) -> Result<Expr, Fault> {
        let start = self.place();
        self.at += 1;
        if let Kind::Word(_) = self.peek().kind {
            self.at += 1;
        }
        self.wanted("(")?;
        if !self.take(")") {
            return Err(self.unsupported("functions with arguments are not supported"));
        }
        self.wanted("{")?;
        let body = self.body()?;
        Ok(Expr { form: Form::Function(body), place: self.since(start) })
    }

    /// Statements up to and with the `}` that closes a function.
    fn body(&mut self) -> Result<Vec<Statement>, Fault> {
        let mut statements = Vec::new();
        loop {
            if self.take("}") {
                return Ok(statements);
            }
            if self.take(";") {
                continue;
            }
            if self.take_word("return") {
                statements.push(Statement::Return(self.returned()?));
            } else if self.take_word("var") || self.take_word("let") || self.take_word("const") {
                self.declarations(&mut statements)?;
            } else if let (true, Kind::Text(_)) = (statements.is_empty(), &self.peek().kind) {
                self.at += 1; // 'use strict'
            } else if self.end() {
                return Err(self.unexpected("`}` is missing at the end of the function"));
            } else {
                return Err(
                    self.unsupported("only `var`, `let`, `const` and `return` are supported in a function")
                );
            }
            self.statement_end()?;
        }
    }

    fn returned(&mut self) -> Result<Option<Expr>, Fault> {
        if self.sign(";") || self.sign("}") {
            return Ok(None);
        }
        if self.peek().newline_before {
            let place = self.tokens[self.at - 1].place;
            let message = "node reads a `return` that ends its line as `return undefined`";
            let mut fault = Fault::syntax(place, message, "nothing is returned");
            fault.hint = Some("write the value on the line of the `return`".into());
            return Err(fault);
        }
        self.expression().map(Some)
    }

    fn declarations(&mut self, statements: &mut Vec<Statement>) -> Result<(), Fault> {
        loop {
            let name = match &self.peek().kind {
                Kind::Word(name) if !RESERVED.contains(&name.as_str()) => name.clone(),
                Kind::Sign("{" | "[") => {
                    return Err(self.unsupported("taking a value apart is not supported"));
                }
                _ => return Err(self.unexpected("a name is missing")),
            };
            self.at += 1;
            let value = if self.take("=") { Some(self.expression()?) } else { None };
            statements.push(Statement::Declare(name, value));
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    /// `;`, or a place where JavaScript inserts it.
    fn statement_end(&mut self) -> Result<(), Fault> {
        if self.take(";") || self.sign("}") || self.end() || self.peek().newline_before {
            return Ok(());
        }
        Err(self.unexpected("`;` is missing"))
    }
}
