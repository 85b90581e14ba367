//! Self-metrics of the edges into transforms.

use super::family::{family, loss_rows_of};
use super::reasons::Nodes;
use crate::admin::accounts::AccountsPage;

pub(super) fn edges(out: &mut String, page: &AccountsPage, nodes: &Nodes<'_>) {
    let edges = || page.transforms.iter().flat_map(|row| row.edges.iter().map(|edge| (&*row.name, edge)));
    let help = "Records that a node gave to a transform.";
    let mut received = family(out, "staunch_transform_received_total", "counter", help);
    edges().for_each(|(transform, edge)| {
        received.row(&[("transform", transform), ("from", &edge.from)], edge.sum.received as f64);
    });
    let help = "What became of records that a node gave to a transform.";
    let mut records = family(out, "staunch_transform_records_total", "counter", help);
    for (transform, edge) in edges() {
        let of = [("transform", transform), ("from", edge.from.as_str())];
        let outcomes = [
            ("aggregated", edge.sum.aggregated),
            ("routed", edge.sum.routed),
            ("filtered", edge.sum.filtered),
        ];
        for (outcome, count) in outcomes {
            records.row(&[of[0], of[1], ("outcome", outcome), ("reason", "")], count as f64);
        }
        loss_rows_of(&mut records, &of, &nodes.of_edge(transform, &edge.from, &edge.losses));
    }
    let help = "1 when each record that a node gave to a transform has one outcome.";
    let mut balanced = family(out, "staunch_transform_balanced", "gauge", help);
    edges().for_each(|(transform, edge)| {
        let labels = [("transform", transform), ("from", edge.from.as_str())];
        balanced.row(&labels, f64::from(u8::from(edge.balanced)));
    });
}
