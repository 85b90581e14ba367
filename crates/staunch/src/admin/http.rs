//! The HTTP API: `/healthz`, `/ready`, `/metrics`, `/api/v1/…`. What changes something goes through `guard` first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::admin::accounts;
use crate::admin::guard::{self, Ends};
use crate::admin::limited::Limited;
use crate::admin::metrics;
use crate::admin::queues;
use crate::admin::relay::{self, ExplainQuery};
use crate::admin::series::{self, SeriesQuery};
use crate::clock::Clock;
use crate::daemon::descriptors::Kind;
use crate::daemon::shared::{Beat, Shared};

/// Longest wait for a sign of life of the shard's thread, whose turns take milliseconds. Whoever probes with less patience
/// has its own time-out, which says the same.
const HEARTBEAT_WAIT: Duration = Duration::from_secs(5);

/// What `/` says until there is more to see.
const INDEX: &str = "staunch\n\n\
    /healthz            200 while the process lives and turns\n\
    /ready              200 while records are taken, 503 otherwise\n\
    /metrics            self-metrics, Prometheus text\n\
    /api/v1/accounts    what came in, what became of it\n\
    /api/v1/series      what is being counted: ?name=GLOB&type=counter&limit=100&cursor=N\n\
    /api/v1/relay       what relays did\n\
    /api/v1/relay/explain  where a relay sends a name, and why: ?name=NAME&relay=RELAY\n\
    /api/v1/queues      what waits for each output\n";

/// Serves until `stop` turns true.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let router = Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/healthz", get(healthz))
        .route("/ready", get(ready))
        .route("/metrics", get(self_metrics))
        .route("/api/v1/accounts", get(accounts_page))
        .route("/api/v1/series", get(series_page))
        .route("/api/v1/relay", get(relay_page))
        .route("/api/v1/queues", get(queues_page))
        .route("/api/v1/relay/explain", get(relay_explain))
        .route("/api/v1/queues/{name}/drop", post(queue_drop))
        .route("/api/v1/queues/{name}/replay", post(queue_replay))
        .layer(DefaultBodyLimit::max(queues::REPLAY_BYTES_MAX))
        .fallback(|| async { (StatusCode::NOT_FOUND, INDEX) })
        .with_state(shared);
    let stopped = async move {
        // A closed channel means that the daemon has ended too.
        let _stopped = stop.wait_for(|stop| *stop).await;
    };
    let service = router.into_make_service_with_connect_info::<Ends>();
    axum::serve(Limited::new(listener, Kind::Http), service).with_graceful_shutdown(stopped).await
}

async fn healthz(State(shared): State<Arc<Shared>>) -> Response {
    let why = match shared.heartbeat.beat(&shared.shard, HEARTBEAT_WAIT).await {
        Beat::Alive => return "ok\n".into_response(),
        // While stopping it ends before the outputs do.
        Beat::Ended if shared.stopping.load(Relaxed) => return "ok\n".into_response(),
        Beat::Ended => "the shard's thread has ended\n",
        Beat::Late => "the shard's thread does not answer\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let why = shared.not_ready();
    if why.is_empty() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, why.join("\n") + "\n").into_response()
}

/// Has the worker read the kernel's drop counts, so that what is shown is of now.
async fn with_fresh_drops(shared: &Shared) {
    // The worker is gone only while stopping: the counts of its last turn are then the last ones.
    let _gone = shared.shard.call(|worker| worker.count_drops()).await;
}

async fn accounts_page(State(shared): State<Arc<Shared>>) -> Response {
    with_fresh_drops(&shared).await;
    Json(accounts::page(&shared, Clock::now())).into_response()
}

async fn series_page(State(shared): State<Arc<Shared>>, query: Query<SeriesQuery>) -> Response {
    match series::page(&shared, query.0).await {
        Ok(document) => Json(document).into_response(),
        Err((status, message)) => (status, message + "\n").into_response(),
    }
}

async fn relay_page(State(shared): State<Arc<Shared>>) -> Response {
    Json(relay::page(&shared).await).into_response()
}

async fn queues_page(State(shared): State<Arc<Shared>>) -> Response {
    Json(queues::page(&shared)).into_response()
}

async fn relay_explain(State(shared): State<Arc<Shared>>, query: Query<ExplainQuery>) -> Response {
    answer(relay::explain(&shared, query.0).await)
}

async fn queue_drop(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match guard::changes(ends, &headers) {
        Ok("application/json") => answer(queues::drop_waiting(&shared, &name, &body).await),
        Ok(_) => refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the order is application/json"),
        Err(why) => refused(StatusCode::FORBIDDEN, why),
    }
}

async fn queue_replay(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match guard::changes(ends, &headers) {
        Ok("application/octet-stream") => answer(queues::replay(&shared, &name, false, body).await),
        Ok("application/x-ndjson") => answer(queues::replay(&shared, &name, true, body).await),
        Ok(_) => {
            let why = "lines are application/octet-stream, and blocks as JSON lines application/x-ndjson";
            refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
        }
        Err(why) => refused(StatusCode::FORBIDDEN, why),
    }
}

fn answer<T: Serialize>(done: Result<T, (StatusCode, String)>) -> Response {
    match done {
        Ok(document) => Json(document).into_response(),
        Err((status, why)) => refused(status, &why),
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

async fn self_metrics(State(shared): State<Arc<Shared>>) -> Response {
    with_fresh_drops(&shared).await;
    let figures = shared.shard.call(|worker| worker.shard.figures()).await.unwrap_or_default();
    let relays = relay::page(&shared).await.relays;
    let text = metrics::render(&shared, &figures, &relays, Clock::now());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
