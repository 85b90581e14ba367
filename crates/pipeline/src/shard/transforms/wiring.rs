//! What the transforms of a shard are built from, at the start and at a reload.

use std::sync::Arc;

use config::plan::{Feed, Plan, TransformPlan};
use model::{Now, OutputId, RecordAccount};

use crate::Accounts;

/// A plan, and what a transform needs besides.
pub(crate) struct Wiring<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) accounts: &'a Accounts,
    /// Outputs whose endpoints are down and that have failed over.
    pub(crate) down: &'a [OutputId],
    /// By the index of a source: it spells names differently than under the plan before, or is new.
    pub(crate) respelled: &'a [bool],
    /// Seed of the hashes of external keys.
    pub(crate) seed: u64,
    pub(crate) now: Now,
}

/// An edge into a transform.
#[derive(Debug)]
pub(crate) struct Edge {
    /// The transform's index among those of its kind, in the order of the plan.
    pub(crate) at: usize,
    pub(crate) account: Arc<RecordAccount>,
}

impl Edge {
    /// The edges from `feed` to `takers`: all transforms of one kind, in the order of the plan.
    pub(crate) fn all_from<'a>(
        feed: Feed,
        plan: &Plan,
        accounts: &Accounts,
        takers: impl Iterator<Item = &'a TransformPlan>,
    ) -> Vec<Edge> {
        let fed = takers.enumerate().filter(|(_, taker)| taker.from.contains(&feed));
        let edge = |(at, taker): (usize, &TransformPlan)| {
            let account = accounts.edge(&taker.name, plan.name_of(feed)).map(Arc::clone);
            Edge { at, account: account.unwrap_or_default() }
        };
        fed.map(edge).collect()
    }
}
