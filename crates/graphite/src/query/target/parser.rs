//! The grammar of targets, by recursive descent with a bounded depth.

use super::{
    Call, Expr, ExprKind, Literal, NESTING_MAX, NamedArg, TARGET_BYTES_MAX, TEMPLATE_VALUES_MAX, Template,
};
use crate::query::error::{Code, QueryError};

/// Differences in reading targets.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParseOptions {
    /// Accepts a text of which only the beginning is an expression, as graphite-web does: the rest is ignored.
    pub accept_prefix: bool,
}

/// Characters that end a path, unless a backslash precedes them.
const SYMBOLS: &str = "(){},.'\"\\|";

/// Reads one target.
///
/// # Errors
/// The position, what was expected there, and what was found.
pub fn parse(text: &str, options: ParseOptions) -> Result<Expr, QueryError> {
    if text.len() > TARGET_BYTES_MAX {
        let message = format!("a target has at most {TARGET_BYTES_MAX} bytes, this one has {}", text.len());
        return Err(QueryError::new(Code::Limit, message).hint("use globs, or several targets"));
    }
    let mut parser = Parser { text, at: 0, depth: 0, options };
    let result = parser.expression().and_then(|expr| {
        parser.spaces();
        if parser.at == text.len() || options.accept_prefix {
            Ok(expr)
        } else {
            Err(parser.expected("`|` or the end of the target"))
        }
    });
    match result {
        Err(mistake) if options.accept_prefix => {
            let mut parser = Parser { text, at: 0, depth: 0, options };
            parser.spaces();
            let at = parser.at;
            parser.path().ok().map(|path| Expr { at, kind: ExprKind::Path(path) }).ok_or(mistake)
        }
        other => other,
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    options: ParseOptions,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Skips spaces, and this character if it is next.
    fn take(&mut self, c: char) -> bool {
        self.spaces();
        let is_next = self.peek() == Some(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn expected(&self, what: &str) -> QueryError {
        let found = match self.peek() {
            None => "the end of the target".to_owned(),
            Some(c) => format!("`{c}`"),
        };
        QueryError::new(Code::Syntax, format!("expected {what}, found {found}")).at(self.at)
    }

    /// One level of nesting more; fails above the limit.
    fn nest(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let message = format!("calls are nested more than {NESTING_MAX} deep");
            return Err(QueryError::new(Code::Limit, message).at(self.at));
        }
        Ok(())
    }

    /// A template, call or path, with the calls that it is piped to.
    fn expression(&mut self) -> Result<Expr, QueryError> {
        self.nest()?;
        let before = self.depth;
        let mut expr = self.operand()?;
        loop {
            let end = self.at;
            if !self.take('|') {
                self.at = end;
                break;
            }
            // Each pipe wraps the expression once more.
            self.nest()?;
            self.spaces();
            let at = self.at;
            let call = match self.name() {
                Some(name) => self.call(name, at),
                None => Err(self.expected("a function")),
            };
            match call {
                Ok(mut call) => {
                    call.args.insert(0, expr);
                    expr = Expr { at, kind: ExprKind::Call(call) };
                }
                Err(_) if self.options.accept_prefix => {
                    self.at = end;
                    break;
                }
                Err(mistake) => return Err(mistake),
            }
        }
        self.depth = before - 1;
        Ok(expr)
    }

    fn operand(&mut self) -> Result<Expr, QueryError> {
        self.spaces();
        let at = self.at;
        if let Some(name) = self.name() {
            if self.take('(') {
                if name == "template" {
                    return Ok(Expr { at, kind: ExprKind::Template(self.template()?) });
                }
                self.at = at + name.len();
                return Ok(Expr { at, kind: ExprKind::Call(self.call(name, at)?) });
            }
            self.at = at;
        }
        Ok(Expr { at, kind: ExprKind::Path(self.path()?) })
    }

    /// The name of a function or parameter.
    fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = &rest[..len];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let name = name.to_owned();
        self.at += len;
        Some(name)
    }

    /// What follows a function's name.
    fn call(&mut self, name: String, start: usize) -> Result<Call, QueryError> {
        if !self.take('(') {
            return Err(self.expected("`(`"));
        }
        let (mut args, mut named) = (Vec::new(), Vec::new());
        if !self.take(')') {
            loop {
                self.spaces();
                let at = self.at;
                if let Some(parameter) = self.parameter() {
                    named.push(NamedArg { at, name: parameter, value: self.argument()? });
                } else if named.is_empty() {
                    args.push(self.argument()?);
                } else {
                    return Err(self.expected("`name=value`, because an argument with a name precedes"));
                }
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.expected("`,` or `)`"));
                }
            }
        }
        let raw = (name == "seriesByTag").then(|| self.text[start..self.at].to_owned());
        Ok(Call { name, args, named, raw })
    }

    /// `name=`, if an argument with a name is next.
    fn parameter(&mut self) -> Option<String> {
        let at = self.at;
        let name = self.name();
        if name.is_some() && self.take('=') {
            return name;
        }
        self.at = at;
        None
    }

    fn argument(&mut self) -> Result<Expr, QueryError> {
        self.spaces();
        let at = self.at;
        match self.literal()? {
            Some(literal) => Ok(Expr { at, kind: ExprKind::Literal(literal) }),
            None => match self.peek() {
                None | Some(',' | ')') => Err(self.expected("an argument")),
                Some(_) => self.expression(),
            },
        }
    }

    /// A number, text or word, if one is next.
    fn literal(&mut self) -> Result<Option<Literal>, QueryError> {
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            return self.quoted(quote).map(Some);
        }
        let rest = self.rest();
        let len = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '(' | '|'));
        let word = &rest[..len.unwrap_or(rest.len())];
        let after = rest[word.len()..].trim_start().chars().next();
        if !matches!(after, None | Some(',' | ')')) {
            return Ok(None);
        }
        let literal = match word {
            w if w.eq_ignore_ascii_case("true") => Some(Literal::Bool(true)),
            w if w.eq_ignore_ascii_case("false") => Some(Literal::Bool(false)),
            w if w.eq_ignore_ascii_case("none") => Some(Literal::None),
            w if w.eq_ignore_ascii_case("inf") => Some(Literal::Float(f64::INFINITY)),
            w => number(w),
        };
        self.at += if literal.is_some() { word.len() } else { 0 };
        Ok(literal)
    }

    fn quoted(&mut self, quote: char) -> Result<Literal, QueryError> {
        let rest = self.rest();
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            if c == quote && !escaped {
                let text = rest[1..at].to_owned();
                self.at += at + 1;
                return Ok(Literal::Text(text));
            }
            escaped = c == '\\' && !escaped;
        }
        Err(QueryError::new(Code::Syntax, format!("this {quote} is not closed")).at(self.at))
    }

    fn path(&mut self) -> Result<String, QueryError> {
        let mut path = String::new();
        loop {
            let before = path.len();
            self.element(&mut path)?;
            if path.len() == before {
                return Err(self.expected(if before == 0 {
                    "a path or a function"
                } else {
                    "a path after `.`"
                }));
            }
            if self.peek() != Some('.') {
                return Ok(path);
            }
            self.at += 1;
            path.push('.');
        }
    }

    /// Appends the part of a path between two dots.
    fn element(&mut self, path: &mut String) -> Result<(), QueryError> {
        let mut braces = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    let Some(symbol) =
                        self.rest()[1..].chars().next().filter(|c| SYMBOLS.contains(*c) || *c == '=')
                    else {
                        self.at += 1;
                        return Err(self.expected("one of ( ) { } , . ' \" \\ | = after `\\`"));
                    };
                    path.push(symbol);
                    self.at += 2;
                    continue;
                }
                '{' => braces.push(self.at),
                '}' if braces.pop().is_some() => {}
                ',' if !braces.is_empty() => {}
                c if SYMBOLS.contains(c) || c.is_whitespace() || c.is_control() => break,
                _ => {}
            }
            path.push(c);
            self.at += c.len_utf8();
        }
        match braces.last() {
            None => Ok(()),
            Some(at) => Err(QueryError::new(Code::Syntax, "this `{` is not closed").at(*at)),
        }
    }

    fn template(&mut self) -> Result<Template, QueryError> {
        self.nest()?;
        let body = self.operand()?;
        self.depth -= 1;
        let mut values: Vec<(String, Literal)> = Vec::new();
        let mut has_names = None;
        while !self.take(')') {
            if !self.take(',') {
                return Err(self.expected("`,` or `)`"));
            }
            self.spaces();
            let at = self.at;
            let name = self.parameter();
            if *has_names.get_or_insert(name.is_some()) != name.is_some() {
                let message = "the values of a template all have names, or none has";
                return Err(QueryError::new(Code::Syntax, message).at(at));
            }
            self.spaces();
            let place = self.at;
            match self.literal()? {
                Some(value @ (Literal::Int(_) | Literal::Float(_) | Literal::Text(_))) => {
                    if values.len() == TEMPLATE_VALUES_MAX {
                        let message = format!("a template has at most {TEMPLATE_VALUES_MAX} values");
                        return Err(QueryError::new(Code::Limit, message).at(at));
                    }
                    values.push((name.unwrap_or_else(|| (values.len() + 1).to_string()), value));
                }
                _ => {
                    self.at = place;
                    return Err(self.expected("a number, or text in quotes"));
                }
            }
        }
        Ok(Template { body: Box::new(body), values })
    }
}

/// `-?digits`, a fraction, an exponent.
fn number(word: &str) -> Option<Literal> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let is_whole = digits(unsigned);
    let is_fraction = unsigned.split_once('.').is_some_and(|(whole, part)| digits(whole) && digits(part));
    let is_exponent = exponent.is_none_or(|e| digits(e.strip_prefix('-').unwrap_or(e)));
    if !(is_whole || is_fraction) || !is_exponent {
        return None;
    }
    if is_whole
        && exponent.is_none()
        && let Ok(int) = word.parse()
    {
        return Some(Literal::Int(int));
    }
    word.parse().ok().map(Literal::Float)
}
