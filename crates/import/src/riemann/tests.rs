//! Configs of `tests/import/riemann`: the report of their streams, what is said, and the native file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use config::diagnostic::{Source, render};
use config::streams::{evaluate, parts};
use streams::riemann::files::Reader;

use super::*;
use crate::corpus;

struct Folder(BTreeMap<String, String>);

impl Reader for Folder {
    fn read_file(&mut self, path: &str) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn files_below(&mut self, _path: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    fn environment(&mut self, _name: &str) -> Option<String> {
        None
    }

    fn host_name(&mut self) -> String {
        "localhost".to_owned()
    }
}

#[test]
fn configs_become_native_files_with_a_report_of_their_streams() {
    let configs = corpus::files("import/riemann", "config");
    assert!(configs.len() >= 3, "{}", configs.len());
    for path in configs {
        let (name, text) = corpus::read(&path);
        let included = corpus::files("import/riemann", "clj").into_iter().map(|path| corpus::read(&path));
        let files = included.chain([(name.clone(), text)]).collect();
        let evaluated = evaluate(&name, Box::new(Folder(files)), 0, 1);
        let resolve = |host: &str| host.parse().map_err(|_error| "it is unknown".to_owned());
        let (plan, said) = riemann(PathBuf::from(&name), &evaluated, &resolve);
        let mut got = parts_text(&parts(&evaluated.files, 0));
        for (file, diagnostic) in &said {
            let text = evaluated.files.texts.get(file).and_then(|text| text.as_deref().ok());
            let source = Source { name: file, text: text.unwrap_or_default() };
            got += &render(source, std::slice::from_ref(diagnostic), false);
        }
        got += &plan.map_or_else(|| "no native file\n".to_owned(), |plan| config::print(&plan));
        corpus::assert_wanted(&path, &got);
    }
}
