//! The shard's side of the threads that read datagrams: takes what they hand on, and calls them when sockets come and go, a plan
//! changes, or the process ends.
//!
//! Path of a packet: `packet_thread` -> a lane of the exchange -> **[`Worker::take_packets`]** -> `Shard::push_while`.
//! With one reader there are no such threads, and the shard's own thread reads the sockets.
//! Invariant: while a call waits for the threads, their batches are taken, so none of them waits for room in vain.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use config::plan::Listen;
use model::{Dropped, Outcome, SourceId};
use pipeline::{Exchange, IntakeMaker, Turn};
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::handle::ShardHandle;
use super::packet_thread::{PacketHandle, PacketThread};
use super::share::Round;
use super::socket::DatagramSocket;
use super::{LAST_READ_MAX_NS, SEARCH_MAX_NS, Worker};
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::names::shown;
use crate::kernel::{Drops, SocketGauge};
use sys::clock::Clock;
use sys::{AsFd, OwnedFd};

/// Memory of the batches that one turn takes, exceeded by at most one batch for each reader.
const TAKE_BYTES: usize = 1 << 20;

/// Pause between two looks whether the threads have done what they were called for.
pub(super) const LOOK_PAUSE: Duration = Duration::from_micros(50);

/// Longest wait for them: what a thread may take to empty its sockets, and as long again for the shard to take it.
const CALL_MAX_NS: u64 = 2 * LAST_READ_MAX_NS;

/// Longest wait for them before a question is answered without them.
const LOOK_MAX_NS: u64 = model::SECOND_NS / 10;

/// Threads that read datagrams; none with one reader.
#[derive(Debug, Default)]
pub struct PacketReaders {
    threads: Vec<Thread>,
    look: Option<Look>,
    /// What the kernel counts of their sockets is read by the shard's thread alone.
    sockets: Vec<ReadElsewhere>,
}

/// A look at the sockets for the sake of questions.
#[derive(Debug)]
struct Look {
    answers: Vec<Receiver<()>>,
    /// So many questions were there before.
    questions: usize,
    /// When they are answered in any case (monotonic).
    until_ns: u64,
}

#[derive(Debug)]
struct Thread {
    handle: PacketHandle,
    /// Sockets that it was given.
    sockets: usize,
    thread: Option<JoinHandle<()>>,
}

/// A socket that one of the threads reads.
#[derive(Debug)]
struct ReadElsewhere {
    source: SourceId,
    listen: Listen,
    number: usize,
    fd: Arc<OwnedFd>,
    gauge: Arc<SocketGauge>,
}

impl ReadElsewhere {
    fn is_at(&self, places: &[(SourceId, Listen)]) -> bool {
        places.iter().any(|(source, listen)| *source == self.source && *listen == self.listen)
    }

    fn refuse_more(&self) {
        if let Err(error) = sys::refuse_more(self.fd.as_fd()) {
            let at = shown(&self.listen);
            tracing::debug!("{at} stays open until it is closed: {error}");
        }
    }
}

impl PacketReaders {
    /// A thread for each lane of the exchange, paused and without sockets.
    ///
    /// # Errors
    /// When the system has no thread, memory or descriptor for it.
    pub fn start(
        exchange: &Arc<Exchange>,
        shard: &ShardHandle,
        complaints: Complaints,
    ) -> io::Result<PacketReaders> {
        let mut all = PacketReaders::default();
        for number in 0..exchange.packet_lanes() {
            let (reader, handle) = PacketThread::new(number, exchange, shard, complaints)?;
            let thread = std::thread::Builder::new().name(format!("packets-{number}"));
            let thread = Some(thread.spawn(move || reader.run())?);
            all.threads.push(Thread { handle, sockets: 0, thread });
        }
        Ok(all)
    }

    /// True with one reader: the shard's thread.
    pub(super) fn is_none(&self) -> bool {
        self.threads.is_empty()
    }

    /// How many of the questions that wait may be answered: those that came before each thread has looked at its sockets.
    pub(super) fn questions_after_a_look(&mut self, waiting: usize) -> usize {
        if self.is_none() || waiting == 0 {
            self.look = None;
            return waiting;
        }
        let Some(look) = &mut self.look else {
            let answers = self.call(PacketThread::look);
            self.look = Some(Look { answers, questions: waiting, until_ns: Clock::mono_ns() + LOOK_MAX_NS });
            return 0;
        };
        look.answers.retain_mut(|answer| !is_answered(answer));
        if !look.answers.is_empty() && Clock::mono_ns() < look.until_ns {
            return 0;
        }
        let questions = look.questions;
        self.look = None;
        questions
    }

    /// True while questions wait for the threads.
    pub(super) fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    /// Deals sockets out: those of one address to different threads, others to the thread with the fewest.
    fn add(&mut self, sockets: Vec<DatagramSocket>) {
        for socket in sockets {
            let at = match socket.listen {
                Listen::Udp(_) => socket.number % self.threads.len(),
                _ => (0..self.threads.len()).min_by_key(|at| self.threads[*at].sockets).unwrap_or(0),
            };
            self.sockets.push(ReadElsewhere {
                source: socket.source,
                listen: socket.listen.clone(),
                number: socket.number,
                fd: Arc::clone(&socket.fd),
                gauge: Arc::clone(&socket.gauge),
            });
            let thread = &mut self.threads[at];
            thread.sockets += 1;
            // It answers nobody: the thread goes on by itself.
            let _added = thread.handle.call(move |thread| thread.add(vec![socket]));
        }
    }

    fn call<R: Send + 'static>(
        &self,
        job: impl Fn(&mut PacketThread) -> R + Clone + Send + 'static,
    ) -> Vec<Receiver<R>> {
        self.threads.iter().map(|thread| thread.handle.call(job.clone())).collect()
    }
}

impl Drop for PacketReaders {
    fn drop(&mut self) {
        drop(self.call(PacketThread::end));
        for thread in &mut self.threads {
            // One that panicked has logged so.
            let _ended = thread.thread.take().map(JoinHandle::join);
        }
    }
}

/// True when an answer has come, or none will.
fn is_answered<R>(answer: &mut Receiver<R>) -> bool {
    !matches!(answer.try_recv(), Err(TryRecvError::Empty))
}

impl Worker {
    /// Takes what the threads have handed on, one batch of each in turn. Relays search so long for names that they do not know.
    pub(super) fn take_packets(&mut self, search_max_ns: u64) -> Round {
        let Worker { turn, exchange, .. } = self;
        let until_ns = Clock::mono_ns() + search_max_ns;
        // Lanes whose next batch waits for a search.
        let mut waits = vec![false; exchange.packet_lanes()];
        let (mut records, mut bytes) = (0, 0);
        loop {
            let mut any = false;
            for (lane, waits) in waits.iter_mut().enumerate().filter(|(_, waits)| !**waits) {
                let Some(batch) = exchange.take_packets(lane) else { continue };
                any = true;
                bytes += batch.memory_bytes();
                records += batch.records();
                let Turn { shard, routed, .. } = turn;
                let now = Clock::now();
                if let Some(rest) = shard.push_while(batch, now, routed, &mut || Clock::mono_ns() < until_ns)
                {
                    exchange.set_packets_back(lane, rest);
                    *waits = true;
                }
            }
            if !any || bytes >= TAKE_BYTES {
                let more = any || waits.contains(&true);
                return Round { packets: usize::try_from(records).unwrap_or(usize::MAX), more };
            }
        }
    }

    /// Gives what is left in the lanes its end: what needs no long search goes to the shard, the rest is dropped.
    pub(super) fn drop_packets(&mut self) {
        let Worker { turn, exchange, .. } = self;
        for lane in 0..exchange.packet_lanes() {
            while let Some(batch) = exchange.take_packets(lane) {
                let rest = turn.shard.push_while(batch, Clock::now(), &mut turn.routed, &mut || false);
                rest.into_iter().for_each(|rest| rest.settle(Outcome::Dropped(Dropped::Stopped)));
            }
        }
    }

    /// Runs `job` on each of the threads, and takes what they hand on until all of them have done it and it is all taken.
    pub(super) fn call_readers<R: Send + 'static>(
        &mut self,
        job: impl Fn(&mut PacketThread) -> R + Clone + Send + 'static,
    ) {
        if self.readers.is_none() {
            return;
        }
        let until_ns = Clock::mono_ns() + CALL_MAX_NS;
        let mut answers = self.readers.call(job);
        loop {
            answers.retain_mut(|answer| !is_answered(answer));
            let is_done = answers.is_empty();
            let round = self.take_packets(SEARCH_MAX_NS);
            self.deliver(Clock::now());
            if (is_done && !round.brought()) || Clock::mono_ns() >= until_ns {
                return;
            }
            if !round.brought() {
                std::thread::sleep(LOOK_PAUSE);
            }
        }
    }

    /// Reads datagrams, where threads of their own do.
    pub(super) fn go_on_reading(&mut self) {
        // Not waited for.
        drop(self.readers.call(PacketThread::go_on));
    }

    /// Stops reading datagrams until [`Self::follow`] or [`Self::thaw`], where threads of their own read them: what they have
    /// read is taken before this returns. This thread does not read while it does something else.
    pub fn pause_reading(&mut self) {
        self.call_readers(PacketThread::pause);
    }

    /// Reads by the plan that `makers` are of from now on.
    pub fn follow(&mut self, makers: &[IntakeMaker]) {
        for socket in &mut self.sockets {
            socket.intake = makers[socket.source.index()].make();
        }
        let makers: Arc<[IntakeMaker]> = makers.into();
        drop(self.readers.call(move |thread| {
            thread.follow(&makers);
            thread.go_on();
        }));
    }

    /// Calls into the threads, by number.
    pub fn packet_readers(&self) -> Vec<PacketHandle> {
        self.readers.threads.iter().map(|thread| thread.handle.clone()).collect()
    }

    /// Begins, with more sockets than it was made with.
    pub fn thaw_with(&mut self, more: Vec<DatagramSocket>) {
        self.add_sockets(more);
        self.thaw();
    }

    /// Reads these sockets as well.
    pub fn add_sockets(&mut self, sockets: Vec<DatagramSocket>) {
        if self.readers.is_none() {
            self.sockets.extend(sockets);
        } else {
            self.readers.add(sockets);
        }
    }

    /// Lets nothing more in at the sockets of the threads that are at these places, or at all of them.
    pub(super) fn refuse_more_elsewhere(&self, places: Option<&[(SourceId, Listen)]>) {
        let sockets = self.readers.sockets.iter();
        sockets
            .filter(|socket| places.is_none_or(|places| socket.is_at(places)))
            .for_each(ReadElsewhere::refuse_more);
    }

    /// Closes the sockets of the threads at these places; what they have received still counts.
    pub(super) fn close_elsewhere(&mut self, gone: &[(SourceId, Listen)]) {
        if gone.is_empty() {
            return;
        }
        self.refuse_more_elsewhere(Some(gone));
        let places: Arc<[(SourceId, Listen)]> = gone.into();
        self.call_readers(move |thread| thread.close(&places));
        self.count_drops();
        self.readers.sockets.retain(|socket| !socket.is_at(gone));
    }

    /// Brings the threads to rest. Sockets that are not at the places that are `passed` on are emptied first.
    pub(super) fn rest_elsewhere(&mut self, passed: &[(SourceId, Listen)]) {
        let passed: Arc<[(SourceId, Listen)]> = passed.into();
        self.call_readers(move |thread| {
            thread.empty(|socket| !socket.is_at(&passed));
            thread.pause();
        });
    }

    /// Reads the kernel's counts of the sockets of the threads, of some sources or of all.
    pub(super) fn count_drops_elsewhere(&self, sources: Option<&[SourceId]>) {
        let sockets = self.readers.sockets.iter();
        let theirs = sockets.filter(|socket| sources.is_none_or(|sources| sources.contains(&socket.source)));
        theirs.for_each(|socket| socket.gauge.read(&*socket.fd));
    }

    /// What was counted of the kernel's drops at the sockets of the threads.
    pub(super) fn drops_elsewhere(&self) -> impl Iterator<Item = (SourceId, Listen, usize, Drops)> + '_ {
        let drops = |socket: &ReadElsewhere| {
            (socket.source, socket.listen.clone(), socket.number, socket.gauge.drops())
        };
        self.readers.sockets.iter().map(drops)
    }
}
