//! A daemon whose wall clock a test sets, by libfaketime, which reads an offset from a file. The monotonic clock is left
//! alone, as it is when an operator or NTP sets a clock.

use std::path::{Path, PathBuf};

use super::Builder;

/// The library, where the distributions put it.
pub(crate) fn library() -> Option<PathBuf> {
    let name = "faketime/libfaketimeMT.so.1";
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = below.chain(["/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

/// Sets a daemon's clock so far from ours. A file is replaced whole, or the daemon could read half of a number.
pub(crate) fn set_clock(file: &Path, offset_s: i64) {
    let half = file.with_extension("new");
    std::fs::write(&half, format!("{offset_s:+}\n")).expect("the folder is ours");
    std::fs::rename(&half, file).expect("the folder is ours");
}

/// The same daemon under libfaketime, with its clock as it is, and the file that sets it.
pub(crate) fn with_clock(builder: Builder, library: &Path) -> (Builder, PathBuf) {
    let clock = builder.folder().join("clock");
    set_clock(&clock, 0);
    let builder = builder
        .variable("LD_PRELOAD", &library.display().to_string())
        .variable("FAKETIME_TIMESTAMP_FILE", &clock.display().to_string())
        .variable("FAKETIME_NO_CACHE", "1")
        .variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .variable("DONT_FAKE_MONOTONIC", "1");
    (builder, clock)
}
