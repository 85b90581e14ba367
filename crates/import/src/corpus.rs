//! Shared by the golden tests of imports: lists the files of a directory and compares with `NAME.want`.

use std::path::{Path, PathBuf};

/// The files with this ending in a folder of `tests`, such as `import/statsd`, by name.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == ending));
    files.sort();
    files
}

/// A file with its name.
pub(crate) fn read(path: &Path) -> (String, String) {
    (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
}

/// Compares with the `.want` file beside it. With `UPDATE` in the environment that file is rewritten.
pub(crate) fn assert_wanted(path: &Path, got: &str) {
    let want_path = path.with_extension("want");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&want_path, got).unwrap();
    }
    let want = std::fs::read_to_string(&want_path).unwrap_or_default();
    assert!(got == want, "{} gives\n{got}\nand should give\n{want}", path.display());
}
