//! What the tasks of a stream listener have in common: its source, and its orders.

use std::sync::Arc;
use std::time::Duration;

use config::plan::{Listen, SourcePlan};
use model::SourceAccount;
use pipeline::IntakeMaker;
use tokio::sync::watch;

use crate::daemon::shared::complaints::Complaints;

/// The data of a listener's tasks.
#[derive(Clone, Debug)]
pub struct StreamSource {
    /// Its plan.
    pub plan: Arc<SourcePlan>,
    /// Its address.
    pub listen: Listen,
    /// Its account.
    pub account: Arc<SourceAccount>,
    /// TLS settings of its connections, if any.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Creates the intake of a connection.
    pub intake: IntakeMaker,
    /// The receiver of log messages about bad lines.
    pub complaints: Complaints,
}

/// The order for a listener and its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Accept connections and read them.
    Serve,
    /// End: received data still counts.
    Stop,
    /// Pause: this process or another one continues the connections. New ones wait in the backlog.
    HandOver,
    /// Pause after reading received data, including new connections in the backlog: the other process does not have
    /// this listener, and it ends here unless that process fails.
    Empty,
}

/// Resolves when the order is no longer to serve. Cancel-safe.
pub(super) async fn ordered(orders: &mut watch::Receiver<Order>) -> Order {
    // A closed channel also means the end.
    orders.wait_for(|order| *order != Order::Serve).await.map_or(Order::Stop, |order| *order)
}

/// The idle timeout of a connection.
pub(super) fn idle_timeout(plan: &SourcePlan) -> Duration {
    match plan.idle_timeout_ms {
        0 => Duration::from_secs(u64::from(u32::MAX)),
        ms => Duration::from_millis(ms),
    }
}
