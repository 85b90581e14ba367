//! Accounts of transforms: the records of each edge, and their outcomes (design §5).
//!
//! The shard's thread counts, once for each batch; rows are read here at the same time.

use config::plan::Plan;
use model::{RecordAccount, RecordSum};
use serde::Serialize;

use super::{LossTable, record_sum, table};
use crate::daemon::shared::Wiring;

/// Most attempts to read an edge between two batches, before it is shown as unbalanced.
const LOOKS: usize = 100;

/// The account of a transform.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct TransformRow {
    /// The name given by the user.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// One for each node that feeds it.
    pub edges: Vec<EdgeRow>,
}

/// The records from one node to a transform.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct EdgeRow {
    /// The source or transform.
    pub from: String,
    /// `received` and its terms, each a member of the row.
    #[serde(flatten, serialize_with = "record_sum")]
    pub sum: RecordSum,
    /// Whether each record has one outcome. It may be false for a moment while records move.
    pub balanced: bool,
    /// Reasons of `rejected`, `dropped` and `internal`.
    pub losses: LossTable,
}

/// All transforms, in the plan's order.
pub fn rows(wiring: &Wiring) -> Vec<TransformRow> {
    let Plan { transforms, .. } = &*wiring.plan;
    let row = |transform: &config::plan::TransformPlan| {
        let edge = |feed: &config::plan::Feed| {
            let from = wiring.plan.name_of(*feed);
            let account = wiring.accounts.edge(&transform.name, from)?;
            Some(edge_row(from, account))
        };
        TransformRow {
            name: transform.name.clone(),
            kind: transform.kind.section().word().unwrap_or_default(),
            edges: transform.from.iter().filter_map(edge).collect(),
        }
    };
    transforms.iter().map(row).collect()
}

fn edge_row(from: &str, account: &RecordAccount) -> EdgeRow {
    let look = || {
        let sum = account.sum(0);
        EdgeRow { from: from.to_owned(), balanced: sum.holds(), sum, losses: table(account.losses()) }
    };
    let balanced = (0..LOOKS).map(|_| look()).find(|row| row.balanced);
    balanced.unwrap_or_else(look)
}
