//! `staunch check relay.conf`: the errors that `-tt` finds, and the plan with carbon-c-relay's defaults.
//!
//! Not here: names of endpoints, which a check does not resolve.

use std::path::Path;

use config::diagnostic::{Diagnostic, Severity, Source, count, to_json};
use config::plan::Plan;
use import::relay::flags::{Flags, settings};
use import::relay::plan::{Relay, relay};
use import::relay::{FileText, Mistake, RelayConf};
use serde_json::Value;

use super::args::HTTP;
use super::diagnostics::{colour, rendered};
use super::explain::place;
use super::files;
use super::machine::machine;
use crate::cli::check::checked::Checked;
use crate::cli::kind::FileKind;

/// Reads it with the default flags.
pub(crate) fn checked(file: &Path) -> Checked {
    let name = file.display().to_string();
    let mut reading = files::reading(&name);
    let (plan, more) = reading.conf.as_ref().map(|conf| plan(conf, &name)).unwrap_or_default();
    reading.mistakes.extend(more);
    let said = rendered(&reading, colour());
    let count = count(reading.mistakes.iter().map(|mistake| &mistake.diagnostic));
    let mut diagnostics: Vec<Value> = Vec::new();
    for (at, FileText { name, text }) in reading.files.iter().enumerate() {
        let of_file = reading.mistakes.iter().filter(|mistake| mistake.file == at);
        let of_file: Vec<Diagnostic> = of_file.map(|mistake| mistake.diagnostic.clone()).collect();
        let list = to_json(Source { name, text }, &of_file);
        diagnostics.extend(list.as_array().cloned().unwrap_or_default());
    }
    let (conf, files) = (reading.conf, reading.files);
    let place = move |statement, expression| {
        let conf = conf.as_ref().expect("what has rules was read");
        place(conf, &files, statement, expression)
    };
    let (diagnostics, place) = (diagnostics.into(), Box::new(place));
    Checked { name, plan, said, diagnostics, count, kind: FileKind::Relay, place }
}

fn plan(conf: &RelayConf, file: &str) -> (Option<Plan>, Vec<Mistake>) {
    let flags = Flags { config: Some(file.to_owned()), ..Flags::default() };
    let settings = settings(&flags, &machine()).0.expect("without other flags none is wrong");
    plan_of(&Relay { conf, settings: &settings, queue_given: false, queue_dir: None, http: Some(HTTP) })
}

/// The plan, if everything that the files show is possible, and the diagnostics.
pub(crate) fn plan_of(asked: &Relay<'_>) -> (Option<Plan>, Vec<Mistake>) {
    let (plan, mut wrong) = relay(asked);
    let of_files = plan.as_ref().map(tls::mistakes).unwrap_or_default();
    let is_warning = |(_, said): &(usize, Diagnostic)| said.severity == Severity::Warning;
    let plan = plan.filter(|_| of_files.iter().all(is_warning));
    wrong.extend(of_files.into_iter().map(|(file, wrong)| Mistake::ours(file, wrong)));
    let small = plan.as_ref().and_then(crate::disk_room::warning);
    wrong.extend(small.map(|warning| Mistake::ours(0, warning)));
    (plan, wrong)
}
