//! The order to stop, which every task watches.

use tokio::sync::watch;

/// Resolves when the daemon stops. Cancel-safe.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A closed channel means the same.
    let _stopped = stop.wait_for(|stop| *stop).await;
}
