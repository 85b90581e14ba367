//! The StatsD management port (spec statsd §11): existing health checks and scripts work unchanged.
//!
//! Path of a command: [`accept`](mod@accept) -> [`Client::run`] -> `wire::management` -> `answers`: a call to the shard -> `Reply`.
//! Not here: the commands (`answers`), dumps page by page (`dump`), writing (`reply`).
//! Invariant: a client holds one command, one piece of a reply and one page of a dump, for any command, and even if it
//! does not read.

mod answers;
mod delete;
mod dump;
mod reply;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::plan::ManagementPlan;
use model::PeerKey;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use wire::first_line::{FirstLine, Opening};
use wire::management::{COMMAND_BYTES_MAX, Commands};

use self::reply::Reply;
use crate::admin::accept::{self, Port};
use crate::admin::clients::{ClientAccount, ClientEnd};
use crate::admission::{ConnectionSlot, Limits, peer_key};
use crate::daemon::shared::Shared;
use sys::clock::Clock;

/// After this silence, a command without LF is executed, because some health checkers send no LF.
const SILENCE: Duration = Duration::from_millis(50);

/// Timeout for the first command.
const FIRST_COMMAND_MAX: Duration = Duration::from_secs(30);

/// Timeout for further commands.
const IDLE: Duration = Duration::from_secs(600);

/// A management port.
struct Opened {
    plan: ManagementPlan,
    shared: Arc<Shared>,
}

/// Serves until `stop` turns true.
pub async fn serve(
    listener: TcpListener,
    plan: ManagementPlan,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
) {
    accept::accept(listener, Opened { plan, shared }, stop).await;
}

impl Port for Opened {
    fn name(&self) -> String {
        format!("management port {}", self.plan.listen)
    }

    fn limits(&self) -> Limits {
        let plan = in_force(&self.plan, &self.shared);
        let all = plan.connections_max.min(accept::descriptors_of_port(&self.shared));
        Limits { all, per_peer: plan.connections_per_peer_max() }
    }

    fn account(&self) -> &Arc<ClientAccount> {
        &self.shared.management_account.clients
    }

    fn serve(
        &self,
        stream: TcpStream,
        from: IpAddr,
        slot: Arc<ConnectionSlot>,
    ) -> impl Future<Output = ClientEnd> + Send + 'static {
        let (input, output) = stream.into_split();
        let (plan, shared) = (in_force(&self.plan, &self.shared), Arc::clone(&self.shared));
        Client { plan, shared, peer: peer_key(Some(from)), input, output, slot }.serve()
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
