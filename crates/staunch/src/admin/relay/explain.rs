//! `/api/v1/relay/explain`: the route of a name through a running relay, with the current state of the endpoints.
//!
//! Path of a request: it waits in line -> one call to the shard's thread, which returns the relay and those after it
//! ([`RelayToAsk`]) -> a thread for long work with separate routers, so that neither the shard nor other requests wait.
//! Limits: [`LINE`], one request at a time, [`WORK_MAX`] and [`LINE_BYTES_MAX`] for each.
//! Invariant: work for a client that has closed the connection ends before the next search, and no other work begins
//! until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use axum::http::StatusCode;
use config::plan::RelayTransform;
use model::TransformId;
use pipeline::{RelayToAsk, explain_chain};
use process::relay::{Entry, Line, Router, RouterSnapshot};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::admin::refusal::Refusal;
use crate::admission::{Admission, Limits};
use crate::chain_explanation::{ChainWay, Passed, entries, outside_feeds};
use crate::daemon::shared::Shared;
use crate::daemon::worker::Question;
use crate::route_explanation::line;
use model::PeerKey;
use sys::clock::Clock;

/// Longest line of a request.
const LINE_BYTES_MAX: usize = 4_096;

/// Most requests in line or in progress, of all clients and of one.
const LINE: Limits = Limits { all: 32, per_peer: 4 };

/// Longest work for one request, after which no further search begins.
const WORK_MAX: Duration = Duration::from_secs(1);

/// Query of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// The name, or a whole line.
    #[serde(default)]
    pub name: String,
    /// The relay, if there are several.
    pub relay: Option<String>,
}

/// The requests in line, and the slot of the one in progress.
#[derive(Debug)]
pub struct Explains {
    line: Arc<Admission>,
    place: Arc<Semaphore>,
}

impl Default for Explains {
    fn default() -> Explains {
        Explains { line: Arc::default(), place: Arc::new(Semaphore::new(1)) }
    }
}

/// While this lives, a client waits for the response.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Explains {
    /// Runs `work` on a thread for long work, in its turn. `work` gets a function that returns whether to continue;
    /// `None` when it stopped early. It stops when its client has gone, and its slot is free once it has ended.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn FnMut() -> bool) -> Option<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = Arc::clone(&self.place).acquire_owned().await.expect("nobody closes it");
        let gone = Arc::<AtomicBool>::default();
        let _waits = Waits(Arc::clone(&gone));
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            let until_ns = Clock::mono_ns() + WORK_MAX.as_nanos() as u64;
            work(&mut || !gone.load(Relaxed) && Clock::mono_ns() < until_ns)
        });
        let done = done
            .await
            .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("the request failed: {error}")))?;
        done.ok_or_else(|| {
            let why = format!(
                "its rules took longer than {} s: `staunch relay -f FILE --explain NAME` has no time limit",
                WORK_MAX.as_secs()
            );
            (StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }
}

/// The route of a name.
///
/// # Errors
/// A status and a sentence when the name or the relay is unknown, or when there are too many requests.
pub async fn explain(
    shared: &Shared,
    explains: &Explains,
    peer: PeerKey,
    query: ExplainQuery,
) -> Result<ChainWay, Refusal> {
    let ExplainQuery { name, relay } = query;
    if name.is_empty() || name.len() > LINE_BYTES_MAX {
        let why = format!("`name` is a name or a line of 1 to {LINE_BYTES_MAX} bytes");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let relay = known(shared, relay)?;
    let _in_line = explains.line.admit(peer, LINE).map_err(|_full| {
        let why = format!(
            "{} requests of this kind are pending, or {} of this client: retry later",
            LINE.all, LINE.per_peer
        );
        (StatusCode::SERVICE_UNAVAILABLE, why)
    })?;
    let (wanted, plan) = (relay.clone(), Arc::clone(&shared.wiring.load().plan));
    let mut asking = shared.shard.ask(peer, Question::Details)?;
    let asked = asking.call(move |worker| worker.turn.shard.relays_to_ask(&wanted)).await?;
    drop(asking);
    let relays = asked.ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no relay `{relay}`")))?;
    let (from, tagged) = (outside_feeds(&plan, &relay), plan.tags_are_named(&relay));
    explains.run(move |goes_on| way(relays, from, line(name.as_bytes(), tagged), goes_on)).await
}

/// A relay of the shard, whose router is made when the first line comes to it.
struct Asked {
    id: Option<TransformId>,
    name: String,
    made_of: Arc<RelayTransform>,
    snapshot: Option<RouterSnapshot>,
    router: Option<Router>,
}

impl From<RelayToAsk> for Asked {
    fn from(relay: RelayToAsk) -> Asked {
        let RelayToAsk { id, name, made_of, router } = relay;
        Asked { id, name, made_of, snapshot: Some(router), router: None }
    }
}

impl Asked {
    fn router(&mut self) -> Option<&Router> {
        if let Some(snapshot) = self.snapshot.take() {
            self.router = Some(snapshot.into_router());
        }
        self.router.as_ref()
    }
}

fn way(
    relays: Vec<RelayToAsk>,
    from: Vec<String>,
    line: Line<'_>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Option<ChainWay> {
    let mut relays: Vec<Asked> = relays.into_iter().map(Asked::from).collect();
    let chain = explain_chain(line, &mut |id, line| {
        let relay = relays.iter_mut().find(|relay| relay.id == id)?;
        relay.router()?.explain_while(Entry::Records, line, 0, goes_on)
    })?;
    let passed = |id| {
        let relay = relays.iter().find(|relay| relay.id == id).expect("it was asked");
        Passed { name: &relay.name, plan: &relay.made_of.plan }
    };
    let place = |statement: usize, _: usize| format!("rule {}", statement + 1);
    Some(ChainWay::new(&chain, line, from, &passed, &place))
}

/// The relay that is asked about: the only one that names enter at when none is named.
fn known(shared: &Shared, asked: Option<String>) -> Result<String, Refusal> {
    if let Some(relay) = asked {
        return Ok(relay);
    }
    let wiring = shared.wiring.load();
    match &entries(&wiring.plan)[..] {
        [one] => Ok((*one).to_owned()),
        [] => Err((StatusCode::NOT_FOUND, "this daemon has no relay".into())),
        several => Err((
            StatusCode::BAD_REQUEST,
            format!("which relay? add &relay= and one of {}", several.join(", ")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_stops_with_its_request_and_keeps_its_slot_until_then() {
        let explains = Explains::default();
        let (says, begun) = std::sync::mpsc::channel();
        let (ends, ended) = std::sync::mpsc::channel();
        let work = explains.run(move |goes_on| {
            says.send(()).expect("the test waits");
            while goes_on() {
                std::thread::yield_now();
            }
            // The duration of a search in progress.
            std::thread::sleep(Duration::from_millis(50));
            ends.send(()).expect("the test waits");
            Some(())
        });
        let gives_up = async {
            while begun.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = work => panic!("it goes on for as long as somebody waits"),
            () = gives_up => {}
        }
        // The next one begins after that search has ended, not when its client has gone.
        let next = explains.run(move |goes_on| {
            assert!(goes_on());
            Some(ended.try_recv().is_ok())
        });
        assert_eq!(next.await, Ok(true));
    }

    #[tokio::test]
    async fn work_that_takes_too_long_is_rejected() {
        let explains = Explains::default();
        let endless = |goes_on: &mut dyn FnMut() -> bool| {
            while goes_on() {
                std::thread::yield_now();
            }
            None::<()>
        };
        let (status, why) = explains.run(endless).await.expect_err("it takes too long");
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{why}");
    }
}
