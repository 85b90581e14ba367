//! Runs queries on threads of their own: few at a time, each with a deadline, and it ends when its client goes away.
//!
//! No query holds a lock that a record waits for longer than a slice of a search (`graphite::store::SEARCH_STEPS`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use axum::http::StatusCode;
use config::plan::{OutputKind, Plan};
use graphite::catalog::{Found, Wanted};
use graphite::peer;
use graphite::query::{Ask, Fetch, FetchError, Fetched, Range, Room, Selector, Stop};
use graphite::store::Reader;
use sys::clock::Clock;
use tokio::sync::Semaphore;

use super::events::Events;
use super::limits::NAMES_MAX;
use super::peers::{Asking, PathsOf, Question, SeriesOf, TextsOf};
use crate::admin::refusal::Refusal;
use crate::daemon::shared::stores::OpenStore;

/// Most queries that run at once, of clients and of other nodes each.
const RUNNING_MAX: usize = 4;

/// Most queries that wait for one of them to end, likewise.
const WAITING_MAX: usize = 256;

/// Longest time of a query, with its wait.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A client, whose query may wait for other nodes.
    Client,
    /// Another node (`local=1`), whose query waits for no other.
    Node,
}

/// The threads of queries.
///
/// Queries of nodes have their own: those of clients may all wait for nodes whose clients' queries wait for this one.
#[derive(Debug, Default)]
pub(in crate::admin) struct Queries {
    of_clients: Turns,
    of_nodes: Turns,
}

#[derive(Debug)]
struct Turns {
    /// A query has its permit until it ends, also after its client has gone away.
    running: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { running: Arc::new(Semaphore::new(RUNNING_MAX)), waiting: Semaphore::new(WAITING_MAX) }
    }
}

/// Ends the query when the request is dropped, because its client has gone away.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Queries {
    /// Runs a query of a client.
    pub(in crate::admin) async fn run<T: Send + 'static>(
        &self,
        stores: Arc<Vec<Arc<OpenStore>>>,
        query: impl FnOnce(&mut AllStores) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run_of(Asker::Client, stores, query).await
    }

    /// Runs a query.
    pub(super) async fn run_of<T: Send + 'static>(
        &self,
        from: Asker,
        stores: Arc<Vec<Arc<OpenStore>>>,
        query: impl FnOnce(&mut AllStores) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let ends_ns = Clock::mono_ns() + TIME_MAX.as_nanos() as u64;
        let busy = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}: retry later"));
        let turns = match from {
            Asker::Client => &self.of_clients,
            Asker::Node => &self.of_nodes,
        };
        let waiting = turns.waiting.try_acquire().map_err(|_full| busy("too many queries are waiting"))?;
        let running = tokio::time::timeout(TIME_MAX, Arc::clone(&turns.running).acquire_owned()).await;
        let running = running.map_err(|_late| busy("other queries took all the time"))?;
        let running = running.expect("nobody closes it");
        drop(waiting);
        let cancelled = Arc::new(AtomicBool::new(false));
        let cancel = Cancel(Arc::clone(&cancelled));
        let done = tokio::task::spawn_blocking(move || {
            let _running = running;
            let now = Clock::now().unix_seconds();
            query(&mut AllStores {
                stores,
                now,
                ends_ns,
                cancelled,
                events: None,
                peers: None,
                unreadable: Vec::new(),
            })
        });
        let done = done.await;
        drop(cancel);
        done.unwrap_or_else(|_panic| {
            Err((StatusCode::INTERNAL_SERVER_ERROR, "the query failed: this is a bug of Staunch".to_owned()))
        })
    }
}

/// The open stores as one, for one query.
pub(in crate::admin) struct AllStores {
    stores: Arc<Vec<Arc<OpenStore>>>,
    pub(in crate::admin) now: i64,
    ends_ns: u64,
    cancelled: Arc<AtomicBool>,
    /// For the function `events`.
    pub(super) events: Option<(Arc<Events>, Arc<Plan>)>,
    /// Other nodes.
    pub(super) peers: Option<Asking>,
    /// Series whose files could not be read, and why; some of them.
    unreadable: Vec<(String, String)>,
}

impl AllStores {
    /// The stores.
    pub(super) fn stores(&self) -> &[Arc<OpenStore>] {
        &self.stores
    }

    /// The names that a selector finds, here and on other nodes.
    pub(super) fn find(&mut self, selector: &Selector, wanted: Wanted) -> Result<Found, Refusal> {
        if let (Selector::Tags(expressions), Some(_)) = (selector, &self.peers) {
            let parameters = expressions.iter().map(|text| ("expr".to_owned(), text.clone())).collect();
            let theirs = TextsOf { path: "/tags/findSeries", parameters };
            let (mine, texts) = self.beside(theirs, |all| all.find_here(selector, wanted))?;
            let texts = Found::of_paths(texts.iter().flatten().map(|text| (text.as_bytes(), true)));
            return Ok(Found::joined(vec![mine, texts]));
        }
        let pending = match (selector, &self.peers) {
            (Selector::Glob(query), Some(peers)) => {
                Some(peers.begin(vec![PathsOf { query: query.clone(), wanted }]))
            }
            _ => None,
        };
        let mut all = vec![self.find_here(selector, wanted)?];
        if let Some(pending) = pending {
            all.extend(pending.join(|| self.goes_on()).map_err(stopped)?.into_iter().flatten());
        }
        Ok(Found::joined(all))
    }

    fn find_here(&self, selector: &Selector, wanted: Wanted) -> Result<Found, Refusal> {
        let mut all = Vec::new();
        for store in self.stores.iter() {
            let goes_on = || self.goes_on();
            let mut reader = Reader::new(&store.store, &store.tree, self.now, goes_on);
            all.push(reader.find(selector, wanted, NAMES_MAX).map_err(refusal)?);
        }
        Ok(Found::joined(all))
    }

    /// What this node has, and what other nodes answer.
    pub(super) fn beside<Q: Question, T>(
        &self,
        theirs: Q,
        mine: impl FnOnce(&AllStores) -> Result<T, Refusal>,
    ) -> Result<(T, Vec<Q::Answer>), Refusal> {
        let pending = self.peers.as_ref().map(|peers| peers.begin(vec![theirs]));
        let mine = mine(self)?;
        let theirs = match pending {
            None => Vec::new(),
            Some(pending) => pending.join(|| self.goes_on()).map_err(stopped)?,
        };
        Ok((mine, theirs.into_iter().flatten().collect()))
    }

    /// Nodes and series that were left out, and why.
    ///
    /// # Errors
    /// When there is nobody else: this node has no store.
    pub(super) fn missing(&self) -> Result<Vec<(String, String)>, Refusal> {
        let mut missing = self.unreadable.clone();
        let Some(peers) = &self.peers else { return Ok(missing) };
        missing.extend(peers.missing());
        if self.stores.is_empty() && peers.all_are_missing() {
            let all: Vec<String> = missing.iter().map(|(peer, why)| format!("\n  {peer}: {why}")).collect();
            return Err((StatusCode::BAD_GATEWAY, format!("no node has answered:{}", all.concat())));
        }
        Ok(missing)
    }

    pub(in crate::admin) fn goes_on(&self) -> Result<(), Stop> {
        if self.cancelled.load(Relaxed) {
            Err(Stop::Cancelled)
        } else if Clock::mono_ns() >= self.ends_ns {
            Err(Stop::Deadline)
        } else {
            Ok(())
        }
    }
}

fn stopped(stop: Stop) -> Refusal {
    refusal(stop.into())
}

/// No store is open; `not_open` is the last one that could not be opened, and why.
pub(super) fn no_store(plan: &Plan, not_open: Option<(String, String)>) -> Refusal {
    if plan.outputs.iter().any(|output| matches!(output.kind, OutputKind::Whisper(_))) {
        let why = match not_open {
            Some((name, why)) => format!("output `{name}` cannot be opened: {why}; it is tried again"),
            None => "the store is being opened: retry later".to_owned(),
        };
        return (StatusCode::SERVICE_UNAVAILABLE, why);
    }
    let why = "this daemon has no output of type `whisper` and no `graphite_api.peers`";
    (StatusCode::NOT_FOUND, why.to_owned())
}

pub(in crate::admin) fn refusal(error: FetchError) -> Refusal {
    match error {
        FetchError::Limit(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
        FetchError::Invalid(why) => (StatusCode::BAD_REQUEST, why),
        FetchError::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        FetchError::Stopped(why) => (StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
    }
}

impl Fetch for AllStores {
    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let pending = self.peers.as_ref().map(|peers| {
            let of = |ask: &Ask| SeriesOf { ask: ask.clone(), now: self.now, room };
            peers.begin(asks.iter().map(of).collect())
        });
        let mine = self.fetch_here(asks, room)?;
        let Some(pending) = pending else { return Ok(mine) };
        let theirs = pending.join(|| self.goes_on())?;
        Ok(mine.into_iter().zip(theirs).map(|(mine, theirs)| with(mine, theirs)).collect())
    }

    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, FetchError> {
        let Some((events, plan)) = &self.events else { return Ok(Vec::new()) };
        events.times(plan, range, tags).map_err(FetchError::Failed)
    }

    fn keep_going(&mut self) -> Result<(), Stop> {
        self.goes_on()
    }
}

impl AllStores {
    fn fetch_here(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let mut answers: Vec<Vec<Fetched>> = asks.iter().map(|_| Vec::new()).collect();
        let mut room = room;
        for store in Arc::clone(&self.stores).iter() {
            let goes_on = || self.goes_on();
            let mut reader = Reader::new(&store.store, &store.tree, self.now, goes_on);
            let found = reader.fetch(asks, room)?;
            for (name, error) in reader.notes {
                tracing::debug!("output `{}`: {name} cannot be read: {error}", store.name);
                self.unreadable.push((name, error.to_string()));
            }
            let points = found.iter().flatten().map(|one| one.values.len()).sum();
            room.series = room.series.saturating_sub(found.iter().map(Vec::len).sum());
            room.points = room.points.saturating_sub(points);
            answers = answers.into_iter().zip(found).map(|(had, found)| with(had, vec![found])).collect();
        }
        Ok(answers)
    }
}

/// Joins lists of series, unless only one has any.
fn with(mine: Vec<Fetched>, theirs: Vec<Vec<Fetched>>) -> Vec<Fetched> {
    let mut parts: Vec<Vec<Fetched>> =
        std::iter::once(mine).chain(theirs).filter(|part| !part.is_empty()).collect();
    match parts.len() {
        0 | 1 => parts.pop().unwrap_or_default(),
        _ => peer::joined(parts),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_query_whose_client_went_away_counts_as_running_until_it_ends() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let queries = Arc::new(Queries::default());
        let (ends, begun) = (mpsc::channel::<()>(), mpsc::channel());
        let (end, ended) = (ends.0, Arc::new(std::sync::Mutex::new(ends.1)));
        let run = |name: &'static str, waits: bool| {
            let (queries, begun, ended) = (Arc::clone(&queries), begun.0.clone(), Arc::clone(&ended));
            runtime.spawn(async move {
                let query = move |_: &mut AllStores| {
                    begun.send(name).unwrap();
                    if waits {
                        // Work that is not asked whether it goes on.
                        let _end = ended.lock().unwrap().recv();
                    }
                    Ok(())
                };
                queries.run(Arc::default(), query).await
            })
        };
        let first: Vec<_> = (0..RUNNING_MAX).map(|_| run("first", true)).collect();
        (0..RUNNING_MAX).for_each(|_| assert_eq!(begun.1.recv().unwrap(), "first"));
        first.iter().for_each(|query| query.abort());
        for query in first {
            assert!(runtime.block_on(query).unwrap_err().is_cancelled());
        }
        let next = run("next", false);
        assert_eq!(queries.of_clients.running.available_permits(), 0, "their threads still work");
        assert!(begun.1.try_recv().is_err());
        end.send(()).unwrap();
        assert_eq!(begun.1.recv().unwrap(), "next");
        assert_eq!(runtime.block_on(next).unwrap(), Ok(()));
        (1..RUNNING_MAX).for_each(|_| end.send(()).unwrap());
    }
}
