//! Configs that run: events and time in, effects, log and index out.

mod carrying;
mod clients;
mod declaring;
mod lints;
mod parts;
mod posts;
mod running;
mod services;
mod testing;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::engine::{Engine, Setup};
use super::surroundings::Effect;
use crate::language::host::{Host, Level};
use crate::language::load::LoadError;
use crate::nodes::tests::rig;
use crate::value::Value;

/// A folder of files, and what was printed and logged.
#[derive(Clone, Debug, Default)]
struct Folder {
    files: BTreeMap<String, String>,
    out: Arc<Mutex<Vec<String>>>,
}

impl Host for Folder {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        let folder = format!("{path}/");
        let files: Vec<String> =
            self.files.keys().filter(|file| file.starts_with(&folder)).cloned().collect();
        Ok((!files.is_empty()).then_some(files))
    }

    fn environment(&mut self, _: &str) -> Option<String> {
        None
    }

    fn host_name(&self) -> String {
        "here".to_owned()
    }

    fn random(&mut self) -> u64 {
        4
    }

    fn print(&mut self, text: &str) {
        self.out.lock().unwrap().push(text.to_owned());
    }

    fn log(&mut self, level: Level, text: &str) {
        self.out.lock().unwrap().push(format!("{level:?}: {text}"));
    }
}

/// A config that runs.
pub(super) struct Running {
    pub(super) engine: Engine,
    out: Arc<Mutex<Vec<String>>>,
}

impl Running {
    /// A config without self-instrumentation, in a folder with these other files.
    pub(super) fn load(config: &str, files: &[(&str, &str)]) -> Result<Running, LoadError> {
        let mut folder = Folder::default();
        folder
            .files
            .insert("riemann.config".to_owned(), format!("(instrumentation {{:enabled? false}})\n{config}"));
        folder.files.extend(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let out = Arc::clone(&folder.out);
        let engine = Engine::load("riemann.config", Box::new(folder), Setup::DEFAULT)?;
        Ok(Running { engine, out })
    }

    fn new(config: &str) -> Running {
        Running::load(config, &[]).unwrap_or_else(|error| panic!("{config}: {error}"))
    }

    /// Events in the notation of the rig, and `+5` for time that passes. What top-level streams threw is noted.
    fn run(&mut self, inputs: &str) -> &mut Running {
        for input in rig::parse(inputs) {
            match input {
                rig::Input::Advance(us) => {
                    let now_us = self.engine.now_us() + us;
                    assert!(self.engine.advance(now_us, 100_000), "timers end");
                }
                rig::Input::Value(event) => {
                    if let Err(error) = self.engine.push_value(event) {
                        self.out.lock().unwrap().push(format!("threw: {error}"));
                    }
                }
            }
        }
        self
    }

    /// What was printed and logged since the last call.
    fn out(&self) -> String {
        std::mem::take(&mut *self.out.lock().unwrap()).concat()
    }

    /// The effects since the last call.
    fn effects(&mut self) -> Vec<String> {
        let shown = |effect| match effect {
            Effect::Line { output, line } => format!("{} {}", output.0, line.trim_end()),
            Effect::Published { watches, event, shape } => {
                format!("{watches:?} {shape:?} {}", rig::show(&Value::Event(event)))
            }
            Effect::WatchEnded { watch } => format!("{watch:?} has ended"),
            Effect::Event { output, event } => format!("{} {}", output.0, rig::show(&Value::Event(event))),
        };
        self.engine.effects().map(shown).collect()
    }
}

/// The mistakes of a config that cannot be loaded.
pub(crate) fn mistakes(config: &str) -> String {
    match Running::load(config, &[]) {
        Ok(_) => panic!("{config}: it was loaded"),
        Err(error) => error.to_string(),
    }
}

/// What an expression of a config gives, printed as `prn` does it.
pub(crate) fn printed(expression: &str) -> String {
    Running::new(&format!("(print (pr-str {expression}))")).out()
}

/// What a config logs.
pub(crate) fn logged(form: &str) -> String {
    Running::new(form).out()
}
