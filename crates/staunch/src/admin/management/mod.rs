//! The StatsD management port (spec statsd §11): existing health checks and scripts work unchanged.
//!
//! Path of a command: [`serve`] -> [`Client::run`] -> `wire::management` -> `answers`: a call to the shard -> `Reply`.
//! Not here: the commands (`answers`), dumps page by page (`dump`), writing (`reply`).
//! Invariant: a client holds one command, one piece of a reply and one page of a dump, for any command, and even if it
//! does not read.

mod answers;
mod delete;
mod dump;
mod reply;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::plan::ManagementPlan;
use model::{PeerKey, SECOND_NS};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::first_line::{FirstLine, Opening};
use wire::management::{COMMAND_BYTES_MAX, Commands};

use self::reply::Reply;
use crate::admin::clients::{ClientEnd, Counted};
use crate::admission::{Admission, ConnectionSlot, Full, Limits, Refusals};
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::{ACCEPT_PAUSE, listen_again};
use crate::daemon::start::descriptors::{self, Kind};
use sys::clock::Clock;

/// After this silence, a command without LF is executed, because some health checkers send no LF.
const SILENCE: Duration = Duration::from_millis(50);

/// Timeout for the first command.
const FIRST_COMMAND_MAX: Duration = Duration::from_secs(30);

/// Timeout for further commands.
const IDLE: Duration = Duration::from_secs(600);

/// A client that has been idle, or has not read, for this long may be replaced by a new one.
const STALLED_NS: u64 = SECOND_NS;

/// The shared state of the clients of a port.
struct Door {
    opened: ManagementPlan,
    shared: Arc<Shared>,
    places: Arc<Admission>,
    refusals: Refusals,
    failures: Refusals,
}

/// Serves until `stop` turns true.
pub async fn serve(
    mut listener: TcpListener,
    plan: ManagementPlan,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut clients = JoinSet::new();
    let door = Door {
        opened: plan,
        shared,
        places: Arc::default(),
        refusals: Refusals::default(),
        failures: Refusals::default(),
    };
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
                if let Some((client, counted)) = door.admit(stream, from.ip()) {
                    clients.spawn(async move { counted.end(client.serve().await) });
                }
                // A client that was asked to leave goes before the next one is accepted, so that shares of descriptors
                // hold.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                door.failed(&error);
                if sys::is_out_of_resources(&error) && door.places.make_room(Clock::mono_ns()) {
                    // Its connection closes, so that the next attempt has its descriptor.
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                // This failure would repeat at the next attempt to accept.
                if let (true, Ok(again)) = (sys::is_final_for_reading(&error), listen_again(&listener)) {
                    tracing::info!("management port {} listens again", door.opened.listen);
                    listener = again;
                }
            }
        }
    }
}

impl Door {
    /// The client, counted as accepted, if there is a slot for it.
    fn admit(&self, stream: TcpStream, from: IpAddr) -> Option<(Client, Counted)> {
        let plan = in_force(&self.opened, &self.shared);
        let ports = self.shared.wiring.load().plan.management.len().max(1);
        let of_descriptors = (descriptors::max(Kind::Management) as usize / ports).max(1);
        let limits = Limits {
            all: plan.connections_max.min(of_descriptors),
            per_peer: plan.connections_per_peer_max(),
        };
        let now_ns = Clock::mono_ns();
        let account = &self.shared.management_account.clients;
        let peer = crate::admission::peer_key(Some(from));
        let full = match self.places.admit_or_replace(peer, limits, now_ns, STALLED_NS) {
            Ok(slot) => {
                let (input, output) = stream.into_split();
                let slot = Arc::new(slot);
                let client = Client { plan, shared: Arc::clone(&self.shared), peer, input, output, slot };
                return Some((client, account.accept()));
            }
            Err(full) => full,
        };
        let (option, most) = match full {
            Full::All => ("max_connections", self.places.most_as_text()),
            Full::PerPeer => ("max_connections_per_peer", String::new()),
        };
        account.end(full.into());
        if let Some(refused) = self.refusals.note(now_ns) {
            let listen = self.opened.listen;
            tracing::warn!(
                "management port {listen} refuses clients at `{option}`, the last one from {from}{most} ({refused} since the last message)"
            );
        }
        None
    }

    fn failed(&self, error: &io::Error) {
        let listen = self.opened.listen;
        if sys::is_final_for_reading(error) {
            if let Some(times) = self.failures.note(Clock::mono_ns()) {
                tracing::error!(
                    "management port {listen} is closed: {error} ({times} attempts); listening again"
                );
            }
        } else if !sys::is_out_of_resources(error) {
            tracing::debug!("management: accept: {error}");
        } else if let Some(times) = self.failures.note(Clock::mono_ns()) {
            tracing::warn!(
                "cannot accept clients on {listen}: {error} ({times} attempts); they wait in the kernel. {}",
                descriptors::advice()
            );
        }
    }
}

/// The current plan's options for the port that was opened as `opened`: a reload may have changed them.
fn in_force(opened: &ManagementPlan, shared: &Shared) -> ManagementPlan {
    let wiring = shared.wiring.load();
    let same = wiring.plan.management.iter().find(|port| port.listen == opened.listen);
    same.unwrap_or(opened).clone()
}

struct Client {
    plan: ManagementPlan,
    shared: Arc<Shared>,
    peer: PeerKey,
    input: OwnedReadHalf,
    output: OwnedWriteHalf,
    slot: Arc<ConnectionSlot>,
}

/// Whether to keep the client.
#[derive(PartialEq, Eq)]
enum Next {
    Stay,
    Close,
}

/// The client's next action.
enum Said {
    /// It sent this many bytes; 0 at its end.
    Bytes(usize),
    /// Nothing until the timeout.
    Nothing,
}

impl Client {
    async fn serve(self) -> ClientEnd {
        let slot = Arc::clone(&self.slot);
        // A client that is asked to leave during a command is closed. Series deleted so far stay deleted.
        tokio::select! {
            biased;
            leave = slot.asked_to_leave() => leave.into(),
            ended = self.run() => ended.err().unwrap_or(ClientEnd::Orderly),
        }
    }

    /// Serves the client until it ends.
    async fn run(mut self) -> Result<(), ClientEnd> {
        let mut commands = Commands::new(COMMAND_BYTES_MAX);
        let mut first_line = Some(FirstLine::default());
        let mut buffer = [0; 4096];
        let mut patience = FIRST_COMMAND_MAX;
        loop {
            let held = commands.has_unterminated();
            let mut whole: Vec<Vec<u8>> = Vec::new();
            let mut ended = false;
            match self.hear(&mut buffer, if held { SILENCE } else { patience }).await? {
                Said::Nothing if held => whole.extend(commands.take_unterminated()),
                Said::Nothing => return Err(ClientEnd::Silent),
                Said::Bytes(len) => {
                    let said = &buffer[..len];
                    self.refuse_foreign(&mut first_line, said)?;
                    patience = IDLE;
                    ended = len == 0;
                    commands.push(said, |command| whole.push(command.to_vec()));
                    if ended {
                        whole.extend(commands.take_unterminated());
                    }
                }
            }
            for command in whole {
                let mut reply = Reply::new(&mut self.output, &self.slot);
                let asked = answers::Asked { plan: &self.plan, shared: &self.shared, peer: self.peer };
                let next = asked.answer(&command, &mut reply).await?;
                reply.finish().await?;
                if next == Next::Close {
                    return Ok(());
                }
            }
            if ended {
                return Ok(());
            }
        }
    }

    async fn hear(&mut self, buffer: &mut [u8], patience: Duration) -> Result<Said, ClientEnd> {
        self.slot.wait_begins(Clock::mono_ns());
        let said = tokio::time::timeout(patience, self.input.read(buffer)).await;
        self.slot.wait_ends();
        match said {
            Err(_elapsed) => Ok(Said::Nothing),
            Ok(Ok(len)) => Ok(Said::Bytes(len)),
            Ok(Err(error)) => {
                tracing::debug!("management client: {error}");
                Err(ClientEnd::Broken)
            }
        }
    }

    /// Closes a client whose first line is not a command: a web page may have made a browser send it.
    fn refuse_foreign(&self, first_line: &mut Option<FirstLine>, said: &[u8]) -> Result<(), ClientEnd> {
        let opening = first_line.as_mut().map_or(Opening::Lines, |first_line| first_line.push(said));
        let foreign = match opening {
            Opening::Undecided => return Ok(()),
            Opening::Lines => {
                *first_line = None;
                return Ok(());
            }
            Opening::Foreign(foreign) => foreign,
        };
        if self.shared.management_account.foreign.note(Clock::mono_ns()).is_some() {
            let from = self.input.peer_addr().map_or_else(|_| "a client".to_owned(), |from| from.to_string());
            let (_, what) = foreign.reason();
            tracing::warn!("management port {}: {from} began with {what} and was closed", self.plan.listen);
        }
        Err(foreign.into())
    }
}
