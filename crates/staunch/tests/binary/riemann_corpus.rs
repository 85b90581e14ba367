//! The configs in `tests/riemann`, as operators write them: `staunch check` finds no mistake in any, and the tests inside, which say
//! what Riemann does with their streams, pass.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::support::daemon::STAUNCH;

/// Threads that run configs.
const WORKERS: usize = 4;
/// A corpus with fewer configs has lost some.
const CONFIGS_MIN: usize = 60;

/// Each `NAME.config`, and the `riemann.config` of each folder.
fn configs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/riemann");
    let entries = std::fs::read_dir(root).expect("the corpus is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut configs: Vec<PathBuf> =
        paths.map(|path| if path.is_dir() { path.join("riemann.config") } else { path }).collect();
    configs.sort();
    configs
}

fn staunch(args: &[&str], config: &Path) -> Output {
    Command::new(STAUNCH).args(args).arg(config).output().expect("it runs")
}

/// What is wrong with a config; nothing, if its tests pass and `check` finds no mistake.
fn complaints(config: &Path) -> Option<String> {
    let tested = staunch(&["riemann", "test"], config);
    let report = String::from_utf8_lossy(&tested.stdout);
    let tests = report.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse().ok());
    if !tested.status.success() || tests.unwrap_or(0_u32) == 0 {
        return Some(format!("{}: {report}{}", config.display(), String::from_utf8_lossy(&tested.stderr)));
    }
    let checked = staunch(&["check"], config);
    (!checked.status.success())
        .then(|| format!("{}: {}", config.display(), String::from_utf8_lossy(&checked.stderr)))
}

#[test]
fn every_config_of_the_corpus_passes_its_own_tests() {
    let configs = configs();
    assert!(configs.len() >= CONFIGS_MIN, "{} configs", configs.len());
    let next = AtomicUsize::new(0);
    let work = || -> Vec<String> {
        std::iter::from_fn(|| configs.get(next.fetch_add(1, Relaxed)))
            .filter_map(|path| complaints(path))
            .collect()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it does not panic")).collect()
    });
    assert!(failed.is_empty(), "{} of {} configs fail\n{}", failed.len(), configs.len(), failed.join("\n"));
}
