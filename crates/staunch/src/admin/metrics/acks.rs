//! Acknowledgements sent to clients, and copies in doubt at outputs.

use super::family::family;
use crate::admin::accounts::AccountsPage;

/// Acknowledgements, for sources with `ack_when`.
pub(super) fn sources(out: &mut String, page: &AccountsPage) {
    let rows = || page.sources.iter().filter_map(|row| Some((row.name.as_str(), row.acks.as_ref()?)));
    let mut acked =
        family(out, "staunch_source_lines_acked_total", "counter", "Lines acknowledged to their clients.");
    rows().for_each(|(name, acks)| acked.row(&[("source", name)], acks.lines_acked as f64));
    let mut unacked = family(
        out,
        "staunch_source_lines_unacked",
        "gauge",
        "Lines of open connections that are not acknowledged yet.",
    );
    rows().for_each(|(name, acks)| unacked.row(&[("source", name)], acks.lines_unacked as f64));
    let help = "Connections ended with `err`, by reason.";
    let mut failed = family(out, "staunch_source_acks_failed_total", "counter", help);
    for (name, acks) in rows() {
        for (reason, count) in &acks.failed {
            failed.row(&[("source", name), ("reason", reason)], *count as f64);
        }
    }
}

/// Copies that were being sent when a connection broke.
pub(super) fn outputs(out: &mut String, page: &AccountsPage) {
    let help = "Copies being sent when a connection broke.";
    let mut copies = family(out, "staunch_output_in_doubt_total", "counter", help);
    page.outputs.iter().for_each(|row| copies.row(&[("output", &row.name)], row.in_doubt as f64));
    let help = "Bytes being sent when a connection broke.";
    let mut bytes = family(out, "staunch_output_in_doubt_bytes_total", "counter", help);
    page.outputs.iter().for_each(|row| bytes.row(&[("output", &row.name)], row.in_doubt_bytes as f64));
}
