//! `/api/v1/accounts`: both balances, with every loss by its reason.

pub mod checkpoints;
pub mod transforms;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{OutputKind, SourcePlan};
use foldhash::fast::FixedState;
use model::{
    AckWhen, Losses, Now, OutputId, OutputSum, RecordSum, SECOND_NS, SourceAccount, SourceId, Unacked,
};
use serde::{Serialize, Serializer};

use self::checkpoints::CheckpointRow;
use self::transforms::TransformRow;
use crate::admin::clients::ClientAccount;
use crate::build;
use crate::daemon::outlet::{DiskLook, Look, Outlet};
use crate::daemon::shared::{Shared, Wiring};
use crate::daemon::worker::Asking;
use crate::kernel::SocketFigures;
use sys::clock::Clock;

/// Sources whose rows are built in one slice of the shard's thread: some microseconds each.
const SLICE_SOURCES: usize = 8;

/// Outputs whose rows are built before other tasks on the thread run.
const SLICE_OUTPUTS: usize = 8;

/// Most attempts to read a consistent row.
const LOOKS: u32 = 20;

/// The whole document.
#[derive(Debug, Default, Serialize)]
pub struct AccountsPage {
    /// The time of the document in Unix milliseconds.
    pub time_ms: u64,
    /// The process.
    pub daemon: DaemonRow,
    /// One row per source.
    pub sources: Vec<SourceRow>,
    /// One row per transform.
    pub transforms: Vec<TransformRow>,
    /// One row per output.
    pub outputs: Vec<OutputRow>,
    /// One row per aggregation with checkpoints.
    pub checkpoints: Vec<CheckpointRow>,
    /// Clients of the management ports.
    pub management: ClientsRow,
    /// Clients of HTTP.
    pub http: HttpRow,
    /// Clients of CarbonLink.
    pub carbonlink: ClientsRow,
}

/// The process.
#[derive(Debug, Default, Serialize)]
pub struct DaemonRow {
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from, or `unknown`.
    pub commit: &'static str,
    /// Seconds since its start.
    pub uptime_s: u64,
}

impl DaemonRow {
    fn of(shared: &Shared) -> DaemonRow {
        DaemonRow { version: build::VERSION, commit: build::COMMIT, uptime_s: shared.uptime_s() }
    }
}

/// Clients of ports of one kind.
#[derive(Debug, Default, Serialize)]
pub struct ClientsRow {
    /// Addresses that are open (`tcp://127.0.0.1:8126`).
    pub listen: Vec<String>,
    /// There now.
    pub open: u64,
    /// Accepted so far.
    pub accepted: u64,
    /// How they ended, or why they were rejected; only counts above 0.
    pub ended: BTreeMap<&'static str, u64>,
}

/// Clients and requests of HTTP.
#[derive(Debug, Default, Serialize)]
pub struct HttpRow {
    /// Its connections.
    #[serde(flatten)]
    pub clients: ClientsRow,
    /// Requests rejected because of their heads; only counts above 0.
    pub requests_refused: BTreeMap<&'static str, u64>,
}

/// Reasons by family (`rejected`, `dropped`, …), only those above 0.
pub type LossTable = BTreeMap<&'static str, BTreeMap<&'static str, u64>>;

/// A source's account.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct SourceRow {
    /// The name given by the user.
    pub name: String,
    /// Protocol.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its listen addresses.
    pub listen: Vec<String>,
    /// `received` and its terms, each a member of the row.
    #[serde(flatten, serialize_with = "record_sum")]
    pub sum: RecordSum,
    /// Whether the row is balanced and consistent. It may be false for a moment while records move.
    pub balanced: bool,
    /// Reasons of `rejected`, `dropped` and `internal`.
    pub losses: LossTable,
    /// Datagrams that the kernel dropped before they were read.
    pub kernel_dropped: u64,
    /// Failed attempts to read a datagram socket.
    pub read_errors: u64,
    /// Datagrams, or reads with a whole line.
    pub packets: u64,
    /// Empty datagrams.
    pub packets_empty: u64,
    /// Truncated datagrams.
    pub packets_truncated: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections rejected at `max_connections`, or at the sources' share of the descriptors.
    pub connections_refused: u64,
    /// Connections rejected at `max_connections_per_peer`, or because their peer had half of the sources' descriptors.
    pub connections_refused_per_peer: u64,
    /// Idle connections that were closed for a connection of a peer with fewer.
    pub connections_replaced: u64,
    /// Connections that ended in an error.
    pub connections_broken: u64,
    /// Connections that ended before the end of the TLS handshake.
    pub handshakes_failed: u64,
    /// Samples whose last tag contains another field (`etsy` only).
    pub glued_tag_fields: u64,
    /// Optional fields of events with unknown contents.
    pub event_fields_ignored: u64,
    /// Its open UDP sockets.
    pub sockets: Vec<SocketRow>,
    /// Acknowledgements to its clients; `None` unless it has, or had, `ack_when`.
    pub acks: Option<AcksRow>,
}

/// Acknowledgements to the clients of a source.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct AcksRow {
    /// `ack_when` now; `None` when a reload removed it.
    pub when: Option<&'static str>,
    /// Acknowledged lines (frames: frames).
    pub lines_acked: u64,
    /// Unacknowledged lines of open connections.
    pub lines_unacked: u64,
    /// Closed connections, by the reason in their `err` line.
    pub failed: BTreeMap<&'static str, u64>,
}

/// One UDP socket, with the kernel's figures.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct SocketRow {
    /// Its listen address.
    pub listen: String,
    /// Unread bytes, by the kernel's measure.
    pub rx_queue_bytes: u64,
    /// Size of the receive buffer, by the same measure.
    pub buffer_bytes: u64,
    /// The value of `buffer_bytes` if the kernel had granted all of `receive_buffer`.
    pub buffer_wanted_bytes: u64,
    /// Packets that the kernel dropped at this socket.
    pub kernel_dropped: u64,
}

/// An output's account.
#[derive(Debug, Default, Serialize)]
pub struct OutputRow {
    /// The name given by the user.
    pub name: String,
    /// Protocol.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `copies` and its terms, each a member of the row.
    #[serde(flatten, serialize_with = "output_sum")]
    pub sum: OutputSum,
    /// Whether the row is balanced and consistent. It may be false for a moment while copies move.
    pub balanced: bool,
    /// Reasons of `dropped`, `rejected_by_peer`, `filtered` and `internal`.
    pub losses: LossTable,
    /// Bytes of those copies.
    pub losses_bytes: LossTable,
    /// `up`, `degraded`, `down`, …; `new` before the first attempt.
    pub state: &'static str,
    /// The kind of the last failure; empty for none.
    pub last_error: &'static str,
    /// A sentence about the last failure; empty for none.
    pub last_error_text: String,
    /// The time of the last failure in Unix milliseconds; 0 for none.
    pub last_error_time_ms: u64,
    /// Seconds since the state began; 0 before the first attempt.
    pub state_for_s: u64,
    /// Whether `/ready` fails while it is down.
    pub required: bool,
    /// Errors by the system's name.
    pub errors_by: BTreeMap<&'static str, u64>,
    /// Most queued copies so far.
    pub queued_high: u64,
    /// Limit of the queue in copies; 0 for none.
    pub max_records: u64,
    /// Queued bytes.
    pub queued_bytes: u64,
    /// Most queued bytes so far.
    pub queued_bytes_high: u64,
    /// Limit of the queue in bytes.
    pub max_bytes: u64,
    /// Age of the oldest queued copy in seconds.
    pub oldest_s: f64,
    /// Bytes of all copies routed to it.
    pub bytes_routed: u64,
    /// Bytes delivered.
    pub bytes_delivered: u64,
    /// Connections made.
    pub connects: u64,
    /// Failed attempts to connect or send.
    pub errors: u64,
    /// Copies sent again because the first may not have arrived.
    pub resent: u64,
    /// Copies that were being sent when their connection broke.
    pub in_doubt: u64,
    /// Unacknowledged bytes of connections that broke.
    pub in_doubt_bytes: u64,
    /// How often a source began to wait because the queue was full.
    pub stalls: u64,
    /// How long a source has been waiting for it, in seconds; 0 while none does.
    pub stalled_for_s: u64,
    /// Time that its senders were busy, in microseconds.
    pub busy_us: u64,
    /// Tags omitted from sent lines.
    pub tags_left_out: u64,
    /// Lines that the endpoint answered.
    pub answer_lines: u64,
    /// Somebody had the queue all the time, such as a disk that does not answer: what waits is by the account, and figures of
    /// the queue are those of the last look.
    pub busy: bool,
    /// Its queue on disk; `None` for a queue in memory.
    pub disk: Option<DiskRow>,
}

/// A queue on disk. Its records are kept in blocks of at most 128 KiB, and synced and checked block by block.
#[derive(Debug, Default, Serialize)]
pub struct DiskRow {
    /// Its folder.
    pub folder: String,
    /// Files with records.
    pub segments: u64,
    /// Accepted blocks that are not synced yet.
    pub blocks_unsynced: u64,
    /// Blocks whose sync failed.
    pub blocks_in_doubt: u64,
    /// Unreadable ranges of segments.
    pub damaged_ranges: u64,
    /// Blocks in them.
    pub blocks_damaged: u64,
    /// Quarantined bytes of those ranges.
    pub quarantined_bytes: u64,
    /// Ranges that were not quarantined for lack of space.
    pub quarantine_full: u64,
    /// Failed writes, including those on a full disk.
    pub write_errors: u64,
    /// Why the disk accepts no writes now, such as a lack of space; `None` while it does.
    pub write_error: Option<String>,
    /// Failed reads that were retried.
    pub read_errors: u64,
    /// Why queued records cannot be read now; `None` while they can.
    pub read_error: Option<String>,
    /// Why the next process would not find the queued records: the folder is missing, or files were deleted. `None`
    /// otherwise.
    pub missing: Option<String>,
    /// Queued records in it.
    pub records_missing: u64,
    /// Failed syncs.
    pub sync_errors: u64,
    /// Failed attempts to remove or rename a file.
    pub remove_errors: u64,
}

pub(super) fn record_sum<S: Serializer>(sum: &RecordSum, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("received", sum.received)].into_iter().chain(sum.parts()))
}

fn output_sum<S: Serializer>(sum: &OutputSum, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("copies", sum.copies)].into_iter().chain(sum.parts()))
}

/// An output's type, as written in configs.
pub fn output_word(kind: &OutputKind) -> &'static str {
    kind.facts().section.word().unwrap_or_default()
}

/// A source's type, as written in configs.
pub fn source_word(plan: &SourcePlan) -> &'static str {
    plan.kind.facts().node.word
}

/// The current document. Each row is consistent: those of sources are built on the shard's thread, between two batches,
/// with the kernel's current drop counts.
pub async fn snapshot(shared: &Arc<Shared>, asking: &mut Asking) -> AccountsPage {
    let wiring = shared.wiring.load_full();
    let sources = sources_in_slices(shared, &wiring, asking).await;
    let now = Clock::now();
    let outputs = outputs_in_slices(&wiring, now).await;
    with_ports(shared, sources, transforms::rows(&wiring), outputs, now)
}

async fn sources_in_slices(
    shared: &Arc<Shared>,
    wiring: &Arc<Wiring>,
    asking: &mut Asking,
) -> Vec<SourceRow> {
    let mut sources = Vec::new();
    loop {
        let some = some_sources(shared, wiring, asking, sources.len()).await;
        if some.is_empty() {
            return sources;
        }
        sources.extend(some);
    }
}

/// The rows of the sources after the first `from`, as many as one slice of the shard's thread builds. `None` after the
/// last source.
pub async fn some_sources(
    shared: &Arc<Shared>,
    wiring: &Arc<Wiring>,
    asking: &mut Asking,
    behind: usize,
) -> Vec<SourceRow> {
    let ids = wiring.accounts.sources().map(|(id, _, _)| id).skip(behind).take(SLICE_SOURCES);
    let ids: Vec<SourceId> = ids.collect();
    if ids.is_empty() {
        return Vec::new();
    }
    let (theirs, their_wiring, asked) = (Arc::clone(shared), Arc::clone(wiring), ids.clone());
    let rows = asking.call(move |worker| {
        worker.count_drops_of(&asked);
        source_rows(&theirs, &their_wiring, &asked)
    });
    // The worker is missing only during a stop: the counts of its last turn are then final.
    rows.await.unwrap_or_else(|_gone| source_rows(shared, wiring, &ids))
}

/// The outputs of a wiring with a row; outputs of one name are together.
#[derive(Debug)]
pub struct OutputOrder(Vec<InRow>);

/// An output, and the first output of its name, which determines the row's position.
type InRow = (OutputId, OutputId);

impl OutputOrder {
    /// The order for this wiring. The meaning of its ids does not change.
    pub fn of(wiring: &Wiring) -> OutputOrder {
        OutputOrder::of_names(wiring.accounts.outputs_once().map(|(id, name, _)| (id, name)))
    }

    fn of_names<'a>(outputs: impl Iterator<Item = (OutputId, &'a str)>) -> OutputOrder {
        let mut first: HashMap<&str, OutputId, FixedState> = HashMap::default();
        let mut order: Vec<InRow> =
            outputs.map(|(id, name)| (*first.entry(name).or_insert(id), id)).collect();
        order.sort_by_key(|(first, _)| first.index());
        OutputOrder(order)
    }

    /// The outputs of each row.
    fn rows(&self) -> impl Iterator<Item = &[InRow]> {
        self.0.chunk_by(|one, next| one.0 == next.0)
    }
}

/// The rows of all outputs; other tasks on the thread run in between.
async fn outputs_in_slices(wiring: &Wiring, now: Now) -> Vec<OutputRow> {
    some_outputs(wiring, &OutputOrder::of(wiring), 0..usize::MAX, now).await
}

/// The rows of outputs at these positions in `order`, all of which `wiring` contains. `None` after the last one.
pub async fn some_outputs(
    wiring: &Wiring,
    order: &OutputOrder,
    places: Range<usize>,
    now: Now,
) -> Vec<OutputRow> {
    let mut rows = Vec::new();
    let each = |outputs| {
        let row = row_of(wiring, outputs, now);
        let took = row.as_ref().map_or(Took::Microseconds, |row| Took::of(row.busy));
        rows.extend(row);
        took
    };
    in_slices(order.rows().skip(places.start).take(places.len()), each).await;
    rows
}

/// A reload may have given a name to another endpoint: the earlier row is then added to the current one. With a queue
/// on disk, both have the same account, and the current row is complete.
fn row_of(wiring: &Wiring, outputs: &[InRow], now: Now) -> Option<OutputRow> {
    let rows = outputs.iter().map(|(_, id)| output_row_at_rest(wiring, *id, now));
    rows.reduce(|before, row| row.with_before(&before))
}

/// How long building a row took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    Microseconds,
    /// It waited for a queue's lock.
    Milliseconds,
}

impl Took {
    pub(super) fn of(busy: bool) -> Took {
        if busy { Took::Milliseconds } else { Took::Microseconds }
    }
}

/// Applies a function to each of `items`. Other tasks on the thread run after [`SLICE_OUTPUTS`] items, and after a slow
/// one.
pub(super) async fn in_slices<T>(items: impl IntoIterator<Item = T>, mut each: impl FnMut(T) -> Took) {
    let mut in_slice = 0;
    for item in items {
        if in_slice == SLICE_OUTPUTS {
            tokio::task::yield_now().await;
            in_slice = 0;
        }
        in_slice = match each(item) {
            Took::Microseconds => in_slice + 1,
            Took::Milliseconds => SLICE_OUTPUTS,
        };
    }
}

/// The document at `now`, read from outside, with the latest known drop counts.
pub fn page(shared: &Shared, now: Now) -> AccountsPage {
    let wiring = shared.wiring.load();
    let ids: Vec<SourceId> = wiring.accounts.sources().map(|(id, _, _)| id).collect();
    let sources = source_rows(shared, &wiring, &ids);
    let order = OutputOrder::of(&wiring);
    let outputs = order.rows().filter_map(|outputs| row_of(&wiring, outputs, now)).collect();
    with_ports(shared, sources, transforms::rows(&wiring), outputs, now)
}

fn source_rows(shared: &Shared, wiring: &Wiring, ids: &[SourceId]) -> Vec<SourceRow> {
    let row = |id: &SourceId| {
        at_rest(
            || {
                let account = wiring.accounts.source(*id);
                account.undisturbed(|| source_row(shared, wiring, *id))
            },
            || source_row(shared, wiring, *id),
        )
    };
    ids.iter().map(row).collect()
}

fn with_ports(
    shared: &Shared,
    sources: Vec<SourceRow>,
    transforms: Vec<TransformRow>,
    outputs: Vec<OutputRow>,
    now: Now,
) -> AccountsPage {
    let checkpoints = checkpoints::rows(shared, now);
    let account = &shared.management_account;
    let ports = shared.management.iter().map(|at| format!("tcp://{at}"));
    let management = clients_row(ports.collect(), &account.clients, account.ended());
    let http = http_row(shared);
    let account = &shared.carbonlink;
    let listen = account.at.map(|at| format!("tcp://{at}"));
    let carbonlink = clients_row(listen.into_iter().collect(), &account.clients, account.ended());
    let (time_ms, daemon) = (now.wall_ns / 1_000_000, DaemonRow::of(shared));
    AccountsPage { time_ms, daemon, sources, transforms, outputs, checkpoints, management, http, carbonlink }
}

fn above_0(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<&'static str, u64> {
    counts.filter(|(_, count)| *count > 0).collect()
}

fn clients_row(
    listen: Vec<String>,
    account: &ClientAccount,
    ended: impl Iterator<Item = (&'static str, u64)>,
) -> ClientsRow {
    ClientsRow { listen, open: account.open(), accepted: account.accepted(), ended: above_0(ended) }
}

fn http_row(shared: &Shared) -> HttpRow {
    let account = &shared.http_account;
    let scheme = if shared.wiring.load().plan.http_server.tls.is_some() { "https" } else { "http" };
    let listen = shared.http.map(|at| format!("{scheme}://{at}"));
    HttpRow {
        clients: clients_row(listen.into_iter().collect(), &account.clients, account.ended()),
        requests_refused: above_0(account.requests_refused()),
    }
}

impl OutputRow {
    /// This row with the figures of a removed output of the same name added. State and limits are its own.
    fn with_before(mut self, before: &OutputRow) -> OutputRow {
        self.sum += before.sum;
        let beside = [
            (&mut self.queued_bytes, before.queued_bytes),
            (&mut self.bytes_routed, before.bytes_routed),
            (&mut self.bytes_delivered, before.bytes_delivered),
            (&mut self.connects, before.connects),
            (&mut self.errors, before.errors),
            (&mut self.resent, before.resent),
            (&mut self.in_doubt, before.in_doubt),
            (&mut self.in_doubt_bytes, before.in_doubt_bytes),
            (&mut self.stalls, before.stalls),
            (&mut self.busy_us, before.busy_us),
            (&mut self.tags_left_out, before.tags_left_out),
            (&mut self.answer_lines, before.answer_lines),
        ];
        for (figure, more) in beside {
            *figure += more;
        }
        for (into, from) in
            [(&mut self.losses, &before.losses), (&mut self.losses_bytes, &before.losses_bytes)]
        {
            for (family, reasons) in from {
                for (reason, count) in reasons {
                    *into.entry(family).or_default().entry(reason).or_default() += count;
                }
            }
        }
        for (word, count) in &before.errors_by {
            *self.errors_by.entry(word).or_default() += count;
        }
        // Both may have queued copies now: the maximum is not below their sum.
        self.queued_high = self.queued_high.max(before.queued_high).max(self.sum.queued);
        self.queued_bytes_high = self.queued_bytes_high.max(before.queued_bytes_high).max(self.queued_bytes);
        self.oldest_s = self.oldest_s.max(before.oldest_s);
        self.balanced &= before.balanced;
        self.busy |= before.busy;
        self
    }
}

pub(super) fn table(losses: Losses) -> LossTable {
    let mut table = LossTable::new();
    for (family, word, count) in losses.into_iter().filter(|(_, _, count)| *count > 0) {
        table.entry(family).or_default().insert(word, count);
    }
    table
}

fn socket_row(figures: SocketFigures) -> SocketRow {
    SocketRow {
        listen: figures.listen,
        rx_queue_bytes: figures.rx_queue_bytes,
        buffer_bytes: figures.buffer_bytes,
        buffer_wanted_bytes: figures.buffer_wanted_bytes,
        kernel_dropped: figures.kernel_dropped,
    }
}

/// A consistent row: it is balanced, and equal when read again. If a few attempts find none, the row is marked as
/// unbalanced. Between two batches, accounts are always balanced; during a batch, records would seem to be missing.
fn at_rest(look: impl Fn() -> Option<SourceRow>, any: impl Fn() -> SourceRow) -> SourceRow {
    for _ in 0..LOOKS {
        match look() {
            Some(row) if row.balanced && look().is_some_and(|again| again == row) => return row,
            _ => std::hint::spin_loop(),
        }
    }
    SourceRow { balanced: false, ..any() }
}

fn source_row(shared: &Shared, wiring: &Wiring, id: SourceId) -> SourceRow {
    let plan = &wiring.plan.sources[id.index()];
    let account = wiring.accounts.source(id);
    let sum = account.sum(shared.exchange.in_flight(id));
    let sockets = shared.kernel.figures_of(id).into_iter();
    SourceRow {
        name: plan.name.clone(),
        kind: source_word(plan),
        listen: wiring.listening.get(id.index()).cloned().unwrap_or_default(),
        sum,
        balanced: sum.holds(),
        losses: table(account.losses()),
        kernel_dropped: account.kernel_dropped.load(Relaxed),
        read_errors: account.read_errors.load(Relaxed),
        packets: account.packets.load(Relaxed),
        packets_empty: account.packets_empty.load(Relaxed),
        packets_truncated: account.packets_truncated.load(Relaxed),
        bytes: account.bytes.load(Relaxed),
        lines: account.lines.load(Relaxed),
        connections_open: account.connections_open.load(Relaxed),
        connections_accepted: account.connections_accepted.load(Relaxed),
        connections_refused: account.connections_refused.load(Relaxed),
        connections_refused_per_peer: account.connections_refused_per_peer.load(Relaxed),
        connections_replaced: account.connections_replaced.load(Relaxed),
        connections_broken: account.connections_broken.load(Relaxed),
        handshakes_failed: account.handshakes_failed.load(Relaxed),
        glued_tag_fields: account.glued_tag_fields.load(Relaxed),
        event_fields_ignored: account.event_fields_ignored.load(Relaxed),
        sockets: sockets.map(socket_row).collect(),
        acks: acks_row(plan, account),
    }
}

fn acks_row(plan: &SourcePlan, account: &SourceAccount) -> Option<AcksRow> {
    let failed = Unacked::ALL.iter().map(|why| (why.word(), account.acks_failed(*why)));
    let row = AcksRow {
        when: plan.ack_when.map(AckWhen::word),
        lines_acked: account.lines_acked.load(Relaxed),
        lines_unacked: account.lines_unacked.load(Relaxed),
        failed: failed.filter(|(_, count)| *count > 0).collect(),
    };
    let was_used = row.lines_acked > 0 || row.lines_unacked > 0 || !row.failed.is_empty();
    (row.when.is_some() || was_used).then_some(row)
}

/// The same for an output, which its own tasks settle: its copies must not change while the row is built.
fn output_row_at_rest(wiring: &Wiring, id: OutputId, now: Now) -> OutputRow {
    let outlet = &wiring.outlets[id.index()];
    let account = &outlet.account;
    let counts = || {
        let bytes = (account.bytes_routed(), account.bytes_delivered());
        (account.sum(0), account.losses(), account.losses_bytes(), bytes)
    };
    for _ in 0..LOOKS {
        let before = counts();
        let row = output_row(wiring, id, now);
        if row.balanced && before == counts() {
            return row;
        }
        std::thread::yield_now();
    }
    OutputRow { balanced: false, ..output_row(wiring, id, now) }
}

fn output_row(wiring: &Wiring, id: OutputId, now: Now) -> OutputRow {
    let plan = &wiring.plan.outputs[id.index()];
    let outlet = &wiring.outlets[id.index()];
    let account = &outlet.account;
    let look = outlet.look(now);
    let sum = look.sum;
    let shown = outlet.shown(now);
    OutputRow {
        name: plan.name.clone(),
        kind: output_word(&plan.kind),
        sum,
        balanced: sum.holds(),
        losses: table(account.losses()),
        losses_bytes: table(account.losses_bytes()),
        state: shown.word,
        last_error: shown.last_error,
        last_error_text: outlet.last_error_text(shown.last_error),
        last_error_time_ms: shown.last_error_time_ms,
        state_for_s: shown.for_ns / SECOND_NS,
        required: plan.required,
        errors_by: outlet.errors.table(),
        queued_high: account.copies_waiting_high(),
        max_records: plan.queue.records_max,
        queued_bytes: look.bytes,
        queued_bytes_high: account.queued_bytes_high.load(Relaxed),
        max_bytes: plan.queue.bytes_max,
        oldest_s: look.oldest_age_ns.map_or(0.0, |oldest_ns| oldest_ns as f64 / 1e9),
        bytes_routed: account.bytes_routed(),
        bytes_delivered: account.bytes_delivered(),
        connects: account.connects.load(Relaxed),
        errors: account.errors.load(Relaxed),
        resent: account.resent.load(Relaxed),
        in_doubt: account.in_doubt.load(Relaxed),
        in_doubt_bytes: account.in_doubt_bytes.load(Relaxed),
        stalls: account.stalls.load(Relaxed),
        stalled_for_s: match account.stalled_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now.mono_ns.saturating_sub(since_ns) / SECOND_NS,
        },
        busy_us: account.busy_ns.load(Relaxed) / 1_000,
        tags_left_out: account.tags_left_out.load(Relaxed),
        answer_lines: account.answer_lines.load(Relaxed),
        busy: look.busy,
        disk: disk_row(outlet, &look),
    }
}

fn disk_row(outlet: &Outlet, look: &Look) -> Option<DiskRow> {
    let folder = outlet.disk()?.folder().path().display().to_string();
    let DiskLook { segments, blocks_unsynced, counts, missing, write_error, read_error } = look.disk?;
    Some(DiskRow {
        folder,
        segments,
        blocks_unsynced,
        blocks_in_doubt: counts.in_doubt_records,
        damaged_ranges: counts.damaged_ranges,
        blocks_damaged: counts.damaged_records,
        quarantined_bytes: counts.quarantined_bytes,
        quarantine_full: counts.quarantine_full,
        write_errors: counts.write_errors,
        write_error: write_error.map(|error| error.to_string()),
        read_errors: counts.read_errors,
        read_error: read_error.map(|error| error.to_string()),
        missing: missing.map(|missing| missing.error.to_string()),
        records_missing: missing.map_or(0, |missing| missing.copies),
        sync_errors: counts.sync_errors,
        remove_errors: counts.remove_errors,
    })
}

#[tokio::test]
async fn other_tasks_run_between_the_rows_of_many_outputs() {
    let (many, turns) = (5 * SLICE_OUTPUTS, std::cell::Cell::new(0));
    let mut seen = Vec::new();
    // The last one is slow, but no row follows it.
    let rows = in_slices(0..many, |at| {
        seen.push((at, turns.get()));
        Took::of(at == 1 || at == many - 1)
    });
    let others = async {
        for _ in 0..10 {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(biased; rows, others);
    let turn_of = |at: usize| if at < 2 { 0 } else { 1 + (at - 2) / SLICE_OUTPUTS };
    assert_eq!(seen, (0..many).map(|at| (at, turn_of(at))).collect::<Vec<_>>());
}

#[test]
fn outputs_of_one_name_share_the_position_of_the_first() {
    let names = ["a", "b", "a", "c", "b", "a"];
    let outputs = names.iter().enumerate().map(|(at, name)| (OutputId(at as u16), *name));
    let order = OutputOrder::of_names(outputs);
    let rows: Vec<Vec<u16>> =
        order.rows().map(|outputs| outputs.iter().map(|(_, id)| id.0).collect()).collect();
    assert_eq!(rows, [vec![0, 2, 5], vec![1, 4], vec![3]]);
}

#[test]
fn the_page_on_the_api_shows_these_documents() {
    use crate::admin::accounts::transforms::EdgeRow;
    use crate::admin::series::{SeriesItem, SeriesPage};
    fn members(value: &serde_json::Value) -> Vec<&String> {
        value.as_object().into_iter().flat_map(|object| object.keys()).collect()
    }
    let page = include_str!("../../../../docs/api.md");
    let shown: Vec<serde_json::Value> = page
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(|json| serde_json::from_str(json).expect("the example is JSON"))
        .collect();
    let with = |member: &str| {
        let found = shown.iter().find(|document| document.get(member).is_some());
        found.unwrap_or_else(|| panic!("no document has `{member}`"))
    };
    let (accounts, series) = (with("sources"), with("series"));
    let source = SourceRow { sockets: vec![SocketRow::default()], ..SourceRow::default() };
    let output = OutputRow { disk: Some(DiskRow::default()), ..OutputRow::default() };
    let page = AccountsPage {
        time_ms: 1,
        daemon: DaemonRow::default(),
        sources: vec![source],
        transforms: vec![TransformRow { edges: vec![EdgeRow::default()], ..TransformRow::default() }],
        outputs: vec![output],
        checkpoints: vec![CheckpointRow::default()],
        management: ClientsRow::default(),
        http: HttpRow::default(),
        carbonlink: ClientsRow::default(),
    };
    let page = serde_json::to_value(page).expect("serializes");
    assert_eq!(members(accounts), members(&page));
    assert_eq!(members(&accounts["daemon"]), members(&page["daemon"]));
    assert_eq!(members(&accounts["sources"][0]), members(&page["sources"][0]));
    assert_eq!(members(&accounts["transforms"][0]), members(&page["transforms"][0]));
    assert_eq!(members(&accounts["transforms"][0]["edges"][0]), members(&page["transforms"][0]["edges"][0]));
    assert_eq!(members(&accounts["outputs"][0]), members(&page["outputs"][0]));
    assert_eq!(members(&accounts["checkpoints"][0]), members(&page["checkpoints"][0]));
    assert_eq!(members(&accounts["management"]), members(&page["management"]));
    assert_eq!(members(&accounts["http"]), members(&page["http"]));
    assert_eq!(members(&accounts["carbonlink"]), members(&page["carbonlink"]));
    assert_eq!(members(&accounts["outputs"][0]["disk"]), members(&page["outputs"][0]["disk"]));
    assert_eq!(members(&accounts["sources"][0]["sockets"][0]), members(&page["sources"][0]["sockets"][0]));
    let item = SeriesItem {
        name: String::new(),
        tags: Vec::new(),
        kind: "timer",
        transform: String::new(),
        value: 2.0,
        values: vec![1.0],
    };
    let mut document = SeriesPage::default();
    assert!(document.push(&item));
    let document: serde_json::Value = serde_json::from_slice(&document.end(Some(1))).expect("it is JSON");
    assert_eq!(members(series), members(&document));
    assert_eq!(members(&series["series"][1]), members(&document["series"][0]));
}
