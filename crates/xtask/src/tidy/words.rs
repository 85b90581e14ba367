//! The project's words: terms of our own that the field has a better one for.
//!
//! A folder that still has some of them is in `ratchet.toml` with their number, which may only shrink.
//! Not here: words that only a reader can judge.

use std::collections::BTreeMap;

use super::breach::Breach;
use super::ratchet;
use super::tree::Tree;

/// (the word, what to write).
const WORDS: &[(&str, &str)] = &[
    ("any_name", "skip_hostname_check"),
    ("aside", "quarantine"),
    ("board", "table"),
    ("bury", "drop_stale_waits"),
    ("desk", "registry"),
    ("earlier self", "predecessor"),
    ("earlier_self", "predecessor"),
    ("heed", "watch"),
    ("heeded", "watched"),
    ("heirs", "successors"),
    ("laid over", "merge plans"),
    ("laid_over", "merge plans"),
    ("packing", "compression"),
    ("personality", "compatibility mode"),
    ("placement", "sharding, hash ring"),
    ("rollup", "aggregation rule"),
    ("rollups", "aggregation rules"),
    ("seat", "slot"),
    ("shed", "dropped, with its reason"),
    ("stand in for", "fail over"),
    ("stand_in", "fail over"),
    ("stands in for", "fails over"),
    ("stands_in", "fails over"),
    ("take over", "hot restart"),
    ("take-over", "hot restart"),
    ("take_over", "hot restart"),
    ("tells", "emits, logs, reports"),
    ("told", "emitted, logged, reported"),
    ("whoever", "a noun: the client, the operator"),
];

/// Names of options in files begin with `max_`.
const IN_DOCS: &[(&str, &str)] = &[("bytes_max", "max_bytes"), ("connections_max", "max_connections")];

/// Files that list words of earlier versions.
const OLD_NAMES: &[&str] = &[
    "CHANGELOG.md",
    "crates/xtask/src/tidy/words.rs",
    "crates/config/src/options/mod.rs",
    "crates/staunch/src/cli/explain.rs",
];

/// Words with a better one in the field.
pub(super) fn known(tree: &Tree) -> Vec<Breach> {
    let allowed = match ratchet::numbers(tree, "words") {
        Ok(allowed) => allowed,
        Err(reason) => return vec![Breach::new(ratchet::PATH, 1, "words", reason)],
    };
    let mut found: BTreeMap<String, Vec<Breach>> = BTreeMap::new();
    let texts = tree.texts().filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".md"));
    for (path, text) in texts.filter(|(path, _)| !OLD_NAMES.contains(path)) {
        let docs = if path.ends_with(".md") { IN_DOCS } else { &[] };
        for (index, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for (word, instead) in WORDS.iter().chain(docs).filter(|(word, _)| has(&line, word)) {
                let reason = format!("`{word}`: the field says {instead}");
                let key = format!("{}::{word}", folder(path));
                found.entry(key).or_default().push(Breach::new(path, index + 1, "words", reason));
            }
        }
    }
    let mut breaches = Vec::new();
    for (key, lines) in &found {
        let most = allowed.get(key).copied().unwrap_or_default();
        if lines.len() > most {
            breaches.extend(lines.iter().cloned());
        }
    }
    for (key, most) in &allowed {
        let lines = found.get(key).map_or(0, Vec::len);
        if lines < *most {
            let reason = format!("`{key}` is in {lines} lines, and no more in {most}: lower the number");
            breaches.push(Breach::new(ratchet::PATH, 1, "words", reason));
        }
    }
    breaches
}

/// Where a file's words are counted: its crate, or the first folder.
fn folder(path: &str) -> &str {
    let parts = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(parts - 1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

/// Whether the word is in the line, between characters that are no letters.
fn has(line: &str, word: &str) -> bool {
    let is_letter = |part: Option<char>| part.is_some_and(char::is_alphabetic);
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
        !is_letter(before) && !is_letter(after)
    })
}

#[test]
fn words_of_our_own_are_found_and_may_only_become_fewer() {
    use super::breach::places;
    let text = "// It was told.\nfn take_over() {}\n// untold boards, foretold\n// the board\n";
    let tree = |ratchet: &str| Tree::of(&[("crates/a/src/b.rs", text), (ratchet::PATH, ratchet)]);
    let all = ["crates/a/src/b.rs:2", "crates/a/src/b.rs:4", "crates/a/src/b.rs:1"];
    let mut found = places(&known(&tree("")));
    found.sort();
    let mut want = all.to_vec();
    want.sort_unstable();
    assert_eq!(found, want);
    let allowed = "[words]\n\"crates/a::told\" = 1\n\"crates/a::take_over\" = 2\n\"crates/a::board\" = 1\n";
    let breaches = known(&tree(allowed));
    assert_eq!(places(&breaches), [format!("{}:1", ratchet::PATH)], "{breaches:?}");
    assert_eq!(folder("docs/a.md"), "docs");
    assert_eq!(folder("README.md"), "README.md");
    assert!(has("a hot take over", "take over") && !has("mistake_over", "take_over"));
}
