//! `cargo xtask tidy`: checks the project's own rules, which neither rustc nor clippy covers.
//!
//! Path of a check: `run` reads the repository into a [`Tree`] -> each rule of [`RULES`] checks the tree and returns
//! a [`Breach`] per finding -> `run` prints them as `path:line: rule: reason`. Rules are pure, so each is tested on a
//! tree of a few lines. A breach states the reason of the rule.
//!
//! Not here: everything that clippy can check (clippy.toml, `[workspace.lints]`).

mod borders;
mod breach;
mod circles;
mod dependencies;
mod files;
mod functions;
mod links;
mod mask;
mod ratchet;
mod tree;
mod words;

use std::path::Path;

use breach::Breach;
use tree::Tree;

type Rule = fn(&Tree) -> Vec<Breach>;

/// All rules.
const RULES: &[Rule] = &[
    borders::arrows,
    borders::middle_dependencies,
    borders::middle_sources,
    borders::anyhow_place,
    borders::unsafe_place,
    borders::clocks_place,
    borders::crate_names,
    borders::lints_inherited,
    borders::canaries,
    circles::files,
    dependencies::lock_budget,
    dependencies::reasons,
    dependencies::unused,
    files::headers,
    files::readme_length,
    files::unfinished_marks,
    files::machine_paths,
    files::binaries,
    functions::lengths,
    links::resolve,
    links::signposts,
    links::named_files,
    words::known,
];

/// Applies every rule to the repository at `root`. True when there is no breach.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let tree = Tree::read(root)?;
    let mut breaches: Vec<Breach> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    breaches.sort();
    for breach in &breaches {
        println!("{}:{}: {}: {}", breach.path, breach.line, breach.rule, breach.reason);
    }
    match breaches.len() {
        0 => println!("tidy: {} rules, {} files, no breach", RULES.len(), tree.len()),
        count => println!("tidy: {count} breaches"),
    }
    Ok(breaches.is_empty())
}
