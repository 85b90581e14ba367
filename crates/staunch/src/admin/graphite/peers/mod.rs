//! Other nodes whose series are part of the answers (`graphite_api.peers`).
//!
//! Path of a question: a query's thread -> [`Asking::begin`] -> one task per node: HTTP, at most [`AT_ONCE_MAX`] at a time -> its bytes are
//! read ([`Question::read`]) -> [`Pending::join`] on the query's thread. A node that fails is left out, and the answer names it.
//! Not here: what the bytes mean, how answers are joined (`graphite::peer`).

mod exchange;
mod question;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::plan::GraphiteApiPlan;
use graphite::peer::Encoding;
use graphite::query::Stop;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sys::clock::Clock;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(super) use self::question::{CountsOf, PathsOf, Question, SeriesOf, TextsOf};

/// Most requests of one query that run at once.
const AT_ONCE_MAX: usize = 4;

/// How long a node that did not answer in time is not asked.
const PAUSE: Duration = Duration::from_secs(10);

/// Longest wait between two looks whether the query goes on.
const LOOK: Duration = Duration::from_millis(50);

/// What is known about the nodes, and connections to them.
#[derive(Debug)]
pub(in crate::admin) struct Peers {
    client: Client<HttpConnector, Full<Bytes>>,
    known: Mutex<HashMap<String, Known>>,
}

/// One node.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What it is asked for; none before the first answer.
    encoding: Option<Encoding>,
    answered: u64,
    failed: u64,
    /// Why it was left out the last time; none if it answered.
    away: Option<String>,
    /// It is not asked before this time.
    paused_until_ns: u64,
}

/// Requests to one node since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admin) struct PeerCounts {
    /// Its address, as in the config.
    pub(in crate::admin) peer: String,
    /// Those that it answered.
    pub(in crate::admin) answered: u64,
    /// Those without a usable answer.
    pub(in crate::admin) failed: u64,
}

impl Default for Peers {
    fn default() -> Peers {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Peers { client, known: Mutex::default() }
    }
}

impl Peers {
    /// Counts of the nodes of a config.
    pub(in crate::admin) fn counts(&self, plan: &GraphiteApiPlan) -> Vec<PeerCounts> {
        let of = |peer: &String| {
            let known = self.known(peer);
            PeerCounts { peer: peer.clone(), answered: known.answered, failed: known.failed }
        };
        plan.peers.iter().map(of).collect()
    }

    fn known(&self, peer: &str) -> Known {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(peer).cloned().unwrap_or_default()
    }

    fn change(&self, peer: &str, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(known.entry(peer.to_owned()).or_default());
    }

    fn answered(&self, peer: &str, encoding: Option<Encoding>) {
        self.change(peer, |known| {
            known.answered += 1;
            known.encoding = encoding.or(known.encoding);
            known.paused_until_ns = 0;
            if known.away.take().is_some() {
                tracing::info!("queries: the node {peer} answers again");
            }
        });
    }

    fn failed(&self, peer: &str, why: &Failure) {
        self.change(peer, |known| {
            known.failed += 1;
            if matches!(why, Failure::Late(_)) {
                known.paused_until_ns = Clock::mono_ns() + PAUSE.as_nanos() as u64;
            }
            if known.away.replace(why.to_string()).is_none() {
                tracing::warn!("queries: the node {peer} is left out: {why}");
            }
        });
    }
}

/// Why a node is left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Failure {
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("no answer the last time; it is asked again within {} s", PAUSE.as_secs())]
    Paused,
    #[error("{0}")]
    Other(String),
}

/// The nodes for one query.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Asking {
    peers: Arc<Peers>,
    urls: Vec<String>,
    timeout: Duration,
    handle: Handle,
    at_once: Arc<Semaphore>,
    missing: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Asking {
    /// For a query under this config. None if no node is to be asked. Must be called in a runtime.
    pub(super) fn new(peers: &Arc<Peers>, plan: &GraphiteApiPlan) -> Option<Asking> {
        (!plan.peers.is_empty()).then(|| Asking {
            peers: Arc::clone(peers),
            urls: plan.peers.clone(),
            timeout: Duration::from_millis(plan.peer_timeout_ms),
            handle: Handle::current(),
            at_once: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            missing: Arc::default(),
        })
    }

    /// Begins to ask all nodes.
    pub(super) fn begin<Q: Question>(&self, questions: Vec<Q>) -> Pending<Q::Answer> {
        let mut tasks = JoinSet::new();
        let count = questions.len();
        for (number, question) in questions.into_iter().enumerate() {
            let question = Arc::new(question);
            for peer in &self.urls {
                let (asking, question, peer) = (self.clone(), Arc::clone(&question), peer.clone());
                let task = async move { (number, asking.ask(&peer, &*question).await) };
                tasks.spawn_on(task, &self.handle);
            }
        }
        Pending { tasks, count, handle: self.handle.clone() }
    }

    /// Nodes that were left out, and why.
    pub(super) fn missing(&self) -> Vec<(String, String)> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.iter().map(|(peer, why)| (peer.clone(), why.clone())).collect()
    }

    /// True when every node was left out.
    pub(super) fn all_are_missing(&self) -> bool {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).len() == self.urls.len()
    }

    async fn ask<Q: Question>(&self, peer: &str, question: &Q) -> Option<Q::Answer> {
        let known = self.peers.known(peer);
        let answer = if known.paused_until_ns > Clock::mono_ns() {
            Err(Failure::Paused)
        } else {
            let _turn = self.at_once.acquire().await;
            let exchange = exchange::exchange(&self.peers.client, peer, known.encoding, question);
            match tokio::time::timeout(self.timeout, exchange).await {
                Err(_) => Err(Failure::Late(self.timeout)),
                Ok(Err(why)) => Err(Failure::Other(why)),
                Ok(Ok(answer)) => Ok(answer),
            }
        };
        match answer {
            Ok((answer, encoding)) => {
                self.peers.answered(peer, encoding);
                Some(answer)
            }
            Err(why) => {
                if why != Failure::Paused {
                    self.peers.failed(peer, &why);
                }
                let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                missing.insert(peer.to_owned(), why.to_string());
                None
            }
        }
    }
}

/// Questions without all their answers. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Pending<A> {
    tasks: JoinSet<(usize, Option<A>)>,
    count: usize,
    handle: Handle,
}

impl<A: Send + 'static> Pending<A> {
    /// Waits for the answers, on a thread that may wait: for each question those of the nodes that have answered.
    ///
    /// # Errors
    /// Why the query has to end.
    pub(super) fn join(mut self, goes_on: impl Fn() -> Result<(), Stop>) -> Result<Vec<Vec<A>>, Stop> {
        let mut answers: Vec<Vec<A>> = (0..self.count).map(|_| Vec::new()).collect();
        loop {
            goes_on()?;
            let next = async { tokio::time::timeout(LOOK, self.tasks.join_next()).await };
            match self.handle.block_on(next) {
                Err(_look) => {}
                Ok(None) => return Ok(answers),
                Ok(Some(Ok((number, answer)))) => answers[number].extend(answer),
                Ok(Some(Err(failed))) => tracing::error!("queries: asking a node failed: {failed}"),
            }
        }
    }
}
