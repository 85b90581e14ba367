//! The answers of find, expand and index as values (spec graphite §6.6 to §6.8). Others write them as JSON.

use std::collections::BTreeSet;

use super::found::{Found, Node};

/// A row of find's format `treejson`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// The last component.
    pub text: Vec<u8>,
    /// The query up to its last dot, with its wildcards, and the last component.
    pub id: Vec<u8>,
    /// True for a prefix of names (`allowChildren`, `expandable`); false for a series (`leaf`).
    pub branch: bool,
}

/// A row of find's format `completer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleterRow {
    /// The path, of a branch with a dot at its end. None for the row `*`.
    pub path: Option<Vec<u8>>,
    /// The last component.
    pub name: Vec<u8>,
    /// True for a series.
    pub leaf: bool,
}

impl Found {
    /// Rows of `treejson`: each text once, branches first. A text that is a branch and a series is a branch. With
    /// `wildcards` and more than one row, a row `*` comes first.
    pub fn tree_rows(&self, query: &[u8], wildcards: bool) -> Vec<TreeRow> {
        let prefix = &query[..query.iter().rposition(|byte| *byte == b'.').map_or(0, |at| at + 1)];
        // A dot in a tagged name divides nothing.
        let prefix = if query.contains(&b';') { b"".as_slice() } else { prefix };
        let row = |text: &[u8], branch| TreeRow { text: text.to_vec(), id: [prefix, text].concat(), branch };
        let mut rows: Vec<TreeRow> = Vec::new();
        for node in self.nodes() {
            match rows.last_mut().filter(|row| row.text == node.name) {
                Some(row) => row.branch |= node.branch,
                None => rows.push(row(node.name, node.branch)),
            }
        }
        rows.sort_by_key(|row| !row.branch);
        // A name that is both counts as two.
        if wildcards && self.rows().nth(1).is_some() {
            let any_branch = rows[0].branch;
            rows.insert(0, row(b"*", any_branch));
        }
        rows
    }

    /// Rows of `completer`. A path that is both has two rows, its branch first. With `wildcards` and more than one row, a
    /// row `*` without a path is last.
    pub fn completer_rows(&self, wildcards: bool) -> Vec<CompleterRow> {
        let mut rows: Vec<CompleterRow> = Vec::new();
        for (node, leaf) in self.rows() {
            let mut path = node.path.to_vec();
            if !leaf {
                path.push(b'.');
            }
            rows.push(CompleterRow { path: Some(path), name: node.name.to_vec(), leaf });
        }
        if wildcards && rows.len() > 1 {
            rows.push(CompleterRow { path: None, name: b"*".to_vec(), leaf: false });
        }
        rows
    }

    /// The paths in the order of [`Found::nodes`], one row for a branch and one for a series (true): the lists of
    /// `pickle` and `msgpack`.
    pub fn rows(&self) -> impl Iterator<Item = (Node<'_>, bool)> {
        self.nodes().flat_map(rows_of)
    }

    /// The same in the order of paths: the list of `json`.
    pub fn rows_by_path(&self) -> impl Iterator<Item = (Node<'_>, bool)> {
        self.by_path().into_iter().flat_map(rows_of)
    }

    /// The list of `nodelist`: the components at `position` (the last ones without it), sorted, each once.
    pub fn components_at(&self, position: Option<usize>) -> Vec<&[u8]> {
        let all: BTreeSet<&[u8]> = self.nodes().filter_map(|node| component_at(node, position)).collect();
        all.into_iter().collect()
    }

    /// The list of `expand`, which is also that of `index.json` for all series: paths in byte order.
    pub fn paths(&self, leaves_only: bool) -> Vec<&[u8]> {
        let nodes = self.by_path().into_iter();
        nodes.filter(|node| node.leaf.is_some() || !leaves_only).map(|node| node.path).collect()
    }
}

fn component_at(node: Node<'_>, position: Option<usize>) -> Option<&[u8]> {
    match position {
        None => Some(node.name),
        Some(at) => node.path.split(|byte| *byte == b'.').nth(at),
    }
}

fn rows_of(node: Node<'_>) -> impl Iterator<Item = (Node<'_>, bool)> {
    let branch = node.branch.then_some((node, false));
    branch.into_iter().chain(node.leaf.map(|_| (node, true)))
}

/// The query that `completer` makes of what was typed: `..` becomes `*.`, a `*` is appended where there is none, and with
/// `automatic_variants` a component such as `a,b` becomes `{a,b}`.
pub fn completer_query(typed: &[u8], automatic_variants: bool) -> Vec<u8> {
    let mut query = Vec::with_capacity(typed.len() + 1);
    let mut rest = typed;
    while let Some((byte, after)) = rest.split_first() {
        match rest {
            [b'.', b'.', after @ ..] => {
                query.extend_from_slice(b"*.");
                rest = after;
            }
            _ => {
                query.push(*byte);
                rest = after;
            }
        }
    }
    if !query.ends_with(b"*") {
        query.push(b'*');
    }
    if automatic_variants {
        let variants = |part: &[u8]| match part.contains(&b',') && !part.contains(&b'{') {
            true => [b"{", part, b"}"].concat(),
            false => part.to_vec(),
        };
        query = query.split(|byte| *byte == b'.').map(variants).collect::<Vec<_>>().join(&b'.');
    }
    query
}
