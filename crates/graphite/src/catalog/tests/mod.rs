//! Tests of the catalog against a plain set of names and a plain recursive matcher.

mod corpus;
mod find;
mod names;
mod reference;
mod tags;

use super::*;

/// Any seed: answers do not depend on it.
const SEED: u64 = 1;

/// Limits that no test reaches by accident.
fn limits() -> CatalogLimits {
    CatalogLimits { names_max: 1_000_000, bytes_max: 1 << 30 }
}

fn search_limits() -> SearchLimits {
    SearchLimits { results_max: 100_000, steps_max: 10_000_000 }
}

fn catalog(names: &str) -> Catalog {
    let mut catalog = Catalog::new(limits(), SEED);
    for name in names.split_whitespace() {
        catalog.insert(name.as_bytes()).expect("a good name");
    }
    catalog
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
