//! Whole configurations as they are found: what becomes of them, and all that is said.
//!
//! `tests/import/carbon/NAME/SECTION.want` has the native file, or that there is none, and below it the diagnostics as a
//! person sees them; `relay-b.want` is of `[relay:b]`. `UPDATE=1 cargo test -p config --lib carbon::golden` writes them
//! anew; read the difference before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use super::carbon;
use config::diagnostic::{Source, render};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

/// What stands in the file that is wanted.
fn told(folder: &Path, section: &str) -> String {
    let read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|_| "not there".to_owned());
    let conf = read("carbon.conf").expect("each has one");
    let (plan, files) = carbon(("carbon.conf", &conf), section, &read);
    let native = plan.as_ref().map_or_else(|| "nothing\n".to_owned(), config::print);
    if plan.is_some() {
        // What is printed is what was imported.
        let (again, wrong) = config::check(Source { name: "t", text: &native }, config::Format::Toml);
        assert_eq!(again, plan, "{folder:?} {section}: {wrong:?}\n{native}");
    }
    let said = files.iter().filter(|file| !file.diagnostics.is_empty());
    let said =
        said.map(|file| render(Source { name: &file.name, text: &file.text }, &file.diagnostics, false));
    native + "\n" + &said.collect::<String>()
}

#[test]
fn configurations_are_carried_over_as_they_were() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/carbon");
    let mut wants = 0;
    for path in entries(&corpus).iter().flat_map(|folder| entries(folder)) {
        let Some(section) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".want")) else {
            continue;
        };
        let told = told(path.parent().expect("a file in a folder"), &section.replace('-', ":"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &told).expect("a writable folder");
        }
        assert_eq!(told, fs::read_to_string(&path).expect("a readable file"), "{path:?}");
        wants += 1;
    }
    assert!(wants >= 10, "{wants} is all there is");
}
