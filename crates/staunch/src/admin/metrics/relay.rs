//! Self-metrics of relays: points by result, memory of names and aggregation rules, and how long sources waited for outputs.

use super::family::family;
use crate::admin::accounts::AccountsPage;
use crate::admin::relay::RelayRow;
use crate::daemon::shared::Blocked;

type Read = fn(&RelayRow) -> u64;

/// All families, without rows if there is no relay.
pub(super) fn relays(out: &mut String, relays: &[RelayRow]) {
    let rows: [(&'static str, &str, &str, Read); 21] = [
        ("staunch_relay_points_total", "counter", "Points processed by the rules.", |row| row.points),
        ("staunch_relay_blackholed_total", "counter", "Points sent to the blackhole.", |row| row.blackholed),
        ("staunch_relay_unmatched_total", "counter", "Points that matched no rule with a target.", |row| {
            row.unmatched
        }),
        ("staunch_relay_invalid_total", "counter", "Points that failed a validate rule.", |row| row.invalid),
        ("staunch_relay_nowhere_total", "counter", "Points without any copy or aggregated value.", |row| {
            row.nowhere
        }),
        ("staunch_relay_copies_refused_total", "counter", "Copies over the limit of one point.", |row| {
            row.copies_refused
        }),
        ("staunch_relay_names_refused_total", "counter", "Rewritten names that cannot be sent.", |row| {
            row.names_refused
        }),
        ("staunch_relay_gave_up_total", "counter", "Name searches that gave up at a limit.", |row| {
            row.gave_up
        }),
        ("staunch_relay_rolled_up_total", "counter", "Points passed to aggregation rules.", |row| {
            row.rolled_up
        }),
        ("staunch_relay_results_total", "counter", "Results of aggregation rules.", |row| row.results),
        ("staunch_relay_results_not_finite_total", "counter", "Results that are not finite.", |row| {
            row.results_not_finite
        }),
        ("staunch_relay_results_stopped_total", "counter", "Results that a stop had no time for.", |row| {
            row.results_stopped
        }),
        ("staunch_relay_values_left_total", "counter", "Values of windows that did not complete.", |row| {
            row.values_left
        }),
        ("staunch_relay_aggregation_rule_series", "gauge", "Series of aggregation rules in memory.", |row| {
            row.aggregation_rule_series
        }),
        ("staunch_relay_aggregation_rule_bytes", "gauge", "Memory of aggregation rules.", |row| {
            row.aggregation_rule_bytes
        }),
        (
            "staunch_relay_aggregation_rule_jumps_back_total",
            "counter",
            "How often aggregation rules followed the wall clock backward.",
            |row| row.aggregation_rule_jumps_back,
        ),
        ("staunch_relay_aggregation_future_results_total", "counter", "Results ahead of the clock.", |row| {
            row.aggregation_future_results
        }),
        ("staunch_relay_names", "gauge", "Names with a cached route.", |row| row.names),
        ("staunch_relay_names_bytes", "gauge", "Memory of the route cache.", |row| row.names_bytes),
        ("staunch_relay_names_decided_total", "counter", "Points whose name had no cached route.", |row| {
            row.names_decided
        }),
        (
            "staunch_relay_names_forgotten_total",
            "counter",
            "How often the older half of the route cache was evicted.",
            |row| row.names_forgotten,
        ),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        relays.iter().for_each(|row| rows.row(&[("transform", &row.transform)], read(row) as f64));
    }
    let help = "Values passed to aggregation rules, by result.";
    let mut fed = family(out, "staunch_relay_fed_total", "counter", help);
    for row in relays {
        for (word, count) in &row.fed {
            fed.row(&[("transform", &row.transform), ("result", word)], *count as f64);
        }
    }
}

/// Which source waits for which output now.
pub(super) fn blocked(out: &mut String, blocked: &[Blocked]) {
    let help =
        "How long a source has been waiting for the queue of an output. A series exists while it waits.";
    let mut rows = family(out, "staunch_source_blocked_seconds", "gauge", help);
    for Blocked { source, output, for_ns, .. } in blocked {
        let labels = [("source", source.as_str()), ("output", output.as_str())];
        rows.row(&labels, *for_ns as f64 / model::SECOND_NS as f64);
    }
}

/// How often sources waited for outputs, and how long sending took.
pub(super) fn outputs(out: &mut String, page: &AccountsPage) {
    let help = "How often a source waited for the queue of an output.";
    let mut stalls = family(out, "staunch_output_stalls_total", "counter", help);
    page.outputs.iter().for_each(|row| stalls.row(&[("output", &row.name)], row.stalls as f64));
    let help = "How long a source has been waiting for the queue of an output; 0 if none waits.";
    let mut stalled = family(out, "staunch_output_stalled_seconds", "gauge", help);
    page.outputs.iter().for_each(|row| stalled.row(&[("output", &row.name)], row.stalled_for_s as f64));
    let help = "Time that the senders of an output were busy.";
    let mut busy = family(out, "staunch_output_busy_seconds_total", "counter", help);
    page.outputs.iter().for_each(|row| busy.row(&[("output", &row.name)], row.busy_us as f64 / 1e6));
}
