//! graphite-web's HTTP API over the stores of this daemon, for Grafana and scripts (spec graphite §6).
//!
//! Path of a request: `http::front` (Host and token) -> **[`routes`]** -> [`mod@parameters`] -> [`queries`] (a thread of its own) -> [`render`] or
//! [`names`] -> `bodies` (limits of answers). GET and POST are equal, and a slash at the end of a path is ignored.
//! Not here: evaluation and formats (`graphite`), the server and its limits (`server`).

mod names;
mod parameters;
mod queries;
mod render;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use graphite::answer::functions::{self, Listing};

use self::parameters::Parameters;
use self::render::{JSON, Page, wrapped};
use crate::admin::bodies::refused;
use crate::admin::guard::Ends;
use crate::admin::http::Api;
use crate::admin::refusal::Refusal;

pub(super) use self::queries::{AllStores, NAMES_MAX, Queries, refusal as query_refusal};

/// Most bytes of a form.
const FORM_BYTES_MAX: usize = 2 << 20;

/// The version of graphite-web whose API this is: Grafana chooses its queries by it.
const VERSION: &str = "1.1.10";

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
    ("/tags", names::tags),
    ("/tags/findSeries", names::find_series),
    ("/tags/autoComplete/tags", names::complete_tags),
    ("/tags/autoComplete/values", names::complete_values),
];

/// The routes of this API. The daemon's own `/metrics` is asked for without a query.
pub(super) fn routes() -> Router<Arc<Api>> {
    let mut router =
        Router::new().route("/functions", any(functions)).route("/functions/{name}", any(functions));
    for (path, _) in QUERIES.iter().filter(|(path, _)| *path != "/metrics") {
        router = router.route(path, any(query)).route(&format!("{path}/"), any(query));
    }
    router.route("/version", any(version)).route("/version/", any(version)).route("/tags/{tag}", any(query))
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
    let page = async {
        let parameters = parameters(&api, request).await?;
        let stores = api.shared.stores.all();
        if stores.is_empty() {
            return Err(queries::no_store());
        }
        let known = QUERIES.iter().find(|(known, _)| *known == path).map(|(_, query)| *query);
        let run = move |stores: &mut AllStores| match known {
            Some(query) => query(&parameters, stores),
            None => {
                let tag = path.strip_prefix("/tags/").unwrap_or(&path);
                let tag: Vec<u8> = percent_decoded(tag);
                names::tag(&String::from_utf8_lossy(&tag), &parameters, stores)
            }
        };
        api.queries.run(stores, run).await
    };
    reply(&api, ends, page.await)
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
    reply(&api, ends, page.await)
}

async fn version(State(api): State<Arc<Api>>, ConnectInfo(ends): ConnectInfo<Ends>) -> Response {
    reply(&api, ends, Ok((JSON, format!("\"{VERSION}\"").into_bytes())))
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

fn reply(api: &Api, ends: Ends, page: Result<Page, Refusal>) -> Response {
    let mut response = match page {
        Ok((kind, bytes)) => api.bodies.bytes(ends.peer(), kind, bytes),
        Err((status, why)) => refused(status, &why),
    };
    let never = HeaderValue::from_static("max-age=0, no-cache, no-store, must-revalidate, private");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    response
}
