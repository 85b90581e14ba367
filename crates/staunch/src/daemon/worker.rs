//! The shard's thread: reads the datagram sockets, runs the shard, sleeps when there is nothing to do.
//!
//! Path of a packet: `PacketReader::receive` (recvmmsg into one arena) -> `Intake::datagrams` -> `Shard::push`; records
//! of connections come through the exchange. The shard's blocks go to the outlets. With more than one reader, separate
//! threads read the datagrams (`readers`), and this one takes their batches (`packets`).
//! In separate files: `handle` (calls from other threads), `waking`, `socket` and `socket::share` (how much of each
//! socket is read), `host` (queues and files for the turn), `stalls` (log lines about full queues), `stopping`, and
//! `handing_over` (a hot restart). Not here: connections and outputs (their own tasks), the turn itself and decisions about records
//! (`pipeline::Turn`).
//! Invariant: no call in the loop waits for anything except the sockets, the waker, the clock, and the disk of a queue:
//! its blocks are written here, by `Outlet::append`. A disk that does not answer stops this thread, and with it the
//! daemon.

mod handing_over;
mod handle;
mod host;
mod limits;
mod packets;
mod readers;
mod socket;
mod stalls;
mod stopping;
mod waking;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Now, OutputId, SourceId};
use pipeline::{Exchange, Host, Said, Shard, Turn, TurnLimits};
use streams::language::host::Level;
use tokio::sync::Notify;

use self::handle::TellEnd;
use self::limits::{BATCH_PACKETS, CHORES_EVERY_NS};
use self::readers::LOOK_PAUSE;
use self::socket::share::{self, Read, Round};
use self::socket::{ReadMemory, To};
use self::stalls::Stalls;
use crate::carbon_c_relay::log_targets::ORIGINAL_DEBUG;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::checkpoint::{LastCheckpoints, Saver};
use crate::daemon::outlet::Outlet;
use crate::daemon::shared::acks::AckRegistry;
use crate::daemon::shared::complaints::Complaints;
pub use handing_over::{HandedOver, PassedOn};
pub use handle::{Asking, QUESTIONS_MAX, Question, ShardHandle, Unanswered};
pub use readers::PacketReaders;
pub use readers::packet_thread::PacketHandle;
pub use socket::DatagramSocket;
pub use socket::reading::Reading;
pub use socket::senders::Senders;
pub use socket::share::Share;
use sys::clock::Clock;
use sys::{self, Gather, PacketReader, Rest, Watch};

/// Time in which relays search for unknown names before other sources, flushes and calls have their turn: once a round
/// for each datagram socket, and in the turn.
const SEARCH_MAX_NS: u64 = model::SECOND_NS / 200;

/// Everything the thread owns.
#[derive(Debug)]
pub struct Worker {
    /// The shard, and the turn around it.
    pub turn: Turn,
    /// Datagram sockets of all sources, with one reader.
    sockets: Vec<DatagramSocket>,
    /// With more than one reader: the threads that read them.
    readers: PacketReaders,
    /// Queues of the outputs, by output.
    pub outlets: Vec<Arc<Outlet>>,
    /// Called with each first bad line of a kind.
    pub complaints: Complaints,
    exchange: Arc<Exchange>,
    room: Arc<Notify>,
    acks: Arc<AckRegistry>,
    handle: ShardHandle,
    reader: PacketReader,
    gather: Gather,
    /// Lent to the sockets.
    memory: ReadMemory,
    chores_due_ns: u64,
    key_flushes: KeyFlushes,
    saver: Saver,
    handover: Arc<Handover>,
    /// The state of aggregations and notes before a last flush for another process.
    before_last: Option<(pipeline::BeforeLast, pipeline::checkpoints::Notes)>,
    ended: bool,
    /// Calls that were queued before the sockets were last read: they are answered after everything that had come
    /// before them.
    asked: usize,
    /// Another process may be continuing everything: nothing is read, ticked or appended.
    frozen: bool,
    stalls: Stalls,
    /// When the loop began, monotonic nanoseconds; 0 before.
    since_ns: u64,
    /// Time that it has slept.
    slept_ns: u64,
}

/// How the thread's loop spent its time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopTimes {
    /// At work.
    pub busy_ns: u64,
    /// Waiting for something to do.
    pub slept_ns: u64,
}

/// Reports of busy names, on their way to their file.
pub type KeyFlushes = tokio::sync::mpsc::Sender<KeyFlushReport>;

/// One report of busy names.
#[derive(Debug)]
pub struct KeyFlushReport {
    /// The counting transform.
    pub transform: model::TransformId,
    /// Names with their line counts, most first.
    pub names: pipeline::BusyNames,
    /// When.
    pub at: Now,
}

/// The parts of a worker.
#[derive(Debug)]
pub struct WorkerParts {
    /// The shard.
    pub shard: Shard,
    /// Datagram sockets of all sources.
    pub sockets: Vec<DatagramSocket>,
    /// Their readers; this thread, when there are none.
    pub readers: PacketReaders,
    /// Queues of the outputs.
    pub outlets: Vec<Arc<Outlet>>,
    /// Where complaints go.
    pub complaints: Complaints,
    /// From connections.
    pub exchange: Arc<Exchange>,
    /// Notified when the exchange has room.
    pub room: Arc<Notify>,
    /// Gets the waits of accepted batches.
    pub acks: Arc<AckRegistry>,
    /// Calls.
    pub handle: ShardHandle,
    /// Reports of busy names.
    pub key_flushes: KeyFlushes,
    /// Saves aggregations.
    pub saver: Saver,
    /// Where notes of flushes go.
    pub handover: Arc<Handover>,
}

/// The results of a worker that stops.
#[derive(Debug)]
pub struct Stopped {
    /// Checkpoints that have to be written.
    pub checkpoints: Option<LastCheckpoints>,
}

/// Logs a line of a Riemann config.
fn log_said(Said { transform, level, text }: &Said) {
    match level {
        Level::Trace => tracing::trace!("{transform}: {text}"),
        Level::Debug => tracing::debug!("{transform}: {text}"),
        Level::Info => tracing::info!("{transform}: {text}"),
        Level::Warn => tracing::warn!("{transform}: {text}"),
        Level::Error | Level::Fatal => tracing::error!("{transform}: {text}"),
    }
}

impl Worker {
    /// A worker that has not run yet.
    ///
    /// # Errors
    /// When there is no memory for the packets' arena.
    pub fn new(parts: WorkerParts) -> io::Result<Worker> {
        let WorkerParts { shard, sockets, outlets, complaints, exchange, room, acks, handle, .. } = parts;
        let WorkerParts { key_flushes, saver, handover, readers, .. } = parts;
        let mut worker = Worker {
            turn: Turn::new(shard, TurnLimits { search_ns: SEARCH_MAX_NS, ..TurnLimits::default() }),
            sockets: Vec::new(),
            readers,
            outlets,
            complaints,
            exchange,
            room,
            acks,
            handle,
            reader: PacketReader::new(BATCH_PACKETS)?,
            gather: Gather::default(),
            memory: ReadMemory::default(),
            chores_due_ns: 0,
            key_flushes,
            saver,
            handover,
            before_last: None,
            ended: false,
            asked: 0,
            frozen: false,
            stalls: Stalls::default(),
            since_ns: 0,
            slept_ns: 0,
        };
        worker.add_sockets(sockets);
        worker.watch();
        Ok(worker)
    }

    /// Runs until [`Self::end`].
    pub fn run(mut self) {
        let _ends_callers = TellEnd(self.handle.clone());
        self.since_ns = Clock::mono_ns();
        if !self.frozen {
            self.go_on_reading();
        }
        let mut got = Round::default();
        while !self.ended {
            self.run_jobs(got.packets > 0);
            if self.ended {
                return;
            }
            if self.frozen {
                if !self.has_jobs() {
                    self.rest_until_called();
                }
                continue;
            }
            self.note_questions();
            got = self.receive(SEARCH_MAX_NS);
            let now = Clock::now();
            got.more |= self.take_turn(now);
            self.run_chores(now);
            if !self.ended {
                self.rest(got, now);
            }
        }
    }

    /// How the loop has spent its time so far.
    pub fn times(&self) -> LoopTimes {
        let all_ns = if self.since_ns == 0 { 0 } else { Clock::mono_ns() - self.since_ns };
        LoopTimes { busy_ns: all_ns.saturating_sub(self.slept_ns), slept_ns: self.slept_ns }
    }

    /// Ends the loop after this turn.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// One turn over the sockets, or over the batches of the threads that read them: what came, and whether more may
    /// wait. Relays search for this long for each.
    fn receive(&mut self, search_max_ns: u64) -> Round {
        if !self.readers.is_none() {
            return self.take_packets(search_max_ns);
        }
        let Worker {
            turn: Turn { shard, routed, .. }, sockets, complaints, reader, memory, exchange, ..
        } = self;
        let read = |socket: &mut DatagramSocket| {
            let until_ns = Clock::mono_ns() + search_max_ns;
            let mut to = To { shard, routed, exchange, until_ns };
            if !socket.left.is_empty() && !socket.push_left(&mut to) {
                return Read::spent();
            }
            if !socket.reading.is_due(Clock::mono_ns) {
                return Read::default();
            }
            socket.read(reader, *complaints, memory, &mut to)
        };
        share::turn(sockets, |socket| &mut socket.share, read)
    }

    /// One turn of the shard, with the batches of connections. Returns whether more of these is left that no output
    /// blocks.
    fn take_turn(&mut self, now: Now) -> bool {
        let (turn, mut host, exchange) = self.parts();
        let taken = turn.run(exchange, &mut host, now);
        if taken.any {
            self.room.notify_waiters();
        }
        self.log_lines();
        taken.more
    }

    /// Counters and log lines that are not urgent.
    fn run_chores(&mut self, now: Now) {
        if now.mono_ns < self.chores_due_ns {
            return;
        }
        self.chores_due_ns = now.mono_ns + CHORES_EVERY_NS;
        self.count_drops();
        self.tell_complaints();
        self.stalls.log(&self.outlets, &self.turn.shard, now);
        for (transform, names) in self.turn.shard.key_flush(now) {
            // A full channel means that the previous report is still being written: this one is left out.
            let _full = self.key_flushes.try_send(KeyFlushReport { transform, names, at: now });
        }
    }

    /// Appends the shard's blocks to the outputs' queues.
    pub fn deliver(&mut self, now: Now) {
        let (turn, mut host, _) = self.parts();
        turn.append(host.outputs(), now);
        self.log_lines();
    }

    /// Logs the lines that relays log.
    fn log_lines(&mut self) {
        let routed = &mut self.turn.routed;
        routed.said.drain(..).for_each(|said| log_said(&said));
        for line in routed.invalid.drain(..) {
            // The original's words, which people look for (spec graphite §2.4).
            tracing::warn!("dropping metric due to validation error: {}", line.escape_ascii());
        }
        for line in routed.untimed.drain(..) {
            let line = line.escape_ascii();
            tracing::warn!(target: ORIGINAL_DEBUG, "aggregator: dropping incorrect metric: {line}");
        }
    }

    /// Outlets report the state of their endpoints, if these can fail over.
    fn watch(&self) {
        for (at, outlet) in self.outlets.iter().enumerate() {
            let output = OutputId(at as u16);
            outlet.watch(self.turn.shard.failover_delay(output), self.handle.notify_live(output));
        }
    }

    fn tell_complaints(&mut self) {
        let Worker { sockets, complaints, .. } = self;
        sockets.iter_mut().for_each(|socket| socket.tell_rest(*complaints));
    }

    /// Reads the kernel's drop counts into the accounts.
    pub fn count_drops(&self) {
        self.sockets.iter().for_each(DatagramSocket::count_drops);
        self.count_drops_elsewhere(None);
    }

    /// The same of some sources only.
    pub fn count_drops_of(&self, sources: &[SourceId]) {
        let theirs = self.sockets.iter().filter(|socket| sources.contains(&socket.source));
        theirs.for_each(DatagramSocket::count_drops);
        self.count_drops_elsewhere(Some(sources));
    }

    /// Applies a new plan: aggregations keep their state.
    pub fn reconfigure(
        &mut self,
        plan: &config::plan::Plan,
        accounts: &pipeline::Accounts,
        outlets: Vec<Arc<Outlet>>,
    ) {
        let now = Clock::now();
        self.turn.reconfigure(plan, accounts, now);
        // Blocks of the old encoders go to the queues they were made for; ids keep their meaning.
        self.outlets = outlets;
        self.deliver(now);
        self.watch();
        self.saver.follow(plan, &mut self.turn, now);
    }

    fn rest_until_called(&mut self) {
        // Every call wakes the thread, so nothing is missed; the time-out is a safeguard.
        if let Err(error) =
            sys::wait_readable(&mut [Watch::new(&*self.handle.waking.waker)], Some(model::SECOND_NS))
        {
            tracing::error!("cannot wait for calls: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.handle.waking.waker.drain();
    }

    /// Nothing to do: lets packets gather after some came, otherwise sleeps until something comes or is due.
    fn rest(&mut self, got: Round, now: Now) {
        if self.turn.continues(now) {
            return;
        }
        // After a full turn it goes on at once; after a few packets it lets more of them gather.
        match self.gather.after(got.packets, got.more) {
            Rest::Never => return,
            Rest::Nap(nap) => {
                let since_ns = Clock::mono_ns();
                std::thread::sleep(nap);
                self.slept_ns += Clock::mono_ns() - since_ns;
                return;
            }
            Rest::UntilReadable => {}
        }
        if self.has_jobs() {
            if self.readers.is_looking() {
                std::thread::sleep(LOOK_PAUSE);
            }
            return;
        }
        self.handle.waking.asleep.store(true, Relaxed);
        // Set before the exchange is looked at once more: a sender either sees it or is seen.
        let look_ns = self.turn.look_ns();
        let idle = (look_ns != u64::MAX || self.exchange.is_empty()) && !self.exchange.has_packets();
        if idle {
            let until_ns = self.turn.due_ns(now).min(look_ns).min(self.chores_due_ns);
            let until_ns = self.sockets.iter().map(|socket| socket.reading.due_ns()).fold(until_ns, u64::min);
            let mut watches: Vec<Watch<'_>> = Vec::with_capacity(self.sockets.len() + 1);
            watches.push(Watch::new(&*self.handle.waking.waker));
            let watched = self.sockets.iter().filter(|socket| socket.reading.is_watched());
            watches.extend(watched.map(|socket| Watch::new(&*socket.fd)));
            let since_ns = Clock::mono_ns();
            if let Err(error) = sys::wait_readable(&mut watches, Some(until_ns.saturating_sub(now.mono_ns))) {
                tracing::error!("cannot wait for packets: {error}");
                std::thread::sleep(Duration::from_millis(100));
            }
            self.slept_ns += Clock::mono_ns() - since_ns;
        }
        self.handle.waking.asleep.store(false, Relaxed);
        self.handle.waking.waker.drain();
    }
}
