//! One output in the simulator: its queue, its real sender, and the simulated endpoint of the sender.
//!
//! Path of a packet: `World` appends a block -> queue -> the sender's `poll` returns an action -> it is done on the
//! peer -> the sender gets the result -> settled in the account. Complete arrivals are in the outlet's mailbox. The
//! daemon does the same with sockets and files (`staunch::outputs`); the senders make all decisions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{self, OutputKind, OutputPlan, StreamLink};
use deliver::datagram::{DatagramAction, DatagramSender};
use deliver::disk_queue::faulty_disk::FaultyDisk;
use deliver::disk_queue::{Position, Promise};
use deliver::file::{FileAction, FileSender};
use deliver::plan::{FilePlan, QueueLimits};
use deliver::queue::{Admission, Appended, Block, MemoryQueue, OutputQueue, Queue, Room};
use deliver::stream::{Action, CloseReason, StreamSender};
use deliver::{EndpointState, Status};
use model::{Now, OutputAccount};

use super::arrivals::{Arrival, Arrived, Reading};
use super::canary::Canary;
use super::peer::{Connecting, DatagramPeer, Disk, State, StreamPeer, Weather, Writing};
use super::stored::Stored;
use crate::random::Digest;

/// Most packets of one send, as in the daemon.
const PACKETS_MAX: usize = 64;

/// Most results that a sender may need before it waits. It is far above the needs of any sender, so a sender that
/// reaches it is in an endless loop.
const ANSWERS_MAX: usize = 1_000_000;

/// An output with its queue, sender and endpoint.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) name: String,
    pub(crate) account: Arc<OutputAccount>,
    pub(crate) queue: OutputQueue<FaultyDisk>,
    /// The disk of the queue, if it has one; or the unread disk of an earlier process.
    pub(crate) stored: Option<Stored>,
    /// The disk is not read: the queue is in memory now, or the output has no source any more.
    pub(crate) asleep: bool,
    /// Index of the outlet that continues with queue and endpoint.
    pub(crate) successor: Option<usize>,
    /// Its endpoint has failed, and its queued blocks may move to other members.
    pub(crate) failed: bool,
    /// Copies that are moving to other members.
    pub(crate) moving: u64,
    /// The output was removed.
    pub(crate) retired: bool,
    pub(crate) link: Link,
    pub(crate) mailbox: Vec<Arrival>,
    /// Arrivals to remove next.
    marked: usize,
    digest: Digest,
    canary: Option<Canary>,
    /// Only with a canary: the block that waits until the next one has overtaken it.
    held_back: Option<Block>,
    file_plan: FilePlan,
}

/// The sender and its endpoint.
#[derive(Debug)]
pub(crate) enum Link {
    Stream(Box<StreamSender>, StreamPeer),
    Datagram(Box<DatagramSender>, DatagramPeer),
    File(Box<FileSender>, Disk),
}

impl Link {
    /// Attempts that the endpoint rejected.
    pub(crate) fn attempts(&self) -> u64 {
        match self {
            Link::Stream(_, peer) => peer.attempts,
            Link::Datagram(_, peer) => peer.attempts,
            Link::File(_, disk) => disk.attempts,
        }
    }
}

impl Outlet {
    pub(crate) fn new(
        plan: &OutputPlan,
        account: &Arc<OutputAccount>,
        stored: Option<Stored>,
        (seed, canary): (u64, Option<Canary>),
        now: Now,
    ) -> Outlet {
        let reading = Reading::of(&plan.kind);
        let account = Arc::clone(account);
        let file_plan = file_plan(&plan.kind);
        let datagrams = |sender| {
            Link::Datagram(
                Box::new(DatagramSender::new(sender, Arc::clone(&account), seed)),
                DatagramPeer::new(),
            )
        };
        let link = match plan.kind.facts().link {
            plan::Link::Datagrams { sender, .. } => datagrams(sender),
            plan::Link::Stream(StreamLink { sender, .. }) => {
                let sender = canary.map_or(sender, |canary| canary.sender(sender));
                Link::Stream(
                    Box::new(StreamSender::new(sender, Arc::clone(&account), seed)),
                    StreamPeer::new(reading),
                )
            }
            // The lines that reach a store are checked like those of a file.
            plan::Link::Requests { .. }
            | plan::Link::File { .. }
            | plan::Link::Store(_)
            | plan::Link::Stdout
            | plan::Link::Stderr => Link::File(
                Box::new(FileSender::new(file_plan, Arc::clone(&account), seed)),
                Disk::new(reading),
            ),
        };
        let mut outlet = Outlet {
            name: plan.name.clone(),
            queue: OutputQueue::Memory(MemoryQueue::new(plan.queue, Arc::clone(&account))),
            account,
            asleep: false,
            successor: None,
            failed: false,
            moving: 0,
            retired: false,
            stored,
            link,
            mailbox: Vec::new(),
            marked: 0,
            digest: Digest::default(),
            canary,
            held_back: None,
            file_plan,
        };
        if plan.queue_kind.is_disk() && !plan.from.is_empty() {
            outlet.open(now);
        } else {
            outlet.asleep = outlet.stored.is_some();
        }
        outlet
    }

    /// An outlet of the same name continues with the queue on disk and the endpoint. This one ends at once.
    pub(crate) fn succeed(
        &mut self,
        plan: &OutputPlan,
        at: usize,
        seed: u64,
        now: Now,
    ) -> Result<Outlet, String> {
        if self.asleep {
            let account = Arc::clone(&self.account);
            let mut next = Outlet::new(plan, &account, self.stored.take(), (seed, self.canary), now);
            next.go_on_at(self);
            self.successor = Some(at);
            return Ok(next);
        }
        self.begin_stop(0);
        self.drive(now)?;
        self.finish_sender(now);
        let mut next = Outlet::new(plan, &self.account, None, (seed, self.canary), now);
        next.go_on_at(self);
        std::mem::swap(&mut next.queue, &mut self.queue);
        next.stored = self.stored.take();
        next.set_limits(plan.queue);
        self.successor = Some(at);
        Ok(next)
    }

    /// Uses the endpoint of another outlet, whose connection has ended.
    fn go_on_at(&mut self, before: &mut Outlet) {
        (self.mailbox, self.marked, self.digest) =
            (std::mem::take(&mut before.mailbox), std::mem::take(&mut before.marked), before.digest);
        match (&mut self.link, &mut before.link) {
            (Link::Stream(_, peer), Link::Stream(_, old)) => {
                old.end();
                std::mem::swap(peer, old);
            }
            (Link::Datagram(_, peer), Link::Datagram(_, old)) => std::mem::swap(peer, old),
            (Link::File(_, disk), Link::File(_, old)) => std::mem::swap(disk, old),
            _ => {}
        }
        self.collect();
    }

    /// The output has no source any more: it sends its queued data until `deadline_ns`, and ends.
    pub(crate) fn retire(&mut self, deadline_ns: u64) {
        if !std::mem::replace(&mut self.retired, true) {
            self.begin_stop(deadline_ns);
        }
    }

    /// Opens the queue on disk. If the process dies in that, the next one starts.
    fn open(&mut self, now: Now) {
        let Some(stored) = &mut self.stored else { return };
        let queue = stored.open(&self.account, now).or_else(|_died| {
            stored.die(false);
            stored.open(&self.account, now)
        });
        if let Ok(queue) = queue {
            self.queue = OutputQueue::Disk(Box::new(queue));
        }
    }

    /// A new process after a crash: endpoint and disk are kept, the connection and memory are lost.
    pub(crate) fn restart(&mut self, plan: &OutputPlan, account: &Arc<OutputAccount>, seed: u64, now: Now) {
        let mut fresh = Outlet::new(plan, account, self.stored.take(), (seed, self.canary), now);
        fresh.successor = self.successor;
        let Outlet { link, mailbox, marked, digest, .. } = std::mem::replace(self, fresh);
        (self.mailbox, self.marked, self.digest) = (mailbox, marked, digest);
        match (&mut self.link, link) {
            (Link::Stream(_, peer), Link::Stream(_, mut old)) => {
                old.end();
                *peer = old;
            }
            (Link::Datagram(_, peer), Link::Datagram(_, mut old)) => {
                old.restart();
                *peer = old;
            }
            (Link::File(_, disk), Link::File(_, mut old)) => {
                old.restart();
                *disk = old;
            }
            _ => {}
        }
        self.collect();
    }

    /// As in the daemon: room for a batch of a source that can wait.
    pub(crate) fn room(&mut self, bytes: u64, records: u64, now: Now) -> Room {
        if self.canary == Some(Canary::RoomNotReserved) {
            return if self.takes(bytes, records, now) { Room::Ample } else { Room::None };
        }
        let is_down = self.state().status == Status::Down;
        self.queue.room(bytes, records, || is_down, now)
    }

    /// The same, and no wait begins.
    pub(crate) fn takes(&mut self, bytes: u64, records: u64, now: Now) -> bool {
        if self.canary == Some(Canary::RoomNotReserved) {
            return self.account.copies_queued() == 0 || self.queue.has_room(bytes, records);
        }
        self.queue.takes_more(bytes, records, now)
    }

    /// New limits, as after a reload.
    pub(crate) fn set_limits(&mut self, limits: QueueLimits) {
        self.queue.set_limits(limits);
        if let Some(stored) = &mut self.stored {
            stored.set_limits(limits);
        }
    }

    /// Its queued data stays on disk: no sender reads it now, or the time of its sender is up.
    pub(crate) fn leaves_its_disk(&self) -> bool {
        self.asleep || (self.retired && self.stored.is_some())
    }

    /// Random small faults from now on.
    pub(crate) fn set_weather(&mut self, weather: Weather) {
        match &mut self.link {
            Link::Stream(_, peer) => peer.weather = Some(weather),
            Link::Datagram(_, peer) => peer.weather = Some(weather),
            Link::File(_, disk) => disk.weather = Some(weather),
        }
    }

    /// Appends a block. Returns whether it was accepted; `None` while a canary delays it.
    pub(crate) fn append(&mut self, mut block: Block, admission: Admission, now: Now) -> Option<bool> {
        let mut late = None;
        if let Some(canary) = self.canary {
            canary.before_append(&mut block);
            late = self.held_back.take();
            if late.is_none() && canary.holds_back(&block) {
                self.held_back = Some(block);
                return None;
            }
        }
        let kept = self.append_now(block, admission, now);
        if let Some(late) = late {
            self.append_now(late, admission, now);
        }
        Some(kept)
    }

    fn append_now(&mut self, block: Block, admission: Admission, now: Now) -> bool {
        let copies = u64::from(block.copies);
        let kept = self.queue.append_as(block, admission, now) == Appended::Kept;
        if let (false, Some(canary)) = (kept, self.canary) {
            canary.after_dropped(&self.account, copies);
        }
        kept
    }

    /// True when the queue is on disk and is read.
    pub(crate) fn is_read_from_disk(&self) -> bool {
        self.stored.is_some() && !self.asleep
    }

    /// Does the current work of the syncing thread. Returns when its next work is due (monotonic nanoseconds).
    ///
    /// # Errors
    /// When it never becomes idle.
    pub(crate) fn sync(&mut self, now: Now) -> Result<u64, String> {
        match (&mut self.stored, self.queue.on_disk()) {
            (Some(stored), Some(queue)) if !stored.disk.is_dead() => {
                stored.sync(queue, now).map_err(|why| format!("output `{}`: {why}", self.name))
            }
            _ => Ok(u64::MAX),
        }
    }

    /// The promise of an appended block.
    pub(crate) fn promise(&mut self, of: Position) -> Promise {
        let promise = self.queue.promise(of);
        self.canary.map_or(promise, |canary| canary.promise(promise))
    }

    /// True when the process has died in a call to this disk.
    pub(crate) fn is_dead(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.disk.is_dead())
    }

    /// Does the current work of the sender. Returns when its next work is due (monotonic nanoseconds).
    ///
    /// # Errors
    /// When the sender never becomes idle.
    pub(crate) fn drive(&mut self, now: Now) -> Result<u64, String> {
        if self.is_dead() {
            return Ok(u64::MAX);
        }
        let canary = self.canary;
        let wake_ns = match &mut self.link {
            Link::Stream(sender, peer) => drive_stream(sender, peer, &mut self.queue, canary, now),
            Link::Datagram(sender, peer) => drive_datagrams(sender, peer, &mut self.queue, now),
            Link::File(sender, disk) => {
                drive_file(sender, disk, &mut self.queue, self.file_plan.files_max, now)
            }
        };
        self.collect();
        self.note_failure();
        if self.retired && self.stopped() && self.successor.is_none() {
            self.finish_sender(now);
        }
        wake_ns.ok_or_else(|| format!("the sender of output `{}` is in an endless loop", self.name))
    }

    fn collect(&mut self) {
        let arrived: &mut VecDeque<Arrived> = match &mut self.link {
            Link::Stream(_, peer) => &mut peer.arrived,
            Link::Datagram(_, peer) => &mut peer.arrived,
            Link::File(_, disk) => &mut disk.arrived,
        };
        for what in arrived.drain(..) {
            self.digest.add(&what.bytes());
            self.mailbox.push(Arrival { what, seen: false });
        }
    }

    pub(crate) fn forget_arrivals(&mut self) {
        self.mailbox.drain(..std::mem::take(&mut self.marked));
    }

    pub(crate) fn mark_arrivals(&mut self) {
        self.marked = self.mailbox.len();
    }

    /// The wall second of the last failure, for `last_exception`.
    fn note_failure(&self) {
        if let Some((_, at)) = self.state().last_failure {
            self.account.last_error_s.store(at.wall_seconds(), Relaxed);
        }
    }

    /// The endpoint's state as the sender knows it.
    pub(crate) fn state(&self) -> EndpointState {
        match &self.link {
            Link::Stream(sender, _) => sender.state(),
            Link::Datagram(sender, _) => sender.state(),
            Link::File(sender, _) => sender.state(),
        }
    }

    /// Failover members replace the endpoint while it is down, but it is still tried.
    pub(crate) fn probe(&mut self) {
        if let Link::Stream(sender, _) = &mut self.link {
            sender.probe(true);
        }
    }

    /// Copies in the queue or with the sender.
    pub(crate) fn waiting(&self) -> u64 {
        let held = match &self.link {
            Link::Stream(sender, _) => sender.waiting_copies(),
            Link::Datagram(sender, _) => sender.waiting_copies(),
            Link::File(sender, _) => sender.waiting_copies(),
        };
        self.queue.copies() + self.moving + held
    }

    /// Fingerprint of all arrivals.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Sets the endpoint's state.
    ///
    /// # Errors
    /// When this kind of endpoint has no such state.
    pub(crate) fn set_state(&mut self, state: State, now: Now) -> Result<(), String> {
        match &mut self.link {
            Link::Stream(sender, peer) => {
                peer.state = state;
                if state == State::Down && peer.connected {
                    break_connection(sender, peer, CloseReason::Broken, now);
                }
            }
            Link::Datagram(sender, peer) => {
                peer.state = state;
                if state != State::Hang {
                    sender.on_writable();
                }
            }
            Link::File(_, disk) if state != State::Hang => disk.full = state == State::Down,
            Link::File(..) => return Err("a file can be `up` or `down`".into()),
        }
        Ok(())
    }

    /// Breaks the connection once `after` more bytes have been read; now, when that is 0.
    ///
    /// # Errors
    /// When there are no connections.
    pub(crate) fn cut(&mut self, after: u64, now: Now) -> Result<(), String> {
        let Link::Stream(sender, peer) = &mut self.link else {
            return Err("only a connection can be cut".into());
        };
        peer.cut_after = Some(after);
        if peer.is_cut() {
            break_connection(sender, peer, CloseReason::Broken, now);
        }
        Ok(())
    }

    /// The peer closes the connection in order.
    pub(crate) fn close_by_peer(&mut self, now: Now) {
        if let Link::Stream(sender, peer) = &mut self.link
            && peer.connected
        {
            break_connection(sender, peer, CloseReason::Peer, now);
        }
    }

    pub(crate) fn begin_stop(&mut self, deadline_ns: u64) {
        match &mut self.link {
            Link::Stream(sender, _) => sender.begin_stop(deadline_ns),
            Link::Datagram(sender, _) => sender.begin_stop(deadline_ns),
            Link::File(sender, _) => sender.begin_stop(deadline_ns),
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state().status == Status::Stopped
    }

    pub(crate) fn finish_stop(&mut self, now: Now) {
        self.finish_sender(now);
        if let (Some(stored), Some(queue)) = (&mut self.stored, self.queue.on_disk()) {
            stored.last_sync(queue);
        }
    }

    fn finish_sender(&mut self, now: Now) {
        match &mut self.link {
            Link::Stream(sender, _) => sender.finish_stop(&mut self.queue, now),
            Link::Datagram(sender, _) => sender.finish_stop(&mut self.queue, now),
            Link::File(sender, _) => sender.finish_stop(&mut self.queue, now),
        }
    }

    /// Lines that a rotation tore.
    pub(crate) fn torn(&self) -> u64 {
        match &self.link {
            Link::File(_, disk) => disk.torn(),
            Link::Stream(..) | Link::Datagram(..) => 0,
        }
    }
}

fn file_plan(kind: &OutputKind) -> FilePlan {
    match kind.facts().link {
        plan::Link::File { file_bytes_max, files_max, .. } => {
            FilePlan { file_bytes_max, files_max, ..FilePlan::default() }
        }
        plan::Link::Stream(_)
        | plan::Link::Datagrams { .. }
        | plan::Link::Requests { .. }
        | plan::Link::Store(_)
        | plan::Link::Stdout
        | plan::Link::Stderr => FilePlan::default(),
    }
}

/// Ends the connection: the last count of acknowledgements is used before the sender is notified.
fn break_connection(sender: &mut StreamSender, peer: &mut StreamPeer, why: CloseReason, now: Now) {
    if sender.in_flight_bytes() > 0 {
        sender.on_acked(peer.unacked(), now);
    }
    match why {
        CloseReason::Peer => peer.end_read(),
        _ => peer.end(),
    }
    sender.on_closed(why, now);
}

fn drive_stream(
    sender: &mut StreamSender,
    peer: &mut StreamPeer,
    queue: &mut OutputQueue<FaultyDisk>,
    canary: Option<Canary>,
    now: Now,
) -> Option<u64> {
    for _ in 0..ANSWERS_MAX {
        peer.read();
        if peer.is_cut() {
            break_connection(sender, peer, CloseReason::Broken, now);
        }
        if peer.connected && sender.in_flight_bytes() > 0 {
            let unacked = canary.map_or(peer.unacked(), |canary| canary.unacked(peer.unacked()));
            sender.on_acked(unacked, now);
        }
        match sender.poll(queue, now) {
            Action::Connect => match peer.connect() {
                Connecting::Made => sender.on_connected(now),
                Connecting::Refused => sender.on_connect_failed(now),
                Connecting::Silent => {}
            },
            Action::Write(bytes) => match peer.write(bytes) {
                Writing::Took(taken) => sender.on_written(taken, now),
                Writing::Full => return Some(sender.wake_ns().unwrap_or(u64::MAX)),
                Writing::Broken => break_connection(sender, peer, CloseReason::Broken, now),
            },
            Action::Close(_) => peer.end(),
            Action::WaitUntil(at_ns) if at_ns > now.mono_ns => return Some(at_ns),
            Action::WaitUntil(_) => {}
            Action::Idle => return Some(u64::MAX),
        }
    }
    None
}

fn drive_datagrams(
    sender: &mut DatagramSender,
    peer: &mut DatagramPeer,
    queue: &mut OutputQueue<FaultyDisk>,
    now: Now,
) -> Option<u64> {
    for _ in 0..ANSWERS_MAX {
        if let Some(error) = peer.take_refusal() {
            sender.on_error(error, now);
        }
        match sender.poll(queue, PACKETS_MAX, now) {
            DatagramAction::Open => sender.on_opened(now),
            DatagramAction::Send(packets) => {
                let (sent, error) = peer.send(packets.iter());
                if sent > 0 {
                    sender.on_sent(sent, now);
                }
                if let Some(error) = error {
                    sender.on_error(error, now);
                }
            }
            DatagramAction::WaitUntil(_) | DatagramAction::Idle => match sender.wake_ns() {
                Some(at_ns) if at_ns <= now.mono_ns => {}
                wake_ns => return Some(wake_ns.unwrap_or(u64::MAX)),
            },
        }
    }
    None
}

fn drive_file(
    sender: &mut FileSender,
    disk: &mut Disk,
    queue: &mut OutputQueue<FaultyDisk>,
    files_max: u32,
    now: Now,
) -> Option<u64> {
    for _ in 0..ANSWERS_MAX {
        match sender.poll(queue, now) {
            FileAction::Open => match disk.open() {
                Some((size, whole)) => sender.on_opened(size, whole, now),
                None => sender.on_error(now),
            },
            FileAction::Write(bytes) => match disk.append(bytes) {
                Some(written) => sender.on_written(written, now),
                None => sender.on_error(now),
            },
            FileAction::Rotate => {
                if disk.rotate(files_max) {
                    sender.on_rotated();
                } else {
                    sender.on_error(now);
                }
            }
            FileAction::Close => {}
            FileAction::WaitUntil(at_ns) if at_ns > now.mono_ns => return Some(at_ns),
            FileAction::WaitUntil(_) => {}
            FileAction::Idle => return Some(u64::MAX),
        }
    }
    None
}
