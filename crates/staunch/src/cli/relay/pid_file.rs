//! The file with the process id (`-P`), there as long as the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Goes when this is dropped.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    text: String,
}

impl PidFile {
    /// Writes it. What was there before is replaced, as with the original.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(path: &Path) -> anyhow::Result<PidFile> {
        let text = format!("{}\n", std::process::id());
        fs::write(path, &text).with_context(|| format!("failed to open pidfile '{}'", path.display()))?;
        Ok(PidFile { path: path.to_owned(), text })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A process that has taken over has written its own id into it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

#[test]
fn it_goes_with_its_owner_and_never_that_of_another_process() {
    let path = std::env::temp_dir().join(format!("staunch-pid-{}", std::process::id()));
    let file = PidFile::write(&path).expect("the folder for temporary files takes it");
    assert_eq!(fs::read_to_string(&path).ok(), Some(format!("{}\n", std::process::id())));
    drop(file);
    assert!(!path.exists());
    let file = PidFile::write(&path).expect("as before");
    fs::write(&path, "1\n").expect("it can be written");
    drop(file);
    assert!(path.exists());
    fs::remove_file(&path).expect("it is there");
}
