//! Runs queries on threads of their own: few at a time, each with a deadline, and it ends when its client goes away.
//!
//! No query holds a lock that a record waits for longer than a slice of a search (`graphite::store::SEARCH_STEPS`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use axum::http::StatusCode;
use config::plan::Plan;
use graphite::catalog::{Found, Wanted};
use graphite::query::{Ask, Fetch, FetchError, Fetched, Limits, Range, Room, Selector, Stop};
use graphite::store::Reader;
use sys::clock::Clock;
use tokio::sync::Semaphore;

use super::events::Events;
use crate::admin::refusal::Refusal;
use crate::daemon::shared::stores::OpenStore;

/// Most queries that run at once.
const RUNNING_MAX: usize = 4;

/// Most queries that wait for one of them to end.
const WAITING_MAX: usize = 256;

/// Longest time of a query, with its wait.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What one query may cost: its values take at most some 100 MiB.
pub(super) const LIMITS: Limits =
    Limits { series_max: 50_000, points_max: 10_000_000, steps_max: 1_000_000_000 };

/// Most names of one answer.
pub(in crate::admin) const NAMES_MAX: usize = 1_000_000;

/// The threads of queries.
#[derive(Debug)]
pub(in crate::admin) struct Queries {
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for Queries {
    fn default() -> Queries {
        Queries { running: Semaphore::new(RUNNING_MAX), waiting: Semaphore::new(WAITING_MAX) }
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
    /// Runs a query.
    pub(in crate::admin) async fn run<T: Send + 'static>(
        &self,
        stores: Arc<Vec<Arc<OpenStore>>>,
        query: impl FnOnce(&mut AllStores) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let ends_ns = Clock::mono_ns() + TIME_MAX.as_nanos() as u64;
        let busy = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}: retry later"));
        let waiting = self.waiting.try_acquire().map_err(|_full| busy("too many queries are waiting"))?;
        let running = tokio::time::timeout(TIME_MAX, self.running.acquire()).await;
        let running = running.map_err(|_late| busy("other queries took all the time"))?;
        drop(waiting);
        let cancelled = Arc::new(AtomicBool::new(false));
        let cancel = Cancel(Arc::clone(&cancelled));
        let done = tokio::task::spawn_blocking(move || {
            let now = i64::try_from(Clock::now().wall_seconds()).unwrap_or(i64::MAX);
            query(&mut AllStores { stores, now, ends_ns, cancelled, events: None })
        });
        let done = done.await;
        drop((running, cancel));
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
}

impl AllStores {
    /// The stores.
    pub(super) fn stores(&self) -> &[Arc<OpenStore>] {
        &self.stores
    }

    /// The names that a selector finds in the only store, or in the first that has any.
    pub(super) fn find(&mut self, selector: &Selector, wanted: Wanted) -> Result<Found, Refusal> {
        let mut last = None;
        for store in self.stores.clone().iter() {
            let goes_on = || self.goes_on();
            let mut reader = Reader::new(&store.store, &store.tree, self.now, goes_on);
            let found = reader.find(selector, wanted, NAMES_MAX).map_err(refusal)?;
            if !found.is_empty() {
                return Ok(found);
            }
            last = Some(found);
        }
        last.ok_or_else(no_store)
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

pub(super) fn no_store() -> Refusal {
    let why = "this daemon has no output of type `whisper`, or its folder cannot be opened (see /ready)";
    (StatusCode::NOT_FOUND, why.to_owned())
}

pub(in crate::admin) fn refusal(error: FetchError) -> Refusal {
    match error {
        FetchError::Limit(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
        FetchError::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        FetchError::Stopped(why) => (StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
    }
}

impl Fetch for AllStores {
    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let stores = Arc::clone(&self.stores);
        let mut answers: Vec<Vec<Fetched>> = Vec::new();
        let mut room = room;
        for store in stores.iter() {
            let goes_on = || self.goes_on();
            let mut reader = Reader::new(&store.store, &store.tree, self.now, goes_on);
            let found = reader.fetch(asks, room)?;
            for (name, error) in reader.notes {
                tracing::debug!("output `{}`: {name} cannot be read: {error}", store.name);
            }
            let points = found.iter().flatten().map(|one| one.values.len()).sum();
            room.series = room.series.saturating_sub(found.iter().map(Vec::len).sum());
            room.points = room.points.saturating_sub(points);
            answers = if answers.is_empty() { found } else { merged(answers, found) };
        }
        Ok(if answers.is_empty() { asks.iter().map(|_| Vec::new()).collect() } else { answers })
    }

    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, FetchError> {
        let Some((events, plan)) = &self.events else { return Ok(Vec::new()) };
        events.times(plan, range, tags).map_err(FetchError::Failed)
    }

    fn keep_going(&mut self) -> Result<(), Stop> {
        self.goes_on()
    }
}

/// Of two stores: the series of both, sorted by name. Of one that both have, gaps of the first are filled from the second, if
/// their times are the same.
fn merged(first: Vec<Vec<Fetched>>, second: Vec<Vec<Fetched>>) -> Vec<Vec<Fetched>> {
    let both = first.into_iter().zip(second);
    both.map(|(first, second)| {
        let mut all: BTreeMap<String, Fetched> =
            first.into_iter().map(|one| (one.name.clone(), one)).collect();
        for one in second {
            match all.get_mut(&one.name) {
                Some(had)
                    if (had.start, had.step, had.values.len()) == (one.start, one.step, one.values.len()) =>
                {
                    for (had, one) in had.values.iter_mut().zip(one.values) {
                        if had.is_nan() {
                            *had = one;
                        }
                    }
                }
                Some(_) => {}
                None => {
                    all.insert(one.name.clone(), one);
                }
            }
        }
        all.into_values().collect()
    })
    .collect()
}
