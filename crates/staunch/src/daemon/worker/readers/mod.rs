//! The threads that read datagrams, and the sockets that each of them has; none with one reader.
//!
//! Not here: what the shard's thread takes from them (`packets`), the thread itself (`packet_thread`).

pub(super) mod packet_thread;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use config::plan::Listen;
use model::SourceId;
use pipeline::Exchange;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use self::packet_thread::{PacketHandle, PacketThread};
use super::socket::DatagramSocket;
use super::waking::ShardWaker;
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::names::shown;
use crate::kernel::SocketGauge;
use sys::clock::Clock;
use sys::{AsFd, OwnedFd};

/// Pause between two looks whether the threads have done what they were called for.
pub(super) const LOOK_PAUSE: Duration = Duration::from_micros(50);

/// Longest wait for them before a question is answered without them.
const LOOK_MAX_NS: u64 = model::SECOND_NS / 10;

/// Threads that read datagrams; none with one reader.
#[derive(Debug, Default)]
pub struct PacketReaders {
    pub(super) threads: Vec<Thread>,
    look: Option<Look>,
    /// What the kernel counts of their sockets is read by the shard's thread alone.
    pub(super) sockets: Vec<ReadElsewhere>,
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
pub(super) struct Thread {
    pub(super) handle: PacketHandle,
    /// Sockets that it was given.
    sockets: usize,
    thread: Option<JoinHandle<()>>,
}

/// A socket that one of the threads reads.
#[derive(Debug)]
pub(super) struct ReadElsewhere {
    pub(super) source: SourceId,
    pub(super) listen: Listen,
    pub(super) number: usize,
    pub(super) fd: Arc<OwnedFd>,
    pub(super) gauge: Arc<SocketGauge>,
}

impl ReadElsewhere {
    pub(super) fn is_at(&self, places: &[(SourceId, Listen)]) -> bool {
        places.iter().any(|(source, listen)| *source == self.source && *listen == self.listen)
    }

    pub(super) fn refuse_more(&self) {
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
        shard: &ShardWaker,
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
    pub(super) fn add(&mut self, sockets: Vec<DatagramSocket>) {
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

    pub(super) fn call<R: Send + 'static>(
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
pub(super) fn is_answered<R>(answer: &mut Receiver<R>) -> bool {
    !matches!(answer.try_recv(), Err(TryRecvError::Empty))
}
