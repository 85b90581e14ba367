//! The listeners of a plan: opened together, then passed to the worker (datagrams) or to tasks (connections).

pub mod socket_files;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use config::plan::{Listen, Plan, SourcePlan};
use model::SourceId;
use pipeline::{Accounts, IntakeMaker, Shard};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::daemon::hot_restart::Inheritance;
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::{self, Bound, ShortBuffer, SocketFile, bind};
use crate::daemon::shared::complaints::complain;
use crate::daemon::shared::names::shown;
use crate::daemon::worker::{DatagramSocket, Reading, Senders, Share};
use crate::kernel::{Drops, Kernel, SocketOpened};
use crate::sources::accept::{Before, accept};
use crate::sources::listener::{Order, StreamSource};
use crate::sources::parked::Parked;
use sys::OwnedFd;

/// An open listener that is not served yet.
#[derive(Debug)]
pub struct Opened {
    /// Its source.
    pub source: SourceId,
    /// Its address in the plan.
    pub listen: Listen,
    /// Its actual address: port 0 has become a number.
    pub at: Listen,
    /// The socket, until it is used.
    pub bound: Option<Bound>,
    /// Its number among the sockets of the old process, if it is from there.
    pub inherited: Option<usize>,
    /// More sockets at the same address, for more readers of datagrams.
    pub siblings: Vec<Sibling>,
}

/// Another socket at the address of a listener.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// Shared with the thread that reads it.
    pub fd: Arc<OwnedFd>,
    /// As [`Opened::inherited`].
    pub inherited: Option<usize>,
}

impl Sibling {
    fn new(fd: OwnedFd) -> Sibling {
        Sibling { fd: Arc::new(fd), inherited: None }
    }
}

/// Opens every listener of `plan` that is not in `already` (source name and address). Also returns one sentence for
/// each that could not be opened; with the built-in plan these are logged as warnings instead. Sockets from another
/// process are used instead of opened. A UDP address gets a socket for each of the `readers`; an inherited address keeps
/// its sockets, see [`Listeners::add_siblings`].
pub fn open(
    plan: &Plan,
    already: &[(String, Listen)],
    mut from: Option<&mut Inheritance>,
    readers: usize,
) -> (Vec<Opened>, Vec<String>) {
    let mut opened = Vec::new();
    let mut failures = Vec::new();
    for (at, source) in plan.sources.iter().enumerate() {
        for listen in &source.listen {
            if already.iter().any(|(name, place)| *name == source.name && place == listen) {
                continue;
            }
            let taken = from.as_deref_mut().and_then(|from| from.take_listener(&source.name, listen));
            let bound = match taken {
                Some((number, fd)) => inherited(fd, listen, source.receive_buffer_bytes)
                    .map(|(bound, short)| (bound, short, Some(number))),
                None => bind(listen, source.receive_buffer_bytes)
                    .map(|(bound, short)| (bound, short, None))
                    .map_err(|error| error.to_string()),
            };
            match bound {
                Ok((bound, short, inherited)) => {
                    if let Some(short) = short {
                        warn_short_buffer(listen, short);
                    }
                    let siblings = match (inherited, from.as_deref_mut()) {
                        (Some(_), Some(from)) => taken_siblings(from, source, listen),
                        _ => new_siblings(&bound, listen, 1, readers, source.receive_buffer_bytes),
                    };
                    opened.push(Opened {
                        source: SourceId(at as u16),
                        listen: listen.clone(),
                        at: bound.place(listen),
                        bound: Some(bound),
                        inherited,
                        siblings,
                    });
                }
                Err(error) if plan.built_in => tracing::warn!(
                    "{error}; continuing without it (`staunch run FILE` listens where FILE says: \
                     `[sources.{}]`, `type = \"statsd\"`, `listen = [\"udp://127.0.0.1:9125\"]`)",
                    source.name
                ),
                Err(error) => failures.push(error),
            }
        }
    }
    (opened, failures)
}

/// The further sockets of a UDP listener of another process: all of them, so that no packet that waits there is lost.
fn taken_siblings(from: &mut Inheritance, source: &SourcePlan, listen: &Listen) -> Vec<Sibling> {
    if !matches!(listen, Listen::Udp(_)) {
        return Vec::new();
    }
    let taken = std::iter::from_fn(|| from.take_listener(&source.name, listen));
    let checked = taken.filter_map(|(number, fd)| match inherited(fd, listen, source.receive_buffer_bytes) {
        Ok((Bound::Datagram(fd), _)) => Some(Sibling { inherited: Some(number), ..Sibling::new(fd) }),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!("{error}");
            None
        }
    });
    checked.collect()
}

/// As many more sockets for a UDP address that has `had` as `readers` need. Without them fewer threads read it, which is slower and
/// no reason to fail. Systems other than Linux do not deal packets out.
fn new_siblings(
    bound: &Bound,
    listen: &Listen,
    had: usize,
    readers: usize,
    receive_buffer_bytes: u64,
) -> Vec<Sibling> {
    let mut siblings = Vec::new();
    let (Bound::Datagram(first), Listen::Udp(_), true) = (bound, listen, cfg!(target_os = "linux")) else {
        return siblings;
    };
    while had + siblings.len() < readers {
        match bind::sibling(first, receive_buffer_bytes) {
            Ok(fd) => siblings.push(Sibling::new(fd)),
            Err(error) => {
                let (place, has) = (shown(listen), had + siblings.len());
                tracing::warn!(
                    "{place} is read by {has} of {readers} readers: cannot open more sockets: {error}"
                );
                break;
            }
        }
    }
    siblings
}

#[cfg(target_os = "linux")]
fn inherited(
    fd: OwnedFd,
    listen: &Listen,
    receive_buffer_bytes: u64,
) -> Result<(Bound, Option<ShortBuffer>), String> {
    bind::inherit(fd, listen, receive_buffer_bytes)
        .map_err(|error| format!("cannot continue with the socket of {}: {error}", shown(listen)))
}

#[cfg(not(target_os = "linux"))]
fn inherited(_: OwnedFd, listen: &Listen, _: u64) -> Result<(Bound, Option<ShortBuffer>), String> {
    Err(format!("cannot continue with the socket of {} on this system", shown(listen)))
}

fn warn_short_buffer(listen: &Listen, short: ShortBuffer) {
    let ShortBuffer { asked, granted } = short;
    tracing::warn!(
        "{}: the kernel granted a receive buffer of {granted} bytes, not {asked}: packets may be dropped in bursts \
         (counted as kernel_dropped); to allow it: sysctl -w net.core.rmem_max={asked}",
        shown(listen)
    );
}

/// The intake makers of each source.
pub fn makers(plan: &Plan, shard: &Shard, accounts: &Accounts) -> Vec<IntakeMaker> {
    (0..plan.sources.len()).map(|at| shard.intakes(plan, SourceId(at as u16), accounts)).collect()
}

/// The datagram sockets in `opened`, for the worker.
///
/// # Errors
/// When a socket cannot be shared with the worker.
pub fn datagram_sockets(
    plan: &Plan,
    opened: &[Opened],
    makers: &[IntakeMaker],
    accounts: &Accounts,
    kernel: &Kernel,
    drops: &dyn Fn(usize) -> Drops,
) -> io::Result<Vec<DatagramSocket>> {
    let mut sockets = Vec::new();
    for listener in opened {
        let Some(Bound::Datagram(fd)) = &listener.bound else { continue };
        let first = Sibling { inherited: listener.inherited, ..Sibling::new(fd.try_clone()?) };
        let all = [&first].into_iter().chain(&listener.siblings);
        let parts = SocketParts { plan, makers, accounts, kernel };
        let place = (listener.source, &listener.listen, &listener.at);
        sockets.extend(all.enumerate().map(|(number, sibling)| {
            let before = sibling.inherited.map(drops).unwrap_or_default();
            parts.socket(place, (number, &sibling.fd), before)
        }));
    }
    Ok(sockets)
}

/// What a datagram socket needs.
struct SocketParts<'a> {
    plan: &'a Plan,
    makers: &'a [IntakeMaker],
    accounts: &'a Accounts,
    kernel: &'a Kernel,
}

impl SocketParts<'_> {
    /// The socket with a number at a place: `listen` in the plan, and really `at`.
    fn socket(
        &self,
        (source, listen, at): (SourceId, &Listen, &Listen),
        (number, fd): (usize, &Arc<OwnedFd>),
        before: Drops,
    ) -> DatagramSocket {
        let account = self.accounts.source(source);
        let opened = SocketOpened {
            source,
            listen: shown(at),
            account: Arc::clone(account),
            buffer_wanted_bytes: self.plan.sources[source.index()].receive_buffer_bytes,
            measured: matches!(at, Listen::Udp(_)),
            before,
        };
        DatagramSocket {
            left: VecDeque::new(),
            source,
            listen: listen.clone(),
            number,
            gauge: self.kernel.open(opened, fd),
            fd: Arc::clone(fd),
            intake: self.makers[source.index()].make(),
            account: Arc::clone(account),
            reading: Reading::default(),
            share: Share::default(),
            senders: Senders::default(),
        }
    }
}

/// A served listener.
#[derive(Debug)]
struct Served {
    source: String,
    listen: Listen,
    file: Option<SocketFile>,
    at: Listen,
    /// The socket, for another process or another task.
    bound: Bound,
    /// More sockets at the same address.
    siblings: Vec<Arc<OwnedFd>>,
    stop: watch::Sender<Order>,
    /// `None` for datagram sockets, which the worker reads.
    task: Option<Accepting>,
    /// Paused connections that another process may continue.
    parked: Vec<Parked>,
}

impl Served {
    fn unlink(&self) {
        self.file.iter().for_each(SocketFile::unlink);
    }
}

/// A task that accepts connections, and the channel for its plan. It returns paused connections at its end.
type Accepting = (watch::Sender<StreamSource>, JoinHandle<Vec<Parked>>);

/// A listener that another process may go on with.
#[derive(Clone, Copy, Debug)]
pub struct Passable<'a> {
    /// Its source.
    pub source: &'a str,
    /// Where the plan says that it listens.
    pub listen: &'a Listen,
    /// Where it really listens.
    pub at: &'a Listen,
    /// The socket.
    pub bound: &'a Bound,
    /// More sockets at the same address.
    pub siblings: &'a [Arc<OwnedFd>],
}

/// All served listeners.
#[derive(Debug, Default)]
pub struct Listeners {
    served: Vec<Served>,
    /// Listeners whose file was deleted or replaced, the oldest first: new ones listen at their paths, and these keep
    /// their clients.
    replaced: VecDeque<Served>,
}

/// Most listeners without their file. Above this, the oldest one ends.
const REPLACED_MAX: usize = 8;

impl Listeners {
    /// Starts a task for each listener of connections, with the connections that `adopt` returns for its number among
    /// the sockets of another process; stores the others.
    ///
    /// # Errors
    /// When the runtime cannot register a socket.
    pub fn serve(
        opened: Vec<Opened>,
        plan: &Plan,
        makers: &[IntakeMaker],
        shared: &Arc<Shared>,
        mut adopt: impl FnMut(usize, &StreamSource) -> Vec<Parked>,
    ) -> io::Result<Listeners> {
        let mut listeners = Listeners::default();
        for listener in opened {
            let source = stream_source(plan, listener.source, &listener.listen, makers, shared);
            let parked = listener.inherited.map(|number| adopt(number, &source)).unwrap_or_default();
            listeners.add_one(listener, source, parked, shared)?;
        }
        Ok(listeners)
    }

    /// Adds listeners that a reload has opened.
    ///
    /// # Errors
    /// As [`Self::serve`].
    pub fn add(
        &mut self,
        opened: Vec<Opened>,
        plan: &Plan,
        makers: &[IntakeMaker],
        shared: &Arc<Shared>,
    ) -> io::Result<()> {
        for listener in opened {
            let source = stream_source(plan, listener.source, &listener.listen, makers, shared);
            self.add_one(listener, source, Vec::new(), shared)?;
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        listener: Opened,
        source: StreamSource,
        parked: Vec<Parked>,
        shared: &Arc<Shared>,
    ) -> io::Result<()> {
        let Opened { listen, at, bound: Some(bound), siblings, .. } = listener else { return Ok(()) };
        let siblings = siblings.into_iter().map(|sibling| sibling.fd).collect();
        let name = source.plan.name.clone();
        let (stop, task) = task(bound.try_clone()?, source, shared, Before { parked, busy: None });
        let file = SocketFile::of(&listen);
        let parked = Vec::new();
        self.served.push(Served { source: name, listen, file, at, bound, siblings, stop, task, parked });
        Ok(())
    }

    /// What another process may go on with.
    pub fn passable(&self) -> impl Iterator<Item = Passable<'_>> {
        self.served.iter().map(|served| Passable {
            source: &served.source,
            listen: &served.listen,
            at: &served.at,
            bound: &served.bound,
            siblings: &served.siblings,
        })
    }

    /// Opens the further sockets that `readers` need for listeners that came from another process. Not before that process has
    /// ended its part: packets would wait in sockets that nobody reads if it went on after all.
    pub fn add_siblings(
        &mut self,
        plan: &Plan,
        readers: usize,
        makers: &[IntakeMaker],
        accounts: &Accounts,
        kernel: &Kernel,
    ) -> Vec<DatagramSocket> {
        let parts = SocketParts { plan, makers, accounts, kernel };
        let mut sockets = Vec::new();
        for served in &mut self.served {
            let Some(at) = plan.sources.iter().position(|source| source.name == served.source) else {
                continue;
            };
            let had = 1 + served.siblings.len();
            let buffer_bytes = plan.sources[at].receive_buffer_bytes;
            let new = new_siblings(&served.bound, &served.listen, had, readers, buffer_bytes);
            let place = (SourceId(at as u16), &served.listen, &served.at);
            for (number, Sibling { fd, .. }) in (had..).zip(new) {
                sockets.push(parts.socket(place, (number, &fd), Drops::default()));
                served.siblings.push(fd);
            }
        }
        sockets
    }

    /// Pauses the connections: those of listeners that are `passed` for another process, the others when their received
    /// data is read. False when one of them was not done in time.
    pub async fn come_to_rest(&mut self, passed: &dyn Fn(&str, &Listen) -> bool, at_most: Duration) -> bool {
        for served in &self.served {
            let order = if passed(&served.source, &served.listen) { Order::HandOver } else { Order::Empty };
            served.stop.send_replace(order);
        }
        // Another process could not find them, so they end in any case.
        self.replaced.iter().for_each(|served| _ = served.stop.send_replace(Order::Empty));
        let at_rest = async {
            while let Some(served) = self.replaced.front_mut() {
                if let Some((_, task)) = &mut served.task {
                    // See below.
                    let _ended = task.await;
                }
                self.replaced.pop_front();
            }
            for served in &mut self.served {
                if let Some((_, task)) = &mut served.task {
                    // A task that panicked has logged it. Cancel-safe: a handle can be awaited again.
                    served.parked = task.await.unwrap_or_default();
                }
                served.task = None;
            }
        };
        tokio::time::timeout(at_most, at_rest).await.is_ok()
    }

    /// Removes the paused connections, each with the index of its listener in [`Self::places`].
    pub fn take_parked(&mut self) -> Vec<(usize, Parked)> {
        let all = self.served.iter_mut().enumerate();
        all.flat_map(|(at, served)| served.parked.drain(..).map(move |parked| (at, parked))).collect()
    }

    /// Returns removed connections to their listeners.
    pub fn put_back(&mut self, taken: Vec<(usize, Parked)>) {
        taken.into_iter().for_each(|(at, parked)| self.served[at].parked.push(parked));
    }

    /// Continues connections after [`Self::come_to_rest`], beginning with listener `next`, which is incremented: after
    /// a failure, a retry continues there.
    ///
    /// # Errors
    /// When this process may not open another descriptor now.
    pub fn serve_again(
        &mut self,
        next: &mut usize,
        plan: &Plan,
        makers: &[IntakeMaker],
        shared: &Arc<Shared>,
    ) -> io::Result<()> {
        for served in self.served.iter_mut().skip(*next) {
            if let Some(at) = plan.sources.iter().position(|source| source.name == served.source) {
                // First, because it may fail.
                let bound = served.bound.try_clone()?;
                let source = stream_source(plan, SourceId(at as u16), &served.listen, makers, shared);
                let busy = served.task.take().map(|(_, busy)| busy);
                let before = Before { parked: std::mem::take(&mut served.parked), busy };
                (served.stop, served.task) = task(bound, source, shared, before);
            }
            *next += 1;
        }
        Ok(())
    }

    /// Releases everything: another process has the sockets. Those that are not `passed` end here.
    pub fn leave(self, passed: &dyn Fn(&str, &Listen) -> bool) {
        let ended = self.served.iter().filter(|served| !passed(&served.source, &served.listen));
        ended.for_each(|served| served.unlink());
    }

    /// Source name and address of every listener.
    pub fn places(&self) -> Vec<(String, Listen)> {
        self.served.iter().map(|served| (served.source.clone(), served.listen.clone())).collect()
    }

    /// The files of unix sockets.
    pub fn files(&self) -> Vec<SocketFile> {
        self.served.iter().filter_map(|served| served.file.clone()).collect()
    }

    /// Source name and address of the listener with that file.
    pub fn with_file(&self, file: &SocketFile) -> Option<(String, Listen)> {
        let served = self.served.iter().find(|served| served.file.as_ref() == Some(file))?;
        Some((served.source.clone(), served.listen.clone()))
    }

    /// A new listener has replaced the one with that file, which keeps its clients. True for a datagram socket, which
    /// has no clients and must be closed.
    pub fn replace(&mut self, file: &SocketFile) -> bool {
        let Some(at) = self.served.iter().position(|served| served.file.as_ref() == Some(file)) else {
            return false;
        };
        let replaced = self.served.remove(at);
        if replaced.task.is_none() {
            return true;
        }
        self.replaced.push_back(replaced);
        if self.replaced.len() > REPLACED_MAX {
            let oldest = self.replaced.pop_front();
            oldest.iter().for_each(|oldest| _ = oldest.stop.send_replace(Order::Stop));
        }
        false
    }

    /// The daemon's listeners: served ones and those in `opened`.
    pub fn really_at(&self, opened: &[Opened]) -> Vec<Listen> {
        let served = self.served.iter().map(|served| &served.at);
        served.chain(opened.iter().map(|new| &new.at)).cloned().collect()
    }

    /// The listeners of each source of `plan` as texts: served ones and those in `opened`.
    pub fn listening(&self, plan: &Plan, opened: &[Opened]) -> Vec<Vec<String>> {
        let served = self.served.iter().map(|served| (served.source.as_str(), &served.listen, &served.at));
        let new =
            opened.iter().map(|new| (plan.sources[new.source.index()].name.as_str(), &new.listen, &new.at));
        let all: Vec<_> = served.chain(new).collect();
        let of_source = |source: &SourcePlan| {
            let here = |place: &&Listen| {
                all.iter()
                    .find(|(name, listen, _)| *name == source.name && listen == place)
                    .map(|(_, _, at)| shown(at))
            };
            source.listen.iter().filter_map(|place| here(&place)).collect()
        };
        plan.sources.iter().map(of_source).collect()
    }

    /// Updates the plan of every kept listener, and stops those that `plan` no longer has. Returns the addresses of
    /// datagram sockets to close.
    pub fn update(
        &mut self,
        plan: &Plan,
        makers: &[IntakeMaker],
        shared: &Arc<Shared>,
    ) -> Vec<(SourceId, Listen)> {
        let mut gone = Vec::new();
        let mut stays = |served: &Served| {
            let source = plan.sources.iter().position(|source| source.name == served.source);
            let kept = source.filter(|at| plan.sources[*at].listen.contains(&served.listen));
            match (kept, &served.task) {
                (Some(at), Some((update, _))) => {
                    let id = SourceId(at as u16);
                    update.send_replace(stream_source(plan, id, &served.listen, makers, shared));
                }
                (Some(_), None) => {}
                (None, task) => {
                    served.stop.send_replace(Order::Stop);
                    served.unlink();
                    if let (None, Some(at)) = (task, source) {
                        gone.push((SourceId(at as u16), served.listen.clone()));
                    }
                }
            }
            kept.is_some()
        };
        self.replaced.retain(&mut stays);
        self.served.retain(&mut stays);
        gone
    }

    /// Stops accepting, and lets the connections pass on their data, for at most this long.
    ///
    /// May be called again for those that were not done in time.
    pub async fn stop(&mut self, at_most: Duration) {
        self.served.extend(self.replaced.drain(..));
        for served in &self.served {
            served.stop.send_replace(Order::Stop);
        }
        let ended = async {
            while let Some(served) = self.served.last_mut() {
                if let Some((_, task)) = &mut served.task {
                    // A task that panicked has logged it. Cancel-safe: a handle can be awaited again.
                    let _ended = task.await;
                }
                served.unlink();
                self.served.pop();
            }
        };
        if tokio::time::timeout(at_most, ended).await.is_err() {
            tracing::warn!("connections are still busy while the daemon stops");
        }
    }
}

/// The task that accepts connections at `bound`; `None` for datagrams, which the worker reads.
fn task(
    bound: Bound,
    source: StreamSource,
    shared: &Arc<Shared>,
    before: Before,
) -> (watch::Sender<Order>, Option<Accepting>) {
    let (stop, ordered) = watch::channel(Order::Serve);
    if matches!(bound, Bound::Datagram(_)) {
        return (stop, None);
    }
    let shown = shown(&source.listen);
    let (update, updates) = watch::channel(source);
    let serve = accept(bound, updates, Arc::clone(shared), ordered, before);
    let task = tokio::spawn(async move {
        let served = serve.await;
        served.unwrap_or_else(|error| {
            tracing::error!("cannot serve {shown}: {error}");
            Vec::new()
        })
    });
    (stop, Some((update, task)))
}

fn stream_source(
    plan: &Plan,
    id: SourceId,
    listen: &Listen,
    makers: &[IntakeMaker],
    shared: &Arc<Shared>,
) -> StreamSource {
    let wiring = shared.wiring.load();
    StreamSource {
        tls: wiring.certificates.of_source(id),
        plan: Arc::new(plan.sources[id.index()].clone()),
        listen: listen.clone(),
        account: Arc::clone(wiring.accounts.source(id)),
        intake: makers[id.index()].clone(),
        complaints: complain,
    }
}
