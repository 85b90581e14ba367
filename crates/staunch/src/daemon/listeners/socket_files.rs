//! Socket files that were deleted or replaced while the daemon runs, for example by a cleanup of `/tmp`: clients cannot
//! find the listener any more. It is opened again at its path; connected clients stay connected.
//!
//! Not here: sockets that were closed from outside (`sources::accept`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::MissedTickBehavior;

use config::plan::Listen;
use model::SourceId;

use crate::daemon::listeners::{self, Opened};
use crate::daemon::running::Running;
use crate::daemon::shared::Wiring;
use crate::daemon::shared::bind::SocketFile;
use crate::daemon::shared::names::shown;
use crate::kernel::Drops;

/// Interval between two checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Pause after a listener could not be opened again.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Checks the files on a separate thread, because a file system may hang.
pub(in crate::daemon) struct Looks {
    next: tokio::time::Interval,
    looking: Option<JoinHandle<Vec<SocketFile>>>,
}

impl Looks {
    pub(in crate::daemon) fn new() -> Looks {
        let mut next = tokio::time::interval(LOOK_EVERY);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Looks { next, looking: None }
    }

    /// The changed ones of `files`; waits until there are some. Cancel-safe.
    pub(in crate::daemon) async fn lost(&mut self, files: Vec<SocketFile>) -> Vec<SocketFile> {
        loop {
            if let Some(looking) = &mut self.looking {
                let lost = looking.await.unwrap_or_default();
                self.looking = None;
                if !lost.is_empty() {
                    return lost;
                }
            }
            self.next.tick().await;
            let mut lost = files.clone();
            self.looking = Some(spawn_blocking(move || {
                lost.retain(|file| !file.is_there());
                lost
            }));
        }
    }

    fn rest(&mut self) {
        self.next.reset_after(AFTER_FAILURE);
    }
}

/// Opens the listeners of `lost` files again.
pub(in crate::daemon) async fn listen_again(running: &mut Running, lost: &[SocketFile], looks: &mut Looks) {
    let shared = Arc::clone(&running.shared);
    let wiring = shared.wiring.load_full();
    let plan = &wiring.plan;
    let places = running.listeners.places();
    let lost: Vec<_> =
        lost.iter().filter_map(|file| running.listeners.with_file(file).map(|place| (file, place))).collect();
    let others = places.into_iter().filter(|place| !lost.iter().any(|(_, lost)| lost == place));
    let (opened, failures) =
        listeners::open(plan, &others.collect::<Vec<_>>(), None, shared.readers.number());
    let mut gone = Vec::new();
    for (file, (source, listen)) in lost {
        let is_it = |new: &Opened| plan.sources[new.source.index()].name == source && new.listen == listen;
        let Some(new) = opened.iter().find(|new| is_it(new)) else {
            looks.rest();
            continue;
        };
        let place = shown(&listen);
        tracing::warn!(
            "source `{source}`: the socket file of {place} was deleted or replaced; it is created again"
        );
        if running.listeners.replace(file) {
            gone.push((new.source, listen));
        }
    }
    for failure in failures {
        tracing::error!(
            "{failure}: the socket file was deleted or replaced, and clients cannot connect; retrying in {} s",
            AFTER_FAILURE.as_secs()
        );
    }
    if let Err(error) = serve(running, &wiring, opened, gone).await {
        tracing::error!("not all deleted socket files could be created again: {error}");
    }
}

async fn serve(
    running: &mut Running,
    wiring: &Wiring,
    opened: Vec<Opened>,
    gone: Vec<(SourceId, Listen)>,
) -> io::Result<()> {
    let shared = Arc::clone(&running.shared);
    let (plan, accounts) = (Arc::clone(&wiring.plan), wiring.accounts.clone());
    let made = shared.shard.call(move |worker| {
        worker.close_sockets(&gone);
        listeners::makers(&plan, &worker.turn.shard, &accounts)
    });
    // Without its thread the daemon ends.
    let Ok(makers) = made.await else { return Ok(()) };
    let (plan, accounts) = (&wiring.plan, &wiring.accounts);
    let sockets =
        listeners::datagram_sockets(plan, &opened, &makers, accounts, &shared.kernel, &|_| Drops::default())?;
    let _added = shared.shard.call(move |worker| worker.add_sockets(sockets)).await;
    running.listeners.add(opened, plan, &makers, &shared)
}
