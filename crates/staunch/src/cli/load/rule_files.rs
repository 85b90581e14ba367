//! Checks the rule files that stores read when they open: `schemas_file` and `aggregations_file`.

use std::path::Path;

use config::diagnostic::{Code, Diagnostic, Place, has_errors};
use config::plan::{OutputKind, Plan};

/// The name of a file and its text.
type Read<'a> = &'a dyn Fn(&Path) -> anyhow::Result<(String, String)>;

type Check = fn(&str) -> Vec<Diagnostic>;

/// Files that cannot be read or have errors, each as one error at the place of its path in `text`.
pub(super) fn mistakes(plan: &Plan, text: &str, read: Read<'_>) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for output in &plan.outputs {
        let OutputKind::Whisper(store) = &output.kind else { continue };
        let files: [(&str, Option<&Path>, Check); 2] = [
            ("schemas_file", store.schemas_file.as_deref(), |text| import::carbon::storage_schemas(text).1),
            ("aggregations_file", store.aggregations_file.as_deref(), |text| {
                import::carbon::storage_aggregations(text).1
            }),
        ];
        for (key, path, of) in files {
            let Some(path) = path else { continue };
            if let Some(why) = mistake(path, read, of) {
                let message = format!("`{key}` of output `{}`: {why}", output.name);
                let error = Diagnostic::error(Code::IncludeUnread, message).label("no rules");
                wrong.push(match place_of(path, text) {
                    Some(place) => error.at(place),
                    None => error,
                });
            }
        }
    }
    wrong
}

/// Why a file gives no rules: the system's words, or its first error with its line.
fn mistake(path: &Path, read: Read<'_>, of: Check) -> Option<String> {
    let text = match read(path) {
        Ok((_, text)) => text,
        Err(error) => return Some(format!("{error:#}")),
    };
    let diagnostics = of(&text);
    if !has_errors(&diagnostics) {
        return None;
    }
    let first = diagnostics.iter().find(|one| has_errors(std::slice::from_ref(*one)))?;
    let start = first.place.map_or(0, |place| place.start).min(text.len());
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    Some(format!("{}:{line}: {}", path.display(), first.message))
}

/// Where the config names the file, if it does so once.
fn place_of(path: &Path, text: &str) -> Option<Place> {
    let path = path.to_str().filter(|path| !path.is_empty())?;
    let mut found = text.match_indices(path).map(|(at, _)| Place::new(at, at + path.len()));
    found.next().filter(|_| found.next().is_none())
}
