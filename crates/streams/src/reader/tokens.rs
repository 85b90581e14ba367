//! The forms of a text: what each sign begins.

use std::sync::Arc;

use arcstr::ArcStr;

use super::error::ReadError;
use super::names::{BACKQUOTES_MAX, DEPTH_MAX, Names};
use super::text::{Characters, named_character, unclosed};
use super::{numbers, syntax_quote};
use crate::collections::list::List;
use crate::collections::map::Map;
use crate::collections::set::Set;
use crate::object::pattern::Pattern;
use crate::position::Position;
use crate::symbol::{Symbol, split_name};
use crate::value::Value;

/// Most arguments that `#(…)` names by number, as in Clojure.
const ARGUMENTS_MAX: usize = 20;

type Read<T> = Result<T, ReadError>;

/// The forms of a text, from its place on.
#[derive(Debug)]
pub(super) struct Forms<'t> {
    text: Characters<'t>,
    depth: u32,
    /// A text over several lines with a word right behind it: the first one whose end may be missing.
    suspect: Option<Position>,
    /// Backquotes around the form.
    backquotes: u32,
    /// The arguments of the `#(…)` around the form: how many, and whether `%&` is among them.
    lambda: Option<Arguments>,
}

#[derive(Clone, Copy, Debug)]
struct Arguments {
    count: usize,
    rest: bool,
    unique: u64,
}

impl<'t> Forms<'t> {
    pub(super) fn new(text: &'t str, file: ArcStr) -> Self {
        Forms { text: Characters::new(text, file), depth: 0, suspect: None, backquotes: 0, lambda: None }
    }

    pub(super) fn position(&self) -> Position {
        self.text.position()
    }

    /// The next form. A mistake is where the text begins whose end is missing, as far as that can be seen.
    pub(super) fn next(&mut self, names: &dyn Names) -> Read<Option<Value>> {
        self.next_form(names).map_err(|error| match &self.suspect {
            Some(text) if error.message.starts_with("this text is not closed") => {
                ReadError { at: text.clone(), ..error }
            }
            Some(text) => error.hint(format!("the text that begins at {text} may not be closed")),
            None => error,
        })
    }

    /// Notes a text that ends where the next one should begin.
    fn suspect(&mut self, at: &Position) {
        let follows = self.text.peek();
        let is_word = follows.is_some_and(|part| !part.is_whitespace() && !")]}\",;".contains(part));
        if self.suspect.is_none() && is_word && at.line < self.position().line {
            self.suspect = Some(at.clone());
        }
    }

    fn next_form(&mut self, names: &dyn Names) -> Read<Option<Value>> {
        loop {
            self.text.skip_space();
            let at = self.position();
            let Some(part) = self.text.peek() else { return Ok(None) };
            if let ')' | ']' | '}' = part {
                let error = ReadError::new(at, format!("`{part}` closes nothing"));
                return Err(error.hint("a bracket before it is missing, or was closed too early"));
            }
            if let Some(form) = self.form(part, names)? {
                return Ok(Some(form));
            }
        }
    }

    /// The form that begins here; `None` for one that is discarded.
    fn form(&mut self, part: char, names: &dyn Names) -> Read<Option<Value>> {
        let at = self.position();
        if self.depth == DEPTH_MAX {
            return Err(ReadError::new(
                at,
                format!("more than {DEPTH_MAX} brackets and quotes around a form"),
            ));
        }
        self.depth += 1;
        let form = match part {
            '(' => Value::List(Arc::new(List::at(at, self.items(')', names)?.into_iter()))),
            '[' => Value::vector(self.items(']', names)?),
            '{' => self.map(at, names)?,
            '"' => {
                self.text.take();
                let text = self.text.quoted(&at)?;
                self.suspect(&at);
                Value::from(text)
            }
            '\\' => self.character(&at)?,
            ':' => self.keyword(&at, names)?,
            '\'' => self.prefixed("quote", names)?,
            '@' => self.prefixed("clojure.core/deref", names)?,
            '^' => self.with_meta(names)?,
            '`' => {
                self.text.take();
                if self.backquotes == BACKQUOTES_MAX {
                    let message = format!("more than {BACKQUOTES_MAX} backquotes within each other");
                    return Err(ReadError::new(at, message));
                }
                self.backquotes += 1;
                let form = self.required(&at, "`", names)?;
                self.backquotes -= 1;
                syntax_quote::expand(&form, names)
            }
            '~' if self.text.peek_second() == Some('@') => {
                self.text.take();
                self.prefixed(syntax_quote::UNQUOTE_SPLICING, names)?
            }
            '~' => self.prefixed(syntax_quote::UNQUOTE, names)?,
            '#' => match self.dispatch(at, names)? {
                Some(form) => form,
                None => {
                    self.depth -= 1;
                    return Ok(None);
                }
            },
            _ => self.symbol_or_number(at)?,
        };
        self.depth -= 1;
        Ok(Some(form))
    }

    /// The forms up to a closing bracket, after the opening one, which is here.
    fn items(&mut self, close: char, names: &dyn Names) -> Read<Vec<Value>> {
        let at = self.position();
        let open = self.text.take();
        let mut items = Vec::new();
        loop {
            self.text.skip_space();
            match self.text.peek() {
                None => {
                    let open = open.map(String::from).unwrap_or_default();
                    return Err(unclosed(&at, &format!("`{open}`"), &String::from(close)));
                }
                Some(part) if part == close => {
                    self.text.take();
                    return Ok(items);
                }
                Some(part @ (')' | ']' | '}')) => {
                    let message = format!("`{part}` stands where `{close}` is expected");
                    return Err(ReadError::new(self.position(), message)
                        .hint(format!("the bracket that is open was opened at {at}")));
                }
                Some(part) => items.extend(self.form(part, names)?),
            }
        }
    }

    /// The form after a prefix, which must be there.
    fn required(&mut self, at: &Position, prefix: &str, names: &dyn Names) -> Read<Value> {
        loop {
            self.text.skip_space();
            match self.text.peek() {
                None | Some(')' | ']' | '}') => {
                    return Err(ReadError::new(at.clone(), format!("nothing follows `{prefix}`")));
                }
                Some(part) => {
                    if let Some(form) = self.form(part, names)? {
                        return Ok(form);
                    }
                }
            }
        }
    }

    /// `(name form)` of a sign before a form.
    fn prefixed(&mut self, name: &'static str, names: &dyn Names) -> Read<Value> {
        let at = self.position();
        let sign = self.text.take().map(String::from).unwrap_or_default();
        let form = self.required(&at, &sign, names)?;
        let symbol = Symbol { at: at.clone(), ..Symbol::new(ArcStr::from(name)) };
        Ok(Value::List(Arc::new(List::at(at, [Value::Symbol(Arc::new(symbol)), form].into_iter()))))
    }

    fn map(&mut self, at: Position, names: &dyn Names) -> Read<Value> {
        let items = self.items('}', names)?;
        if items.len() % 2 == 1 {
            return Err(ReadError::new(at, "a map needs a value for every key"));
        }
        let mut map = Map::default();
        let (pairs, _) = items.as_chunks::<2>();
        for [key, value] in pairs {
            if map.get(key).is_some() {
                let message = format!("duplicate key: {}", crate::print::to_text(key, true));
                return Err(ReadError::new(at, message));
            }
            map.insert(key.clone(), value.clone());
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn set(&mut self, at: Position, names: &dyn Names) -> Read<Value> {
        let mut set = Set::default();
        for item in self.items('}', names)? {
            if !set.insert(item.clone()) {
                let message = format!("duplicate key: {}", crate::print::to_text(&item, true));
                return Err(ReadError::new(at, message));
            }
        }
        Ok(Value::Set(Arc::new(set)))
    }

    fn character(&mut self, at: &Position) -> Read<Value> {
        self.text.take();
        let first = self.text.take().ok_or_else(|| ReadError::new(at.clone(), "nothing follows `\\`"))?;
        let word = format!("{first}{}", self.text.word());
        let unknown = || ReadError::new(at.clone(), format!("`\\{word}` is no character"));
        named_character(&word).map(Value::Char).ok_or_else(unknown)
    }

    fn keyword(&mut self, at: &Position, names: &dyn Names) -> Read<Value> {
        let word = self.text.word();
        let bad = |reason: &str| ReadError::new(at.clone(), format!("`{word}` is no keyword: {reason}"));
        let name = word.strip_prefix(':').unwrap_or(word);
        let Some(own) = name.strip_prefix(':') else {
            check_name(name).map_err(|reason| bad(&reason))?;
            return Ok(Value::keyword(name));
        };
        check_name(own).map_err(|reason| bad(&reason))?;
        let (space, rest) = split_name(own);
        let space = match space {
            None => names.current(),
            Some(alias) => names.alias(alias).ok_or_else(|| bad("there is no such alias"))?,
        };
        Ok(Value::Keyword(arcstr::format!("{space}/{rest}")))
    }

    fn symbol_or_number(&mut self, at: Position) -> Read<Value> {
        let word = self.text.word();
        if word.is_empty() {
            // A character that begins nothing, so that no text is read twice.
            let part = self.text.take().map(String::from).unwrap_or_default();
            return Err(ReadError::new(at, format!("`{part}` begins no form")));
        }
        if numbers::looks_like_number(word) {
            let number = numbers::parse(word);
            return number
                .map(Value::Number)
                .map_err(|reason| ReadError::new(at, format!("`{word}`: {reason}")));
        }
        match word {
            "nil" => return Ok(Value::Nil),
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            _ => {}
        }
        check_name(word)
            .map_err(|reason| ReadError::new(at.clone(), format!("`{word}` is no symbol: {reason}")))?;
        let name = match (word.strip_prefix('%'), self.lambda) {
            (Some(argument), Some(arguments)) => self.argument(argument, arguments, &at)?,
            _ => ArcStr::from(word),
        };
        Ok(Value::Symbol(Arc::new(Symbol { at, ..Symbol::new(name) })))
    }

    /// `%`, `%2`, `%&` inside of `#(…)`.
    fn argument(&mut self, word: &str, mut arguments: Arguments, at: &Position) -> Read<ArcStr> {
        let name = if word == "&" {
            arguments.rest = true;
            rest_name(arguments.unique)
        } else {
            let number: Option<usize> = if word.is_empty() { Some(1) } else { word.parse().ok() };
            let number = number.filter(|number| (1..=ARGUMENTS_MAX).contains(number));
            let bad = || {
                ReadError::new(at.clone(), format!("`%{word}`: arguments are `%`, `%1` to `%20`, and `%&`"))
            };
            let number = number.ok_or_else(bad)?;
            arguments.count = arguments.count.max(number);
            argument_name(number, arguments.unique)
        };
        self.lambda = Some(arguments);
        Ok(name)
    }

    /// What follows `#`; `None` for a discarded form.
    fn dispatch(&mut self, at: Position, names: &dyn Names) -> Read<Option<Value>> {
        let second = self.text.peek_second();
        if !matches!(second, Some('(')) {
            self.text.take();
        }
        Ok(Some(match second {
            Some('(') => self.lambda(at, names)?,
            Some('{') => self.set(at, names)?,
            Some('"') => {
                self.text.take();
                let source = ArcStr::from(self.text.pattern(&at)?);
                let pattern = Pattern::new(source);
                let bad = |reason| ReadError::new(at, format!("the regular expression is wrong: {reason}"));
                Value::Pattern(Arc::new(pattern.map_err(bad)?))
            }
            Some('\'') => self.prefixed("var", names)?,
            Some('^') => self.with_meta(names)?,
            Some('_') => {
                self.text.take();
                self.required(&at, "#_", names)?;
                return Ok(None);
            }
            Some('#') => {
                self.text.take();
                match self.text.word() {
                    "Inf" => Value::from(f64::INFINITY),
                    "-Inf" => Value::from(f64::NEG_INFINITY),
                    "NaN" => Value::from(f64::NAN),
                    word => return Err(ReadError::new(at, format!("`##{word}` is no number"))),
                }
            }
            _ => {
                let word = self.text.word();
                let error = ReadError::new(at, format!("`#{word}` is not supported"));
                return Err(error.hint("tagged literals and reader conditionals have no meaning in a config"));
            }
        }))
    }

    fn lambda(&mut self, at: Position, names: &dyn Names) -> Read<Value> {
        if self.lambda.is_some() {
            return Err(ReadError::new(at, "`#(…)` inside of another one")
                .hint("write the inner one as `(fn [x] …)`"));
        }
        self.text.take();
        let unique = names.unique();
        self.lambda = Some(Arguments { count: 0, rest: false, unique });
        let body = self.items(')', names);
        let arguments = self.lambda.take().unwrap_or(Arguments { count: 0, rest: false, unique });
        let body = Value::List(Arc::new(List::at(at.clone(), body?.into_iter())));
        let mut parameters: Vec<Value> =
            (1..=arguments.count).map(|number| Value::symbol(&argument_name(number, unique))).collect();
        if arguments.rest {
            parameters.extend([Value::symbol("&"), Value::symbol(&rest_name(unique))]);
        }
        let form = [Value::symbol("fn*"), Value::vector(parameters), body];
        Ok(Value::List(Arc::new(List::at(at, form.into_iter()))))
    }

    /// `^meta form`: only `:dynamic` on a symbol has a meaning; type hints and the rest are passed over.
    fn with_meta(&mut self, names: &dyn Names) -> Read<Value> {
        let at = self.position();
        self.text.take();
        let meta = self.required(&at, "^", names)?;
        let form = self.required(&at, "^", names)?;
        let key = Value::keyword("dynamic");
        let dynamic = match &meta {
            Value::Keyword(name) => name == "dynamic",
            Value::Map(map) => map.get(&key).is_some_and(Value::is_true),
            _ => false,
        };
        match form {
            Value::Symbol(symbol) if dynamic => {
                Ok(Value::Symbol(Arc::new(Symbol { dynamic: true, ..(*symbol).clone() })))
            }
            form => Ok(form),
        }
    }
}

fn argument_name(number: usize, unique: u64) -> ArcStr {
    arcstr::format!("p{number}__{unique}")
}

fn rest_name(unique: u64) -> ArcStr {
    arcstr::format!("rest__{unique}")
}

/// Whether a name of a symbol or a keyword has the right form.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if name == "/" || name.ends_with("//") && !name.starts_with('/') {
        return Ok(());
    }
    if name.ends_with(':') || name.contains("::") {
        return Err("a colon at its end or two in a row".to_owned());
    }
    if name.starts_with('/') || name.ends_with('/') {
        return Err("a slash at its beginning or end".to_owned());
    }
    Ok(())
}
