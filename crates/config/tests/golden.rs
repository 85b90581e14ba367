//! Files with errors and their diagnostics: `tests/golden/NAME.toml` (or `.yaml`) and `NAME.*.txt`.
//!
//! `UPDATE=1 cargo test -p config --test golden` writes the texts; read the difference before you commit it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use config::diagnostic::{Code, Diagnostic, Severity, Source, render, to_json};
use config::{Format, check};

/// Codes about files on disk or about the summary of a valid file, not about mistakes in the config's text: tested with
/// `staunch check` (`tests/binary/check.rs`, `encrypted.rs`).
const OF_FILES: [Code; 5] =
    [Code::TokenOpen, Code::CertificateDates, Code::DiskTooSmall, Code::UnreadEvents, Code::NotAFolder];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Each file with its text and its errors, by name.
fn files() -> Vec<(String, String, Vec<Diagnostic>)> {
    let entries = fs::read_dir(folder()).expect("the folder is in the repository");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a readable folder").file_name().into_string().expect("a name in UTF-8"))
        .filter(|name| !name.ends_with(".txt"))
        .collect();
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(folder().join(&name)).expect("a readable file");
        let (plan, wrong) = check(Source { name: &name, text: &text }, Format::of_name(&name));
        assert_eq!(plan.is_none(), wrong.iter().any(|wrong| wrong.severity == Severity::Error), "{name}");
        (name, text, wrong)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn diagnostics_match_the_golden_texts() {
    for (name, text, wrong) in files() {
        let shown = render(Source { name: &name, text: &text }, &wrong, false);
        let path = folder().join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &shown).unwrap();
        }
        let want = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(shown, want, "{name}:\n{shown}");
    }
}

#[test]
fn each_golden_file_has_its_code_and_each_code_has_a_golden_file() {
    let mut shown = BTreeSet::new();
    for (name, _, wrong) in files() {
        let code = name.split('-').next().unwrap();
        let found: BTreeSet<&str> = wrong.iter().map(|wrong| wrong.code.word()).collect();
        assert!(found.contains(code) || name.starts_with("ten-"), "{name}: {found:?}");
        shown.extend(found);
    }
    for code in Code::ALL.iter().filter(|code| code.word().starts_with('C') && !OF_FILES.contains(code)) {
        assert!(shown.contains(code.word()), "{} has no golden file", code.word());
    }
}

#[test]
fn ten_errors_are_shown_at_once() {
    let (_, text, wrong) = files().into_iter().find(|(name, ..)| name.starts_with("ten-")).unwrap();
    assert!(wrong.iter().filter(|wrong| wrong.severity == Severity::Error).count() >= 10);
    let lines: Vec<u64> = to_json(Source { name: "x", text: &text }, &wrong)
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["line"].as_u64().unwrap())
        .collect();
    assert!(lines.is_sorted(), "{lines:?}");
}

#[test]
fn the_example_of_a_code_has_that_error() {
    for code in Code::ALL.iter().filter(|code| code.word().starts_with('C') && !OF_FILES.contains(code)) {
        let (_, wrong) = check(Source { name: "example", text: code.example() }, Format::Toml);
        let found: Vec<&str> = wrong.iter().map(|wrong| wrong.code.word()).collect();
        assert!(found.contains(&code.word()) || *code == Code::TooMany, "{}: {found:?}", code.word());
    }
}
