//! Loading a config: reading, analysing and evaluating its forms one after the other, as later ones need what earlier ones
//! define.
//!
//! After the first mistake nothing of the config is evaluated any more, apart from what names depend on (`ns`, `require`,
//! `defmacro`, …): the rest is only analysed, so that one load reports all wrong names.

use std::sync::Arc;

use arcstr::ArcStr;

use super::analysis::{Analyzer, is_special};
use super::diagnostic::Diagnostic;
use super::error::{EvalError, Outcome};
use super::evaluation::FORMS_MAX;
use super::machine::Machine;
use super::namespace::Named;
use super::world::World;
use crate::collections::list::List;
use crate::object::class;
use crate::position::Position;
use crate::reader::Reader;
use crate::reader::names::Names;
use crate::symbol::split_name;
use crate::value::Value;

/// Most files that load each other.
const FILES_DEEP_MAX: usize = 32;

/// Heads of forms that are evaluated even after a mistake.
const ABOUT_NAMES: &[&str] =
    &["ns", "require", "use", "refer", "in-ns", "alias", "import", "defmacro", "refer-clojure", "include"];

/// Why a config was not loaded: all of its mistakes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct LoadError {
    /// The mistakes, in the order in which they were found; at least one.
    pub diagnostics: Vec<Diagnostic>,
    /// What ended the evaluation, if something did.
    pub error: Option<EvalError>,
    /// What its author should know besides, each with its place.
    pub notes: Vec<(Position, String)>,
}

/// What the reader asks, answered for a namespace.
struct NamesOf<'w> {
    world: &'w World,
    namespace: ArcStr,
}

impl Names for NamesOf<'_> {
    fn current(&self) -> ArcStr {
        self.namespace.clone()
    }

    fn alias(&self, name: &str) -> Option<ArcStr> {
        self.world.namespaces().full_name(&self.namespace, name)
    }

    fn qualify(&self, name: &str) -> ArcStr {
        let is_java = name.starts_with('.') || name.ends_with('.');
        if is_special(name) || is_java || name.starts_with('&') || name.starts_with('%') {
            return ArcStr::from(name);
        }
        let namespaces = self.world.namespaces();
        match split_name(name) {
            (Some(space), short) => match namespaces.full_name(&self.namespace, space) {
                Some(space) => arcstr::format!("{space}/{short}"),
                None => ArcStr::from(name),
            },
            (None, _) => match namespaces.find(&self.namespace, name) {
                Some(Named { home, .. }) => arcstr::format!("{home}/{name}"),
                None if class::find(name).is_some() => ArcStr::from(name),
                None => arcstr::format!("{}/{name}", self.namespace),
            },
        }
    }

    fn unique(&self) -> u64 {
        self.world.unique()
    }
}

impl Machine<'_> {
    /// Loads a config's text into the current namespace; `file` is its name in errors. The value is that of its last form.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn load(&mut self, text: &str, file: &str) -> Result<Value, LoadError> {
        self.loads += 1;
        self.load_text(text, &ArcStr::from(file));
        self.loads -= 1;
        if self.diagnostics.is_empty() {
            return Ok(std::mem::take(&mut self.last));
        }
        let diagnostics = std::mem::take(&mut self.diagnostics);
        Err(LoadError { diagnostics, error: self.ended.take(), notes: Vec::new() })
    }

    /// Loads a config from its file.
    ///
    /// # Errors
    /// All of its mistakes; also if the host cannot read it.
    pub fn load_main(&mut self, file: &str) -> Result<Value, LoadError> {
        match self.host.read_file(file) {
            Ok(text) => self.load(&text, file),
            Err(reason) => {
                let message = format!("{file} cannot be read: {reason}");
                let at = Position { file: ArcStr::from(file), ..Position::default() };
                let diagnostics = vec![Diagnostic { at, message, hint: None }];
                Err(LoadError { diagnostics, error: None, notes: Vec::new() })
            }
        }
    }

    /// Loads a file of the config's folder, as `require` and `include` do. Its mistakes are kept for the end of the load.
    ///
    /// # Errors
    /// If the host has no such file, or files load each other in a circle.
    pub fn load_file(&mut self, path: &str) -> Outcome<()> {
        let path = ArcStr::from(path);
        if self.loading.contains(&path) || self.loading.len() == FILES_DEEP_MAX {
            return Err(EvalError::throw(
                &class::ILLEGAL_STATE,
                format!("{path} is loaded by a file that it loads"),
            ));
        }
        let text = self.host.read_file(&path);
        let text =
            text.map_err(|reason| EvalError::throw(&class::FILE_NOT_FOUND, format!("{path}: {reason}")))?;
        self.budget.enter()?;
        self.loading.push(path.clone());
        let namespace = self.namespace.clone();
        self.load_text(&text, &path);
        self.namespace = namespace;
        self.loading.pop();
        self.budget.leave();
        Ok(())
    }

    fn load_text(&mut self, text: &str, file: &ArcStr) {
        let mut reader = Reader::new(text, file.clone());
        loop {
            let world = Arc::clone(&self.world);
            let names = NamesOf { world: &world, namespace: self.namespace.clone() };
            match reader.next(&names) {
                Ok(None) => return,
                Ok(Some(form)) => {
                    if self.forms.len() < FORMS_MAX {
                        self.forms.push(form.clone());
                    }
                    self.load_form(&form);
                }
                Err(error) => {
                    let diagnostic = Diagnostic { at: error.at, message: error.message, hint: error.hint };
                    self.diagnostics.push(diagnostic);
                    return;
                }
            }
        }
    }

    /// Analyses and evaluates a form at the top level; each form of a `do` by itself.
    fn load_form(&mut self, form: &Value) {
        if let Err(error) = self.budget.check_analysis() {
            return self.load_failed(error, form);
        }
        let mut analyzer = Analyzer::new(self);
        let expanded = analyzer.expand_all(form);
        let mut found = std::mem::take(&mut analyzer.diagnostics);
        if !found.is_empty() {
            self.diagnostics.append(&mut found);
            return;
        }
        if let Some(forms) = forms_of_do(&expanded) {
            // What a macro such as `ns` has written is at the macro's place.
            return forms.iter().for_each(|part| self.load_form(&placed(part, form)));
        }
        if let Err(error) = self.load_expanded(&expanded) {
            self.load_failed(error, form);
        }
    }

    fn load_expanded(&mut self, form: &Value) -> Outcome<()> {
        let mut analyzer = Analyzer::new(self);
        let (expr, slots) = analyzer.top_level(form);
        let mut found = std::mem::take(&mut analyzer.diagnostics);
        let is_right = found.is_empty();
        self.diagnostics.append(&mut found);
        if is_right && (self.diagnostics.is_empty() || is_about_names(form)) {
            let last = self.run(&expr, slots)?;
            self.last = last;
        }
        Ok(())
    }

    fn load_failed(&mut self, error: EvalError, form: &Value) {
        let at = match form {
            Value::List(list) => list.at.clone(),
            _ => Position::default(),
        };
        let at = if error.at().is_known() { error.at().clone() } else { at };
        self.diagnostics.push(Diagnostic { at, message: error.in_words(), hint: None });
        self.ended.get_or_insert(error);
    }

    /// Adds a mistake beside the one that ends what runs.
    pub(super) fn add_mistake(&mut self, error: &EvalError) {
        let diagnostic = Diagnostic { at: error.at().clone(), message: error.in_words(), hint: None };
        if self.loads > 0 {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Evaluates one form in the current namespace: `eval`.
    ///
    /// # Errors
    /// What it throws; a wrong name is an exception too.
    pub fn eval_form(&mut self, form: &Value) -> Outcome {
        let form = self.realize(form)?;
        let mut analyzer = Analyzer::new(self);
        let (expr, slots) = analyzer.top_level(&form);
        if let Some(diagnostic) = analyzer.diagnostics.first() {
            return Err(EvalError::throw(&class::RUNTIME_EXCEPTION, diagnostic.to_string()));
        }
        self.run(&expr, slots)
    }

    /// Reads one form of a text: `read-string`.
    ///
    /// # Errors
    /// A mistake in its syntax, as an exception.
    pub fn read_form(&mut self, text: &str) -> Outcome<Option<Value>> {
        self.budget.memory(text.len())?;
        let world = Arc::clone(&self.world);
        let names = NamesOf { world: &world, namespace: self.namespace.clone() };
        let form = Reader::new(text, arcstr::literal!("text")).next(&names);
        form.map_err(|error| EvalError::throw(&class::RUNTIME_EXCEPTION, error.to_string()))
    }

    /// Expands the macro at the head of a form once, or until there is none.
    ///
    /// # Errors
    /// What the macro throws, as an exception.
    pub fn expand(&mut self, form: &Value, all: bool) -> Outcome {
        let mut analyzer = Analyzer::new(self);
        let expanded = if all {
            analyzer.expand_all(form)
        } else {
            analyzer.expand_once(form).unwrap_or_else(|| form.clone())
        };
        match analyzer.diagnostics.first() {
            Some(diagnostic) => Err(EvalError::throw(&class::RUNTIME_EXCEPTION, diagnostic.to_string())),
            None => Ok(expanded),
        }
    }
}

/// A form at the place of the one around it, unless it has its own.
fn placed(form: &Value, around: &Value) -> Value {
    match (form, around) {
        (Value::List(list), Value::List(around)) if !list.at.is_known() => {
            let parts: Vec<Value> = list.iter().cloned().collect();
            Value::List(Arc::new(List::at(around.at.clone(), parts.into_iter())))
        }
        _ => form.clone(),
    }
}

fn forms_of_do(form: &Value) -> Option<Vec<Value>> {
    let Value::List(list) = form else { return None };
    let is_do = list.first().and_then(Value::as_symbol).is_some_and(|head| head == "do");
    is_do.then(|| list.iter().skip(1).cloned().collect())
}

fn is_about_names(form: &Value) -> bool {
    let Value::List(list) = form else { return false };
    let head = list.first().and_then(Value::as_symbol);
    head.is_some_and(|head| ABOUT_NAMES.contains(&split_name(head).1))
}
