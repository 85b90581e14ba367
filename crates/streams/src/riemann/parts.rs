//! Which streams of a config run natively, and which call functions that the config wrote: for the report of an import.
//!
//! Path: [`Engine::parts`] -> the streams that were made while the config was loaded, with their places -> for each `by` its streams for
//! one key, as the first event would make them. Streams that a function makes while events go through it are not known.
//! Limits: [`ROUNDS_MAX`] `by` within each other, and what an event may use.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::engine::Engine;
use crate::graph::{Called, Graph, NodeId};
use crate::nodes::fields;
use crate::nodes::library::MACROS;
use crate::position::Position;
use crate::value::Value;

/// `by` within each other that are followed.
const ROUNDS_MAX: usize = 16;

/// A stream of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is written.
    pub at: Position,
    /// Its name, as it is written; of a function that serves as a stream, `function`.
    pub name: ArcStr,
    /// The function of the config that it calls for each event. None if it runs natively.
    pub calls: Option<Called>,
}

impl Engine {
    /// The streams of the config by their places, each once. The engine is not to be used afterwards: there are streams for keys that no
    /// event had.
    pub fn parts(&mut self) -> Vec<Part> {
        self.graph.evaluation.begin_event();
        self.graph.evaluation.keep_places();
        let mut known: Vec<NodeId> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let nodes: Vec<NodeId> =
                self.graph.nodes().filter(|node| known.binary_search(node).is_err()).collect();
            if nodes.is_empty() {
                break;
            }
            nodes.iter().for_each(|node| make_fork(&mut self.graph, *node));
            known.extend(nodes);
            known.sort_unstable();
        }
        let mut parts: BTreeMap<(ArcStr, u32, u32, ArcStr), Part> = BTreeMap::new();
        for node in known {
            let Some((constructor, at)) = self.graph.origin(node).filter(|(_, at)| at.is_known()) else {
                continue;
            };
            let (at, name) = (at.clone(), written(constructor));
            let calls = self.graph.called(node).cloned();
            let key = (at.file.clone(), at.line, at.column, name.clone());
            let part = parts.entry(key).or_insert(Part { at, name, calls: None });
            part.calls = part.calls.take().or(calls);
        }
        parts.into_values().collect()
    }
}

/// The streams of a `by` for one key. What its function throws without an event does not matter here.
fn make_fork(graph: &mut Graph, node: NodeId) {
    let Some(maker) = graph.maker(node).cloned() else { return };
    let Ok(made) = graph.call(&maker, &[Value::Nil]) else { return };
    let streams = fields::items(&made).unwrap_or_else(|| vec![made.clone()]);
    for stream in &streams {
        let _node = graph.child(stream);
    }
}

/// The name that a config has for a constructor: macros become other names.
fn written(constructor: &str) -> ArcStr {
    let stem = constructor.strip_suffix('*').or(constructor.strip_suffix("-fn"));
    let is_macro = |stem: &&str| MACROS.iter().any(|native| native.name == *stem);
    ArcStr::from(stem.filter(is_macro).unwrap_or(constructor))
}
