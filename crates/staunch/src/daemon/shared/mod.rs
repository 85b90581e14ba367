//! The shared state of the daemon's threads and tasks: the current wiring and the channel to the shard.
//!
//! The other files of this folder have its parts, and what sources, outputs and ports have in common. None of them
//! needs this file, so the shard's thread and the outlets, which are parts of the state, use them too.

pub mod acks;
pub mod bind;
pub mod complaints;
pub mod heartbeat;
pub mod names;
pub mod reloads;
pub mod snapshots;
pub mod stop_order;
pub mod stores;
pub mod turns;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use config::plan::Plan;
use model::{Now, PeerKey, SourceId};
use pipeline::{Accounts, Exchange};
use tokio::sync::{Notify, watch};

use self::acks::AckRegistry;
use self::heartbeat::{Beat, Heartbeat};
use self::reloads::Reloads;
use self::stop_order::stopped;
use self::stores::Stores;
use self::turns::{Floor, Place, Places};
use crate::admin::clients::{CarbonLinkAccount, HttpAccount, ManagementAccount};
use crate::carbon_c_relay::statistics::Reports;
use crate::daemon::checkpoint::CheckpointTable;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::outlet::{Outlet, is_retired};
use crate::daemon::readers::{self, Readers};
use crate::daemon::worker::{PacketHandle, ShardHandle};
use crate::kernel::Kernel;
use crate::outputs::addresses::locator::Directory;
use crate::outputs::runtime::SideThreads;
use crate::sources::compiled::Queries;
use sys::clock::Clock;
use tls::Certificates;

/// Most bytes of one source between its connections and the shard.
pub const EXCHANGE_BYTES_MAX: usize = 4 << 20;

/// Most bytes of one source between a reader of datagrams and the shard.
pub const PACKET_LANE_BYTES_MAX: usize = 4 << 20;

/// Share of `stop_timeout` in which a connection may begin another read of received data, in percent: less than the
/// share of sources.
const LAST_READ_PERCENT: u32 = 40;

/// Most sources of a plan, including removed ones.
pub const SOURCES_MAX: usize = 1024;

/// A plan in force, with the objects built for it.
#[derive(Debug)]
pub struct Wiring {
    /// TLS settings of its connections, read when the plan came into force.
    pub certificates: Certificates,
    /// The checked plan.
    pub plan: Arc<Plan>,
    /// One account per source and output.
    pub accounts: Accounts,
    /// One queue per output.
    pub outlets: Vec<Arc<Outlet>>,
    /// Number of reloads.
    pub generation: u64,
    /// The actual listen addresses (`udp://127.0.0.1:8125`), by source.
    pub listening: Vec<Vec<String>>,
}

/// The state for all tasks.
#[derive(Debug)]
pub struct Shared {
    /// The current wiring. Ids of sources and outputs never change their meaning; reloads only add some.
    pub wiring: ArcSwap<Wiring>,
    /// From connections to the shard.
    pub exchange: Arc<Exchange>,
    /// Calls into the shard's thread.
    pub shard: ShardHandle,
    /// The address of HTTP, if it is open.
    pub http: Option<SocketAddr>,
    /// Why it is not open although the plan has it, and what opens it. For the banner.
    pub http_closed: Option<String>,
    /// The addresses of the management ports.
    pub management: Vec<SocketAddr>,
    /// Counts of their clients.
    pub management_account: ManagementAccount,
    /// CarbonLink.
    pub carbonlink: CarbonLinkAccount,
    /// Counts of HTTP clients.
    pub http_account: HttpAccount,
    /// Queries of clients over the index of streams.
    pub(crate) queries: Queries,
    /// When the daemon started.
    pub started: Now,
    /// The reply to `health`.
    pub healthy: AtomicBool,
    /// All listeners are bound and the shard runs.
    pub ready: AtomicBool,
    /// SIGTERM was received.
    pub stopping: AtomicBool,
    /// A hot restart is in progress, and the new process has not confirmed yet.
    pub handing_over: AtomicBool,
    /// Checks whether the shard's thread still runs its loop.
    pub heartbeat: Heartbeat,
    /// The runtimes of senders with TLS or compression, and of subscribers to Riemann's events.
    pub side_threads: SideThreads,
    /// Finds the endpoints of outputs.
    pub directory: Arc<Directory>,
    /// Turns of connections with messages, by source: for each reader, one connection at a time decodes messages, so
    /// the memory for that is needed once per source and reader. It is not shared by all sources, because a message may
    /// have to wait for room in a full queue, which should only delay its own source.
    pub turns: Turns,
    /// The threads that read connections.
    pub readers: Readers,
    /// Who reads datagrams, where it is not the shard's thread.
    pub packet_readers: Vec<PacketHandle>,
    /// Turns for reading connections, by reader.
    pub floors: Box<[Floor]>,
    /// Notified when the exchange has room again.
    pub room: Arc<Notify>,
    /// Connections with acknowledgements.
    pub acks: Arc<AckRegistry>,
    /// Receive buffers and kernel drops of our datagram sockets.
    pub kernel: Kernel,
    /// Notes for the next instance.
    pub handover: Arc<Handover>,
    /// Figures of checkpoints.
    pub checkpoints: Arc<CheckpointTable>,
    /// Counts of reloads by result.
    pub reloads: Reloads,
    /// Last reports of relays' statistics.
    pub reports: Reports,
    /// The open stores.
    pub stores: Arc<Stores>,
}

/// For each source, as many slots as there are readers, see [`Shared::turns`].
#[derive(Debug)]
pub struct Turns(Box<[Arc<Places>]>);

impl Turns {
    /// All slots are free.
    pub fn new(readers: usize) -> Turns {
        Turns((0..SOURCES_MAX).map(|_| Arc::new(Places::new(readers))).collect())
    }

    /// Waits for the turn of a connection of `peer` at `source`; peers take turns. Cancel-safe: a waiter that stops
    /// loses its position.
    pub(crate) async fn wait(&self, source: SourceId, peer: PeerKey) -> Place {
        self.0[source.index()].take(peer).await
    }
}

impl Shared {
    /// The turns of the reader on this thread.
    pub fn floor(&self) -> &Floor {
        &self.floors[readers::here()]
    }

    /// Resolves acknowledgements with the progress of outputs, until the daemon has stopped.
    pub async fn resolve_acks(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            // Both branches are cancel-safe: an unread notification leaves its permit.
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                () = self.acks.progressed() => self.acks.resolve(&self.wiring.load().outlets),
            }
        }
    }

    /// How long connections may still be read after a stop was requested.
    pub fn last_read_max(&self) -> Duration {
        Duration::from_millis(self.wiring.load().plan.stop_timeout_ms) * LAST_READ_PERCENT / 100
    }

    /// The name of a reader's thread that does not answer for so long, if there is one. The threads `main` and `shard-0` are none.
    pub async fn late_reader(&self, at_most: Duration) -> Option<String> {
        for (number, reader) in self.packet_readers.iter().enumerate() {
            if reader.beat(at_most).await == Beat::Late {
                return Some(format!("packets-{number}"));
            }
        }
        self.readers.late(at_most).await
    }

    /// Seconds since the start.
    pub fn uptime_s(&self) -> u64 {
        (Clock::now().mono_ns - self.started.mono_ns) / model::SECOND_NS
    }

    /// Labels of the live endpoints of a cluster (by its index in the plan), in the ring's order: the proxy's `status`
    /// reply to `peer`. `None` when the shard has ended.
    pub async fn live_labels(&self, cluster: usize, peer: PeerKey) -> Vec<String> {
        let mut asking = self.shard.ask_in_line(peer).await;
        asking.call(move |worker| worker.turn.shard.live_labels(cluster)).await.unwrap_or_default()
    }

    /// Reasons why the daemon is not ready, a sentence each; empty when it is.
    pub fn not_ready(&self) -> Vec<String> {
        let mut why = Vec::new();
        if self.stopping.load(Relaxed) {
            why.push("stopping".to_owned());
        } else if !self.ready.load(Relaxed) {
            why.push("starting".to_owned());
        }
        if !self.healthy.load(Relaxed) {
            why.push("switched down by `health down`".to_owned());
        }
        let wiring = self.wiring.load();
        for (source, at) in self.kernel.unreadable() {
            let name = wiring.plan.sources.get(source.index()).map_or("", |plan| &*plan.name);
            why.push(format!("source `{name}` cannot read from {at} any more"));
        }
        for (plan, outlet) in wiring.plan.outputs.iter().zip(&wiring.outlets) {
            if !plan.required || is_retired(plan) {
                continue;
            }
            let shown = outlet.shown(Clock::now());
            if shown.word == "down" {
                let (name, last_error) = (&plan.name, shown.last_error);
                let text = outlet.last_error_line(last_error);
                why.push(format!("output `{name}` is required and down: {last_error}{text}"));
            }
        }
        why
    }

    /// Failures of a daemon that accepts records, a sentence each. An output whose failure should make it not ready is
    /// `required`.
    pub fn troubles(&self) -> Vec<String> {
        let wiring = self.wiring.load();
        let now = Clock::now();
        let outputs = wiring.plan.outputs.iter().zip(&wiring.outlets);
        let down = outputs.filter_map(|(plan, outlet)| {
            let shown = outlet.shown(now);
            (shown.word == "down" && !is_retired(plan)).then(|| {
                let (name, for_s) = (&plan.name, shown.for_ns / model::SECOND_NS);
                let text = outlet.last_error_line(shown.last_error);
                format!("output `{name}` is down: {}, for {for_s} s{text}", shown.last_error)
            })
        });
        let sources = wiring.plan.sources.iter().zip(&wiring.listening);
        let deaf = sources.filter(|(plan, at)| !plan.listen.is_empty() && at.is_empty());
        let deaf = deaf.map(|(plan, _)| format!("source `{}` listens nowhere", plan.name));
        let refused = self.reloads.last_refused().map(|refused| format!("reload refused at {refused}"));
        refused
            .into_iter()
            .chain(bounded(deaf, "sources listen nowhere"))
            .chain(bounded(down, "outputs are down"))
            .collect()
    }

    /// Sources that wait for the queue of an output, a sentence each. This does not make the daemon not ready; an
    /// output that should is `required`.
    pub fn waited_for(&self) -> Vec<String> {
        let lines = self.blocked().into_iter().map(|Blocked { source, output, when_full, for_ns }| {
            let for_s = for_ns / model::SECOND_NS;
            format!(
                "source `{source}` waits for room in the queue of output `{output}` (when_full = \"{when_full}\"), for \
                 {for_s} s"
            )
        });
        bounded(lines, "waits of sources for outputs")
    }

    /// Sources that wait for room in the queue of an output.
    pub fn blocked(&self) -> Vec<Blocked> {
        let (wiring, now_ns) = (self.wiring.load(), Clock::mono_ns());
        let plan = &wiring.plan;
        let outputs = plan.outputs.iter().zip(&wiring.outlets);
        let blocked = outputs.flat_map(|(output, outlet)| {
            outlet.blocked_sources().into_iter().filter_map(move |(source, since_ns)| {
                Some(Blocked {
                    source: plan.sources.get(source.index())?.name.clone(),
                    output: output.name.clone(),
                    when_full: output.queue.when_full.as_str(),
                    for_ns: now_ns.saturating_sub(since_ns),
                })
            })
        });
        blocked.collect()
    }
}

/// A source that waits for room in the queue of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The source's name.
    pub source: String,
    /// The output's name.
    pub output: String,
    /// `when_full` of the queue.
    pub when_full: &'static str,
    /// How long it has waited, in nanoseconds.
    pub for_ns: u64,
}

/// Most lines of `/ready` of one kind.
const TROUBLES_MAX: usize = 20;

/// The first of `lines`, and the number of omitted ones.
fn bounded(mut lines: impl Iterator<Item = String>, what: &str) -> Vec<String> {
    let mut shown: Vec<String> = lines.by_ref().take(TROUBLES_MAX).collect();
    let more = lines.count();
    shown.extend((more > 0).then(|| format!("{more} more {what}")));
    shown
}

#[test]
fn lines_of_ready_are_bounded() {
    for (number, want, last) in
        [(0, 0, None), (20, 20, Some("19")), (21, 21, Some("1 more x")), (99, 21, Some("79 more x"))]
    {
        let lines = bounded((0..number).map(|at| at.to_string()), "x");
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (want, last), "{number}");
    }
}
