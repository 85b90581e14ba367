//! `staunch test`: runs flow files in the simulator and prints the failures.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use sim::flow::{self, Failure};

use super::MISTAKES;
use super::args::TestArgs;
use client::stdio;

/// Result of one flow file.
#[derive(Debug, Serialize)]
struct Row {
    file: String,
    passed: bool,
    failures: Vec<FailureRow>,
}

#[derive(Debug, Serialize)]
struct FailureRow {
    line: usize,
    message: String,
}

/// `staunch test`
pub(crate) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    for path in &args.files {
        collect(path, &mut files)?;
    }
    anyhow::ensure!(!files.is_empty(), "no file that ends in .flow");
    let rows = files.iter().map(|file| run(file)).collect::<anyhow::Result<Vec<Row>>>()?;
    report(&rows, args.json)?;
    let failed = rows.iter().any(|row| !row.passed);
    Ok(if failed { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}

fn run(file: &Path) -> anyhow::Result<Row> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let failures = flow::run(&text, &read).err().unwrap_or_default();
    let rows = failures.into_iter().map(|Failure { line, message }| FailureRow { line, message });
    let failures: Vec<FailureRow> = rows.collect();
    Ok(Row { file: file.display().to_string(), passed: failures.is_empty(), failures })
}

fn report(rows: &[Row], json: bool) -> anyhow::Result<()> {
    let mut text = String::new();
    if json {
        text = serde_json::to_string_pretty(rows)? + "\n";
    } else {
        for row in rows {
            text += &format!("{} {}\n", if row.passed { "ok    " } else { "FAILED" }, row.file);
            for FailureRow { line, message } in &row.failures {
                text += &format!("       {}:{line}: {}\n", row.file, message.replace('\n', "\n       "));
            }
        }
        let passed = rows.iter().filter(|row| row.passed).count();
        text += &format!("{passed} passed, {} failed\n", rows.len() - passed);
    }
    stdio::data(text.as_bytes())?;
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut inside = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    inside.sort();
    for path in inside {
        if path.is_dir() || path.extension().is_some_and(|ending| ending == "flow") {
            collect(&path, files)?;
        }
    }
    Ok(())
}
