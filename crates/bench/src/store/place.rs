//! Folders of scenarios, and the time of their points.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{BenchError, failed};
use sys::clock::Clock;

/// How old the first points are: in the finest archive of six hours until the end of all runs.
pub(super) const FILE_AGE_S: u64 = 19_000;

/// A new folder of a scenario.
pub(super) fn scenario_folder(folder: &Path, scenario: &str) -> Result<PathBuf, BenchError> {
    let folder = folder.join(scenario);
    fs::create_dir_all(&folder).map_err(failed("make its folder"))?;
    Ok(folder)
}

/// Removes a folder with everything in it.
pub(super) fn removed(folder: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("remove its folder")(error)),
        _ => Ok(()),
    }
}

/// Unix seconds.
pub(super) fn now_s() -> u64 {
    Clock::now().wall_seconds()
}
