//! Golden tests: whole configurations with their native file and diagnostics.
//!
//! `tests/import/carbon/NAME/SECTION.want` has the native file, or says that there is none, and then the diagnostics
//! as a user sees them; `relay-b.want` is for `[relay:b]`. `UPDATE=1 cargo test -p import --lib carbon::golden`
//! rewrites them; read the diff before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Invocation, carbon, harmless_last, other_daemons};
use config::diagnostic::{Source, render_files};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

/// The expected file's content.
fn rendered(folder: &Path, section: &str) -> String {
    let read = |name: &str| {
        fs::read_to_string(folder.join(name)).map_err(|_| format!("cannot read {name}: not there"))
    };
    let conf = read("carbon.conf").expect("each has one");
    let (plan, files) = carbon(("carbon.conf", &conf), &Invocation::of_section(section), &read);
    let native = plan.as_ref().map_or_else(|| "nothing\n".to_owned(), config::print);
    if plan.is_some() {
        // The printed file gives the imported plan.
        let (again, wrong) = config::check(Source { name: "t", text: &native }, config::Format::Toml);
        assert_eq!(again, plan, "{folder:?} {section}: {wrong:?}\n{native}");
    }
    let said = harmless_last(&files);
    let said: Vec<_> = said.iter().map(|(source, diagnostics)| (*source, &**diagnostics)).collect();
    let note = plan.and_then(|_| other_daemons(&conf, section)).map(|note| format!("note: {note}\n"));
    native + "\n" + &render_files(&said, false) + &note.unwrap_or_default()
}

#[test]
fn golden_configurations_give_the_expected_native_files() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/carbon");
    let mut wants = 0;
    for path in entries(&corpus).iter().flat_map(|folder| entries(folder)) {
        let Some(section) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".want")) else {
            continue;
        };
        let of_section = match section {
            "aggregator-cache" => section.to_owned(),
            "aggregator-cache-sums" => "aggregator-cache:sums".to_owned(),
            _ => section.replace('-', ":"),
        };
        let rendered = rendered(path.parent().expect("a file in a folder"), &of_section);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &rendered).expect("a writable folder");
        }
        assert_eq!(rendered, fs::read_to_string(&path).expect("a readable file"), "{path:?}");
        wants += 1;
    }
    assert!(wants >= 10, "{wants} is all there is");
}
