//! `/metrics/find`, `/metrics/expand`, `/metrics/index.json`, `/metrics/list` and `/info` (spec graphite §6.6 to §6.8).

use axum::http::StatusCode;
use graphite::answer::{find, json, msgpack, pickle, protobuf};
use graphite::catalog::{
    Found, Listing, Progress, SearchError, SearchLimits, Wanted, completer_query, normal_name,
};
use graphite::query::Selector;
use graphite::store::{Reader, SEARCH_STEPS};

use super::limits::NAMES_MAX;
use super::page::{MSGPACK, PICKLE, PROTOBUF, Page, wrapped};
use super::parameters::{Parameters, bad};
use super::peers::TextsOf;
use super::queries::{AllStores, refusal};
use crate::admin::refusal::Refusal;

/// Steps of one search: some ten seconds.
pub(super) const LIMITS: SearchLimits = SearchLimits { results_max: NAMES_MAX, steps_max: 100_000_000 };

/// `/metrics/find`
pub(super) fn find(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let query = required(parameters, "query")?;
    let wanted = if parameters.number("leavesOnly", 0)? != 0 { Wanted::Leaves } else { Wanted::All };
    let wildcards = parameters.number("wildcards", 0)? != 0;
    let page = match parameters.get("format").unwrap_or("treejson") {
        "treejson" => find::tree(&found(query, wanted, stores)?, query.as_bytes(), wildcards),
        "completer" => {
            let variants = parameters.number("automatic_variants", 0)? != 0;
            let query = completer_query(query.as_bytes(), variants);
            find::completer(&found(&String::from_utf8_lossy(&query), wanted, stores)?, wildcards)
        }
        "nodelist" => {
            let position = parameters.number("position", -1)?;
            find::nodes(&found(query, wanted, stores)?, usize::try_from(position).ok())
        }
        "json" => find::paths(&found(query, wanted, stores)?, (0, stores.now)),
        "pickle" => return Ok((PICKLE, pickle::paths(&found(query, wanted, stores)?, (0, stores.now)))),
        "msgpack" => return Ok((MSGPACK, msgpack::paths(&found(query, wanted, stores)?, (0, stores.now)))),
        "protobuf" | "protobuf3" | "carbonapi_v2_pb" => {
            return Ok((PROTOBUF, protobuf::paths_v2(&found(query, wanted, stores)?, query)));
        }
        "carbonapi_v3_pb" => {
            return Ok((PROTOBUF, protobuf::paths_v3(&found(query, wanted, stores)?, query)));
        }
        other => {
            let other: String = other.chars().take(40).collect();
            let why = "Invalid value for 'format' parameter: it is treejson, completer, nodelist, json, pickle, msgpack, \
                       protobuf or carbonapi_v3_pb";
            return Err(bad(format!("{why}, not `{other}`")));
        }
    };
    wrapped(parameters, page)
}

/// `/metrics/expand`
pub(super) fn expand(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let leaves_only = parameters.number("leavesOnly", 0)? != 0;
    let wanted = if leaves_only { Wanted::Leaves } else { Wanted::All };
    let by_query = parameters.number("groupByExpr", 0)? != 0;
    let queries = parameters
        .all("query")
        .into_iter()
        .map(|query| Ok((query.to_owned(), found(query, wanted, stores)?)));
    let queries = queries.collect::<Result<Vec<_>, Refusal>>()?;
    wrapped(parameters, find::expanded(&queries, leaves_only, by_query))
}

/// `/metrics/index.json`
pub(super) fn index(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let names = all_names(parameters.flag("tagged"), stores)?;
    wrapped(parameters, json::texts(names.iter().map(Vec::as_slice)))
}

/// `/metrics/list`, as go-carbon answers it.
pub(super) fn list(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let names = all_names(true, stores)?;
    let mut page = b"{\"Metrics\": ".to_vec();
    page.extend(json::texts(names.iter().map(Vec::as_slice)));
    page.push(b'}');
    wrapped(parameters, page)
}

/// `/info`, as go-carbon answers it: the header of the file of one series.
pub(super) fn info(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let name = required(parameters, "target")?;
    let normal = normal_name(name.as_bytes()).map_err(|_| bad("`target` is not the name of a series"))?;
    for store in stores.stores() {
        let reader = Reader::new(&store.store, &store.tree, stores.now, || Ok(()));
        let header = reader.header(&normal);
        let header =
            header.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{name}: {error}")))?;
        if let Some(header) = header {
            return wrapped(parameters, find::info(&normal, &header));
        }
    }
    Err((StatusCode::NOT_FOUND, format!("there is no series `{name}`: /metrics/find?query=… finds names")))
}

/// All names of this node and of others, sorted; those of series with tags only if they are wanted.
fn all_names(tagged: bool, stores: &mut AllStores) -> Result<Vec<Vec<u8>>, Refusal> {
    let parameters = if tagged { vec![("tagged".to_owned(), "1".to_owned())] } else { Vec::new() };
    let theirs = TextsOf { path: "/metrics/index.json", parameters };
    let (mut names, texts) = stores.beside(theirs, |stores| {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for store in stores.stores() {
            let mut listing = Listing::new(tagged, LIMITS);
            while listing.step(&store.store.catalog(), SEARCH_STEPS).map_err(too_much)? == Progress::More {
                stores.goes_on().map_err(|stop| refusal(stop.into()))?;
            }
            names.extend(listing.finish().nodes().map(|node| node.path.to_vec()));
        }
        Ok(names)
    })?;
    names.extend(texts.into_iter().flatten().map(String::into_bytes));
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn found(query: &str, wanted: Wanted, stores: &mut AllStores) -> Result<Found, Refusal> {
    stores.find(&Selector::Glob(query.to_owned()), wanted)
}

fn required<'p>(parameters: &'p Parameters, name: &str) -> Result<&'p str, Refusal> {
    match parameters.get(name) {
        None => Err(bad(format!("Missing required parameter '{name}'"))),
        Some("") => Err(bad(format!("Required parameter '{name}' is empty"))),
        Some(value) => Ok(value),
    }
}

pub(super) fn too_much(error: SearchError) -> Refusal {
    (StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}
