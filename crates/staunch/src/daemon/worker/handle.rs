//! Calls into the shard's thread, from any other: they run between two turns of its loop, and never mix with records.
//!
//! Two kinds. Control ([`ShardHandle::call`]) comes from the daemon: reload, stop, endpoints that fail and return.
//! Questions ([`ShardHandle::ask`], [`ShardHandle::ask_in_line`]) come from any client that can reach the API or a
//! management port, so their number is limited. Those of the API are refused above their limit, and there is another
//! one for each client and for questions that may take long. Those of management ports have separate places, which they
//! wait for, one client after the other. Each call of a question is a slice: it takes well under a millisecond, and is
//! repeated for more.
//! Invariants: every call is answered, with an error when the thread has ended; between two reads of the sockets at
//! most [`CALLS_PER_TURN`] calls run, of which few are questions.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Worker;
use super::waking::ShardWaker;
use crate::admission::{Admission, ConnectionSlot, Full, Limits};
use crate::daemon::outlet::NotifyLive;
use crate::daemon::shared::turns::{Place, Places};
use model::{OutputId, PeerKey};

/// Most questions of the API that are open at once; further ones are refused.
pub const QUESTIONS_MAX: usize = 64;

/// Places that questions for details leave free: an operator needs the daemon's figures while other clients search.
const KEPT_FOR_FIGURES: usize = 16;

/// Most questions of one client for figures, with those for details.
const PEER_QUESTIONS_MAX: usize = 16;

/// Most questions of one client for details.
const PEER_DETAILS_MAX: usize = 12;

/// Most questions of management ports that are open at once, besides those of the API; further ones wait.
const COMMANDS_MAX: usize = 16;

/// Most calls that run between two reads of the sockets.
const CALLS_PER_TURN: usize = 16;

/// Most questions among them, while no packets come.
const QUESTIONS_PER_TURN: usize = 4;

/// The same while packets come.
const QUESTIONS_PER_BUSY_TURN: usize = 1;

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// Calls into the worker, from any thread.
#[derive(Clone)]
pub struct ShardHandle {
    jobs: Arc<Mutex<Jobs>>,
    pub(super) waking: ShardWaker,
    /// Questions of the API.
    askers: Arc<Admission>,
    /// Questions of management ports.
    commands: Arc<Places>,
}

/// The subject of a question of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Metrics and accounts.
    Figures,
    /// Series, names, relays: answers may be long and frequent.
    Details,
}

impl Question {
    fn limits(self) -> Limits {
        match self {
            Question::Figures => Limits { all: QUESTIONS_MAX, per_peer: PEER_QUESTIONS_MAX },
            Question::Details => Limits { all: QUESTIONS_MAX - KEPT_FOR_FIGURES, per_peer: PEER_DETAILS_MAX },
        }
    }
}

/// One of [`QUESTIONS_MAX`] or of [`COMMANDS_MAX`]: its owner may call as often as necessary, one call at a time.
#[derive(Debug)]
pub struct Asking {
    shard: ShardHandle,
    _of: Bound,
}

/// The limit that a question counts against.
#[derive(Debug)]
enum Bound {
    Api { _slot: ConnectionSlot },
    Management { _place: Place },
}

/// Why a question was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Too many are open.
    Busy,
    /// Too many of this client are.
    BusyOfPeer,
    /// The thread has ended.
    Ended,
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unanswered::Busy => write!(f, "{QUESTIONS_MAX} requests are pending: retry later"),
            Unanswered::BusyOfPeer => f.write_str("this client has too many pending requests: retry later"),
            Unanswered::Ended => f.write_str("the daemon stops"),
        }
    }
}

#[derive(Default)]
struct Jobs {
    control: VecDeque<Job>,
    questions: VecDeque<Job>,
    /// No more jobs are taken.
    ended: bool,
}

impl std::fmt::Debug for ShardHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShardHandle")
    }
}

impl ShardHandle {
    /// A handle, for the worker and all its callers.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<ShardHandle> {
        Ok(ShardHandle {
            jobs: Arc::default(),
            waking: ShardWaker::new()?,
            askers: Arc::default(),
            commands: Arc::new(Places::new(COMMANDS_MAX)),
        })
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the worker has ended, for any reason. For one caller.
    pub async fn ended(&self) {
        self.waking.ended().await;
    }

    /// Runs `job` on the worker's thread between two turns. The result is an error when the worker has ended. Only for
    /// calls that clients cannot cause at will.
    pub fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        self.put(job, |jobs| &mut jobs.control)
    }

    /// A question of a client of the API, if not too many are open.
    ///
    /// # Errors
    /// [`Unanswered::Busy`], [`Unanswered::BusyOfPeer`].
    pub fn ask(&self, peer: PeerKey, question: Question) -> Result<Asking, Unanswered> {
        let slot = self.askers.admit(peer, question.limits()).map_err(|full| match full {
            Full::All => Unanswered::Busy,
            Full::PerPeer => Unanswered::BusyOfPeer,
        })?;
        Ok(Asking { shard: self.clone(), _of: Bound::Api { _slot: slot } })
    }

    /// A question of a client of a management port, as soon as the number of open ones allows it: clients take turns by
    /// their addresses, and the number of waiting ones has its own limit. Cancel-safe.
    pub async fn ask_in_line(&self, peer: PeerKey) -> Asking {
        let place = self.commands.take(peer).await;
        Asking { shard: self.clone(), _of: Bound::Management { _place: place } }
    }

    /// Calls the worker when the endpoint of `output` fails or returns. The reply is not needed.
    pub(in crate::daemon) fn notify_live(&self, output: OutputId) -> NotifyLive {
        let shard = self.clone();
        Box::new(move |live, given_up| {
            drop(shard.call(move |worker| worker.turn.set_live(output, live, given_up)));
        })
    }

    fn put<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
        kind: impl FnOnce(&mut Jobs) -> &mut VecDeque<Job>,
    ) -> oneshot::Receiver<R> {
        let (answer, receiver) = oneshot::channel();
        let job: Job = Box::new(move |worker| {
            // The caller may have gone away; the job was done all the same.
            let _gone = answer.send(job(worker));
        });
        let mut jobs = self.jobs();
        if !jobs.ended {
            kind(&mut jobs).push_back(job);
            self.waking.waker.wake();
        }
        receiver
    }

    /// Calls that wait for the worker.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let jobs = self.jobs();
        jobs.control.len() + jobs.questions.len()
    }

    /// As if the worker had ended.
    #[cfg(test)]
    pub(crate) fn end(&self) {
        drop(TellEnd(self.clone()));
    }

    /// Wakes the worker to check the exchange.
    pub fn wake(&self) {
        self.waking.wake();
    }

    /// Wakes the worker, and cannot call it.
    pub fn waker(&self) -> &ShardWaker {
        &self.waking
    }
}

impl Asking {
    /// Runs `job` on the worker's thread between two turns. It must always take well under a millisecond.
    ///
    /// # Errors
    /// [`Unanswered::Ended`].
    pub async fn call<R: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, Unanswered> {
        self.shard.put(job, |jobs| &mut jobs.questions).await.map_err(|_gone| Unanswered::Ended)
    }
}

impl Jobs {
    /// The next to run: control first, and at most this many questions.
    fn next(&mut self, questions: &mut usize) -> Option<Job> {
        let control = self.control.pop_front();
        control.or_else(|| {
            *questions = questions.checked_sub(1)?;
            self.questions.pop_front()
        })
    }
}

impl Worker {
    /// Runs calls, as many as one turn has time for. `busy`: packets keep coming.
    pub(super) fn run_jobs(&mut self, busy: bool) {
        let questions = if busy { QUESTIONS_PER_BUSY_TURN } else { QUESTIONS_PER_TURN };
        let mut questions = if self.frozen { questions } else { questions.min(self.asked) };
        for _call in 0..CALLS_PER_TURN {
            // Taken one by one: a job may call as well.
            let next = self.handle.jobs().next(&mut questions);
            let Some(job) = next else { return };
            job(self);
        }
    }

    /// Questions that are queued now may be answered once the sockets have been read: a client that sends a datagram
    /// and then asks for it finds it.
    pub(super) fn note_questions(&mut self) {
        let waiting = self.handle.jobs().questions.len();
        self.asked = self.readers.questions_after_a_look(waiting);
    }

    /// True while calls are left that the last turn had no time for.
    pub(super) fn has_jobs(&self) -> bool {
        let jobs = self.handle.jobs();
        !jobs.control.is_empty() || !jobs.questions.is_empty()
    }
}

/// Gives every waiting caller an error at the end of the thread, also when it panics.
pub(super) struct TellEnd(pub(super) ShardHandle);

impl Drop for TellEnd {
    fn drop(&mut self) {
        let jobs = {
            let mut jobs = self.0.jobs();
            jobs.ended = true;
            (std::mem::take(&mut jobs.control), std::mem::take(&mut jobs.questions))
        };
        drop(jobs);
        self.0.waking.note_end();
    }
}

#[test]
fn calls_to_a_worker_that_ended_are_answered_by_an_error() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    let waiting = handle.call(|_worker| 1);
    drop(TellEnd(handle.clone()));
    let late = handle.call(|_worker| 2);
    assert!(waiting.blocking_recv().is_err() && late.blocking_recv().is_err());
}

#[test]
fn a_turn_runs_so_many_calls_and_control_first() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    for _ in 0..3 {
        drop(handle.put(|_worker| (), |jobs| &mut jobs.questions));
    }
    drop(handle.call(|_worker| ()));
    let mut left = 2;
    let mut jobs = handle.jobs();
    assert!(jobs.next(&mut left).is_some() && jobs.control.is_empty() && left == 2, "control first");
    assert!(jobs.next(&mut left).is_some() && jobs.next(&mut left).is_some() && left == 0);
    assert!(jobs.next(&mut left).is_none(), "past the bound");
    assert_eq!(jobs.questions.len(), 1);
}

#[tokio::test]
async fn questions_past_the_bound_are_refused() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    let ask = |peer| handle.ask(peer, Question::Figures);
    let mut open: Vec<Asking> =
        (0..QUESTIONS_MAX as u8).map(|at| ask(peer(at / 8)).expect("at the bound")).collect();
    assert_eq!(ask(peer(99)).err(), Some(Unanswered::Busy), "past it");
    drop(open.pop());
    let mut asking = ask(peer(99)).expect("a place is free");
    handle.end();
    assert_eq!(asking.call(|_worker| ()).await, Err(Unanswered::Ended));
}

#[tokio::test]
async fn commands_wait_for_each_other_and_take_no_place_of_the_api() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    let mut open = Vec::new();
    for _ in 0..COMMANDS_MAX {
        open.push(handle.ask_in_line(peer(1)).await);
    }
    let mut waits: Vec<_> = [1, 1, 2].map(|number| Box::pin(handle.ask_in_line(peer(number)))).into();
    for wait in &mut waits {
        assert!(tokio::time::timeout(std::time::Duration::ZERO, wait).await.is_err(), "past the bound");
    }
    let figures: Vec<Asking> =
        (0..PEER_QUESTIONS_MAX).map_while(|_| handle.ask(peer(1), Question::Figures).ok()).collect();
    assert_eq!(figures.len(), PEER_QUESTIONS_MAX, "whatever it asks a management port");
    // Another client goes before the second one that waits of the same.
    open.truncate(COMMANDS_MAX - 2);
    let other = waits.pop().expect("there are three").await;
    let first = waits.remove(0).await;
    let last = waits.remove(0);
    assert!(tokio::time::timeout(std::time::Duration::ZERO, last).await.is_err());
    drop((other, first));
}

#[cfg(test)]
fn peer(number: u8) -> PeerKey {
    crate::admission::peer_key(Some([127, 0, 0, number].into()))
}

#[test]
fn one_client_and_all_who_search_leave_places_to_others() {
    let handle = ShardHandle::new().expect("a descriptor is free");
    let many = |number, question| -> (Vec<Asking>, Unanswered) {
        let mut open = Vec::new();
        loop {
            match handle.ask(peer(number), question) {
                Ok(asking) => open.push(asking),
                Err(why) => return (open, why),
            }
        }
    };
    let (first, why) = many(1, Question::Details);
    assert_eq!((first.len(), why), (PEER_DETAILS_MAX, Unanswered::BusyOfPeer));
    let (figures, why) = many(1, Question::Figures);
    assert_eq!((figures.len(), why), (PEER_QUESTIONS_MAX - PEER_DETAILS_MAX, Unanswered::BusyOfPeer));
    drop(figures);
    let others: Vec<Asking> = (2..50).flat_map(|number| many(number, Question::Details).0).collect();
    assert_eq!(first.len() + others.len(), QUESTIONS_MAX - KEPT_FOR_FIGURES);
    assert_eq!(many(60, Question::Details).1, Unanswered::Busy);
    assert_eq!(many(60, Question::Figures).0.len(), KEPT_FOR_FIGURES);
    drop(first);
    assert!(handle.ask(peer(1), Question::Details).is_ok(), "places are given back");
}
