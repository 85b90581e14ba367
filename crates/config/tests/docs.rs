//! Generated pages of the documentation are up to date.
//!
//! `UPDATE=1 cargo test -p config --test docs` writes them.

use std::path::Path;

fn in_step(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("the docs can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "docs/{name} is out of step: UPDATE=1 cargo test -p config --test docs");
}

#[test]
fn the_reference_is_up_to_date() {
    in_step("reference.md", &config::options::reference_markdown());
}

#[test]
fn the_example_of_the_security_page_causes_no_warning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (_, rest) = page.split_once("```toml\n").expect("it has an example");
    let (text, _) = rest.split_once("```").expect("the example ends");
    let source = config::diagnostic::Source { name: "security.md", text };
    let (plan, said) = config::check(source, config::Format::Toml);
    let shown = config::diagnostic::render(source, &said, false);
    assert!(said.is_empty(), "{shown}");
    let plan = plan.expect("it is good");
    let clear = config::clear_listeners(&plan);
    assert_eq!(clear.len(), 2, "StatsD is open, and points are encrypted: {clear:?}");
}

#[test]
fn the_codes_are_up_to_date() {
    in_step("config-codes.md", &config::options::explain_markdown());
}

/// The table of kinds between its markers.
#[test]
fn the_table_of_kinds_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/one-daemon.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (before, rest) = page.split_once("-->\n").expect("it begins with a marker");
    let (_, after) = rest.split_once("<!-- kinds:end -->").expect("it ends with a marker");
    let table = config::kinds::markdown();
    in_step("one-daemon.md", &format!("{before}-->\n{table}<!-- kinds:end -->{after}"));
}
