//! The new process: sends the request, uses the sockets of its plan, and confirms.
//!
//! Everything that can fail comes before [`Inheritance::taken`]: until then the old process has lost nothing.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use config::plan::{Listen, Plan};
use deliver::disk_queue::Unsettled;
use deliver::queue::QueuedBlock;
use model::{OutputId, SECOND_NS};
use pipeline::{Kept, Unfinished};

use super::Handed;
use super::handed::HandedConnection;
use super::link::{CONTROL_FILE, Link, LinkError};
use super::message::{Connection, Message, OutputName, Place, Role, VERSION};
use super::output_name::name_of;
use crate::admin::port_kind::PortKind;
use crate::daemon::shared::names::shown;
use crate::kernel::Drops;
use sys::clock::Clock;
use sys::{AsFd, OwnedFd, pass, socket_memory};

/// Timeout for the offer. Another hot restart may be in progress, and this one is next.
const OFFER_WITHIN_NS: u64 = 30 * SECOND_NS;

/// Timeout between `Ready` and the complete state, in addition to the configured time.
const YOURS_WITHIN_NS: u64 = 60 * SECOND_NS;

/// Timeout for sending the last message.
const TAKEN_WITHIN_NS: u64 = 5 * SECOND_NS;

/// Longest wait for the end of a process that has closed the connection without a message.
const DEAD_WITHIN: Duration = Duration::from_secs(5);

/// Pause before another request, when the other process has just ended.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The message of a new process that must end.
const CANNOT: &str = "hot restart failed; the running process continues";

/// The offer of another process.
#[derive(Debug)]
pub struct Inheritance {
    link: Link,
    pid: u32,
    /// That process, where the system can watch it.
    process: Option<OwnedFd>,
    sockets: Vec<Passed>,
    outputs: Vec<OutputName>,
    /// The service manager's watchdog interval.
    watchdog: Option<Duration>,
    begun_ns: u64,
    /// The other process has ended.
    died: bool,
}

/// A socket of the other process.
#[derive(Debug)]
struct Passed {
    place: Place,
    fd: OwnedFd,
    taken: bool,
}

/// Sends a request to the running process with the same data directory. `None` without such a process.
///
/// # Errors
/// When it rejects the request, or its messages are invalid. It then continues unchanged.
pub fn ask(data_dir: &Path) -> anyhow::Result<Option<Inheritance>> {
    let path = data_dir.join(CONTROL_FILE);
    let deadline_ns = Clock::mono_ns() + OFFER_WITHIN_NS;
    loop {
        let link = match Link::connect(&path) {
            Ok(link) => link,
            Err(error) if nobody(&error) => {
                tracing::info!("hot restart: no running process at {}; starting normally", path.display());
                return Ok(None);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot connect to {}", path.display())),
        };
        match offer(link, deadline_ns) {
            // It may just have been replaced, or stopped: the current process is asked.
            Err(LinkError::Closed) => std::thread::sleep(ASK_AGAIN),
            Err(error) => return Err(error).context(CANNOT),
            Ok(inheritance) => return Ok(Some(inheritance)),
        }
    }
}

fn nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn offer(mut link: Link, deadline_ns: u64) -> Result<Inheritance, LinkError> {
    let (peer, own_uid) = (link.peer(), pass::own_uid());
    if peer.uid != own_uid && own_uid != 0 {
        let why = format!("process {} belongs to another user", peer.pid);
        return Err(LinkError::Refused { why });
    }
    let begun_ns = Clock::mono_ns();
    let program = env!("CARGO_PKG_VERSION").to_owned();
    link.send(&Message::Hello { version: VERSION, program }, deadline_ns)?;
    let mut sockets = Vec::new();
    loop {
        match link.receive(deadline_ns)? {
            Message::Sockets(places) => {
                for place in places {
                    let fd = link.take_descriptor().ok_or(LinkError::OutOfTurn)?;
                    sockets.push(Passed { place, fd, taken: false });
                }
            }
            Message::Offered { program, pid, outputs, watchdog_us } => {
                tracing::info!("hot restart: replacing process {pid} (staunch {program})");
                let watchdog = (watchdog_us > 0).then(|| Duration::from_micros(watchdog_us));
                return Ok(Inheritance {
                    link,
                    pid,
                    // If it has ended already, the closed connection shows that.
                    process: pass::process(pid).ok(),
                    sockets,
                    outputs,
                    watchdog,
                    begun_ns,
                    died: false,
                });
            }
            Message::Refused { why } => return Err(LinkError::Refused { why }),
            _ => return Err(LinkError::OutOfTurn),
        }
    }
}

impl Inheritance {
    /// The service manager's watchdog interval, as the other process knows it.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The socket of a listener: the one with the same source and address, otherwise one with that actual address.
    pub fn take_listener(&mut self, source: &str, listen: &Listen) -> Option<(usize, OwnedFd)> {
        let text = shown(listen);
        let same = |place: &Place| place.source == source && place.listen == text;
        self.take(Role::Source, same).or_else(|| self.take(Role::Source, |place| place.at == text))
    }

    /// The listener of one of our own ports.
    pub fn take_port(&mut self, kind: PortKind, address: SocketAddr) -> Option<TcpListener> {
        let role = match kind {
            PortKind::Http => Role::Http,
            PortKind::Management => Role::Management,
            PortKind::CarbonLink => Role::CarbonLink,
        };
        let text = address.to_string();
        let (_, fd) = self.take(role, |place| place.listen == text || place.at == text)?;
        let listener = TcpListener::from(fd);
        listener.set_nonblocking(true).is_ok().then_some(listener)
    }

    /// The control socket.
    pub fn take_control(&mut self) -> Option<UnixListener> {
        let (_, fd) = self.take(Role::Control, |_| true)?;
        Some(UnixListener::from(fd))
    }

    /// The lock of the data directory.
    pub fn take_lock(&mut self) -> Option<File> {
        let (_, fd) = self.take(Role::Lock, |_| true)?;
        Some(File::from(fd))
    }

    fn take(&mut self, role: Role, wanted: impl Fn(&Place) -> bool) -> Option<(usize, OwnedFd)> {
        let mut known = self.sockets.iter_mut().enumerate();
        let (number, passed) =
            known.find(|(_, passed)| !passed.taken && passed.place.role == role && wanted(&passed.place))?;
        let fd = passed.fd.try_clone().ok()?;
        passed.taken = true;
        Some((number, fd))
    }

    /// Reports that everything in `plan` is open, and waits for the other process's state. If that process dies
    /// meanwhile, its state is lost, and the sockets are ours.
    ///
    /// # Errors
    /// When the other process continues, or must not be disturbed. It then continues unchanged.
    pub fn hand_over(&mut self, plan: &Plan) -> anyhow::Result<Handed> {
        let listens = |passed: &Passed| passed.place.role == Role::Source;
        let (mut theirs, mut ours) = (self.sockets.iter().filter(|passed| listens(passed)).peekable(), 0);
        if theirs.peek().is_some() {
            ours = theirs.filter(|passed| passed.taken).count();
            anyhow::ensure!(
                ours > 0,
                "process {} listens on no address of this config: it is another daemon with the same data directory, and \
                 continues; set another `data_dir` for one of them",
                self.pid
            );
        }
        let outputs: Vec<(usize, OutputId)> = plan
            .outputs
            .iter()
            .enumerate()
            .filter_map(|(at, output)| {
                let name = name_of(output);
                let known = self.outputs.iter().position(|known| *known == name)?;
                Some((known, OutputId(at as u16)))
            })
            .collect();
        tracing::info!(
            "hot restart: {ours} of its sockets and {} of its outputs continue in this process",
            outputs.len()
        );
        let kept = Kept::of(plan);
        let timeout_ns = plan.hot_restart_timeout_ms * 1_000_000;
        match self.receive_all(&outputs, kept, Clock::mono_ns() + YOURS_WITHIN_NS + timeout_ns) {
            Ok(handed) => Ok(handed),
            Err(LinkError::Closed) => {
                self.ensure_dead()?;
                tracing::warn!(
                    "process {} died during the hot restart: continuing with its sockets and its files on disk",
                    self.pid
                );
                self.died = true;
                Ok(self.after_death())
            }
            Err(error) => Err(error).context(CANNOT),
        }
    }

    /// A live process sends a reason before it closes the connection; only a dead one's sockets are ours.
    fn ensure_dead(&self) -> anyhow::Result<()> {
        let dead = self.process.as_ref().is_none_or(|process| pass::ended_within(process, DEAD_WITHIN));
        anyhow::ensure!(dead, "{CANNOT}: process {} closed the connection without a message", self.pid);
        Ok(())
    }

    fn receive_all(
        &mut self,
        outputs: &[(usize, OutputId)],
        kept: Kept,
        deadline_ns: u64,
    ) -> Result<Handed, LinkError> {
        let taken = self.sockets.iter().enumerate().filter(|(_, passed)| passed.taken);
        let sockets = taken.map(|(number, _)| number as u32).collect();
        let numbers = outputs.iter().map(|(known, _)| *known as u32).collect();
        let ready = Message::Ready { sockets, outputs: numbers, kept };
        match self.link.send(&ready, deadline_ns) {
            // It has closed the connection after its reason, or is dead.
            Ok(()) | Err(LinkError::Closed) => {}
            Err(error) => return Err(error),
        }
        let mut handed = Handed { owns_queues: false, ..Handed::nothing() };
        loop {
            match self.link.receive(deadline_ns)? {
                Message::Account { owner, name, figures } => handed.accounts.push((owner, name, figures)),
                Message::Drops { socket, seen, dropped } => {
                    handed.drops.push((socket as usize, Drops { seen, counted: dropped }));
                }
                Message::State { transform, len } => {
                    handed.states.push((transform, self.link.receive_parts(len, deadline_ns)?));
                }
                Message::Left { output, len } => {
                    let bytes = self.link.receive_parts(len, deadline_ns)?;
                    let (_, id) = outputs
                        .iter()
                        .find(|(known, _)| *known == output as usize)
                        .ok_or(LinkError::OutOfTurn)?;
                    let left = QueuedBlock::decode(&bytes, Clock::mono_ns()).ok_or(LinkError::OutOfTurn)?;
                    handed.left.push((*id, left));
                }
                Message::Unsettled { output, len } => {
                    let bytes = self.link.receive_parts(len, deadline_ns)?;
                    let unsettled = Unsettled::decode(&bytes).ok_or(LinkError::OutOfTurn)?;
                    handed.unsettled.push((output, unsettled));
                }
                Message::Connections(connections) => {
                    self.receive_connections(connections, outputs, &mut handed.connections, deadline_ns)?
                }
                Message::Yours { paused_ns } => {
                    tracing::debug!("everything is here");
                    handed.paused_ns = Some(paused_ns);
                    return Ok(handed);
                }
                Message::Refused { why } => return Err(LinkError::Refused { why }),
                _ => return Err(LinkError::OutOfTurn),
            }
        }
    }

    fn receive_connections(
        &mut self,
        connections: Vec<Connection>,
        outputs: &[(usize, OutputId)],
        to: &mut Vec<HandedConnection>,
        deadline_ns: u64,
    ) -> Result<(), LinkError> {
        let len = connections.iter().fold(0_u64, |sum, connection| sum.saturating_add(connection.len));
        let bytes = self.link.receive_parts(len, deadline_ns)?;
        let mut rest = &bytes[..];
        let known = |number: u32| outputs.iter().find(|(known, _)| *known == number as usize);
        for Connection { socket, len, discarding, acks, outputs } in connections {
            let (bytes, after) = rest.split_at_checked(len as usize).ok_or(LinkError::OutOfTurn)?;
            rest = after;
            let fd = self.link.take_descriptor().ok_or(LinkError::OutOfTurn)?;
            let unfinished = Unfinished { bytes: bytes.to_vec(), discarding, acks };
            let outputs = outputs.into_iter().map(|number| known(number).map(|(_, id)| *id));
            let outputs = outputs.collect::<Option<_>>().ok_or(LinkError::OutOfTurn)?;
            to.push(HandedConnection { socket: socket as usize, fd, unfinished, outputs });
        }
        Ok(())
    }

    /// Without the old counts: the kernel's drops so far belong to another process.
    fn after_death(&self) -> Handed {
        let now = |passed: &Passed| Drops {
            seen: socket_memory(passed.fd.as_fd()).map_or(0, |memory| memory.drops),
            counted: 0,
        };
        let drops = self.sockets.iter().enumerate().map(|(number, passed)| (number, now(passed)));
        Handed { drops: drops.collect(), ..Handed::nothing() }
    }

    /// Sends the reason for a failure here: the other process continues. Returns the error for this one's log.
    pub fn give_up(mut self, error: anyhow::Error) -> anyhow::Error {
        let deadline_ns = Clock::mono_ns() + TAKEN_WITHIN_NS;
        // It also continues without this message.
        let _heard = self.link.send(&Message::Refused { why: format!("{error:#}") }, deadline_ns);
        error.context(CANNOT)
    }

    /// Sends the last message, after which nothing may fail.
    ///
    /// # Errors
    /// When the other process has reached its timeout and continues.
    pub fn taken(mut self) -> anyhow::Result<()> {
        let deadline_ns = Clock::mono_ns() + TAKEN_WITHIN_NS;
        let pid = self.pid;
        if self.died {
            return Ok(());
        }
        match self.link.send(&Message::Taken, deadline_ns) {
            Ok(()) => {}
            Err(LinkError::Closed) => match self.link.receive(deadline_ns) {
                Ok(Message::Refused { why }) => bail!("hot restart failed: {why}; process {pid} continues"),
                Err(LinkError::Closed) => {
                    self.ensure_dead()?;
                    tracing::warn!("process {pid} died after it had handed over everything");
                }
                _ => bail!("hot restart failed; process {pid} continues"),
            },
            Err(error) => return Err(error).context(CANNOT),
        }
        let took_ms = (Clock::mono_ns() - self.begun_ns) / 1_000_000;
        tracing::info!("hot restart done: replaced process {pid} after {took_ms} ms");
        Ok(())
    }
}
