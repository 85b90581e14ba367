//! Rules for Markdown pages: relative links must resolve to a file or folder, and to a heading or anchor in it. The
//! steps of ARCHITECTURE.md must name existing files and functions, and all other paths in it must exist.
//!
//! Links to other hosts are not checked.

use std::collections::{BTreeMap, BTreeSet};

use super::breach::Breach;
use super::tree::Tree;

/// A link in a page.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Every relative link of every page resolves.
pub(super) fn resolve(tree: &Tree) -> Vec<Breach> {
    let pages: BTreeMap<&str, BTreeSet<String>> =
        tree.texts().filter(|(path, _)| is_page(path)).map(|(path, text)| (path, anchors(text))).collect();
    let mut breaches = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_page(path)) {
        for link in links(text) {
            if let Some(why) = broken(tree, &pages, path, link.target) {
                breaches.push(Breach::new(path, link.line, "links", why));
            }
        }
    }
    breaches
}

/// The page with the code map.
const PAGE: &str = "ARCHITECTURE.md";

/// Every source file and folder between backticks on the page exists. A path may begin anywhere: `turn/moves.rs`.
pub(super) fn named_files(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (line, words) in prose(tree.text(PAGE).unwrap_or_default()) {
        for code in words.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
            let (file, folder) = (code.trim_end_matches('/'), format!("{}/", code.trim_end_matches('/')));
            let exists = tree.files().any(|(path, _)| {
                path == file
                    || path.ends_with(&format!("/{file}"))
                    || path.starts_with(&folder)
                    || path.contains(&format!("/{folder}"))
            });
            if !exists {
                breaches.push(Breach::new(PAGE, line, "named_files", format!("`{code}` does not exist")));
            }
        }
    }
    breaches
}

/// True for the path of a source file or of a folder.
fn is_path(code: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_named = code.ends_with(".rs") || code.ends_with('/') || code.starts_with("crates/");
    is_named && !code.starts_with('/') && code.chars().all(is_plain)
}

/// The table of the packet's path: a row that begins with a number names a file and a function.
pub(super) fn signposts(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (index, line) in tree.text(PAGE).unwrap_or_default().lines().enumerate() {
        let mut cells = line.split('|').map(str::trim);
        let (Some(""), Some(step)) = (cells.next(), cells.next()) else { continue };
        if step.parse::<u32>().is_err() {
            continue;
        }
        let mut code = || cells.next().unwrap_or_default().trim_matches('`');
        let (file, function) = (code(), code());
        let function = function.rsplit("::").next().unwrap_or_default();
        let found = tree.text(file).is_some_and(|text| {
            text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<"))
        });
        if !found {
            let why = format!("`{file}` has no function `{function}`");
            breaches.push(Breach::new(PAGE, index + 1, "signposts", why));
        }
    }
    breaches
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md")
}

/// Why a link does not resolve, if so.
fn broken(tree: &Tree, pages: &BTreeMap<&str, BTreeSet<String>>, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(path) = resolved(from, file) else {
        return Some(format!("`{target}` is outside of the repository"));
    };
    let is_file = tree.files().any(|(known, _)| known == path);
    let folder = format!("{}/", path.trim_end_matches('/'));
    if !is_file && !tree.files().any(|(known, _)| known.starts_with(&folder)) {
        return Some(format!("`{target}`: `{path}` does not exist"));
    }
    let anchor = anchor?;
    match pages.get(path.as_str()) {
        Some(anchors) if anchors.contains(anchor) => None,
        Some(_) => Some(format!("`{path}` has no heading or anchor `#{anchor}`")),
        // Anchors in sources and the like depend on the viewer.
        None => None,
    }
}

/// `file` as seen from the page `from`, as a path from the root. `None` when it leaves the repository.
fn resolved(from: &str, file: &str) -> Option<String> {
    if file.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = if file.starts_with('/') {
        Vec::new()
    } else {
        from.rsplit_once('/').map_or(Vec::new(), |(folder, _)| folder.split('/').collect())
    };
    for part in file.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// The text's lines outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// Inline links `[text](target)` and definitions `[name]: target`, outside of code.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        if let Some((_, target)) = words.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            found.extend(target.split_whitespace().next().map(|target| Link { line, target }));
            continue;
        }
        // Every other piece between backticks is code. A link whose text is code has its target after it.
        for piece in words.split('`').step_by(2) {
            for after in piece.split("](").skip(1) {
                let Some((target, _)) = after.split_once(')') else { continue };
                found.extend(target.split_whitespace().next().map(|target| Link { line, target }));
            }
        }
    }
    found
}

/// The link targets in a page: its headings by GitHub's rules, and explicit `<a id="…">`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        for piece in line.split("<a id=\"").skip(1) {
            anchors.extend(piece.split_once('"').map(|(id, _)| id.to_owned()));
        }
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let again = (1..).map(|count| format!("{slug}-{count}"));
        let free = std::iter::once(slug.clone()).chain(again).find(|slug| !anchors.contains(slug));
        anchors.extend(free);
    }
    anchors
}

/// GitHub's anchor of a heading: lower case, spaces to `-`; letters, digits, `-` and `_` are kept.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
use super::breach::places;

#[test]
fn links_resolve_to_files_folders_and_headings() {
    let page = "\
# Title

[good](docs/a.md) [good](docs/a.md#a-heading) [folder](docs/) [up](#title) [far](https://example.org/x)
[bad](docs/b.md)
[bad](docs/a.md#nowhere)
[`code`](docs/none.md) and `[not](a-link.md)`
```
[not](a-link.md)
```
[defined]: docs/gone.md
";
    let files = [
        ("README.md", page),
        (
            "docs/a.md",
            "## A heading\n<a id=\"named\"></a>\n## A heading\n[back](../README.md)\n[x](#named) [y](#a-heading-1)\n",
        ),
    ];
    let mut found = places(&resolve(&Tree::of(&files)));
    found.sort();
    assert_eq!(found, ["README.md:10", "README.md:4", "README.md:5", "README.md:6"]);
}

#[test]
fn anchors_of_headings_follow_github() {
    for (title, want) in [
        ("C014", "c014"),
        ("What is *lost*, and when?", "what-is-lost-and-when"),
        ("`bad_value`", "bad_value"),
        ("`[sources.NAME] type = \"statsd\"`", "sourcesname-type--statsd"),
    ] {
        assert_eq!(slug(title), want);
    }
}

#[test]
fn steps_name_existing_functions() {
    let page = "\
| step | file | function | what |
|---|---|---|---|
| 1 | `a.rs` | `Thing::good` | x |
| 2 | `a.rs` | `generic` | x |
| 3 | `a.rs` | `Thing::gone` | x |
| 4 | `b.rs` | `good` | x |
";
    let files = [("ARCHITECTURE.md", page), ("a.rs", "fn good(&self) {}\nfn generic<T>() {}\n")];
    assert_eq!(places(&signposts(&Tree::of(&files))), ["ARCHITECTURE.md:5", "ARCHITECTURE.md:6"]);
}

#[test]
fn paths_on_the_page_exist() {
    let page = "\
`crates/a/src/b.rs`, `src/b.rs`, `b.rs`, `src/`, `crates/a`, `not a path.rs`, `/ready`
`gone.rs`
`crates/gone` and `gone/`
`c.rs` is only the end of a name
```
`gone.rs`
```
";
    let files = [("ARCHITECTURE.md", page), ("crates/a/src/b.rs", ""), ("crates/a/src/abc.rs", "")];
    let found = places(&named_files(&Tree::of(&files)));
    assert_eq!(found, ["ARCHITECTURE.md:2", "ARCHITECTURE.md:3", "ARCHITECTURE.md:3", "ARCHITECTURE.md:4"]);
}

#[test]
fn a_link_may_not_leave_the_repository() {
    assert_eq!(resolved("docs/a.md", "../README.md").as_deref(), Some("README.md"));
    assert_eq!(resolved("docs/a.md", "../../etc/passwd"), None);
}
