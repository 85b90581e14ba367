//! The kinds of records that each kind of node takes and gives: for the checks of edges, the pipeline's routes and the
//! docs page.
//!
//! A node may feed any node that takes one of its kinds of records. The table itself is in `options::section`: a new
//! source, transform or output has a line there.
//! Not here: the nodes and edges of a file (`native::wiring`), and which records a shard passes along an edge
//! (`pipeline`).

use crate::options::section::Section;

pub use crate::options::section::NODES;

/// A kind of record that travels along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Unparsed packets.
    Packets,
    /// One StatsD observation each.
    Samples,
    /// Series, time and value.
    Points,
    /// The results of an aggregation with their details, such as a timer's percentiles: for outputs that write
    /// documents or samples. Aggregations also give them as points.
    Aggregates,
    /// DogStatsD events and service checks.
    Events,
}

impl RecordKind {
    /// The name in messages and docs.
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

/// The input and output of a kind of node.
#[derive(Clone, Copy, Debug)]
pub struct NodeKind {
    /// Its section.
    pub section: Section,
    /// `type` in a file.
    pub word: &'static str,
    /// Its `encoding`, if the given kinds depend on it.
    pub encoding: Option<&'static str>,
    /// The kinds that it takes; empty for sources.
    pub takes: &'static [RecordKind],
    /// The kinds that it gives; empty for outputs.
    pub gives: &'static [RecordKind],
}

impl NodeKind {
    /// The row of a section, by its `encoding` if that matters. `None` for a section that is not a node.
    pub fn of(section: Section, encoding: Option<&str>) -> Option<&'static NodeKind> {
        let of_section = || NODES.iter().filter(|node| node.section == section);
        let by_encoding = of_section().find(|node| node.encoding.is_some() && node.encoding == encoding);
        by_encoding.or_else(|| of_section().find(|node| node.encoding.is_none()))
    }

    /// Whether the kinds that a section gives depend on its `encoding`.
    pub fn goes_by_encoding(section: Section) -> bool {
        NODES.iter().any(|node| node.section == section && node.encoding.is_some())
    }

    /// The kind of record on an edge from `giver` to this node; `None` when they do not fit. The points of a relay go to members of its
    /// clusters: outputs and relays.
    pub fn carries(&self, giver: &NodeKind) -> Option<RecordKind> {
        if giver.section == Section::TransformRelay && self.section == Section::TransformStreams {
            return None;
        }
        self.takes.iter().copied().find(|kind| giver.gives.contains(kind))
    }
}

/// Kinds as text: `packets, samples, events`.
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
