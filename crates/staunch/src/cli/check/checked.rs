//! A parsed config of any program: its plan, and what is wrong with it.

use config::diagnostic::{Count, count, to_json};
use config::plan::Plan;
use serde_json::Value;

use super::rules::Place;
use crate::cli::kind::FileKind;
use crate::cli::load::Loaded;

/// A parsed config of any program.
pub(crate) struct Checked {
    /// The name given by the user.
    pub(crate) name: String,
    /// Its plan; `None` after an error.
    pub(crate) plan: Option<Plan>,
    /// The diagnostics for people.
    pub(crate) said: String,
    /// The same for programs.
    pub(crate) diagnostics: Value,
    /// The number of diagnostics, including omitted ones.
    pub(crate) count: Count,
    /// Its format.
    pub(crate) kind: FileKind,
    /// The places of rules of relays.
    pub(crate) place: Box<Place<'static>>,
}

impl From<Loaded> for Checked {
    fn from(loaded: Loaded) -> Checked {
        Checked {
            said: loaded.rendered(),
            diagnostics: loaded
                .by_file(&loaded.diagnostics)
                .iter()
                .flat_map(|(source, diagnostics)| list(to_json(*source, diagnostics)))
                .collect(),
            kind: FileKind::Native,
            count: count(&loaded.diagnostics),
            place: Box::new(|statement, _| format!("rule {}", statement + 1)),
            plan: if loaded.has_errors() { None } else { loaded.plan },
            name: loaded.name,
        }
    }
}

fn list(json: Value) -> Vec<Value> {
    match json {
        Value::Array(list) => list,
        other => vec![other],
    }
}
