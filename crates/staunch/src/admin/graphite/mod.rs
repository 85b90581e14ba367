//! graphite-web's HTTP API over the stores of this daemon, for Grafana and scripts (spec graphite §6).
//!
//! Path of a request: `http::front` (Host and token) -> **[`routes`]** -> [`mod@parameters`] -> [`cache`] -> [`queries`] (a thread of its own) ->
//! [`render`] (with [`picture`]), [`names`] or [`tags`], all with [`mod@peers`] -> `bodies` (limits of answers). GET and POST are equal, and a slash at the end of a path is ignored.
//! [`mod@events`] and [`mod@tagging`] change something. Not here: evaluation and formats (`graphite`), the server and its limits (`server`).

mod cache;
mod events;
mod limits;
mod names;
mod page;
mod parameters;
mod peers;
mod picture;
mod queries;
mod render;
mod tagging;
mod tags;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use config::plan::Plan;
use graphite::answer::functions::{self, Listing};

use self::cache::Answers;
use self::events::Events;
use self::page::{JSON, Page, wrapped};
use self::parameters::Parameters;
use self::peers::{Asking, Peers};
use self::queries::Asker;
use crate::admin::bodies::refused;
use crate::admin::guard::{self, Ends};
use crate::admin::http::Api;
use crate::admin::refusal::Refusal;
use crate::daemon::shared::Wiring;
use sys::clock::Clock;

pub(super) use self::limits::NAMES_MAX;
pub(super) use self::peers::PeerCounts;
pub(super) use self::queries::{AllStores, Queries, refusal as query_refusal};

/// Most bytes of a form.
const FORM_BYTES_MAX: usize = 2 << 20;

/// The version of graphite-web whose API this is: Grafana chooses its queries by it.
const VERSION: &str = "1.1.10";

/// The header of an answer without the series of some nodes (`graphite_api.peers`), or without those of some files.
const MISSING: HeaderName = HeaderName::from_static("x-staunch-missing");

/// What requests share.
#[derive(Debug)]
pub(super) struct GraphiteState {
    /// Other nodes.
    pub(super) peers: Arc<Peers>,
    answers: Answers,
    events: Arc<Events>,
}

impl GraphiteState {
    /// Of a daemon with this config.
    pub(super) fn of(plan: &Plan) -> GraphiteState {
        GraphiteState {
            peers: Arc::default(),
            answers: Answers::default(),
            events: Arc::new(Events::of(plan)),
        }
    }
}

/// A kind of query.
type Query = fn(&Parameters, &mut AllStores) -> Result<Page, Refusal>;

/// Paths, and what answers them.
const QUERIES: [(&str, Query); 11] = [
    ("/render", render::answer),
    ("/metrics/find", names::find),
    ("/metrics", names::find),
    ("/metrics/expand", names::expand),
    ("/metrics/index.json", names::index),
    ("/metrics/list", names::list),
    ("/info", names::info),
    ("/tags", tags::tags),
    ("/tags/findSeries", tags::find_series),
    ("/tags/autoComplete/tags", tags::complete_tags),
    ("/tags/autoComplete/values", tags::complete_values),
];

/// The routes of this API. The daemon's own `/metrics` is asked for without a query.
pub(super) fn routes() -> Router<Arc<Api>> {
    let mut router =
        Router::new().route("/functions", any(functions)).route("/functions/{name}", any(functions));
    router = router.route("/functions/", any(functions)).route("/functions/{name}/", any(functions));
    for (path, _) in QUERIES.iter().filter(|(path, _)| *path != "/metrics") {
        router = router.route(path, any(query)).route(&format!("{path}/"), any(query));
    }
    for path in ["/events", "/events/"] {
        router = router.route(path, get(events_page).post(event_post));
    }
    for path in ["/events/get_data", "/events/get_data/"] {
        router = router.route(path, any(events_data));
    }
    for path in ["/tags/tagSeries", "/tags/tagMultiSeries", "/tags/delSeries"] {
        router = router.route(path, any(tagging)).route(&format!("{path}/"), any(tagging));
    }
    router
        .route("/version", any(version))
        .route("/version/", any(version))
        .route("/events/{id}", get(event_page))
        .route("/events/{id}/", get(event_page))
        .route("/tags/{tag}", any(query))
        .route("/tags/{tag}/", any(query))
}

/// Paths that only read, and that `graphite_api.auth = "none"` opens.
pub(super) fn only_reads(request: &Request<Body>) -> bool {
    let path = request.uri().path().trim_end_matches('/');
    if matches!(path, "/tags/tagSeries" | "/tags/tagMultiSeries" | "/tags/delSeries") {
        return false;
    }
    if path == "/events" || path == "/metrics" {
        return request.method() == Method::GET && (path == "/events" || is_find(request));
    }
    let below =
        |start: &str| path.strip_prefix(start).is_some_and(|rest| rest.starts_with('/') || rest.is_empty());
    QUERIES.iter().any(|(known, _)| *known == path)
        || path == "/version"
        || ["/functions", "/tags", "/events"].into_iter().any(below)
}

/// True for a request of `/metrics` that is one of graphite-web's.
pub(super) fn is_find(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or("");
    request.method() == Method::POST || query.split('&').any(|pair| pair.starts_with("query="))
}

/// Answers a query.
pub(super) async fn query(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let wiring = api.shared.wiring.load_full();
    let page = async {
        let parameters = parameters(&api, request).await?;
        let seconds = match path.as_str() {
            "/render" => cache::seconds(&parameters, &wiring.plan.graphite_api)?,
            _ => None,
        };
        let Some(seconds) = seconds else {
            let ((kind, bytes), missing) = run(&api, &wiring, path, parameters).await?;
            return Ok(((kind, Bytes::from(bytes)), missing, None));
        };
        let key = cache::key(&parameters);
        if let Some(hit) = api.graphite.answers.get(&key, seconds, Clock::mono_ns()) {
            return Ok((hit.page, Vec::new(), Some((seconds, hit.made_s))));
        }
        let now = Clock::now();
        let made_s = now.unix_seconds();
        let ((kind, bytes), missing) = run(&api, &wiring, path, parameters).await?;
        let page = (kind, Bytes::from(bytes));
        if !missing.is_empty() {
            // The next request may find the node.
            return Ok((page, missing, None));
        }
        let bytes_max = wiring.plan.graphite_api.cache_bytes_max;
        api.graphite.answers.put(key, page.clone(), (now.mono_ns, made_s), bytes_max);
        Ok((page, missing, Some((seconds, made_s))))
    };
    match page.await {
        Ok((page, missing, kept)) => {
            let mut response = reply(&api, ends, Ok(page), kept);
            if !missing.is_empty() {
                response.headers_mut().insert(MISSING, missing_nodes(&missing));
            }
            response
        }
        Err(refusal) => reply(&api, ends, Err::<Page, _>(refusal), None),
    }
}

/// Most bytes of the header that names missing nodes.
const MISSING_BYTES_MAX: usize = 4096;

/// `ADDRESS OR NAME (WHY), …`
fn missing_nodes(missing: &[(String, String)]) -> HeaderValue {
    let all: Vec<String> = missing.iter().map(|(peer, why)| format!("{peer} ({why})")).collect();
    let mut text: String =
        all.join(", ").chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
    text.truncate(MISSING_BYTES_MAX);
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("some"))
}

async fn run(
    api: &Api,
    wiring: &Arc<Wiring>,
    path: String,
    parameters: Parameters,
) -> Result<(Page, Vec<(String, String)>), Refusal> {
    let stores = api.shared.stores.all();
    let asker = if parameters.flag("local") { Asker::Node } else { Asker::Client };
    let peers = match asker {
        Asker::Client => Asking::new(&api.graphite.peers, &wiring.plan.graphite_api),
        Asker::Node => None,
    };
    if stores.is_empty() && peers.is_none() {
        return Err(queries::no_store(&wiring.plan, api.shared.stores.last_not_open()));
    }
    let known = QUERIES.iter().find(|(known, _)| *known == path).map(|(_, query)| *query);
    let events = Some((Arc::clone(&api.graphite.events), Arc::clone(&wiring.plan)));
    let run = move |stores: &mut AllStores| {
        (stores.events, stores.peers) = (events, peers);
        let page = match known {
            Some(query) => query(&parameters, stores)?,
            None => {
                let tag = path.strip_prefix("/tags/").unwrap_or(&path);
                let tag: Vec<u8> = percent_decoded(tag);
                tags::tag(&String::from_utf8_lossy(&tag), &parameters, stores)?
            }
        };
        Ok((page, stores.missing()?))
    };
    api.queries.run_of(asker, stores, run).await
}

async fn event_post(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    let page = async {
        guard::is_of_no_other_site(request.headers())
            .map_err(|why| (StatusCode::FORBIDDEN, why.to_owned()))?;
        let body = api.bodies.read(request.into_body(), events::EVENT_BYTES_MAX).await?;
        let (events, plan) = (Arc::clone(&api.graphite.events), plan_of(&api));
        on_thread(move || events.post(&plan, &body, now())).await
    };
    reply(&api, ends, page.await, None)
}

async fn events_page(State(api): State<Arc<Api>>, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    let (events, plan) = (Arc::clone(&api.graphite.events), plan_of(&api));
    reply(&api, ends, on_thread(move || events.page(&plan)).await, None)
}

async fn event_page(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Path(id): Path<String>,
) -> Response {
    let (events, plan) = (Arc::clone(&api.graphite.events), plan_of(&api));
    reply(&api, ends, on_thread(move || events.one(&plan, &id)).await, None)
}

async fn events_data(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    let page = async {
        let parameters = parameters(&api, request).await?;
        let (events, plan) = (Arc::clone(&api.graphite.events), plan_of(&api));
        on_thread(move || events.data(&plan, &parameters, now())).await
    };
    reply(&api, ends, page.await, None)
}

/// Requests that change the index of tags.
async fn tagging(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    if request.method() != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let page = async {
        guard::is_of_no_other_site(request.headers())
            .map_err(|why| (StatusCode::FORBIDDEN, why.to_owned()))?;
        let path = request.uri().path().trim_end_matches('/').to_owned();
        let parameters = parameters(&api, request).await?;
        let stores = api.shared.stores.all();
        let plan = plan_of(&api);
        on_thread(move || tagging::answer(&path, &parameters, (&stores, &plan), ends)).await
    };
    reply(&api, ends, page.await, None)
}

fn plan_of(api: &Api) -> Arc<Plan> {
    Arc::clone(&api.shared.wiring.load().plan)
}

fn now() -> i64 {
    Clock::now().unix_seconds()
}

/// Runs work with files and locks on another thread than the connections.
async fn on_thread(work: impl FnOnce() -> Result<Page, Refusal> + Send + 'static) -> Result<Page, Refusal> {
    let ended = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("the request failed: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(ended)?
}

async fn functions(
    State(api): State<Arc<Api>>,
    ConnectInfo(ends): ConnectInfo<Ends>,
    request: Request<Body>,
) -> Response {
    let name = request.uri().path().trim_end_matches('/').strip_prefix("/functions/").map(str::to_owned);
    let page = async {
        let parameters = parameters(&api, request).await?;
        let json = match name {
            Some(name) => functions::one(&name).ok_or_else(|| {
                (StatusCode::NOT_FOUND, format!("there is no function `{}`", client::stdio::shown(&name)))
            })?,
            None => functions::all(Listing {
                group: parameters.get("group"),
                grouped: parameters.flag("grouped"),
            }),
        };
        wrapped(&parameters, json)
    };
    reply(&api, ends, page.await, None)
}

async fn version(State(api): State<Arc<Api>>, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    reply(&api, ends, Ok((JSON, format!("\"{VERSION}\"").into_bytes())), None)
}

/// The parameters of the query and of a form.
async fn parameters(api: &Api, request: Request<Body>) -> Result<Parameters, Refusal> {
    let query = request.uri().query().unwrap_or("").to_owned();
    if request.method() != Method::POST {
        return Parameters::new(&query, b"");
    }
    let form = api.bodies.read(request.into_body(), FORM_BYTES_MAX).await?;
    Parameters::new(&query, &form)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    // A name without `=` and `&` is decoded as a parameter is, but for `+`.
    let text = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(text.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned().into_bytes())
        .unwrap_or_default()
}

/// `kept`: how many seconds the answer may be given again, and when it was made.
fn reply(
    api: &Api,
    ends: Ends,
    page: Result<(&'static str, impl Into<Bytes>), Refusal>,
    kept: Option<(u64, i64)>,
) -> Response {
    let mut response = match page {
        Ok((kind, bytes)) => api.bodies.bytes(ends.peer(), kind, bytes),
        Err((status, why)) => refused(status, &why),
    };
    let headers = response.headers_mut();
    let (control, expires) = match kept {
        None => ("max-age=0, no-cache, no-store, must-revalidate, private".to_owned(), 0),
        Some((seconds, made_s)) => {
            headers.insert(header::LAST_MODIFIED, http_date(made_s));
            (format!("max-age={seconds}"), made_s.saturating_add_unsigned(seconds))
        }
    };
    headers.insert(header::EXPIRES, http_date(expires));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::try_from(control).unwrap_or(HeaderValue::from_static("no-store")),
    );
    response
}

fn http_date(seconds: i64) -> HeaderValue {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}
