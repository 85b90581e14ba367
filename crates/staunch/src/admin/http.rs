//! The HTTP API: `/healthz`, `/ready`, `/metrics`, `/api/v1/…`. Every request passes [`front`]; requests that change
//! something pass `guard` again before their body is read.
//!
//! Calls to the shard's thread are made in slices (`ShardHandle::ask`); documents are built on the HTTP thread. Not
//! here: connections and their limits (`server`), bodies and theirs (`bodies`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::runtime::Handle;

use crate::admin::bodies::{Bodies, refused};
use crate::admin::clients::RequestRefusal;
use crate::admin::graphite::{self, GraphiteState, Queries};
use crate::admin::guard::{self, Ends};
use crate::admin::origins;
use crate::admin::queues;
use crate::admin::refusal::Refusal;
use crate::admin::relay::{self, ExplainQuery, Explains};
use crate::admin::reload;
use crate::admin::series::{self, SeriesQuery};
use crate::admin::{accounts, metrics, stores};
use crate::admission::Refusals;
use crate::daemon::shared::Shared;
use crate::daemon::shared::heartbeat::{Beat, Pulse};
use crate::daemon::worker::Question;
use sys::clock::Clock;

/// Timeout for the heartbeat of the daemon's threads, whose turns take milliseconds. A probe with a shorter timeout
/// reports a failure itself.
const HEARTBEAT_WAIT: Duration = Duration::from_secs(5);

/// The text at `/`.
const INDEX: &str = "staunch\n\n\
    /healthz            200 while the process lives and turns\n\
    /ready              200 while records are taken, 503 otherwise\n\
    /metrics            self-metrics, Prometheus text\n\
    /api/v1/accounts    records received and their outcomes\n\
    /api/v1/series      series: ?name=GLOB&type=counter&limit=100&cursor=N\n\
    /api/v1/relay       counters of relays\n\
    /api/v1/relay/explain  where a relay sends a name, and why: ?name=NAME&relay=RELAY\n\
    /api/v1/queues      queues of outputs\n\
    /api/v1/stores      stores of whisper files\n\
    /api/v1/config      the config in force\n\n\
    graphite-web's API, if an output is of type whisper:\n\
    /render             ?target=TARGET&from=-1h (an image), &format=json\n\
    /metrics/find       ?query=GLOB\n\
    /metrics/expand     ?query=GLOB\n\
    /metrics/index.json all names\n\
    /info               ?target=NAME: archives of its file\n\
    /events/            a list; POST adds one\n\
    /events/get_data    ?from=-1d&tags=TAG\n\
    /tags, /functions, /version\n";

/// Pages of graphite-web for people, which are not here.
const PAGES: [&str; 6] = ["account", "admin", "browser", "composer", "dashboard", "graphlot"];

/// The data for all requests.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) shared: Arc<Shared>,
    pub(super) bodies: Bodies,
    /// Queries of graphite-web's API.
    pub(super) queries: Queries,
    /// What else that API needs.
    pub(super) graphite: GraphiteState,
    explains: Explains,
    /// Log limits by reason.
    refusals: [Refusals; RequestRefusal::COUNT],
    /// The thread of connections and senders.
    main: Pulse,
}

impl Api {
    /// Must be called on the thread of connections and senders, whose heartbeat is checked.
    pub(super) fn new(shared: &Arc<Shared>) -> Api {
        Api {
            shared: Arc::clone(shared),
            bodies: Bodies::default(),
            queries: Queries::default(),
            graphite: GraphiteState::of(&shared.wiring.load().plan),
            explains: Explains::default(),
            refusals: Default::default(),
            main: Pulse::of(Handle::current()),
        }
    }
}

type ApiState = State<Arc<Api>>;

/// All routes.
pub(super) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/healthz", get(healthz))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics_page).post(graphite::query))
        .route("/api/v1/accounts", get(accounts_page))
        .route("/api/v1/series", get(series_page))
        .route("/api/v1/relay", get(relay_page))
        .route("/api/v1/queues", get(queues_page))
        .route("/api/v1/stores", get(stores_page))
        .route("/api/v1/config", get(config_page))
        .route("/api/v1/reload", post(reload_post))
        .route("/api/v1/relay/explain", get(relay_explain))
        .route("/api/v1/queues/{name}/drop", post(queue_drop))
        .route("/api/v1/queues/{name}/replay", post(queue_replay))
        .route("/api/v1/stores/{name}/{verb}", post(store_post))
        .merge(graphite::routes())
        .fallback(|uri: Uri| async move { (StatusCode::NOT_FOUND, not_found(uri.path())) })
        .with_state(api)
}

/// The text for an unknown path: what stands in its place, and all paths.
fn not_found(path: &str) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let hint = match first {
        "index.json" => "The list of all names is at /metrics/index.json.\n\n",
        first if PAGES.contains(&first) => "Staunch has no web UI: point Grafana at this address.\n\n",
        _ => "",
    };
    format!("{hint}{INDEX}")
}

/// Whether a request is served, by its head. Health probes are served for any client, because orchestrators use names
/// that operators cannot list. Their responses contain nothing of the configuration unless [`may_read`] allows it.
#[expect(clippy::result_large_err, reason = "the error is the answer, sent at once")]
pub(super) fn front(api: &Api, request: &Request<Body>) -> Result<(), Response> {
    if matches!(request.uri().path(), "/healthz" | "/ready") {
        return Ok(());
    }
    if let Some(answer) = origins::preflight(&api.shared, request) {
        return Err(answer);
    }
    let is_open = graphite::only_reads(request) && api.shared.wiring.load().plan.graphite_api.open;
    may_read(api, request.headers(), is_open).map_err(|(why, answer)| {
        let what = match why {
            RequestRefusal::Host => {
                let name = guard::name_asked_for(request.headers());
                format!("its Host `{name}` is not in `http.allowed_hosts` (docs/api.md)")
            }
            RequestRefusal::Token => {
                let gave = guard::instead_of_token(request.headers());
                format!("it had {gave}, and `http.token_file` requires one")
            }
            RequestRefusal::Change => "it may not change anything".to_owned(),
        };
        refuse(api, request, why, &what);
        answer
    })?;
    origins::script(&api.shared, request).map_err(|why| refused(StatusCode::FORBIDDEN, why))
}

/// Counts a rejection, and logs the client and `what`, once a minute for each reason; never the wrong token.
fn refuse(api: &Api, request: &Request<Body>, why: RequestRefusal, what: &str) {
    api.shared.http_account.refuse(why);
    let Some(refused) = api.refusals[why as usize].note(Clock::mono_ns()) else { return };
    let from = request.extensions().get::<ConnectInfo<Ends>>().map(|ConnectInfo(ends)| ends.client());
    let from = from.map_or_else(|| "an unknown client".to_owned(), |from| from.to_string());
    tracing::warn!(
        "http: a request of {from} was refused: {what} ({refused} refused since the last message)"
    );
}

/// Whether a request may read data: its Host is allowed, and it has the token if one is set and the path is not open to all.
#[expect(clippy::result_large_err, reason = "the error is the answer, sent at once")]
fn may_read(api: &Api, headers: &HeaderMap, is_open: bool) -> Result<(), (RequestRefusal, Response)> {
    let wiring = api.shared.wiring.load();
    guard::host(headers, &wiring.plan.http_server.allowed_hosts)
        .map_err(|why| (RequestRefusal::Host, refused(StatusCode::MISDIRECTED_REQUEST, &why)))?;
    if is_open || guard::has_token(headers, wiring.certificates.token()) {
        return Ok(());
    }
    let mut answer = refused(StatusCode::UNAUTHORIZED, "this needs the token: Authorization: Bearer TOKEN");
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Err((RequestRefusal::Token, answer))
}

async fn healthz(State(api): ApiState) -> Response {
    let shared = &api.shared;
    let shard = || shared.shard.call(|_worker| ());
    let why = match shared.heartbeat.beat(shard, HEARTBEAT_WAIT).await {
        Beat::Alive => match api.main.beat(HEARTBEAT_WAIT).await {
            Beat::Late => "the thread of connections and senders does not answer\n".to_owned(),
            // This thread ends last.
            Beat::Alive | Beat::Ended => match shared.late_reader(HEARTBEAT_WAIT).await {
                Some(name) => format!("the reader thread {name} does not answer\n"),
                None => return "ok\n".into_response(),
            },
        },
        // During a stop it ends before the outputs do.
        Beat::Ended if shared.stopping.load(Relaxed) => return "ok\n".into_response(),
        Beat::Ended => "the shard's thread has ended\n".to_owned(),
        Beat::Late => "the shard's thread does not answer\n".to_owned(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn ready(State(api): ApiState, headers: HeaderMap) -> Response {
    let why = api.shared.not_ready();
    // The reasons contain names of sources, outputs and addresses.
    let authorized = may_read(&api, &headers, false).is_ok();
    if why.is_empty() {
        let (troubles, waits) =
            if authorized { (api.shared.troubles(), api.shared.waited_for()) } else { Default::default() };
        return troubles
            .into_iter()
            .chain(waits)
            .fold("ready\n".to_owned(), |text, line| text + &line + "\n")
            .into_response();
    }
    let text = if authorized { why.join("\n") } else { "not ready".to_owned() };
    (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response()
}

async fn accounts_page(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    let page = async {
        let mut asking = api.shared.shard.ask(ends.peer(), Question::Figures)?;
        Ok(accounts::snapshot(&api.shared, &mut asking).await)
    };
    api.bodies.answer(ends.peer(), page.await)
}

async fn series_page(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    query: Query<SeriesQuery>,
) -> Response {
    let page = async {
        let mut asking = api.shared.shard.ask(ends.peer(), Question::Details)?;
        let mut room = api.bodies.reserve(ends.peer(), series::MAKING_BYTES)?;
        let json = series::page(&mut asking, &mut room, query.0).await?;
        Ok::<_, Refusal>((json, room))
    };
    match page.await {
        Ok((json, room)) => api.bodies.made(room, json),
        Err((status, why)) => refused(status, &why),
    }
}

async fn relay_page(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    let page = async {
        let mut asking = api.shared.shard.ask(ends.peer(), Question::Details)?;
        Ok(relay::page(&api.shared, &mut asking).await)
    };
    api.bodies.answer(ends.peer(), page.await)
}

async fn queues_page(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    api.bodies.answer(ends.peer(), Ok(queues::page(&api.shared).await))
}

async fn relay_explain(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    query: Query<ExplainQuery>,
) -> Response {
    let way = relay::explain(&api.shared, &api.explains, ends.peer(), query.0);
    api.bodies.answer(ends.peer(), way.await)
}

async fn stores_page(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    api.bodies.answer(ends.peer(), Ok(stores::page(&api.shared)))
}

/// The content type of a request that may change something, before its body is read.
fn change(api: &Api, ends: Ends, request: &Request<Body>) -> Result<&'static str, Refusal> {
    let wiring = api.shared.wiring.load();
    guard::changes(ends, request.headers(), &wiring.plan.http_server.allowed_hosts).map_err(|why| {
        refuse(api, request, RequestRefusal::Change, why);
        (StatusCode::FORBIDDEN, why.to_owned())
    })
}

async fn config_page(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    let config = api.shared.reloads.config();
    api.bodies.bytes(ends.peer(), "text/plain; charset=utf-8", config.into_bytes())
}

async fn reload_post(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    let allowed = change(&api, ends, &request);
    // Its body is not read.
    drop(request);
    let ended = match allowed {
        Ok(_content_type) => reload::reload(&api.shared).await,
        Err(refusal) => Err(refusal),
    };
    match ended {
        Ok((status, page)) => {
            let mut answer = api.bodies.answer(ends.peer(), Ok(page));
            if answer.status() == StatusCode::OK {
                *answer.status_mut() = status;
            }
            answer
        }
        Err((status, why)) => refused(status, &why),
    }
}

async fn queue_drop(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    let done = async {
        if change(&api, ends, &request)? != "application/json" {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Type must be application/json".into(),
            ));
        }
        queues::find(&api.shared, &name)?;
        let body = api.bodies.read(request.into_body(), queues::DROP_BYTES_MAX).await?;
        queues::drop_waiting(&api.shared, &name, &body).await
    };
    api.bodies.answer(ends.peer(), done.await)
}

async fn queue_replay(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    let done = async {
        let as_json = match change(&api, ends, &request)? {
            "application/octet-stream" => false,
            "application/x-ndjson" => true,
            _ => {
                let why = "the Content-Type must be application/octet-stream for lines, or application/x-ndjson for blocks as JSON lines";
                return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
            }
        };
        queues::find(&api.shared, &name)?;
        let body = api.bodies.read(request.into_body(), queues::REPLAY_BYTES_MAX).await?;
        queues::replay(&api.shared, &name, as_json, body).await
    };
    api.bodies.answer(ends.peer(), done.await)
}

async fn store_post(
    State(api): ApiState,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path((name, verb)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let done = async {
        if change(&api, ends, &request)? != "application/json" {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Type must be application/json".into(),
            ));
        }
        let store = stores::changes::find(&api.shared, &name)?;
        let body = api.bodies.read(request.into_body(), stores::changes::ORDER_BYTES_MAX).await?;
        match verb.as_str() {
            "delete" => stores::changes::delete(&api.queries, store, &body).await,
            "rename" => stores::changes::rename(&api.queries, store, &body).await,
            "drain" => stores::changes::drain(&api.shared, &store, &body).await,
            _ => Err((StatusCode::NOT_FOUND, "it is delete, rename or drain".into())),
        }
    };
    match done.await {
        Ok(json) => api.bodies.bytes(ends.peer(), "application/json", json),
        Err((status, why)) => refused(status, &why),
    }
}

/// The self-metrics, or with a `query` the names of series as graphite-web gives them.
async fn metrics_page(state: ApiState, ends: ConnectInfo<Ends>, request: Request<Body>) -> Response {
    if graphite::is_find(&request) {
        return graphite::query(state, ends, request).await;
    }
    self_metrics(state, ends).await
}

async fn self_metrics(State(api): ApiState, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    let text = async {
        let mut asking = api.shared.shard.ask(ends.peer(), Question::Figures)?;
        let peers = api.graphite.peers.counts(&api.shared.wiring.load().plan.graphite_api);
        Ok::<_, Refusal>(metrics::text(&api.shared, &mut asking, &peers, Clock::now()).await)
    };
    match text.await {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            api.bodies.bytes(ends.peer(), kind, text.into_bytes())
        }
        Err((status, why)) => refused(status, &why),
    }
}

#[test]
fn an_unknown_path_has_the_list_of_paths_and_pages_of_graphite_web_a_hint() {
    for (path, want) in [
        ("/dashboard", "Staunch has no web UI: point Grafana at this address.\n\nstaunch\n"),
        ("/composer/", "Staunch has no web UI"),
        ("/browser/header/", "Staunch has no web UI"),
        ("/index.json", "The list of all names is at /metrics/index.json.\n\nstaunch\n"),
        ("/dashboards", "staunch\n"),
        ("/", "staunch\n"),
    ] {
        let text = not_found(path);
        assert!(text.starts_with(want) && text.ends_with(INDEX), "{path}: {text}");
    }
}
