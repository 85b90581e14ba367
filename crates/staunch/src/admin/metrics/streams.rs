//! Self-metrics of Riemann configs: events, exceptions, the index, forks and limits.

use super::family::family;
use pipeline::StreamsFigures;

type Read = fn(&StreamsFigures) -> u64;

/// All families, without rows if there is no transform `streams`.
pub(super) fn streams(out: &mut String, all: &[StreamsFigures]) {
    let rows: [(&'static str, &str, &str, Read); 17] = [
        ("staunch_streams_events_total", "counter", "Events through the streams.", |row| {
            row.figures.streamed
        }),
        ("staunch_streams_exceptions_total", "counter", "Exceptions of streams.", |row| row.figures.threw),
        ("staunch_streams_not_reinjected_total", "counter", "Events not reinjected, at a limit.", |row| {
            row.figures.not_reinjected
        }),
        (
            "staunch_streams_effects_dropped_total",
            "counter",
            "Outputs of streams dropped at a limit.",
            |row| row.figures.effects_dropped,
        ),
        ("staunch_streams_indexed_total", "counter", "Events put into the index.", |row| row.figures.indexed),
        ("staunch_streams_not_indexed_total", "counter", "Events that the index rejected.", |row| {
            row.figures.not_indexed
        }),
        ("staunch_streams_expired_total", "counter", "Events of the index that expired.", |row| {
            row.figures.expired
        }),
        ("staunch_streams_index_events", "gauge", "Events in the index.", |row| row.indexed.unwrap_or(0)),
        ("staunch_streams_index_bytes", "gauge", "Estimated memory of the index.", |row| row.index_bytes),
        ("staunch_streams_nodes", "gauge", "Streams in memory, with those of forks.", |row| row.nodes),
        ("staunch_streams_forks", "gauge", "Forks of all by streams.", |row| row.forks),
        ("staunch_streams_subscribers", "gauge", "Subscribers to the index and to channels.", |row| {
            row.subscribers.open
        }),
        ("staunch_streams_subscriber_queries", "gauge", "Different queries of subscribers.", |row| {
            row.subscribers.queries
        }),
        ("staunch_streams_published_total", "counter", "Events sent to subscribers.", |row| {
            row.subscribers.published
        }),
        (
            "staunch_streams_published_too_long_total",
            "counter",
            "Events not sent to subscribers, at a limit.",
            |row| row.subscribers.too_long,
        ),
        (
            "staunch_streams_subscriber_messages_lost_total",
            "counter",
            "Messages lost by subscribers that were too slow.",
            |row| row.subscribers.lost,
        ),
        (
            "staunch_streams_subscribers_too_slow_total",
            "counter",
            "Subscribers closed because their query takes too much work for each event.",
            |row| row.subscribers.too_slow,
        ),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        all.iter().for_each(|row| rows.row(&[("transform", &row.transform)], read(row) as f64));
    }
    let help = "How often a limit of the streams had an effect.";
    let mut limits = family(out, "staunch_streams_limits_total", "counter", help);
    for row in all {
        for (limit, times) in &row.limits {
            limits.row(&[("transform", &row.transform), ("limit", limit)], *times as f64);
        }
    }
}
