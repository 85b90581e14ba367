//! `staunch riemann test FILE`: the tests of a Riemann config under a virtual clock, with the report of `clojure.test`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use client::stdio;
use streams::language::host::Host;
use streams::object::pattern::Pattern;
use streams::riemann::files::Recorded;
use streams::riemann::testing::{self, Report};

use super::{MISTAKES, load};

/// Namespaces that are tested unless the command line says otherwise (spec riemann §13).
const NAMESPACES: &str = ".*-test";

/// Runs the tests of a config whose namespaces match the whole regular expression. Exit code 1 if one fails.
pub(super) fn test(
    file: &Path,
    namespaces: Option<&str>,
    junit: Option<&PathBuf>,
) -> anyhow::Result<ExitCode> {
    let pattern = namespaces.unwrap_or(NAMESPACES);
    let wanted = Pattern::new(pattern.into()).map_err(|why| anyhow::anyhow!("{pattern}: {why}"))?;
    let wanted = wanted.whole().map_err(|why| anyhow::anyhow!("{pattern}: {why}"))?;
    let (evaluated, loaded) = load::riemann_tests(file)?;
    stdio::say(&loaded.rendered());
    if evaluated.declared.is_none() {
        return Ok(ExitCode::from(MISTAKES));
    }
    let mut host = || Box::new(Recorded::new((*evaluated.files).clone(), 0)) as Box<dyn Host>;
    let report = testing::run(&evaluated.files.main, &mut host, &|namespace| {
        wanted.is_match(namespace).unwrap_or(false)
    })
    .context("the config was evaluated before, and cannot be evaluated again")?;
    stdio::say(&printed(&report));
    stdio::data(report.to_string().as_bytes())?;
    if let Some(junit) = junit {
        let write = || format!("cannot write {}", junit.display());
        std::fs::write(junit, report.junit()).with_context(write)?;
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}

/// What the config printed and logged in tests that failed.
fn printed(report: &Report) -> String {
    let failed = report.tests.iter().filter(|test| !test.failures.is_empty());
    let lines = failed.flat_map(|test| test.lines.iter().map(|(_, text)| format!("{}: {text}\n", test.name)));
    lines.collect()
}
