//! `staunch check relay.conf`: what `-tt` finds, and the plan that carbon-c-relay's defaults make of it.
//!
//! Not here: names of endpoints, which a check looks up nowhere.

use std::path::Path;

use config::diagnostic::{Diagnostic, Source, has_errors, render, to_json};
use config::import::relay::flags::{Flags, settings};
use config::import::relay::{FileText, RelayConf};
use config::plan::Plan;
use config::relay::{Relay, relay};
use serde_json::Value;

use super::explain::place;
use super::{colour, files, machine, rendered};
use crate::cli::check::Checked;

/// Reads it without any flags.
pub(crate) fn checked(file: &Path) -> Checked {
    let name = file.display().to_string();
    let reading = files::reading(&name);
    let mut said = rendered(&reading, colour());
    let mut diagnostics: Vec<Value> = Vec::new();
    for (at, FileText { name, text }) in reading.files.iter().enumerate() {
        let of_file = reading.mistakes.iter().filter(|mistake| mistake.file == at);
        let of_file: Vec<Diagnostic> = of_file.map(|mistake| mistake.diagnostic.clone()).collect();
        diagnostics.extend(json_of(name, text, &of_file));
    }
    let (plan, more) = reading.conf.as_ref().map(|conf| plan(conf, &name)).unwrap_or_default();
    if !more.is_empty() {
        let source = Source { name: &name, text: "" };
        said.push_str(&render(source, &more, colour()));
        diagnostics.extend(json_of(&name, "", &more));
    }
    let (conf, files) = (reading.conf, reading.files);
    let place = move |statement, expression| {
        let conf = conf.as_ref().expect("what has rules was read");
        place(conf, &files, statement, expression)
    };
    Checked { name, plan, said, diagnostics: diagnostics.into(), place: Box::new(place) }
}

fn json_of(name: &str, text: &str, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let list = to_json(Source { name, text }, diagnostics);
    list.as_array().cloned().unwrap_or_default()
}

fn plan(conf: &RelayConf, file: &str) -> (Option<Plan>, Vec<Diagnostic>) {
    let flags = Flags { config: Some(file.to_owned()), ..Flags::default() };
    let settings = settings(&flags, &machine()).0.expect("without other flags none is wrong");
    let asked = Relay { conf, settings: &settings, queue_given: false, queue_dir: None, http: None };
    let (plan, mut wrong) = relay(&asked);
    wrong.extend(plan.as_ref().map(crate::tls::mistakes).unwrap_or_default());
    (plan.filter(|_| !has_errors(&wrong)), wrong)
}
