//! One account for each source, output and edge of the plan, kept across reloads.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::plan::{Feed, Plan, TransformPlan};
use model::{OutputAccount, OutputId, RecordAccount, SourceAccount, SourceId};

use crate::intake::unfinished::UnfinishedBytes;
use crate::reload::predecessor;

/// An edge that leads into a transform.
#[derive(Clone, Debug)]
struct Edge {
    transform: String,
    from: String,
    account: Arc<RecordAccount>,
}

/// The accounts of a plan's sources, outputs and edges, in the plan's order.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    sources: Vec<(String, Arc<SourceAccount>)>,
    outputs: Vec<(String, Arc<OutputAccount>)>,
    edges: Vec<Edge>,
    unfinished: Arc<UnfinishedBytes>,
}

impl Accounts {
    /// Accounts for `plan`, whose ids keep their meaning (see [`crate::merge_plans`]): those of `self` continue, the
    /// others start at 0. A changed output has a new id and therefore a new account, unless its queue is on disk: then
    /// both ids share one (see [`predecessor`]).
    #[must_use]
    pub fn carried_to(&self, plan: &Plan) -> Accounts {
        let sources = plan.sources.iter().enumerate().map(|(at, source)| {
            let known = self.sources.get(at).map(|(_, account)| Arc::clone(account));
            (source.name.clone(), known.unwrap_or_default())
        });
        let mut outputs: Vec<(String, Arc<OutputAccount>)> = Vec::with_capacity(plan.outputs.len());
        for (at, output) in plan.outputs.iter().enumerate() {
            let earlier = || predecessor(plan, at).and_then(|earlier| outputs.get(earlier.index()));
            let known = self.outputs.get(at).or_else(earlier).map(|(_, account)| Arc::clone(account));
            outputs.push((output.name.clone(), known.unwrap_or_default()));
        }
        let of_transform = |transform: &TransformPlan| -> Vec<Edge> {
            transform.from.iter().map(|feed| self.edge_of(plan, transform, *feed)).collect()
        };
        let edges = plan.transforms.iter().flat_map(of_transform).collect();
        Accounts { sources: sources.collect(), outputs, edges, unfinished: Arc::clone(&self.unfinished) }
    }

    fn edge_of(&self, plan: &Plan, transform: &TransformPlan, feed: Feed) -> Edge {
        let (transform, from) = (transform.name.clone(), plan.name_of(feed).to_owned());
        let account = self.edge(&transform, &from).map(Arc::clone).unwrap_or_default();
        Edge { transform, from, account }
    }

    /// What one of the nodes that feed a transform has sent to it, and the outcomes. None when that node does not feed
    /// it.
    pub fn edge(&self, transform: &str, from: &str) -> Option<&Arc<RecordAccount>> {
        let edge = self.edges.iter().find(|edge| edge.transform == transform && edge.from == from);
        edge.map(|edge| &edge.account)
    }

    /// Edges into transforms: (the transform, the node that feeds it, the account), in the plan's order.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, &Arc<RecordAccount>)> {
        self.edges.iter().map(|edge| (edge.transform.as_str(), edge.from.as_str(), &edge.account))
    }

    /// The memory of unfinished lines and frames of all sources: one sum for the process.
    pub(crate) fn unfinished(&self) -> &Arc<UnfinishedBytes> {
        &self.unfinished
    }

    /// The account of a source.
    pub fn source(&self, id: SourceId) -> &Arc<SourceAccount> {
        &self.sources[id.index()].1
    }

    /// The account of an output.
    pub fn output(&self, id: OutputId) -> &Arc<OutputAccount> {
        &self.outputs[id.index()].1
    }

    /// Sources by name, in the plan's order.
    pub fn sources(&self) -> impl Iterator<Item = (SourceId, &str, &Arc<SourceAccount>)> {
        self.sources
            .iter()
            .enumerate()
            .map(|(at, (name, account))| (SourceId(at as u16), name.as_str(), account))
    }

    /// Outputs by name, in the plan's order.
    pub fn outputs(&self) -> impl Iterator<Item = (OutputId, &str, &Arc<OutputAccount>)> {
        self.outputs
            .iter()
            .enumerate()
            .map(|(at, (name, account))| (OutputId(at as u16), name.as_str(), account))
    }

    /// The same with each account once: of outputs that share one, see [`predecessor`], only the last.
    pub fn outputs_once(&self) -> impl Iterator<Item = (OutputId, &str, &Arc<OutputAccount>)> {
        let mut known = BTreeSet::new();
        let outputs = self.outputs.iter().rev();
        let mut is_last: Vec<bool> =
            outputs.map(|(_, account)| known.insert(Arc::as_ptr(account).addr())).collect();
        is_last.reverse();
        self.outputs().filter(move |(id, _, _)| is_last[id.index()])
    }
}
