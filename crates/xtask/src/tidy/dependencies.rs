//! Rules for external dependencies: a limit on their number, a reason for each, and none unused.

use std::collections::BTreeMap;

use super::breach::Breach;
use super::tree::Tree;

/// Limit of the design (§10).
const PACKAGES_MAX: usize = 420;

const REASONS: &str = "docs/dependencies.md";

/// The number of packages in Cargo.lock stays within the limit.
pub(super) fn lock_budget(tree: &Tree) -> Vec<Breach> {
    let packages =
        tree.text("Cargo.lock").map_or(0, |text| text.lines().filter(|line| *line == "[[package]]").count());
    if packages <= PACKAGES_MAX {
        return Vec::new();
    }
    let reason = format!("{packages} packages; at most {PACKAGES_MAX}");
    vec![Breach::new("Cargo.lock", 1, "packages", reason)]
}

/// Each direct dependency has a line with its reason in docs/dependencies.md, and each line a dependency.
pub(super) fn reasons(tree: &Tree) -> Vec<Breach> {
    let mut needed: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for manifest in tree.manifests() {
        let all = manifest.dependencies().into_iter().chain(manifest.workspace_dependencies());
        for found in all
            .filter(|found| !found.ours && tree.text(&format!("crates/{}/Cargo.toml", found.name)).is_none())
        {
            needed.entry(found.name).or_insert((manifest.path.clone(), found.line));
        }
    }
    let mut listed = BTreeMap::new();
    let mut breaches = Vec::new();
    for (index, line) in tree.text(REASONS).unwrap_or_default().lines().enumerate() {
        let Some((name, reason)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")) else {
            continue;
        };
        if reason.trim_matches([' ', '|']).is_empty() {
            breaches.push(Breach::new(
                REASONS,
                index + 1,
                "reasons",
                format!("no reason given for `{name}`"),
            ));
        }
        listed.insert(name.to_owned(), index + 1);
    }
    for (name, (path, line)) in needed.iter().filter(|(name, _)| !listed.contains_key(*name)) {
        let reason = format!("`{name}` has no reason in {REASONS}");
        breaches.push(Breach::new(path, *line, "reasons", reason));
    }
    for (name, line) in listed.iter().filter(|(name, _)| !needed.contains_key(*name)) {
        let reason = format!("`{name}` is not a direct dependency any more");
        breaches.push(Breach::new(REASONS, *line, "reasons", reason));
    }
    breaches
}

/// Each entry of `[workspace.dependencies]` is used by a crate.
pub(super) fn unused(tree: &Tree) -> Vec<Breach> {
    let crates = tree.crates();
    let taken: Vec<String> =
        crates.iter().flat_map(|manifest| manifest.dependencies()).map(|found| found.name).collect();
    let manifests = tree.manifests();
    let offered = manifests.iter().filter(|manifest| manifest.path == "Cargo.toml");
    let offered = offered.flat_map(|manifest| manifest.workspace_dependencies());
    let idle = offered.filter(|found| !found.ours && !taken.contains(&found.name));
    let breach = |name: &str, line| {
        Breach::new("Cargo.toml", line, "unused", format!("no crate of the workspace uses `{name}`"))
    };
    idle.map(|found| breach(&found.name, found.line)).collect()
}

#[cfg(test)]
use super::breach::places;

#[test]
fn the_lock_file_has_a_budget() {
    for (packages, want) in [(PACKAGES_MAX, 0), (PACKAGES_MAX + 1, 1)] {
        let text = "[[package]]\nname = \"x\"\n".repeat(packages);
        assert_eq!(lock_budget(&Tree::of(&[("Cargo.lock", &text)])).len(), want);
    }
}

#[test]
fn dependencies_and_reasons_match() {
    let files = [
        (
            "Cargo.toml",
            "[workspace.dependencies]\nmodel = { path = \"crates/model\" }\nitoa = \"1\"\nmemchr = \"2\"\n",
        ),
        ("crates/model/Cargo.toml", "[dependencies]\nmemchr.workspace = true\n"),
        ("crates/wire/Cargo.toml", "[dependencies]\nmodel.workspace = true\nnobody = \"1\"\n"),
        (REASONS, "| crate | why |\n|---|---|\n| `itoa` | fast |\n| `memchr` |  |\n| `gone` | why |\n"),
    ];
    let mut found = places(&reasons(&Tree::of(&files)));
    found.sort();
    assert_eq!(found, ["crates/wire/Cargo.toml:3", "docs/dependencies.md:4", "docs/dependencies.md:5"]);
}

#[test]
fn workspace_dependencies_are_used() {
    let files = [
        (
            "Cargo.toml",
            "[workspace.dependencies]\nmodel = { path = \"crates/model\" }\nitoa = \"1\"\nmemchr = \"2\"\n",
        ),
        ("crates/model/Cargo.toml", "[dev-dependencies]\nmemchr.workspace = true\n"),
    ];
    assert_eq!(places(&unused(&Tree::of(&files))), ["Cargo.toml:3"]);
}
