//! What each kind of node takes and gives: behind the checks of edges, the pipeline's routes and the docs page.
//!
//! A node may feed any node that takes a kind of record that it gives. The table itself is in `options::section`: a new source,
//! transform or output is a line there.
//! Not here: which nodes a file has, and who feeds whom (`native::wiring`); what the pipeline does with an edge (`pipeline::routes`).

use crate::options::section::Section;

pub use crate::options::section::NODES;

/// A kind of record that travels along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Bytes with their borders, unparsed.
    Packets,
    /// One StatsD observation each.
    Samples,
    /// Series, time and value.
    Points,
    /// The results of an aggregation with what they consist of, such as a timer's percentiles: for outputs that write documents
    /// or samples. An aggregation gives them as points, too.
    Aggregates,
    /// DogStatsD events and service checks.
    Events,
}

impl RecordKind {
    /// The word in messages and docs.
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Packets => "packets",
            RecordKind::Samples => "samples",
            RecordKind::Points => "points",
            RecordKind::Aggregates => "aggregates",
            RecordKind::Events => "events",
        }
    }
}

/// What a kind of node takes and gives.
#[derive(Clone, Copy, Debug)]
pub struct NodeKind {
    /// Its section.
    pub section: Section,
    /// `type` in a file.
    pub word: &'static str,
    /// Its `encoding`, where that decides what it gives.
    pub encoding: Option<&'static str>,
    /// What it takes; nothing for sources.
    pub takes: &'static [RecordKind],
    /// What it gives; nothing for outputs.
    pub gives: &'static [RecordKind],
}

impl NodeKind {
    /// The row of a section, by its `encoding` where that counts. None for a section that is no node.
    pub fn of(section: Section, encoding: Option<&str>) -> Option<&'static NodeKind> {
        let of_section = || NODES.iter().filter(|node| node.section == section);
        let by_encoding = of_section().find(|node| node.encoding.is_some() && node.encoding == encoding);
        by_encoding.or_else(|| of_section().find(|node| node.encoding.is_none()))
    }

    /// Whether what a section gives depends on its `encoding`.
    pub fn goes_by_encoding(section: Section) -> bool {
        NODES.iter().any(|node| node.section == section && node.encoding.is_some())
    }

    /// The kind of record that an edge from `giver` to this node carries; none when the two do not fit.
    pub fn carries(&self, giver: &NodeKind) -> Option<RecordKind> {
        self.takes.iter().copied().find(|kind| giver.gives.contains(kind))
    }
}

/// Kinds in words: `packets, samples, events`.
pub fn words(kinds: &[RecordKind]) -> String {
    kinds.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ")
}

/// The table of docs/one-daemon.md.
pub fn markdown() -> String {
    let mut text = "| node | takes | gives |\n|---|---|---|\n".to_owned();
    for node in NODES {
        let what = match (node.takes.is_empty(), node.gives.is_empty()) {
            (true, _) => "source",
            (false, false) => "transform",
            (false, true) => "output",
        };
        let encoding =
            node.encoding.map(|encoding| format!(", `encoding = \"{encoding}\"`")).unwrap_or_default();
        text.push_str(&format!(
            "| {what} `{}`{encoding} | {} | {} |\n",
            node.word,
            words(node.takes),
            words(node.gives)
        ));
    }
    text
}
