//! Rules for single files: headers, length of the README, unfinished marks, machine paths, binaries.

use super::breach::Breach;
use super::tree::Tree;

/// Files with more lines need a header.
const LINES_WITHOUT_HEADER_MAX: usize = 200;

const README_LINES_MAX: usize = 250;

/// A larger file is not source code.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A long file begins with its purpose, the path of a packet through it, and what is not in it.
pub(super) fn headers(tree: &Tree) -> Vec<Breach> {
    let headless = tree.sources().filter(|(_, text)| {
        text.lines().count() > LINES_WITHOUT_HEADER_MAX && !text.trim_start().starts_with("//!")
    });
    let reason = format!(
        "over {LINES_WITHOUT_HEADER_MAX} lines without a `//!` header that says what the file is for"
    );
    headless.map(|(path, _)| Breach::new(path, 1, "header", reason.as_str())).collect()
}

/// A longer README is a manual.
pub(super) fn readme_length(tree: &Tree) -> Vec<Breach> {
    let lines = tree.text("README.md").map_or(0, |text| text.lines().count());
    if lines <= README_LINES_MAX {
        return Vec::new();
    }
    vec![Breach::new("README.md", lines, "readme", format!("{lines} lines; at most {README_LINES_MAX}"))]
}

/// Unfinished work needs an issue, or it is never finished.
pub(super) fn unfinished_marks(tree: &Tree) -> Vec<Breach> {
    // Written so that this file does not violate the rule.
    const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let mut breaches = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !is_lock_file(path)) {
        for (index, line) in text.lines().enumerate() {
            let Some(mark) = MARKS.iter().find(|mark| line.contains(**mark)) else { continue };
            let issue =
                line.split('#').skip(1).any(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
            if !issue {
                breaches.push(Breach::new(
                    path,
                    index + 1,
                    "unfinished",
                    format!("`{mark}` without an issue (#123)"),
                ));
            }
        }
    }
    breaches
}

/// A path of one machine is wrong on every other one.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Breach> {
    const PATHS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp", "/wt")];
    let mut breaches = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = PATHS.iter().find(|found| line.contains(**found)) {
                breaches.push(Breach::new(
                    path,
                    index + 1,
                    "machine-path",
                    format!("`{found}…` exists on one machine only"),
                ));
            }
        }
    }
    breaches
}

/// Files that a diff cannot show do not belong in the repository, except corpora.
pub(super) fn binaries(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, bytes) in tree.files().filter(|(path, _)| !path.starts_with("tests/corpus/")) {
        if bytes.contains(&0) {
            breaches.push(Breach::new(
                path,
                1,
                "binary",
                "a binary cannot be reviewed; commit its source instead",
            ));
        } else if bytes.len() > FILE_BYTES_MAX {
            let reason = format!("{} bytes; source files have at most {FILE_BYTES_MAX}", bytes.len());
            breaches.push(Breach::new(path, 1, "binary", reason));
        }
    }
    breaches
}

fn is_lock_file(path: &str) -> bool {
    path.ends_with(".lock") || path.ends_with("package-lock.json") || path.ends_with("go.sum")
}

#[cfg(test)]
use super::breach::places;

#[test]
fn long_files_begin_with_a_header() {
    let short = "fn a() {}\n".repeat(LINES_WITHOUT_HEADER_MAX);
    let long = "fn a() {}\n".repeat(LINES_WITHOUT_HEADER_MAX + 1);
    let headed = format!("//! The job.\n{long}");
    let files = [
        ("a.rs", short.as_str()),
        ("b.rs", long.as_str()),
        ("c.rs", headed.as_str()),
        ("d.md", long.as_str()),
    ];
    assert_eq!(places(&headers(&Tree::of(&files))), ["b.rs:1"]);
}

#[test]
fn the_readme_stays_short() {
    for (lines, want) in [(README_LINES_MAX, 0), (README_LINES_MAX + 1, 1)] {
        assert_eq!(readme_length(&Tree::of(&[("README.md", &"x\n".repeat(lines))])).len(), want);
    }
}

#[test]
fn unfinished_work_needs_an_issue() {
    let mark = ["TO", "DO"].concat();
    let text = format!("// {mark}: later\n// {mark}(#12): later\n// {mark} # 12\n");
    assert_eq!(
        places(&unfinished_marks(&Tree::of(&[("a.rs", &text), ("Cargo.lock", &text)]))),
        ["a.rs:1", "a.rs:3"]
    );
}

#[test]
fn paths_of_a_machine_are_found() {
    let text = format!("see {}me/x\nand /etc/passwd\n", "/ho");
    assert_eq!(places(&machine_paths(&Tree::of(&[("a.md", &text)]))), ["a.md:1"]);
}

#[test]
fn binaries_are_allowed_in_corpora_only() {
    let large = "x".repeat(FILE_BYTES_MAX + 1);
    let files = [
        ("a.bin", "a\0b"),
        ("tests/corpus/statsd/good/a", "a\0b"),
        ("b.txt", large.as_str()),
        ("c.txt", "c"),
    ];
    assert_eq!(places(&binaries(&Tree::of(&files))), ["a.bin:1", "b.txt:1"]);
}
