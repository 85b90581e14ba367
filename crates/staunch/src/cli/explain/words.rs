//! Words of `/metrics`, `top`, `status`, `queue ls`, the API's documents and the log that are neither outcomes nor states: for
//! `staunch explain`.
//!
//! Metrics have their pages in docs/metrics.md, which is compiled in: [`metric`]. A word that ends in `_per_s` is the rate of the
//! word before it: [`rate_of`]. Not here: outcomes (`outcomes`), states of outputs (`states`).
//! Invariant: `tests/binary/words.rs` finds a page for each word that a daemon and its clients show.

/// The page of all metrics.
const METRICS: &str = include_str!("../../../../../docs/metrics.md");

/// The section of a metric; of a part of a histogram, that of the histogram.
pub(super) fn metric(name: &str) -> Option<String> {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().filter_map(|end| name.strip_suffix(end));
    let section = std::iter::once(name).chain(of_histogram).find_map(|name| {
        METRICS.split("\n### ").skip(1).find_map(|section| {
            let (heading, text) = section.split_once('\n')?;
            (heading == name).then_some(text)
        })
    });
    if let Some(section) = section {
        let text = section.split("\n## ").next().unwrap_or(section);
        return Some(format!("{name}: a metric of /metrics\n\n{}\n", text.trim()));
    }
    let (_, about) = PROCESS_METRICS.iter().find(|(metric, _)| *metric == name)?;
    Some(format!("{name}: a metric of /metrics\n\n{about}\n"))
}

/// All metrics, for the nearest one to a word with a mistake.
pub(super) fn metrics() -> impl Iterator<Item = &'static str> {
    let sections = METRICS.split("\n### ").skip(1).filter_map(|section| section.lines().next());
    sections
        .filter(|heading| heading.starts_with("staunch_"))
        .chain(PROCESS_METRICS.iter().map(|(name, _)| *name))
}

/// What a rate such as `records_per_s` counts.
pub(super) fn rate_of(word: &str) -> Option<&str> {
    word.strip_suffix("_per_s").or_else(|| word.strip_suffix("_per_second"))
}

/// Metrics that all Prometheus clients have.
const PROCESS_METRICS: [(&str, &str); 5] = [
    ("process_cpu_seconds_total", "CPU time of the process, user and system, in seconds."),
    ("process_max_fds", "Limit of open file descriptors (`LimitNOFILE`)."),
    ("process_open_fds", "Open file descriptors: sockets and files."),
    ("process_resident_memory_bytes", "Resident memory of the process in bytes."),
    ("process_start_time_seconds", "Unix time of the start of the process."),
];

/// Other words, with what they mean; what to do where there is something to do.
#[rustfmt::skip]
pub(super) const WORDS: &[(&str, &str)] = &[
    // The process.
    ("api", "Address of the HTTP API that `top` or `status` reads."),
    ("daemon", "In the accounts: version, commit and uptime of the process."),
    ("version", "Version of the running binary."),
    ("commit", "Commit that the running binary was built from; `unknown` if the build did not know it."),
    ("uptime_s", "Seconds since the start of the daemon."),
    ("time_ms", "Unix milliseconds by the daemon's clock at which a document was made."),
    ("interval_s", "Seconds between two requests to the daemon. All rates are over this time."),
    ("reachable", "Whether the daemon answered `staunch top`."),
    ("away_since_ms", "Unix milliseconds of the first of the requests in a row that the daemon did not answer. Check whether it runs."),
    ("ready", "Whether `/ready` replies 200: records are accepted. If not, its reply has the reasons."),
    ("not_ready", "`/ready` replies 503: the daemon should get no records now. Its reply has the reasons."),
    ("warnings", "Sentences about what is wrong at this moment: the lines of `/ready`, losses of the last second, full queues, failing disks."),
    ("result", "How a reload ended: `done`, `partial` or `refused`."),
    ("done", "Of a reload: the new config is active."),
    ("partial", "Of a reload: the new config is active, but parts of it do not work. The log names them."),
    ("refused", "Of a reload: the config has errors, and the one before stays active; run `staunch check`. Of a connection: it was refused at `max_connections`. As an outcome of version 0.1.0, it is now `rejected_by_peer`."),
    // Listeners and connections.
    ("listener", "A source, or the port of management, CarbonLink or HTTP, with its open addresses."),
    ("listeners", "The open addresses: of each source, of management, of CarbonLink and of HTTP."),
    ("listen", "Open addresses."),
    ("address", "Open address of a listener."),
    ("management", "StatsD's management port: an address for commands such as `stats` and `health`."),
    ("carbonlink", "The port where a graphite-web that reads the whisper files asks for points in memory."),
    ("http", "The HTTP API and its connections."),
    ("open", "Connections that are open now."),
    ("accepted", "Connections accepted so far. For queues: records in memory, counted if they are lost."),
    ("ended", "Closed or refused connections of management, CarbonLink or HTTP, by reason."),
    ("connections_open", "Connections of a source that are open now."),
    ("connections_accepted", "Connections of a source that were accepted so far."),
    ("requests_refused", "HTTP requests that were refused because of their headers, by reason: `host`, `token`, `change`."),
    ("orderly", "The connection was closed by the client, or normally. Nothing to do."),
    ("broken", "The connection was reset. Nothing to do, unless it happens often. As a balance of `staunch top`: see `not_balanced`."),
    ("refused_per_peer", "The connection was refused because its address had `max_connections_per_peer`. Raise the limit if many clients share one address."),
    ("replaced", "The connection was idle, and gave its place to a new client because all places were in use."),
    ("preempted", "The connection was closed during a request, in favour of a client with fewer connections."),
    ("silent", "The client sent no complete request in time."),
    ("unread", "The client did not read its reply for ten seconds."),
    ("slow", "The client took more than 60 seconds in all to read a reply."),
    ("handshake_failed", "The TLS handshake of the connection failed."),
    ("host", "The HTTP request had a `Host` that is not in `http.allowed_hosts`. Add the name that your client uses. In the address of an endpoint: its name or address."),
    ("token", "The HTTP request had no token, or a wrong one, and `http.token_file` requires it."),
    ("change", "The HTTP request would change something, and its client may not do that."),
    ("acks", "Acknowledgements to the clients of a source (`ack_when`)."),
    ("when", "Condition of acknowledgements: `ack_when` of the source."),
    ("lines_acked", "Lines that were acknowledged to clients."),
    ("lines_unacked", "Lines on open connections that are not acknowledged yet."),
    ("failed", "Of acknowledgements: connections that were ended with `err`, by reason. Of checkpoints: those that could not be written; the log has the error."),
    // Nodes and their records.
    ("name", "Name of a source, transform or output in the config; each of several endpoints is `NAME/host:port`. Of a series, its name."),
    ("names", "Names whose route a relay has cached."),
    ("type", "Type of a node in the config. Of a series: `counter`, `gauge`, `timer` or `set`."),
    ("counter", "A type of series: the sum of its samples in a window."),
    ("gauge", "A type of series: its last value."),
    ("timer", "A type of series: statistics of its values in a window."),
    ("set", "A type of series: the number of distinct values in a window."),
    ("distribution", "A type of series: statistics of its values, as of a timer."),
    ("histogram", "A type of series: statistics of its values, as of a timer."),
    ("node", "A source, transform or output. For losses of a transform only: `FROM -> TRANSFORM`."),
    ("source", "A source receives records. `sources` in the config."),
    ("sources", "The sources: one row each, in the order of the config."),
    ("transform", "A transform computes on records: an aggregation, a relay, or the streams of a Riemann config. `transforms` in the config."),
    ("transforms", "The transforms: one row for each node that feeds one."),
    ("edges", "Of a transform: one account for each node that feeds it."),
    ("from", "The node that feeds a transform."),
    ("output", "An output delivers copies of records to an endpoint or a file. `outputs` in the config."),
    ("outputs", "The outputs: one row for each endpoint."),
    ("relay", "A transform of type `relay`: it routes points by their names."),
    ("relays", "The relays: one row each."),
    ("records", "Samples, points, events or packets: the units that the accounts count."),
    ("packets", "Datagrams, or reads from a connection that gave at least one complete line."),
    ("packets_empty", "Datagrams without a byte. They are counted and have no record."),
    ("lines", "Lines read, valid or not."),
    ("bytes", "Of a source: bytes read. Of a queue: bytes of its copies."),
    ("glued_tag_fields", "Samples whose last tag includes the field after it (dialect `etsy`): the sender uses DogStatsD. Use the dialect `union`."),
    ("event_fields_ignored", "Optional fields of events that were not understood. The event itself was kept."),
    ("sockets", "The UDP sockets of a source, as the kernel sees them."),
    ("rx_queue_bytes", "Bytes in the kernel's receive queue, by its own measure: a small packet counts 768 bytes or more."),
    ("buffer_bytes", "Limit of the kernel's receive queue, by the same measure. Packets above it are dropped by the kernel."),
    ("buffer_wanted_bytes", "What `buffer_bytes` would be if the kernel had granted all of `receive_buffer`. If it is more, raise `net.core.rmem_max`."),
    ("receive_queue_fill", "How full the fullest receive queue of a source is, from 0 to 1."),
    ("protocol", "Label of machine metrics: `udp` or `udp6`."),
    ("udp", "Datagrams over IPv4; as a type of outputs: to a UDP endpoint."),
    ("udp6", "Datagrams over IPv6."),
    ("le", "Label of histograms: upper limit of a bucket."),
    // Accounts.
    ("losses", "Losses since the start, by outcome and reason."),
    ("losses_bytes", "Bytes of the copies that were lost, by outcome and reason."),
    ("lost", "Records or copies that were lost for any reason. `losses` has the reasons."),
    ("lost_reason", "The reason with the most losses since the previous request, or since the start if there was none."),
    ("outcome", "How a record or a copy ended."),
    ("outcomes", "How records or copies ended: each outcome above 0, with its count."),
    ("reason", "Why a record was lost or rejected. `staunch explain REASON` has the advice."),
    ("count", "Number of records, copies or packets."),
    ("totals", "Sums over all sources and outputs since the start."),
    ("sums", "Whether the accounts are balanced: `hold` (balanced), `moving`, or `broken` (not balanced)."),
    ("balance", "Whether the accounts are balanced: `balanced`, `moving` or `not_balanced`."),
    ("hold", "Every record has exactly one outcome: `balanced`."),
    ("moving", "Records are in flight, so the balance is not known at this moment. Nothing to do."),
    ("not_balanced", "Nothing moves, and a record has no outcome. This is a bug: please report it, with `/api/v1/accounts`."),
    // Outputs and queues.
    ("state", "State of an output: `staunch explain up`, `down`, `degraded`, … Of a queue in `queue ls`: `in_use`, `stopped` or `orphan`."),
    ("state_for_s", "Seconds since the state of an output began. A hot restart resets it."),
    ("last_error", "Why the last attempt to reach an endpoint failed, in one word. `staunch explain` knows each of them. Records stay queued."),
    ("last_error_text", "`last_error` as a sentence, with the system's message."),
    ("last_error_time_ms", "Unix milliseconds of the last failed attempt; 0 for none."),
    ("required", "Whether `/ready` replies 503 while the output is down (`required` in the config)."),
    ("error", "Label of system errors, such as `ECONNREFUSED`. In `top --json`: why the daemon did not answer."),
    ("errors", "Failed attempts to connect or send. `last_error` has the reason."),
    ("errors_by", "Failed attempts by the system's name for the error."),
    ("other", "System errors that have no name in this table. The log has them."),
    ("connects", "Connections made to the endpoint."),
    ("in_doubt_bytes", "Bytes written to connections that broke, and not acknowledged by the endpoint. They are sent again."),
    ("bytes_routed", "Bytes of all copies that were routed to the output."),
    ("bytes_delivered", "Bytes of delivered copies."),
    ("stalled_for_s", "Seconds for which a source has been waiting for room in the queue; 0 for none. Make the endpoint faster or the queue larger."),
    ("busy_us", "Busy time of the senders of the output, in microseconds."),
    ("busy", "The queue was in use while the document was made, perhaps because its disk does not answer. Some values are the last known ones."),
    ("answer_lines", "Lines of replies from the endpoint: OpenTSDB replies to lines that it rejects. The log has one of them a minute."),
    ("tags_left_out", "Tags that the output's protocol cannot express. Their lines were sent without them."),
    ("queue", "The queue of an output, in memory or on disk; in `top`, its copies. For sources in `top`: how full the receive queue of the kernel is."),
    ("queues", "The queues of outputs."),
    ("kind", "Of a queue: `memory` or `disk`. Of a rule: `match`, `rewrite` or `aggregate`."),
    ("memory", "The queue is in memory: a crash loses it."),
    ("disk", "The queue is on disk: in `top`, whether it is synced."),
    ("place", "Where a queue is: in memory, or on disk with the state of the disk."),
    ("copies_queued", "Queued copies."),
    ("queued_high", "Highest number of queued copies so far."),
    ("queued_bytes", "Bytes of queued copies."),
    ("queued_bytes_high", "Highest number of queued bytes so far."),
    ("max_records", "Limit of the queue in copies; 0 for none."),
    ("max_bytes", "Limit of the queue in bytes (`queue.max_bytes`)."),
    ("queue_bytes_max", "Limit of the queue in bytes (`queue.max_bytes`)."),
    ("queue_fill", "Queued bytes as a share of the queue's limit."),
    ("fill", "Queued bytes as a share of the queue's limit."),
    ("oldest_s", "Age of the oldest queued copy in seconds."),
    ("oldest", "Age of the oldest queued copy."),
    ("old", "Age of the oldest queued copy."),
    ("folder", "Folder of the queue on disk."),
    ("path", "Folder of the queue on disk."),
    ("segments", "Files of the queue on disk that have records."),
    ("blocks", "Units of a queue on disk, of at most 128 KiB. `replay`: how many were appended."),
    ("blocks_unsynced", "Blocks that are not synced yet: a power loss may lose them. If the number grows, the disk is too slow."),
    ("blocks_damaged", "Blocks in damaged ranges of the queue on disk. Their copies count as `damaged`."),
    ("damaged_records", "Blocks in damaged ranges of the queue on disk. Their copies count as `damaged`."),
    ("damaged_ranges", "Ranges of the queue's files that failed their checksum. Check the disk's health."),
    ("quarantine", "Damaged ranges and misplaced files of a queue on disk, kept for inspection: `staunch queue export NAME --quarantine`."),
    ("quarantined", "Files of a queue in quarantine: damaged ranges and misplaced segments. Inspect them with `staunch queue check`, then `queue replay NAME --quarantine` or `queue drop NAME --quarantine`."),
    ("quarantined_bytes", "Bytes in quarantine."),
    ("quarantine_full", "Damaged ranges that were not kept, because the quarantine is full."),
    ("aside", "The old name of `quarantined`."),
    ("misplaced", "Segments that do not belong where they are: copied, renamed or swapped. The next start moves them to quarantine."),
    ("segments_misplaced", "Segments that do not belong where they are: copied, renamed or swapped. The next start moves them to quarantine."),
    ("write_errors", "Writes of the queue that failed. `write_error` has the present reason."),
    ("write_error", "Why the disk rejects writes now; otherwise `null`. Check its free space, health and mount."),
    ("read_error", "Why queued records cannot be read now; otherwise `null`."),
    ("missing", "Why the next process would not find some queued records: their files or folder are gone; `null` while all are there."),
    ("records_missing", "Queued copies in missing files. A stop of the daemon loses them; put the files back."),
    ("sync_errors", "Syncs that failed. Their records are in doubt: check the disk's health."),
    ("remove_errors", "Files of the queue that could not be removed or renamed. Check the permissions of the folder."),
    ("trouble", "What is wrong with the disk now, in words."),
    ("in_use", "A running daemon has the queue."),
    ("orphan", "No output of the config has the queue. Export or drop it, or put the output back."),
    ("left", "Of `queue drop`: copies that are still queued, those in flight included."),
    ("full", "Of `queue replay`: there was no room for the next block; it and the following ones were not appended."),
    // Checkpoints.
    ("checkpoints", "Saved states of aggregations."),
    ("every_s", "Interval of checkpoints in seconds; of an aggregation rule, its window."),
    ("written", "Checkpoints written so far."),
    ("age_s", "Age of the last checkpoint in seconds."),
    ("restored_series", "Series that were restored at the start."),
    ("restored_age_s", "Age of the checkpoint that was restored at the start."),
    ("restored_damaged", "Series of the checkpoint that could not be read. Check the disk's health."),
    ("restored_dropped", "Series of the checkpoint above `max_series`, which were not restored."),
    ("unreadable", "Checkpoint files that could not be read at all."),
    // Series.
    ("series", "Series of aggregations."),
    ("tags", "Tags of a series."),
    ("value", "Of the open window: a counter's sum, a gauge's value, a timer's count, a set's members."),
    ("values", "First values of a timer in the open window, at most 16."),
    ("next", "Cursor of the next page."),
    // Relays.
    ("points", "Points processed by the rules of a relay."),
    ("blackholed", "Points that `blackhole` dropped, as the config wants it."),
    ("unmatched", "Points that no rule sent anywhere. Add a rule, or a last one that matches all."),
    ("nowhere", "Points that were copied to no cluster and added to no aggregation rule."),
    ("copies_refused", "Copies above the limit of copies for one point."),
    ("names_refused", "Invalid names that rewrites and aggregation rules produced. `staunch relay --explain NAME` shows the rule."),
    ("gave_up", "Searches for an expression that reached a limit, which counts as no match. Simplify the expression."),
    ("rolled_up", "Points added to aggregation rules, once for each rule."),
    ("fed", "Values added to aggregation rules, by result."),
    ("counted", "Values that an aggregation rule counted in their window."),
    ("counted_late", "Late values that were counted in the oldest open window (`late = \"oldest\"`)."),
    ("bytes_max", "Values that were lost because the aggregation rules reached `max_aggregation_bytes`. The reason is `aggregation_rule_full`."),
    ("not_finite", "Values that are NaN or infinite. They are not counted."),
    ("results", "Results of aggregation rules."),
    ("results_not_finite", "Results that are NaN or infinite. They are not sent."),
    ("results_stopped", "Results that were not routed at a stop, because there was no time left."),
    ("values_left", "Values of windows that were discarded before their end, by a stop or a reload."),
    ("aggregation_rule_series", "Results of aggregation rules in progress."),
    ("aggregation_rule_bytes", "Memory of aggregation rules."),
    ("aggregation_rule_jumps_back", "Times that the wall clock was set back, which aggregation rules followed. Check the machine's clock."),
    ("aggregation_future_results", "Results of windows ahead of the wall clock after it was set back."),
    ("names_bytes", "Memory of cached routes."),
    ("names_found", "Points whose name had a cached route."),
    ("names_decided", "Points whose route was not cached, so that the rules were evaluated."),
    ("names_forgotten", "Times that the older half of the cache was discarded because it was full."),
    ("clusters", "Clusters of a relay: groups of outputs."),
    ("cluster", "A group of outputs of a relay, with a way to choose among them."),
    ("sharing", "Type of a cluster: how it chooses among its members."),
    ("share", "Type of a cluster: how it chooses among its members."),
    ("members", "Outputs of a cluster."),
    ("out", "A member of a cluster that has failed over to others, because its endpoint is down. Repair the endpoint."),
    ("rules", "Rules of a relay, in their order."),
    ("at", "Where a rule is in its file."),
    ("expression", "Expression of a rule."),
    ("how", "How an expression is searched: `all`, `contains`, `begins`, `ends`, `equals` or `regex`."),
    ("rest", "Text after the name of a line."),
    ("sent", "Where a rule sent copies."),
    ("to", "Endpoints that get a copy."),
    ("endpoint", "Address that an output sends to."),
    ("why", "Why an endpoint gets a copy: it is the owner, it is its turn, it is the first that is up, or another endpoint failed over to it."),
    ("owner", "Endpoint that owns the key."),
    ("key", "Text that decides the owner in a ring."),
    ("position", "Place of the key on the ring."),
    ("stops", "The rule ends the evaluation."),
    ("end", "How the evaluation of rules ended."),
    // Columns of `top` and `status`.
    ("pkt/s", "Packets received per second: datagrams, or reads from connections."),
    ("rec/s", "Records received per second."),
    ("kdrop/s", "Datagrams that the kernel dropped per second, because the receive buffer was full: see `kernel_dropped`."),
    ("kdrops", "Datagrams that the kernel dropped since the start: see `kernel_dropped`."),
    ("rej/s", "Records rejected per second: see `rejected`."),
    ("reject", "Records rejected since the start: see `rejected`."),
    ("drop/s", "Records lost at a limit per second: see `dropped`."),
    ("pts/s", "Points processed by the rules of a relay per second."),
    ("rtd/s", "Points routed to an output or added to an aggregation rule per second."),
    ("unmat/s", "Points that no rule sent, per second: see `unmatched`."),
    ("black/s", "Points dropped by `blackhole` per second."),
    ("inval/s", "Points that failed a `validate`, per second: see `invalid`."),
    ("copy/s", "Copies routed to the output per second."),
    ("dlvd/s", "Copies delivered per second."),
    ("lost/s", "Copies lost per second."),
    ("FAIL!", "The disk of the queue fails: see `failing`."),
    // Log lines as JSON.
    ("time", "Time of a log line (RFC 3339, UTC)."),
    ("level", "Level of a log line: error, warn, info, debug or trace."),
    ("message", "Text of a log line; of a reload, its diagnostics."),
    ("fields", "Further values of a log line."),
];

#[test]
fn every_word_stands_once_and_is_a_sentence() {
    let mut words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    words.sort_unstable();
    let twice = words.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
    for (word, about) in WORDS {
        assert!(
            about.ends_with(['.', '`']) && about.starts_with(|c: char| c.is_uppercase() || c == '`'),
            "{word}: {about}"
        );
    }
}

#[test]
fn a_metric_is_explained_by_its_section() {
    let text = metric("staunch_source_batch_packets_bucket").expect("it is a part of a histogram");
    assert!(text.contains("Histogram") && !text.contains("###") && !text.contains("\n## "), "{text}");
    assert!(metric("process_open_fds").is_some());
    assert_eq!(metric("staunch_nothing"), None);
    assert!(metrics().count() > 100);
}
