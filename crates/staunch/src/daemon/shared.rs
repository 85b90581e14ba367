//! What the daemon's threads and tasks share: the wiring of the moment and the way to the shard.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use config::plan::Plan;
use model::Now;
use pipeline::{Accounts, Exchange};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::daemon::outlet::Outlet;
use crate::daemon::worker::ShardHandle;
use crate::kernel::Kernel;
use crate::outputs::locator::Directory;

/// Most bytes of one source between its connections and the shard.
pub const EXCHANGE_BYTES_MAX: usize = 4 << 20;

/// Most sources of a plan, those retired by reloads included.
pub const SOURCES_MAX: usize = 1024;

/// Most outputs of a plan, those retired by reloads included.
pub const OUTPUTS_MAX: usize = 4096;

/// A plan in force, with what was built for it.
#[derive(Debug)]
pub struct Wiring {
    /// The checked plan.
    pub plan: Arc<Plan>,
    /// One account per source and output.
    pub accounts: Accounts,
    /// One queue per output.
    pub outlets: Vec<Arc<Outlet>>,
    /// Counts reloads.
    pub generation: u64,
    /// Where each source really listens (`udp://127.0.0.1:8125`), by source.
    pub listening: Vec<Vec<String>>,
}

/// Everything that tasks may look at.
#[derive(Debug)]
pub struct Shared {
    /// The wiring in force. Ids of sources and outputs never change their meaning, reloads only add.
    pub wiring: ArcSwap<Wiring>,
    /// From connections to the shard.
    pub exchange: Arc<Exchange>,
    /// Calls into the shard's thread.
    pub shard: ShardHandle,
    /// Where HTTP is open, if it is.
    pub http: Option<SocketAddr>,
    /// Where the management ports are open.
    pub management: Vec<SocketAddr>,
    /// When the daemon started.
    pub started: Now,
    /// What `health` answers.
    pub healthy: AtomicBool,
    /// All listeners are bound and the shard runs.
    pub ready: AtomicBool,
    /// SIGTERM was taken.
    pub stopping: AtomicBool,
    /// How outputs find their endpoints.
    pub directory: Arc<Directory>,
    /// Told when the exchange has room again.
    pub room: Arc<Notify>,
    /// What the kernel holds and drops of our datagram sockets.
    pub kernel: Kernel,
    /// Reloads that took effect, and that were refused.
    pub reloads: Reloads,
}

/// How reloads ended.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Took effect.
    pub done: AtomicU64,
    /// Refused because of a mistake in the file; nothing changed.
    pub refused: AtomicU64,
}

impl Shared {
    /// Seconds since the start.
    pub fn uptime_s(&self) -> u64 {
        (Clock::now().mono_ns - self.started.mono_ns) / model::SECOND_NS
    }

    /// Labels of the live endpoints of a cluster, in the ring's own order: what the proxy's `status` lists.
    ///
    /// Whoever holds the states of endpoints narrows it to those; until checks say otherwise, all are live.
    pub fn live_labels(&self, cluster: usize) -> Vec<String> {
        let wiring = self.wiring.load();
        wiring.plan.clusters.get(cluster).map(|cluster| cluster.labels.clone()).unwrap_or_default()
    }

    /// True when the daemon takes and delivers records.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Relaxed) && !self.stopping.load(Relaxed) && self.healthy.load(Relaxed)
    }
}
