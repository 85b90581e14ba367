//! `/metrics`: self-metrics as Prometheus text. Names are an interface: they change with a changelog line only.

mod acks;
mod certificates;
mod disk;
mod family;
mod kernel;
mod of_process;
mod reasons;
mod relay;
mod stores;
mod streams;
mod transforms;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use self::family::{family, loss_rows};
use self::reasons::Nodes;
use model::{Kind, Now, OutputSum, SECOND_NS};
use pipeline::ShardFigures;

use crate::admin::accounts::checkpoints::CheckpointRow;
use crate::admin::accounts::{self, AccountsPage};
use crate::admin::graphite::PeerCounts;
use crate::admin::relay::{self as relay_page, RelayRow};
use crate::build;
use crate::daemon::shared::Shared;
use crate::daemon::worker::Asking;

/// Aggregations whose figures are read in one slice of the shard's thread.
const SLICE_FIGURES: usize = 64;

/// All self-metrics at `now`; without those of aggregations and relays when the shard has ended.
pub(super) async fn text(
    shared: &Arc<Shared>,
    asking: &mut Asking,
    peers: &[PeerCounts],
    now: Now,
) -> String {
    let page = accounts::snapshot(shared, asking).await;
    let mut figures: Vec<ShardFigures> = Vec::new();
    loop {
        let from = figures.len();
        let some = asking.call(move |worker| worker.turn.shard.figures_from(from, SLICE_FIGURES)).await;
        let some = some.unwrap_or_default();
        let is_last = some.len() < SLICE_FIGURES;
        figures.extend(some);
        if is_last {
            break;
        }
    }
    let relays = relay_page::page(shared, asking).await.relays;
    let streams = asking.call(|worker| worker.turn.shard.streams()).await.unwrap_or_default();
    let mut out = render(shared, &page, &figures, &relays, now);
    streams::streams(&mut out, &streams);
    stores::peers(&mut out, peers);
    out
}

fn render(
    shared: &Shared,
    page: &AccountsPage,
    figures: &[ShardFigures],
    relays: &[RelayRow],
    now: Now,
) -> String {
    let mut out = String::new();
    family(&mut out, "staunch_info", "gauge", "Version of the running binary.")
        .row(&[("version", build::VERSION)], 1.0);
    family(&mut out, "staunch_build_info", "gauge", "Version and commit of the running binary.")
        .row(&[("version", build::VERSION), ("commit", build::COMMIT)], 1.0);
    of_process::all(&mut out, shared);
    family(&mut out, "staunch_uptime_seconds", "gauge", "Seconds since the start.")
        .row(&[], shared.uptime_s() as f64);
    let mut reloads =
        family(&mut out, "staunch_reloads_total", "counter", "Reloads of the config, by result.");
    reloads.row(&[("result", "done")], shared.reloads.done.load(Relaxed) as f64);
    reloads.row(&[("result", "partial")], shared.reloads.partial.load(Relaxed) as f64);
    reloads.row(&[("result", "refused")], shared.reloads.refused.load(Relaxed) as f64);
    family(
        &mut out,
        "staunch_log_messages_dropped_total",
        "counter",
        "Log messages dropped because the log reader is too slow.",
    )
    .row(&[], crate::log_stream::dropped() as f64);
    let wiring = shared.wiring.load();
    let nodes = reasons::Nodes::of(&wiring.plan);
    sources(&mut out, page, &nodes);
    management(&mut out, shared);
    carbonlink(&mut out, shared);
    http(&mut out, shared);
    certificates::all(&mut out, wiring.certificates.expiries(), now);
    acks::sources(&mut out, page);
    kernel::sockets(&mut out, page);
    kernel::batches(&mut out, shared);
    kernel::machine(&mut out, &crate::kernel::machine_counters());
    transforms::edges(&mut out, page, &nodes);
    copies(&mut out, page, &nodes);
    outputs(&mut out, page);
    relay::outputs(&mut out, page);
    relay::blocked(&mut out, &shared.blocked());
    disk::queues(&mut out, page);
    stores::all(&mut out, shared);
    acks::outputs(&mut out, page);
    series(&mut out, figures);
    flushes(&mut out, figures, now);
    checkpoints(&mut out, page);
    relay::relays(&mut out, relays);
    out
}

fn sources(out: &mut String, page: &AccountsPage, nodes: &Nodes<'_>) {
    let mut records =
        family(out, "staunch_source_records_total", "counter", "Records received, by source and outcome.");
    for row in &page.sources {
        let source = ("source", row.name.as_str());
        for (outcome, count) in [
            ("aggregated", row.sum.aggregated),
            ("routed", row.sum.routed),
            ("filtered", row.sum.filtered),
            ("duplicate", row.sum.duplicate),
        ] {
            records.row(&[source, ("outcome", outcome), ("reason", "")], count as f64);
        }
        loss_rows(&mut records, source, &nodes.of_source(&row.name, &row.losses));
    }
    type Read = fn(&accounts::SourceRow) -> u64;
    let counters: [(&'static str, &str, Read); 13] = [
        ("staunch_source_received_total", "Records received, valid or not.", |row| row.sum.received),
        ("staunch_source_packets_total", "Datagrams, or reads with a complete line.", |row| row.packets),
        ("staunch_source_packets_empty_total", "Empty datagrams.", |row| row.packets_empty),
        ("staunch_source_packets_truncated_total", "Datagrams that were cut off.", |row| {
            row.packets_truncated
        }),
        ("staunch_source_bytes_total", "Bytes read.", |row| row.bytes),
        ("staunch_source_lines_total", "Lines read, valid or not.", |row| row.lines),
        ("staunch_source_kernel_dropped_total", "Datagrams dropped by the kernel: buffer full.", |row| {
            row.kernel_dropped
        }),
        ("staunch_source_connections_refused_total", "Connections refused at max_connections.", |row| {
            row.connections_refused
        }),
        (
            "staunch_source_connections_refused_per_peer_total",
            "Connections refused at max_connections_per_peer, or at half of the file descriptors of all sources.",
            |row| row.connections_refused_per_peer,
        ),
        (
            "staunch_source_connections_replaced_total",
            "Idle connections closed in favour of a peer with fewer connections.",
            |row| row.connections_replaced,
        ),
        (
            "staunch_source_read_errors_total",
            "Failed attempts to read a datagram socket, or to accept on a closed listener.",
            |row| row.read_errors,
        ),
        ("staunch_source_connections_broken_total", "Connections that ended in an error.", |row| {
            row.connections_broken
        }),
        (
            "staunch_source_handshakes_failed_total",
            "Connections that ended before the TLS handshake was complete.",
            |row| row.handshakes_failed,
        ),
    ];
    for (name, help, read) in counters {
        let mut counter = family(out, name, "counter", help);
        page.sources.iter().for_each(|row| counter.row(&[("source", &row.name)], read(row) as f64));
    }
    let mut open = family(out, "staunch_source_connections_open", "gauge", "Open connections.");
    page.sources.iter().for_each(|row| open.row(&[("source", &row.name)], row.connections_open as f64));
    let mut flight =
        family(out, "staunch_source_in_flight", "gauge", "Records between source and aggregation.");
    page.sources.iter().for_each(|row| flight.row(&[("source", &row.name)], row.sum.in_flight as f64));
    let mut holds =
        family(out, "staunch_source_balanced", "gauge", "1 if each record has exactly one outcome.");
    page.sources
        .iter()
        .for_each(|row| holds.row(&[("source", &row.name)], f64::from(u8::from(row.balanced))));
}

/// Clients of the management ports.
fn management(out: &mut String, shared: &Shared) {
    let account = &shared.management_account;
    family(out, "staunch_management_connections_open", "gauge", "Open connections of management clients.")
        .row(&[], account.clients.open() as f64);
    let help = "Management connections closed or refused, by reason.";
    let mut ended = family(out, "staunch_management_connections_ended_total", "counter", help);
    account.ended().for_each(|(reason, count)| ended.row(&[("reason", reason)], count as f64));
}

/// Clients and requests of CarbonLink, if it is configured.
fn carbonlink(out: &mut String, shared: &Shared) {
    if shared.carbonlink.at.is_none() {
        return;
    }
    let account = &shared.carbonlink;
    family(out, "staunch_carbonlink_connections_open", "gauge", "Open connections of CarbonLink clients.")
        .row(&[], account.clients.open() as f64);
    let help = "CarbonLink connections closed or refused, by reason.";
    let mut ended = family(out, "staunch_carbonlink_connections_ended_total", "counter", help);
    account.ended().for_each(|(reason, count)| ended.row(&[("reason", reason)], count as f64));
    let help = "CarbonLink requests, by kind.";
    let mut requests = family(out, "staunch_carbonlink_requests_total", "counter", help);
    account.requests().for_each(|(kind, count)| requests.row(&[("kind", kind)], count as f64));
}

fn http(out: &mut String, shared: &Shared) {
    let account = &shared.http_account;
    family(out, "staunch_http_connections_open", "gauge", "Open connections of HTTP clients.")
        .row(&[], account.clients.open() as f64);
    let help = "HTTP connections closed or refused, by reason.";
    let mut ended = family(out, "staunch_http_connections_ended_total", "counter", help);
    account.ended().for_each(|(reason, count)| ended.row(&[("reason", reason)], count as f64));
    let help = "HTTP requests rejected because of their headers, by reason.";
    let mut refused = family(out, "staunch_http_requests_refused_total", "counter", help);
    account.requests_refused().for_each(|(reason, count)| refused.row(&[("reason", reason)], count as f64));
}

/// How copies ended.
fn copies(out: &mut String, page: &AccountsPage, nodes: &Nodes<'_>) {
    let mut copies =
        family(out, "staunch_output_copies_total", "counter", "Copies routed to an output, by outcome.");
    for row in &page.outputs {
        let output = ("output", row.name.as_str());
        let OutputSum { delivered, expired, moved, .. } = row.sum;
        for (outcome, count) in [("delivered", delivered), ("expired", expired), ("moved", moved)] {
            copies.row(&[output, ("outcome", outcome), ("reason", "")], count as f64);
        }
        loss_rows(&mut copies, output, &nodes.of_output(&row.name, &row.losses));
    }
    let mut bytes = family(out, "staunch_output_bytes_lost_total", "counter", "Bytes of lost copies.");
    page.outputs.iter().for_each(|row| loss_rows(&mut bytes, ("output", &row.name), &row.losses_bytes));
    let mut errors =
        family(out, "staunch_output_system_errors_total", "counter", "System errors, by error code.");
    for row in &page.outputs {
        for (word, count) in &row.errors_by {
            errors.row(&[("output", &row.name), ("error", word)], *count as f64);
        }
    }
}

fn outputs(out: &mut String, page: &AccountsPage) {
    type Read = fn(&accounts::OutputRow) -> f64;
    let rows: [(&'static str, &str, &str, Read); 19] = [
        ("staunch_output_routed_total", "counter", "Copies routed to an output.", |row| {
            row.sum.copies as f64
        }),
        ("staunch_output_bytes_routed_total", "counter", "Bytes of the copies routed to an output.", |row| {
            row.bytes_routed as f64
        }),
        ("staunch_output_bytes_delivered_total", "counter", "Bytes delivered.", |row| {
            row.bytes_delivered as f64
        }),
        ("staunch_output_errors_total", "counter", "Failed attempts to connect or send.", |row| {
            row.errors as f64
        }),
        ("staunch_output_connects_total", "counter", "Connections made.", |row| row.connects as f64),
        ("staunch_output_resent_total", "counter", "Copies sent again after a broken connection.", |row| {
            row.resent as f64
        }),
        ("staunch_output_tags_left_out_total", "counter", "Tags omitted from lines that were sent.", |row| {
            row.tags_left_out as f64
        }),
        ("staunch_output_answer_lines_total", "counter", "Lines that the endpoint answered.", |row| {
            row.answer_lines as f64
        }),
        ("staunch_output_queued", "gauge", "Copies queued or being sent.", |row| row.sum.queued as f64),
        ("staunch_output_queued_bytes", "gauge", "Bytes queued or being sent.", |row| {
            row.queued_bytes as f64
        }),
        ("staunch_output_queued_high", "gauge", "Highest number of queued copies so far.", |row| {
            row.queued_high as f64
        }),
        ("staunch_output_queued_bytes_high", "gauge", "Highest number of queued bytes so far.", |row| {
            row.queued_bytes_high as f64
        }),
        ("staunch_output_queue_max_records", "gauge", "Limit of the queue in copies, 0 for none.", |row| {
            row.max_records as f64
        }),
        ("staunch_output_queue_max_bytes", "gauge", "Limit of the queue in bytes.", |row| {
            row.max_bytes as f64
        }),
        ("staunch_output_oldest_seconds", "gauge", "Age of the oldest queued copy.", |row| row.oldest_s),
        ("staunch_output_up", "gauge", "1 while the endpoint accepts copies.", |row| {
            f64::from(u8::from(matches!(row.state, "up" | "degraded")))
        }),
        (
            "staunch_output_degraded",
            "gauge",
            "1 while the endpoint is up and its queue is over 80 % full.",
            |row| f64::from(u8::from(row.state == "degraded")),
        ),
        ("staunch_output_down", "gauge", "1 while attempts to reach the endpoint fail.", |row| {
            f64::from(u8::from(row.state == "down"))
        }),
        ("staunch_output_balanced", "gauge", "1 if each copy is queued or has exactly one outcome.", |row| {
            f64::from(u8::from(row.balanced))
        }),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        page.outputs.iter().for_each(|row| rows.row(&[("output", &row.name)], read(row)));
    }
}

fn series(out: &mut String, figures: &[ShardFigures]) {
    let mut held = family(out, "staunch_series", "gauge", "Series in memory, by type.");
    for state in figures {
        for kind in Kind::ALL {
            let labels = [("transform", state.transform.as_str()), ("type", kind.word())];
            held.row(&labels, state.figures.series(kind) as f64);
        }
    }
    type Read = fn(&process::aggregate::Figures) -> u64;
    let rows: [(&'static str, &str, &str, Read); 10] = [
        ("staunch_series_created_total", "counter", "Series created.", |figures| figures.created),
        (
            "staunch_series_expired_total",
            "counter",
            "Series removed because they were inactive.",
            |figures| figures.expired,
        ),
        ("staunch_series_aliases", "gauge", "Raw names that map to another name.", |figures| figures.aliases),
        (
            "staunch_series_conflicts_total",
            "counter",
            "New series whose name already exists with another type.",
            |figures| figures.conflicts,
        ),
        ("staunch_timer_values", "gauge", "Timer values in memory.", |figures| figures.timer_values),
        ("staunch_aggregate_memory_bytes", "gauge", "Memory of an aggregation's series.", |figures| {
            figures.memory_bytes
        }),
        ("staunch_clock_jumps_ahead_total", "counter", "Forward jumps of the wall clock.", |figures| {
            figures.clock.jumps_ahead
        }),
        ("staunch_clock_jumps_back_total", "counter", "Backward jumps of the wall clock.", |figures| {
            figures.clock.jumps_back
        }),
        (
            "staunch_windows_mislabelled_total",
            "counter",
            "Windows labelled while the clock was wrong.",
            |figures| figures.clock.mislabelled,
        ),
        (
            "staunch_labels_dropped_total",
            "counter",
            "Saved window labels discarded because they are far ahead of the clock.",
            |figures| figures.clock.labels_dropped,
        ),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        figures.iter().for_each(|state| {
            rows.row(&[("transform", &state.transform)], read(&state.figures) as f64);
        });
    }
}

fn flushes(out: &mut String, figures: &[ShardFigures], now: Now) {
    let ended = || figures.iter().filter_map(|state| Some((&state.transform, state.last_flush?)));
    let mut points = family(out, "staunch_flush_series", "gauge", "Series in the last flush.");
    ended().for_each(|(name, end)| points.row(&[("transform", name)], end.series as f64));
    let mut age = family(out, "staunch_flush_age_seconds", "gauge", "Seconds since the last flush began.");
    ended().for_each(|(name, end)| {
        let age_ns = now.mono_ns.saturating_sub(end.started.mono_ns);
        age.row(&[("transform", name)], age_ns as f64 / SECOND_NS as f64);
    });
    let mut window =
        family(out, "staunch_flush_window_seconds", "gauge", "Measured length of the last window.");
    ended().for_each(|(name, end)| window.row(&[("transform", name)], end.info.elapsed_s));
}

fn checkpoints(out: &mut String, page: &AccountsPage) {
    type Read = fn(&CheckpointRow) -> Option<f64>;
    let rows: [(&'static str, &str, &str, Read); 7] = [
        ("staunch_checkpoints_written_total", "counter", "Checkpoints written.", |row| {
            Some(row.written as f64)
        }),
        ("staunch_checkpoints_failed_total", "counter", "Checkpoints that could not be written.", |row| {
            Some(row.failed as f64)
        }),
        ("staunch_checkpoint_age_seconds", "gauge", "Age of the checkpoint on disk.", |row| row.age_s),
        ("staunch_checkpoint_bytes", "gauge", "Bytes of the last checkpoint.", |row| Some(row.bytes as f64)),
        ("staunch_checkpoint_series", "gauge", "Series in the last checkpoint.", |row| {
            Some(row.series as f64)
        }),
        ("staunch_restored_series", "gauge", "Series restored at the start.", |row| {
            Some(row.restored_series as f64)
        }),
        (
            "staunch_restored_damaged",
            "gauge",
            "Series and checkpoint files that could not be restored.",
            |row| Some((row.restored_damaged + row.unreadable) as f64),
        ),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        for row in &page.checkpoints {
            if let Some(value) = read(row) {
                rows.row(&[("transform", &row.transform)], value);
            }
        }
    }
}

#[test]
fn every_self_metric_has_its_heading_in_the_docs() {
    use std::collections::BTreeSet;
    // These files contain the names only as separate string literals.
    let begin = concat!("\"sta", "unch_");
    let files = [
        include_str!("metrics.rs"),
        include_str!("metrics/kernel.rs"),
        include_str!("metrics/disk.rs"),
        include_str!("metrics/acks.rs"),
        include_str!("metrics/certificates.rs"),
        include_str!("metrics/of_process.rs"),
        include_str!("metrics/relay.rs"),
        include_str!("metrics/transforms.rs"),
        include_str!("metrics/stores.rs"),
        include_str!("metrics/streams.rs"),
    ];
    let names = files.iter().flat_map(|text| text.split(begin).skip(1));
    let names = names.filter_map(|rest| rest.split('"').next());
    let names: BTreeSet<String> = names.map(|rest| format!("{}{rest}", &begin[1..])).collect();
    let headings = include_str!("../../../../docs/metrics.md").lines();
    let headings = headings.filter_map(|line| line.strip_prefix("### ")).map(str::to_owned);
    assert_eq!(headings.collect::<BTreeSet<String>>(), names);
}
