//! The list of exceptions, whose numbers may only shrink.

use std::collections::BTreeMap;

use super::tree::Tree;

pub(super) const PATH: &str = "crates/xtask/ratchet.toml";

/// The numbers of one table of the list.
pub(super) fn numbers(tree: &Tree, table: &str) -> Result<BTreeMap<String, usize>, String> {
    let text = tree.text(PATH).unwrap_or_default();
    let all: toml::Table = text.parse().map_err(|error| format!("does not parse: {error}"))?;
    let Some(entries) = all.get(table).and_then(|entries| entries.as_table()) else {
        return Ok(BTreeMap::new());
    };
    let entry = |(key, value): (&String, &toml::Value)| {
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        number.map(|number| (key.clone(), number)).ok_or_else(|| format!("`{key}` needs a number"))
    };
    entries.iter().map(entry).collect()
}
