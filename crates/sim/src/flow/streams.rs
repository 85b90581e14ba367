//! The Riemann configs of a flow's configuration: evaluated as `staunch check` does it, at the start of the simulated clock.
//!
//! A flow has a function that reads files, which a config cannot keep: so the files that it asked for are read after each evaluation,
//! and it is evaluated again until it asks for no other. Not here: what a config means (`config::streams`).
//! Limits: a config asks for [`FILES_MAX`] files at most. It has no folders, no environment besides the flow's, and no real host name.

use std::collections::BTreeMap;
use std::path::Path;

use config::diagnostic::{Diagnostic, has_errors};
use config::plan::Plan;
use config::streams::{Evaluated, attach, unloaded};
use streams::riemann::files::Reader;

use super::plan::HOSTNAME;
use crate::world::START_S;

/// Files of one config, at most.
const FILES_MAX: usize = 256;

/// A Riemann config with mistakes.
pub(super) struct Wrong {
    /// The name of the file with the first of them, and its text.
    pub(super) file: (String, String),
    /// All diagnostics of that file.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Evaluates the Riemann configs of a plan, and adds their outputs.
///
/// # Errors
/// The mistakes of the first config that has some.
pub(super) fn load(
    plan: &mut Plan,
    environment: &BTreeMap<String, String>,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(), Wrong> {
    let files: Vec<_> = unloaded(plan).into_iter().map(|(id, file)| (id, file.to_owned())).collect();
    for (id, file) in files {
        let evaluated = evaluate(&file, environment, read);
        let mut said = evaluated.said.clone();
        said.extend(attach(plan, id, &evaluated));
        let is_wrong = |(_, one): &&(String, Diagnostic)| has_errors(std::slice::from_ref(one));
        let Some((first, _)) = said.iter().find(is_wrong) else { continue };
        let text = evaluated.files.texts.get(first).and_then(|text| text.as_ref().ok());
        let file = (first.clone(), text.cloned().unwrap_or_default());
        let of_it = said.iter().filter(|(name, _)| *name == file.0);
        let diagnostics = of_it.map(|(_, one)| one.clone()).collect();
        return Err(Wrong { file, diagnostics });
    }
    Ok(())
}

fn evaluate(
    file: &Path,
    environment: &BTreeMap<String, String>,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Evaluated {
    let folder = file.parent().unwrap_or(Path::new(""));
    let main = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut texts: BTreeMap<String, Result<String, String>> = BTreeMap::new();
    loop {
        let known = Known { texts: texts.clone(), environment: environment.clone() };
        let evaluated =
            config::streams::evaluate(&main, Box::new(known), (START_S * 1_000_000).cast_signed(), 1);
        let asked = evaluated.files.texts.keys().filter(|name| !texts.contains_key(*name));
        let asked: Vec<String> = asked.cloned().collect();
        if asked.is_empty() || texts.len() + asked.len() > FILES_MAX {
            return evaluated;
        }
        for name in asked {
            let text = read(&folder.join(&name).to_string_lossy());
            texts.insert(name, text);
        }
    }
}

/// The files that have been read so far.
struct Known {
    texts: BTreeMap<String, Result<String, String>>,
    environment: BTreeMap<String, String>,
}

impl Reader for Known {
    fn read_file(&mut self, path: &str) -> Result<String, String> {
        let known = self.texts.get(path).cloned();
        known.unwrap_or_else(|| Err(format!("a flow reads at most {FILES_MAX} files of a config")))
    }

    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        match path.ends_with('/') {
            true => Err("a config in a flow includes files, not folders".to_owned()),
            false => Ok(None),
        }
    }

    fn environment(&mut self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }

    fn host_name(&mut self) -> String {
        HOSTNAME.to_owned()
    }
}
