//! Checks the folders that a daemon creates: `data_dir`, and the `path` of each store.

use std::path::{Path, PathBuf};

use config::File;
use config::diagnostic::{Code, Diagnostic, Place};
use config::plan::{OutputKind, Plan};

/// Paths that are no folder and cannot become one, each as an error at its place in `files`.
pub(super) fn mistakes(plan: &Plan, files: &[File<'_>]) -> Vec<Diagnostic> {
    let stores = plan.outputs.iter().filter_map(|output| {
        let OutputKind::Whisper(store) = &output.kind else { return None };
        Some((format!("`path` of output `{}`", output.name), &*store.path))
    });
    let data_dir = [("`data_dir`".to_owned(), &*plan.data_dir)];
    let wrong = |(what, path): (String, &Path)| {
        let blocking = blocking(path)?;
        let shown = path.display();
        let error = Diagnostic::error(Code::NotAFolder, format!("{what} is not a folder: {shown}"));
        let error = error.label(format!("{} is not a folder", blocking.display()));
        Some(match place_of(path, files) {
            Some(place) => error.at(place),
            None => error,
        })
    };
    data_dir.into_iter().chain(stores).filter_map(wrong).collect()
}

/// The path, or the nearest one above it that exists, if that is not a folder.
fn blocking(path: &Path) -> Option<PathBuf> {
    // A link to nothing exists, too.
    let found = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    (!found.is_dir()).then(|| found.to_owned())
}

/// Where a file has the path as a string, if only one place has it.
fn place_of(path: &Path, files: &[File<'_>]) -> Option<Place> {
    let path = path.to_str()?;
    let mut found = files.iter().enumerate().flat_map(|(index, file)| {
        let base = config::base(files, index);
        ['"', '\''].into_iter().flat_map(move |quote| {
            let quoted = format!("{quote}{path}{quote}");
            let text = file.source.text;
            let starts: Vec<usize> = text.match_indices(&quoted).map(|(at, _)| base + at).collect();
            starts.into_iter().map(move |at| Place::new(at, at + quoted.len()))
        })
    });
    found.next().filter(|_| found.next().is_none())
}

#[cfg(unix)]
#[test]
fn a_path_is_blocked_by_what_is_there_and_is_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |below: &str| folder.path().join(below);
    std::fs::write(path("file"), "").expect("a new file");
    std::os::unix::fs::symlink(path("nothing"), path("link")).expect("a new link");
    std::os::unix::fs::symlink(folder.path(), path("here")).expect("a new link");
    for (below, want) in [
        ("", None),
        ("new", None),
        ("new/below", None),
        ("here/new", None),
        ("file", Some("file")),
        ("file/below/it", Some("file")),
        ("link", Some("link")),
        ("link/below", Some("link")),
    ] {
        assert_eq!(blocking(&path(below)), want.map(path), "{below}");
    }
    assert_eq!(blocking(Path::new("no-such/relative")), None);
}
