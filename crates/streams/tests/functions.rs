//! docs/riemann-functions.md is up to date. `UPDATE=1 cargo test -p streams --test functions` writes it.

use std::path::Path;

#[test]
fn the_page_of_functions_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/riemann-functions.md");
    let page = streams::riemann::reference::functions_markdown();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("the docs can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/riemann-functions.md is out of step: UPDATE=1 cargo test -p streams --test functions"
    );
}
