//! The shard's thread: reads the datagram sockets, runs the shard, sleeps when there is nothing to do.
//!
//! Path of a packet: `PacketReader::receive` (recvmmsg into one arena) -> `Intake::datagrams` ->
//! `Shard::push`; records of connections come through the exchange. What the shard gives goes to the outlets.
//! In files of their own: `handle` (calls from other threads), `socket`, `share` (how much each socket gives), `batches` (what came on connections), `moving`
//! (what waits for endpoints that are down), and `handing_over` (a hot restart).
//! Not here: connections and outputs (tasks of their own), and decisions about records (`pipeline`).
//! Invariant: no call in the loop waits for anything but the sockets, the waker, the clock, and the disk of a queue: its blocks
//! are written here, by `Outlet::append`. A disk that does not answer stops this thread, and with it the daemon.

mod batches;
mod handing_over;
mod handle;
mod moving;
mod reading;
mod senders;
mod share;
mod socket;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::Listen;
use model::{Now, OutputId, SourceId};
use pipeline::{Complaint, Exchange, Moves, Routed, Scratch, Shard};
use tokio::sync::Notify;

use self::batches::BLOCKED_PAUSE_NS;
use self::handle::TellEnd;
use self::share::{Read, Turn};
use self::socket::To;
use crate::carbon_c_relay::log_targets::ORIGINAL_DEBUG;
use crate::daemon::acks::AckRegistry;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::checkpoint::{LastCheckpoints, Saver};
use crate::daemon::outlet::{Admission, Outlet};
use crate::kernel::BATCH_BOUNDS;
pub use handing_over::{HandedOver, PassedOn};
pub use handle::{Asking, QUESTIONS_MAX, Question, ShardHandle, Unanswered};
pub use reading::Reading;
pub use senders::Senders;
pub use share::Share;
pub use socket::{DatagramSocket, peer, shown};
use sys::clock::Clock;
use sys::{self, Gather, PacketReader, Rest, Watch};

/// Datagrams that one system call takes at most.
const BATCH_PACKETS: usize = 64;
const _: () =
    assert!(BATCH_PACKETS <= BATCH_BOUNDS[BATCH_BOUNDS.len() - 1], "the last class holds every call");

/// Series that a sweep visits between two looks at the sockets: some tens of microseconds.
const SWEEP_SERIES: usize = 512;

/// A flush waits for outputs that have more than this waiting although their endpoints take what they get …
const SWEEP_AHEAD_BYTES_MAX: u64 = 4 << 20;

/// … and have taken something within this time …
const PROGRESS_WITHIN_NS: u64 = model::SECOND_NS / 50;

/// … but never longer than this, so that no endpoint delays a flush.
const SWEEP_WAIT_MAX_NS: u64 = model::SECOND_NS;

/// Longest time that the last emptying of the sockets takes: what fits into the largest receive buffer, and nothing
/// comes in behind it.
const LAST_READ_MAX_NS: u64 = model::SECOND_NS;

/// Time in which relays search for names that they do not know before other sources, flushes and questions have their
/// turn: once for what came on connections, and once a round for each datagram socket.
const SEARCH_MAX_NS: u64 = model::SECOND_NS / 200;

/// How often the kernel's drop counts are read and reports of busy names are looked for, in nanoseconds.
const CHORES_EVERY_NS: u64 = model::SECOND_NS;

/// Everything the thread owns.
#[derive(Debug)]
pub struct Worker {
    /// The shard.
    pub shard: Shard,
    /// Datagram sockets of all sources.
    pub sockets: Vec<DatagramSocket>,
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
    routed: Routed,
    /// Lent to the intakes of the sockets.
    scratch: Scratch,
    due_ns: u64,
    chores_due_ns: u64,
    lines_due_ns: u64,
    /// Batches wait in the exchange for room in a queue.
    blocked: bool,
    blocked_pause_ns: u64,
    /// When to look for room again.
    blocked_until_ns: u64,
    /// What moves from outputs that are down to those that stand in for them.
    moves: Moves,
    /// When there is more to move.
    moves_due_ns: u64,
    sweep_waits_since_ns: Option<u64>,
    key_flushes: KeyFlushes,
    saver: Saver,
    handover: Arc<Handover>,
    /// Flushes that have been noted.
    flushes_told: u64,
    /// How aggregations and notes were before a last flush for another process.
    before_last: Option<(pipeline::BeforeLast, pipeline::checkpoints::Notes)>,
    ended: bool,
    /// Questions that were there before the sockets were last read: they are answered with what had come before them.
    asked: usize,
    /// Outputs whose queues keep what comes past their bound.
    unbounded: Vec<OutputId>,
    /// Another process may be going on with everything: nothing is read, ticked or appended.
    frozen: bool,
    /// By output: bytes that its endpoint had taken when last looked at, and when that last changed.
    progress: Vec<(u64, u64)>,
    /// By output: a source has been waiting for room in its queue.
    stalled: Vec<bool>,
    /// Outputs of which the log has said that a source waits for them.
    stalls_told: Vec<usize>,
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

/// Where complaints about bad lines go, with who sent them.
pub type Complaints = fn(complaint: &Complaint, from: &str);

/// Reports of busy names, on their way to their file.
pub type KeyFlushes = tokio::sync::mpsc::Sender<KeyFlushReport>;

/// One report of busy names.
#[derive(Debug)]
pub struct KeyFlushReport {
    /// Transform that counted.
    pub transform: model::TransformId,
    /// Names with their line counts, most first.
    pub names: pipeline::BusyNames,
    /// When.
    pub at: Now,
}

/// What a worker is made of.
#[derive(Debug)]
pub struct WorkerParts {
    /// The shard.
    pub shard: Shard,
    /// Datagram sockets of all sources.
    pub sockets: Vec<DatagramSocket>,
    /// Queues of the outputs.
    pub outlets: Vec<Arc<Outlet>>,
    /// Where complaints go.
    pub complaints: Complaints,
    /// From connections.
    pub exchange: Arc<Exchange>,
    /// Told when the exchange has room.
    pub room: Arc<Notify>,
    /// Who is told what need not be kept.
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

/// What a worker leaves when it stops.
#[derive(Debug)]
pub struct Stopped {
    /// Checkpoints that are to be written.
    pub checkpoints: Option<LastCheckpoints>,
}

impl Worker {
    /// A worker that has not run yet.
    ///
    /// # Errors
    /// When there is no memory for the packets' arena.
    pub fn new(parts: WorkerParts) -> io::Result<Worker> {
        let WorkerParts { shard, sockets, outlets, complaints, exchange, room, acks, handle, .. } = parts;
        let WorkerParts { key_flushes, saver, handover, .. } = parts;
        let worker = Worker {
            shard,
            sockets,
            outlets,
            complaints,
            exchange,
            room,
            acks,
            handle,
            reader: PacketReader::new(BATCH_PACKETS)?,
            gather: Gather::default(),
            routed: Routed::default(),
            scratch: Scratch::default(),
            due_ns: 0,
            chores_due_ns: 0,
            lines_due_ns: u64::MAX,
            blocked: false,
            blocked_pause_ns: BLOCKED_PAUSE_NS,
            blocked_until_ns: 0,
            moves: Moves::default(),
            moves_due_ns: u64::MAX,
            sweep_waits_since_ns: None,
            key_flushes,
            saver,
            handover,
            flushes_told: 0,
            before_last: None,
            ended: false,
            asked: 0,
            unbounded: Vec::new(),
            frozen: false,
            progress: Vec::new(),
            stalled: Vec::new(),
            stalls_told: Vec::new(),
            since_ns: 0,
            slept_ns: 0,
        };
        worker.watch();
        Ok(worker)
    }

    /// Runs until [`Self::end`].
    pub fn run(mut self) {
        let _told_at_the_end = TellEnd(self.handle.clone());
        self.since_ns = Clock::mono_ns();
        let mut got = Turn::default();
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
            got.more |= self.take_exchange(now);
            self.tick(now);
            self.deliver(now);
            self.move_on(now);
            self.tell_flushes();
            self.saver.turn(&mut self.shard, now);
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

    /// One turn over the sockets: what came, and whether more may wait. Relays search so long for what each gives.
    fn receive(&mut self, search_max_ns: u64) -> Turn {
        let Worker { shard, sockets, complaints, reader, routed, scratch, exchange, .. } = self;
        let read = |socket: &mut DatagramSocket| {
            let until_ns = Clock::mono_ns() + search_max_ns;
            let mut to = To { shard, routed, exchange, scratch, until_ns };
            if !socket.left.is_empty() && !socket.push_left(&mut to) {
                return Read::spent();
            }
            if !socket.reading.is_due(Clock::mono_ns) {
                return Read::default();
            }
            let packets = match socket.receive(reader) {
                Ok(packets) => packets,
                Err(error) => {
                    socket.note_failure(&error);
                    return Read::default();
                }
            };
            socket.reading.works();
            if packets.spans.is_empty() {
                return Read::default();
            }
            let bytes = packets.spans.iter().map(|span| span.len as usize).sum();
            let read = Read { packets: packets.spans.len(), bytes, more: packets.more };
            socket.gauge.count_batch(read.packets);
            socket.take(&packets, *complaints, &mut to);
            if socket.left.is_empty() { read } else { Read { packets: read.packets, ..Read::spent() } }
        };
        share::turn(sockets, |socket| &mut socket.share, read)
    }

    fn tick(&mut self, now: Now) {
        if (now.mono_ns >= self.due_ns || self.shard.has_results()) && !self.waits_for_outputs(now) {
            let until_ns = Clock::mono_ns() + SEARCH_MAX_NS;
            let go_on = &mut || Clock::mono_ns() < until_ns;
            self.due_ns = self.shard.tick_while(now, SWEEP_SERIES, &mut self.routed, go_on);
        }
        if self.due_ns > now.mono_ns {
            self.shard.close_blocks(now, &mut self.routed);
        }
        self.lines_due_ns = self.shard.close_due(now, &mut self.routed);
        if now.mono_ns >= self.chores_due_ns {
            self.chores_due_ns = now.mono_ns + CHORES_EVERY_NS;
            self.count_drops();
            self.tell_complaints();
            self.tell_stalls(now);
            for (transform, names) in self.shard.key_flush(now) {
                // A full channel means that the report before is still being written: this one is left out.
                let _full = self.key_flushes.try_send(KeyFlushReport { transform, names, at: now });
            }
        }
    }

    /// True while a flush should wait a little for an endpoint that is taking what it gets. One that takes nothing is
    /// never waited for.
    fn waits_for_outputs(&mut self, now: Now) -> bool {
        self.progress.resize(self.outlets.len(), (0, 0));
        let mut ahead = false;
        for (outlet, (taken, changed_ns)) in self.outlets.iter().zip(&mut self.progress) {
            let taken_now = outlet.account.bytes_delivered();
            if std::mem::replace(taken, taken_now) != taken_now {
                *changed_ns = now.mono_ns;
            }
            let takes = now.mono_ns - *changed_ns < PROGRESS_WITHIN_NS;
            ahead |= takes && outlet.bytes() > SWEEP_AHEAD_BYTES_MAX;
        }
        if !ahead {
            self.sweep_waits_since_ns = None;
            return false;
        }
        let since = *self.sweep_waits_since_ns.get_or_insert(now.mono_ns);
        now.mono_ns - since < SWEEP_WAIT_MAX_NS
    }

    /// Appends what the shard gave to the outputs' queues.
    pub fn deliver(&mut self, now: Now) {
        self.deliver_admitted(&[], now);
    }

    /// The same, of a batch that these outputs had room for: they keep what became of it.
    fn deliver_admitted(&mut self, admitted: &[OutputId], now: Now) {
        for (output, block) in self.routed.blocks.drain(..) {
            let is_granted = admitted.contains(&output) || self.unbounded.contains(&output);
            let admission = if is_granted { Admission::Granted } else { Admission::Bounded };
            let _place = self.outlets[output.index()].append_as(block, admission, now);
        }
        for line in self.routed.invalid.drain(..) {
            // The original's words, which people look for (spec graphite §2.4).
            tracing::warn!("dropping metric due to validation error: {}", line.escape_ascii());
        }
        for line in self.routed.untimed.drain(..) {
            let line = line.escape_ascii();
            tracing::warn!(target: ORIGINAL_DEBUG, "aggregator: dropping incorrect metric: {line}");
        }
    }

    /// Notes the flushes that have ended: their blocks are in the queues.
    fn tell_flushes(&mut self) {
        let flushes = self.shard.flushes();
        if std::mem::replace(&mut self.flushes_told, flushes) != flushes {
            self.shard.last_told().for_each(|(name, note)| self.handover.note(name, note));
        }
    }

    /// Empties the sockets. A flood into those that stay open does not keep us. What a turn gave is in the queues before the
    /// next one: all that waits in the kernel, unfolded at once, could be gigabytes.
    fn last_read(&mut self) {
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        while self.receive(SEARCH_MAX_NS).brought() && Clock::mono_ns() < until_ns {
            self.deliver(Clock::now());
        }
    }

    /// Reads what is still in the sockets although there is no time for it, so that it is counted.
    fn read_to_count(&mut self) {
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        while self.receive(0).brought() && Clock::mono_ns() < until_ns {
            self.drop_left();
            self.deliver(Clock::now());
        }
        self.drop_left();
    }

    /// From now on, queues on disk that connections wait for keep what was read of those past their bound, as long as the disk
    /// takes it: the daemon stops, and nobody would come back with it.
    fn keep_past_bounds(&mut self) {
        let on_disk = |id: &OutputId| self.outlets[id.index()].disk().is_some();
        self.unbounded = self.shard.waited_for().filter(on_disk).collect();
    }

    /// Closes the datagram sockets at these places of sources; what they have received still counts.
    pub fn close_sockets(&mut self, gone: &[(SourceId, Listen)]) {
        let goes = |socket: &DatagramSocket| {
            gone.iter().any(|(source, listen)| *source == socket.source && *listen == socket.listen)
        };
        self.sockets.iter().filter(|socket| goes(socket)).for_each(DatagramSocket::refuse_more);
        self.last_read();
        let Worker { shard, routed, exchange, scratch, sockets, .. } = self;
        let mut to = To { shard, routed, exchange, scratch, until_ns: 0 };
        sockets.iter_mut().filter(|socket| goes(socket)).for_each(|socket| socket.finish_left(&mut to));
        self.tell_complaints();
        self.sockets.retain(|socket| {
            socket.count_drops();
            !goes(socket)
        });
        self.deliver(Clock::now());
    }

    fn tell_complaints(&mut self) {
        let Worker { sockets, complaints, .. } = self;
        sockets.iter_mut().for_each(|socket| socket.tell_rest(*complaints));
    }

    /// Reads the kernel's drop counts into the accounts.
    pub fn count_drops(&self) {
        for socket in &self.sockets {
            socket.count_drops();
        }
    }

    /// The same of some sources only.
    pub fn count_drops_of(&self, sources: &[SourceId]) {
        let theirs = self.sockets.iter().filter(|socket| sources.contains(&socket.source));
        theirs.for_each(DatagramSocket::count_drops);
    }

    /// The last flush: empties the sockets and the exchange, closes every window, hands everything on. Relays search for names
    /// that they do not know up to `until_ns` (monotonic): lines that need that later are dropped as `stopped`.
    pub fn stop(&mut self, until_ns: u64) -> Stopped {
        // What waits is still taken. Nothing comes behind it that would be neither read nor counted.
        self.sockets.iter().for_each(DatagramSocket::refuse_more);
        self.last_read();
        let now = Clock::now();
        self.exchange.close();
        self.deliver(now);
        self.keep_past_bounds();
        self.take_all_until(until_ns);
        self.drop_left();
        // Who waits for room need not.
        self.room.notify_waiters();
        self.read_to_count();
        self.tell_complaints();
        self.count_drops();
        self.shard.stop_while(now, &mut self.routed, &mut || Clock::mono_ns() < until_ns);
        self.deliver(now);
        self.tell_flushes();
        self.end_moves();
        self.end();
        Stopped { checkpoints: self.saver.last(&mut self.shard, now) }
    }

    /// Takes a new plan: aggregations keep their state.
    pub fn reconfigure(
        &mut self,
        plan: &config::plan::Plan,
        accounts: &pipeline::Accounts,
        outlets: Vec<Arc<Outlet>>,
    ) {
        let now = Clock::now();
        self.shard.reconfigure(plan, accounts, now, &mut self.routed);
        // Blocks of the old encoders go to the queues they were made for; ids keep their meaning.
        self.outlets = outlets;
        self.deliver(now);
        self.watch();
        self.saver.follow(plan, &mut self.shard, now);
        self.due_ns = 0;
    }

    fn rest_until_called(&mut self) {
        // Every call wakes, so there is nothing to be missed; the time-out is for what nobody thought of.
        if let Err(error) = sys::wait_readable(&mut [Watch::new(&*self.handle.waker)], Some(model::SECOND_NS))
        {
            tracing::error!("cannot wait for calls: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.handle.waker.drain();
    }

    /// Nothing to do: lets packets gather after some came, otherwise sleeps until something comes or is due.
    fn rest(&mut self, got: Turn, now: Now) {
        if self.moves_due_ns <= now.mono_ns {
            return;
        }
        if self.due_ns <= now.mono_ns {
            if self.sweep_waits_since_ns.is_some() && got.packets == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
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
            return;
        }
        self.handle.asleep.store(true, Relaxed);
        // Set before the exchange is looked at once more: a sender either sees it or is seen.
        let idle = self.blocked || self.exchange.is_empty();
        if idle {
            let look_ns = if self.blocked { self.blocked_until_ns } else { u64::MAX };
            let until_ns = self.due_ns.min(self.chores_due_ns).min(self.lines_due_ns).min(look_ns);
            let until_ns = until_ns.min(self.saver.due_ns()).min(self.moves_due_ns);
            let until_ns = self.sockets.iter().map(|socket| socket.reading.due_ns()).fold(until_ns, u64::min);
            let mut watches: Vec<Watch<'_>> = Vec::with_capacity(self.sockets.len() + 1);
            watches.push(Watch::new(&*self.handle.waker));
            let watched = self.sockets.iter().filter(|socket| socket.reading.is_watched());
            watches.extend(watched.map(|socket| Watch::new(&socket.fd)));
            let since_ns = Clock::mono_ns();
            if let Err(error) = sys::wait_readable(&mut watches, Some(until_ns.saturating_sub(now.mono_ns))) {
                tracing::error!("cannot wait for packets: {error}");
                std::thread::sleep(Duration::from_millis(100));
            }
            self.slept_ns += Clock::mono_ns() - since_ns;
        }
        self.handle.asleep.store(false, Relaxed);
        self.handle.waker.drain();
    }
}
