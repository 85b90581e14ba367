//! The repository's files in memory, and the views of them that several rules use.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Files by path from the repository's root, with `/`.
pub(super) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// All files that git tracks or would add, as they are on disk now: a breach is found before the commit.
    pub(super) fn read(root: &Path) -> anyhow::Result<Tree> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot start git")?;
        if !listing.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim());
        }
        let mut files = BTreeMap::new();
        for path in listing.stdout.split(|&byte| byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8_lossy(path).into_owned();
            // A file that is deleted but not committed, or a link, is listed and cannot be read.
            if let Ok(bytes) = std::fs::read(root.join(&path)) {
                files.insert(path, bytes);
            }
        }
        Ok(Tree { files })
    }

    /// A tree for a test.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        Tree { files: files.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// All files with their bytes.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// All files that are text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)))
    }

    /// All Rust sources.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// One text file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// The crates under `crates/`. A manifest that does not parse is skipped: cargo reports it.
    pub(super) fn crates(&self) -> Vec<Manifest> {
        let member = |path: &str| {
            let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!folder.contains('/')).then(|| folder.to_owned())
        };
        let manifests = self.texts().filter_map(|(path, text)| Manifest::parse(path, member(path)?, text));
        manifests.collect()
    }

    /// Every manifest, including those outside the workspace.
    pub(super) fn manifests(&self) -> Vec<Manifest> {
        let all = self.texts().filter(|(path, _)| *path == "Cargo.toml" || path.ends_with("/Cargo.toml"));
        all.filter_map(|(path, text)| Manifest::parse(path, String::new(), text)).collect()
    }
}

/// A `Cargo.toml`.
pub(super) struct Manifest {
    pub(super) path: String,
    /// Folder below `crates/`, which is also the crate's name in the rules.
    pub(super) name: String,
    pub(super) table: toml::Table,
    text: String,
}

/// One entry of a dependency table.
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) line: usize,
    /// From `[dev-dependencies]`.
    pub(super) dev: bool,
    /// Has a `path = …`, so it is a crate of this repository.
    pub(super) ours: bool,
}

impl Manifest {
    fn parse(path: &str, name: String, text: &str) -> Option<Manifest> {
        Some(Manifest { path: path.to_owned(), name, table: text.parse().ok()?, text: text.to_owned() })
    }

    /// All entries of all dependency tables, including `[target.….dependencies]`.
    pub(super) fn dependencies(&self) -> Vec<Dependency> {
        let mut found = self.dependencies_in(&self.table);
        let targets = self.table.get("target").and_then(|targets| targets.as_table());
        for target in targets.into_iter().flatten().filter_map(|(_, table)| table.as_table()) {
            found.extend(self.dependencies_in(target));
        }
        found
    }

    /// The entries of `[workspace.dependencies]`.
    pub(super) fn workspace_dependencies(&self) -> Vec<Dependency> {
        let workspace = self.table.get("workspace").and_then(|table| table.as_table());
        workspace.map(|table| self.dependencies_in(table)).unwrap_or_default()
    }

    fn dependencies_in(&self, table: &toml::Table) -> Vec<Dependency> {
        let mut found = Vec::new();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let entries = table.get(kind).and_then(|entries| entries.as_table());
            for (key, value) in entries.into_iter().flatten() {
                let name = value.get("package").and_then(|package| package.as_str()).unwrap_or(key);
                let ours = value.get("path").is_some();
                found.push(Dependency {
                    name: name.to_owned(),
                    line: self.line_of(key),
                    dev: kind == "dev-dependencies",
                    ours,
                });
            }
        }
        found
    }

    /// First line on which a key begins.
    fn line_of(&self, key: &str) -> usize {
        let begins = |line: &str| {
            let rest = line.trim_start().trim_start_matches('"').strip_prefix(key);
            rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
        };
        self.text.lines().position(begins).map_or(1, |index| index + 1)
    }
}

#[test]
fn dependencies_are_found_in_every_table() {
    let text = "\
[dependencies]
a.workspace = true
b = { path = \"../b\" }
[target.'cfg(unix)'.dependencies]
c = { package = \"real-c\", version = \"1\" }
[dev-dependencies]
d = \"1\"
";
    let tree = Tree::of(&[("crates/x/Cargo.toml", text), ("crates/x/sub/Cargo.toml", text)]);
    let crates = tree.crates();
    assert_eq!(crates.len(), 1);
    let mut found: Vec<_> =
        crates[0].dependencies().into_iter().map(|d| (d.name, d.line, d.dev, d.ours)).collect();
    found.sort();
    let entry = |name: &str, line, dev, ours| (name.to_owned(), line, dev, ours);
    assert_eq!(
        found,
        [
            entry("a", 2, false, false),
            entry("b", 3, false, true),
            entry("d", 7, true, false),
            entry("real-c", 5, false, false)
        ]
    );
}
