//! A thread that reads datagram sockets: with more than one reader, `packets-0` to `packets-N`.
//!
//! Path of a packet: `PacketReader::receive` -> `Intake::datagrams` -> `Exchange::send_packets`, into this thread's lane; the shard
//! takes it from there (`worker::packets`). The order of rounds over the sockets, and naps while packets keep coming, are those of the shard's
//! thread (`socket::share`, `sys::Gather`).
//! A source that has used up its room in the lane is not read: what comes meanwhile stays in the kernel's receive buffer, and what
//! that has no room for is counted there. Packets of a call that unfold to more than the lane has room for are dropped as
//! `exchange_full`.
//! Not here: which sockets a thread has, and when it pauses: the shard's thread decides, by calls ([`PacketHandle::call`]).
//! Invariant: a thread waits for the shard in calls only, and there no longer than [`LAST_READ_MAX_NS`]; paused, it reads nothing.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::plan::Listen;
use model::{Batches, Dropped, Now, Outcome, SourceId};
use pipeline::{Exchange, IntakeMaker};
use tokio::sync::oneshot;

use super::super::limits::{CHORES_EVERY_NS, LAST_READ_MAX_NS, READER_PACKETS};
use super::super::socket::share::{self, Read, Round};
use super::super::socket::{DatagramSocket, ReadMemory, Sink};
use super::super::waking::ShardWaker;
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::heartbeat::{Beat, Heartbeat};
use sys::clock::Clock;
use sys::{Gather, PacketReader, Rest, Waker, Watch};

/// Pause of a thread whose lane is full, until it looks again.
const FULL_PAUSE: Duration = Duration::from_micros(200);

type Job = Box<dyn FnOnce(&mut PacketThread) + Send>;

/// Calls into one of the threads: they run between two rounds over its sockets.
#[derive(Clone)]
pub struct PacketHandle {
    jobs: Arc<Mutex<Jobs>>,
    waker: Arc<Waker>,
    heartbeat: Arc<Heartbeat>,
}

#[derive(Default)]
struct Jobs {
    queued: VecDeque<Job>,
    /// Nobody takes jobs any more.
    ended: bool,
}

impl std::fmt::Debug for PacketHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketHandle")
    }
}

impl PacketHandle {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the thread answers within that time.
    pub(in crate::daemon) async fn beat(&self, at_most: Duration) -> Beat {
        self.heartbeat.beat(|| self.call(|_thread| ()), at_most).await
    }

    /// Runs `job` on the thread. The answer is an error when the thread has ended.
    pub(in crate::daemon) fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut PacketThread) -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (answer, receiver) = oneshot::channel();
        let job: Job = Box::new(move |thread| {
            // Nobody may wait for the answer; the job was done all the same.
            let _gone = answer.send(job(thread));
        });
        let mut jobs = self.jobs();
        if !jobs.ended {
            jobs.queued.push_back(job);
            self.waker.wake();
        }
        receiver
    }
}

/// Everything that one of the threads owns.
#[derive(Debug)]
pub(in crate::daemon) struct PacketThread {
    /// Its lane.
    number: usize,
    sockets: Vec<DatagramSocket>,
    complaints: Complaints,
    exchange: Arc<Exchange>,
    shard: ShardWaker,
    handle: PacketHandle,
    reader: PacketReader,
    gather: Gather,
    memory: ReadMemory,
    chores_due_ns: u64,
    is_paused: bool,
    has_ended: bool,
}

/// What a round over the sockets brought.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    round: Round,
    /// A source was not read for want of room in the lane.
    is_full: bool,
}

/// The lane of one thread.
struct ToLane<'a> {
    exchange: &'a Exchange,
    lane: usize,
    has_sent: bool,
}

impl Sink for ToLane<'_> {
    const IS_ELSEWHERE: bool = true;

    fn take(&mut self, batch: Batches<'_>, _now: Now, _left: &mut VecDeque<Batches<'static>>) {
        if batch.is_empty() {
            return;
        }
        match self.exchange.send_packets(self.lane, batch.into_owned()) {
            Ok(()) => self.has_sent = true,
            Err(back) => {
                let closed = self.exchange.is_closed();
                back.settle(Outcome::Dropped(if closed { Dropped::Stopped } else { Dropped::ExchangeFull }));
            }
        }
    }
}

impl PacketThread {
    /// The thread with a number, without sockets, paused.
    ///
    /// # Errors
    /// When there is no memory for the packets' arena, or no descriptor for the waker.
    pub(in crate::daemon::worker) fn new(
        number: usize,
        exchange: &Arc<Exchange>,
        shard: &ShardWaker,
        complaints: Complaints,
    ) -> io::Result<(PacketThread, PacketHandle)> {
        let handle =
            PacketHandle { jobs: Arc::default(), waker: Arc::new(Waker::new()?), heartbeat: Arc::default() };
        let thread = PacketThread {
            number,
            sockets: Vec::new(),
            complaints,
            exchange: Arc::clone(exchange),
            shard: shard.clone(),
            handle: handle.clone(),
            reader: PacketReader::new(READER_PACKETS)?,
            gather: Gather::default(),
            memory: ReadMemory::default(),
            chores_due_ns: 0,
            is_paused: true,
            has_ended: false,
        };
        Ok((thread, handle))
    }

    /// Runs until [`Self::end`].
    pub(in crate::daemon::worker) fn run(mut self) {
        let _end = NoteEnd { number: self.number, handle: self.handle.clone(), shard: self.shard.clone() };
        loop {
            self.run_jobs();
            if self.has_ended {
                return;
            }
            if self.is_paused {
                self.wait(&[], model::SECOND_NS);
                continue;
            }
            let got = self.receive(|_| true);
            self.run_chores();
            self.rest(got);
        }
    }

    fn run_jobs(&mut self) {
        loop {
            // Taken one by one: a caller may add some meanwhile.
            let next = self.handle.jobs().queued.pop_front();
            let Some(job) = next else { return };
            job(self);
        }
    }

    /// One turn over the sockets that are meant.
    fn receive(&mut self, which: impl Fn(&DatagramSocket) -> bool) -> Got {
        let PacketThread { number, sockets, complaints, exchange, reader, memory, .. } = self;
        let mut to = ToLane { exchange, lane: *number, has_sent: false };
        let mut is_full = false;
        let read = |socket: &mut DatagramSocket| {
            if !which(socket) || !socket.reading.is_due(Clock::mono_ns) {
                return Read::default();
            }
            if !exchange.has_packet_room(*number, socket.source) {
                is_full = true;
                return Read::default();
            }
            socket.read(reader, *complaints, memory, &mut to)
        };
        let round = share::turn(sockets, |socket| &mut socket.share, read);
        if to.has_sent {
            self.shard.wake();
        }
        Got { round, is_full }
    }

    fn run_chores(&mut self) {
        let now_ns = Clock::mono_ns();
        if now_ns >= self.chores_due_ns {
            self.chores_due_ns = now_ns + CHORES_EVERY_NS;
            self.tell_complaints();
            // Batches that the shard has dropped are this thread's to give back.
            sys::release_freed_memory();
        }
    }

    fn tell_complaints(&mut self) {
        let PacketThread { sockets, complaints, .. } = self;
        sockets.iter_mut().for_each(|socket| socket.tell_rest(*complaints));
    }

    /// Lets packets gather after some came, otherwise sleeps until something comes or is due.
    fn rest(&mut self, Got { round, is_full }: Got) {
        if is_full && !round.brought() {
            return std::thread::sleep(FULL_PAUSE);
        }
        match self.gather.after(round.packets, round.more) {
            Rest::Never => {}
            Rest::Nap(nap) => std::thread::sleep(nap),
            Rest::UntilReadable => {
                let now_ns = Clock::mono_ns();
                let due_ns = self.sockets.iter().map(|socket| socket.reading.due_ns());
                let until_ns = due_ns.fold(self.chores_due_ns, u64::min);
                let watched: Vec<&DatagramSocket> =
                    self.sockets.iter().filter(|socket| socket.reading.is_watched()).collect();
                self.wait(&watched, until_ns.saturating_sub(now_ns));
            }
        }
    }

    /// Sleeps until one of the sockets can be read, somebody calls, or the time is over.
    fn wait(&self, sockets: &[&DatagramSocket], at_most_ns: u64) {
        let mut watches: Vec<Watch<'_>> = Vec::with_capacity(sockets.len() + 1);
        watches.push(Watch::new(&*self.handle.waker));
        watches.extend(sockets.iter().map(|socket| Watch::new(&*socket.fd)));
        if let Err(error) = sys::wait_readable(&mut watches, Some(at_most_ns)) {
            tracing::error!("cannot wait for packets: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.handle.waker.drain();
    }

    /// More sockets to read.
    pub(in crate::daemon::worker) fn add(&mut self, sockets: Vec<DatagramSocket>) {
        self.sockets.extend(sockets);
    }

    /// Reads what is there, if it reads now.
    pub(in crate::daemon::worker) fn look(&mut self) {
        if !self.is_paused {
            self.receive(|_| true);
        }
    }

    /// Reads nothing until [`Self::go_on`].
    pub(in crate::daemon::worker) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Begins, or reads again.
    pub(in crate::daemon::worker) fn go_on(&mut self) {
        self.is_paused = false;
    }

    /// Reads by the plan that `makers` are of from now on.
    pub(in crate::daemon::worker) fn follow(&mut self, makers: &[IntakeMaker]) {
        for socket in &mut self.sockets {
            socket.intake = makers[socket.source.index()].make();
        }
    }

    /// Reads what is in the sockets that are meant, while the shard takes it. A flood into sockets that stay open ends it after
    /// [`LAST_READ_MAX_NS`].
    pub(in crate::daemon::worker) fn empty(&mut self, which: impl Fn(&DatagramSocket) -> bool) {
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        loop {
            let Got { round, is_full } = self.receive(&which);
            if (!round.brought() && !is_full) || Clock::mono_ns() >= until_ns {
                return self.tell_complaints();
            }
            if is_full {
                std::thread::sleep(FULL_PAUSE);
            }
        }
    }

    /// Empties the sockets at these places, and closes them.
    pub(in crate::daemon::worker) fn close(&mut self, gone: &[(SourceId, Listen)]) {
        let goes = |socket: &DatagramSocket| socket.is_at(gone);
        self.empty(goes);
        self.sockets.retain(|socket| !goes(socket));
    }

    /// Ends the thread.
    pub(in crate::daemon::worker) fn end(&mut self) {
        self.has_ended = true;
    }
}

/// Callers get an error when no answer will come, also when the thread panics. Then the daemon ends: nobody would read its sockets.
struct NoteEnd {
    number: usize,
    handle: PacketHandle,
    shard: ShardWaker,
}

impl Drop for NoteEnd {
    fn drop(&mut self) {
        let queued = {
            let mut jobs = self.handle.jobs();
            jobs.ended = true;
            std::mem::take(&mut jobs.queued)
        };
        drop(queued);
        if std::thread::panicking() {
            tracing::error!("the thread packets-{} ended because of a bug", self.number);
            self.shard.note_end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::path::Path;

    use config::plan::Plan;
    use pipeline::{Accounts, Shard};

    use super::*;
    use crate::daemon::listeners::{self, Opened};
    use crate::daemon::shared::bind::{Bound, bind};
    use crate::daemon::worker::ShardHandle;
    use crate::kernel::{Drops, Kernel};

    const SOURCE: SourceId = SourceId(0);

    /// A thread that does not run, with one socket of a StatsD source, a lane for it, and a client of the socket.
    struct Parts {
        thread: PacketThread,
        handle: PacketHandle,
        exchange: Arc<Exchange>,
        accounts: Accounts,
        shard: Shard,
        client: UdpSocket,
    }

    fn parts(lane_bytes_max: usize) -> Parts {
        let plan: Plan = config::defaults(Path::new("."));
        let accounts = Accounts::default().carried_to(&plan);
        let shard = Shard::new(&plan, &accounts, 7, Clock::now());
        let exchange = Arc::new(Exchange::new(1, 8).with_packet_lanes(1, lane_bytes_max));
        let handle = ShardHandle::new().expect("a descriptor is free");
        let (mut thread, handle) =
            PacketThread::new(0, &exchange, handle.waker(), |_, _| {}).expect("there is memory");
        let listen = Listen::Udp("127.0.0.1:0".parse().expect("an address"));
        let (bound, _) = bind(&listen, 1 << 20).expect("a free port");
        let Listen::Udp(to) = bound.place(&listen) else { panic!("it is UDP") };
        assert!(matches!(bound, Bound::Datagram(_)));
        let at = Listen::Udp(to);
        let opened = [Opened {
            source: SOURCE,
            listen,
            at,
            bound: Some(bound),
            inherited: None,
            siblings: Vec::new(),
        }];
        let makers = listeners::makers(&plan, &shard, &accounts);
        let kernel = Kernel::default();
        let drops = |_| Drops::default();
        let sockets = listeners::datagram_sockets(&plan, &opened, &makers, &accounts, &kernel, &drops);
        thread.add(sockets.expect("descriptors are free"));
        let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        client.connect(to).expect("loopback");
        Parts { thread, handle, exchange, accounts, shard, client }
    }

    /// Records of what the lane holds.
    fn take(parts: &Parts) -> u64 {
        let all = std::iter::from_fn(|| parts.exchange.take_packets(0));
        let settled = all.map(|batch| {
            let records = batch.records();
            batch.settle(Outcome::Aggregated);
            records
        });
        settled.sum()
    }

    #[test]
    fn packets_stay_in_the_kernel_while_the_lane_is_full() {
        // The first batch is taken whole.
        let mut parts = parts(1);
        let send = |parts: &Parts, packets: usize| {
            (0..packets).for_each(|_| _ = parts.client.send(b"a:1|c\nb:2|c").expect("loopback takes it"));
        };
        send(&parts, 3);
        let got = parts.thread.receive(|_| true);
        assert_eq!((got.round.packets, got.is_full), (3, false));
        send(&parts, 5);
        let got = parts.thread.receive(|_| true);
        assert_eq!((got.round.packets, got.is_full), (0, true));
        assert_eq!(take(&parts), 6);
        let got = parts.thread.receive(|_| false);
        assert_eq!((got.round.packets, got.is_full), (0, false), "none is meant");
        let got = parts.thread.receive(|_| true);
        assert_eq!((got.round.packets, got.is_full, take(&parts)), (5, false, 10));
        let account = parts.accounts.source(SOURCE);
        assert!(account.sum(0).holds());
        assert_eq!((account.sum(0).received, account.dropped(Dropped::ExchangeFull)), (16, 0));
    }

    #[test]
    fn batch_that_was_read_is_dropped_when_the_lane_is_full_or_closed() {
        let mut parts = parts(1);
        let maker = parts.shard.intakes(&config::defaults(Path::new(".")), SOURCE, &parts.accounts);
        let (mut intake, mut scratch) = (maker.make(), pipeline::Scratch::default());
        let exchange = Arc::clone(&parts.exchange);
        let mut to = ToLane { exchange: &exchange, lane: 0, has_sent: false };
        let mut read = |to: &mut ToLane<'_>| {
            let packets = [model::Span::new(0, 5)];
            let batch = intake.datagrams(b"a:1|c", &packets, Clock::now(), &mut scratch);
            to.take(batch, Clock::now(), &mut VecDeque::new());
        };
        (0..3).for_each(|_| read(&mut to));
        assert!(to.has_sent);
        let dropped = |parts: &Parts, why| parts.accounts.source(SOURCE).dropped(why);
        assert_eq!(dropped(&parts, Dropped::ExchangeFull), 2, "the first is in the lane");
        assert_eq!(take(&parts), 1);
        exchange.close();
        read(&mut to);
        assert_eq!((dropped(&parts, Dropped::ExchangeFull), dropped(&parts, Dropped::Stopped)), (2, 1));
        assert!(parts.accounts.source(SOURCE).sum(0).holds());
        parts.client.send(b"a:1|c").expect("loopback takes it");
        parts.thread.empty(|_| true);
        assert_eq!(dropped(&parts, Dropped::Stopped), 2, "what comes too late is read and counted");
    }

    #[test]
    fn calls_run_on_the_thread_until_it_ends() {
        let Parts { thread, handle, exchange, client, accounts, .. } = parts(1 << 20);
        let running = std::thread::spawn(move || thread.run());
        let call = |job: fn(&mut PacketThread)| handle.call(job).blocking_recv();
        client.send(b"a:1|c").expect("loopback takes it");
        for _ in 0..3 {
            call(|_| ()).expect("it answers");
        }
        assert!(!exchange.has_packets(), "it begins paused");
        call(|thread| thread.empty(|_| true)).expect("it answers");
        assert!(exchange.has_packets());
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let held_up = handle.call(move |_| waits.recv());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        assert_eq!(runtime.block_on(handle.beat(Duration::from_millis(20))), Beat::Late);
        drop(go_on);
        assert!(held_up.blocking_recv().expect("it answers").is_err());
        assert_eq!(runtime.block_on(handle.beat(Duration::from_secs(30))), Beat::Alive);
        call(PacketThread::end).expect("it answers");
        running.join().expect("it ends");
        assert!(call(|_| ()).is_err(), "nobody answers any more");
        assert_eq!(runtime.block_on(handle.beat(Duration::from_secs(30))), Beat::Ended);
        let batch = exchange.take_packets(0).expect("what was read is there");
        batch.settle(Outcome::Aggregated);
        assert!(accounts.source(SOURCE).sum(0).holds());
    }
}
