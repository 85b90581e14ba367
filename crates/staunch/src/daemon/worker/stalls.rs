//! Log lines about outputs whose full queues make the connections of their sources wait.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::Now;
use pipeline::Shard;

use crate::daemon::outlet::Outlet;

/// A source waits so long for a queue before that is logged: a slow endpoint makes it wait for moments all the time.
const LOGGED_AFTER_NS: u64 = 5 * model::SECOND_NS;

/// Outputs of which the log says that sources wait for them.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    logged: Vec<usize>,
}

impl Stalls {
    /// Logs the begin and the end of each long wait, once.
    pub(super) fn log(&mut self, outlets: &[Arc<Outlet>], shard: &Shard, now: Now) {
        for (at, outlet) in outlets.iter().enumerate() {
            let since_ns = outlet.account.stalled_since_ns.load(Relaxed);
            let logged = self.logged.iter().position(|logged| *logged == at);
            match (logged, since_ns) {
                (None, 1..) if now.mono_ns.saturating_sub(since_ns) >= LOGGED_AFTER_NS => {
                    let sources = outlet.blocked_sources();
                    let names = sources.iter().map(|(source, _)| shard.source_name(*source));
                    tracing::warn!(
                        "output `{}`: its queue is full, and the connections of these sources are not read until it has \
                         room (when_full = \"{}\"): {}",
                        outlet.name,
                        outlet.when_full(),
                        names.collect::<Vec<_>>().join(", ")
                    );
                    self.logged.push(at);
                }
                (Some(logged), 0) => {
                    tracing::info!(
                        "output `{}`: its queue has room again, and connections are read again",
                        outlet.name
                    );
                    self.logged.swap_remove(logged);
                }
                (None | Some(_), _) => {}
            }
        }
    }
}
