//! Accepts clients of the management and CarbonLink ports: each gets a slot, or is refused.
//!
//! Path of a client: [`accept`] -> `Admission` -> [`Port::serve`], in a task of its own. Not here: HTTP, which has a thread
//! (`server`), and sources, whose connections may pause (`sources::accept`).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use model::SECOND_NS;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::clients::{ClientAccount, ClientEnd};
use crate::admission::{Admission, ConnectionSlot, Full, Limits, Refusals, peer_key};
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::{ACCEPT_PAUSE, listen_again};
use crate::daemon::start::descriptors::{self, Kind};
use sys::clock::Clock;

/// A client that has been idle, or has not read, for this long may be replaced by a new one.
const STALLED_NS: u64 = SECOND_NS;

/// A port with clients.
pub(super) trait Port {
    /// Kind and address, for the log.
    fn name(&self) -> String;

    /// Most clients.
    fn limits(&self) -> Limits;

    /// Where clients are counted.
    fn account(&self) -> &Arc<ClientAccount>;

    /// Serves a client until its end, or until the slot is needed.
    fn serve(
        &self,
        stream: TcpStream,
        from: IpAddr,
        slot: Arc<ConnectionSlot>,
    ) -> impl Future<Output = ClientEnd> + Send + 'static;
}

/// The share of the file descriptors that one of these ports may use.
pub(super) fn descriptors_of_port(shared: &Shared) -> usize {
    let plan = &shared.wiring.load().plan;
    let ports = plan.management.len() + usize::from(plan.carbonlink.is_some());
    (descriptors::max(Kind::Management) as usize / ports.max(1)).max(1)
}

/// Serves until `stop` turns true.
pub(super) async fn accept(mut listener: TcpListener, port: impl Port, mut stop: watch::Receiver<bool>) {
    let places = Arc::<Admission>::default();
    let (refusals, failures) = (Refusals::default(), Refusals::default());
    let mut clients = JoinSet::new();
    loop {
        // All branches are cancel-safe.
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            Some(_ended) = clients.join_next(), if !clients.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let now_ns = Clock::mono_ns();
                match places.admit_or_replace(peer_key(Some(from.ip())), port.limits(), now_ns, STALLED_NS) {
                    Ok(slot) => {
                        let counted = port.account().accept();
                        let served = port.serve(stream, from.ip(), Arc::new(slot));
                        clients.spawn(async move { counted.end(served.await) });
                    }
                    Err(full) => {
                        port.account().end(full.into());
                        if let Some(refused) = refusals.note(now_ns) {
                            log_refused(&port, (full, from.ip()), &places, refused);
                        }
                    }
                }
                // A client that was asked to leave goes before the next one is accepted, so that shares of descriptors
                // hold.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                log_failed(&port, &error, &failures);
                if sys::is_out_of_resources(&error) && places.make_room(Clock::mono_ns()) {
                    // Its connection closes, so that the next attempt has its descriptor.
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                // This failure would repeat at the next attempt to accept.
                if let (true, Ok(again)) = (sys::is_final_for_reading(&error), listen_again(&listener)) {
                    tracing::info!("{} listens again", port.name());
                    listener = again;
                }
            }
        }
    }
}

fn log_refused(port: &impl Port, (full, from): (Full, IpAddr), places: &Arc<Admission>, refused: u64) {
    let (option, most) = match full {
        Full::All => ("max_connections", places.most_as_text()),
        Full::PerPeer => ("max_connections_per_peer", String::new()),
    };
    let name = port.name();
    tracing::warn!(
        "{name} refuses clients at `{option}`, the last one from {from}{most} ({refused} since the last message)"
    );
}

fn log_failed(port: &impl Port, error: &io::Error, failures: &Refusals) {
    let name = port.name();
    if sys::is_final_for_reading(error) {
        if let Some(times) = failures.note(Clock::mono_ns()) {
            tracing::error!("{name} is closed: {error} ({times} attempts); listening again");
        }
    } else if !sys::is_out_of_resources(error) {
        tracing::debug!("{name}: accept: {error}");
    } else if let Some(times) = failures.note(Clock::mono_ns()) {
        tracing::warn!(
            "{name} cannot accept clients: {error} ({times} attempts); they wait in the kernel. {}",
            descriptors::advice()
        );
    }
}
