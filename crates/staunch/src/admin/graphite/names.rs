//! `/metrics/find`, `/metrics/expand`, `/metrics/index.json` and `/tags` (spec graphite §6.6 to §6.9).

use axum::http::StatusCode;
use graphite::answer::{find, json, msgpack, pickle, protobuf};
use graphite::catalog::{
    Completion, Counted, Expressions, Filter, Found, Listing, Progress, SearchError, SearchLimits, TagList,
    TagSearch, Wanted, completer_query, normal_name,
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
const LIMITS: SearchLimits = SearchLimits { results_max: NAMES_MAX, steps_max: 100_000_000 };

/// Default of `limit` of completions.
const COMPLETIONS: i64 = 100;

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

/// All names, sorted; those of series with tags only if they are wanted.
fn all_names(tagged: bool, stores: &mut AllStores) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for store in stores.stores().to_vec() {
        let mut listing = Listing::new(tagged, LIMITS);
        while listing.step(&store.store.catalog(), SEARCH_STEPS).map_err(too_much)? == Progress::More {
            stores.goes_on().map_err(|stop| refusal(stop.into()))?;
        }
        names.extend(listing.finish().nodes().map(|node| node.path.to_vec()));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// `/tags`
pub(super) fn tags(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let all = listed(None, parameters, b"", stores)?;
    wrapped(parameters, find::tags(&all))
}

/// `/tags/TAG`
pub(super) fn tag(tag: &str, parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let known = listed(None, &Parameters::default(), b"", stores)?;
    let Some(known) = known.iter().find(|known| known.text == tag.as_bytes()) else {
        return wrapped(parameters, b"null".to_vec());
    };
    let all = listed(Some(tag), parameters, b"", stores)?;
    wrapped(parameters, find::values(known.id, tag.as_bytes(), &all))
}

/// `/tags/findSeries`
pub(super) fn find_series(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let texts = parameters.all("expr");
    if texts.is_empty() {
        return Err(argument("no tag expressions specified"));
    }
    let selector = Selector::Tags(texts.into_iter().map(str::to_owned).collect());
    let found = stores.find(&selector, Wanted::Leaves).map_err(as_json)?;
    wrapped(parameters, json::texts(found.paths(true)))
}

/// `/tags/autoComplete/tags`
pub(super) fn complete_tags(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let limit = limit(parameters)?.unwrap_or(COMPLETIONS as usize);
    let prefix = parameters.get("tagPrefix").unwrap_or("").as_bytes().to_vec();
    let query = TextsOf { path: "/tags/autoComplete/tags", parameters: parameters.repeated() };
    complete(query, limit, stores, |stores| match parameters.all("expr").as_slice() {
        [] => texts(None, parameters, &prefix, stores),
        expressions => found_texts(expressions, &Completion::Tags { prefix, limit }, stores),
    })
    .and_then(|all| wrapped(parameters, all))
}

/// `/tags/autoComplete/values`
pub(super) fn complete_values(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let Some(tag) = parameters.get("tag").filter(|tag| !tag.is_empty()) else {
        return Err(argument("no tag specified"));
    };
    let limit = limit(parameters)?.unwrap_or(COMPLETIONS as usize);
    let prefix = parameters.get("valuePrefix").unwrap_or("").as_bytes().to_vec();
    let query = TextsOf { path: "/tags/autoComplete/values", parameters: parameters.repeated() };
    complete(query, limit, stores, |stores| match parameters.all("expr").as_slice() {
        [] => texts(Some(tag), parameters, &prefix, stores),
        expressions => {
            let tag = tag.as_bytes().to_vec();
            found_texts(expressions, &Completion::Values { tag, prefix, limit }, stores)
        }
    })
    .and_then(|all| wrapped(parameters, all))
}

/// The first texts of this node and of others, as JSON.
fn complete(
    query: TextsOf,
    limit: usize,
    stores: &AllStores,
    mine: impl FnOnce(&AllStores) -> Result<Vec<Vec<u8>>, Refusal>,
) -> Result<Vec<u8>, Refusal> {
    let (mut all, theirs) = stores.beside(query, mine)?;
    all.extend(theirs.into_iter().map(String::into_bytes));
    all.sort_unstable();
    all.dedup();
    Ok(json::texts(all.iter().take(limit).map(Vec::as_slice)))
}

fn found_texts(
    expressions: &[&str],
    wanted: &Completion,
    stores: &AllStores,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut all = Vec::new();
    for store in stores.stores() {
        let expressions = Expressions::parse(expressions.iter().map(|text| text.as_bytes()))
            .map_err(|bad| argument(bad.to_string()))?;
        let mut search = TagSearch::new(expressions, wanted.clone(), LIMITS);
        while search.step(&store.store.catalog(), SEARCH_STEPS).map_err(too_much)? == Progress::More {
            stores.goes_on().map_err(|stop| refusal(stop.into()))?;
        }
        all.extend(search.finish().nodes().map(|node| node.path.to_vec()));
    }
    Ok(all)
}

fn texts(
    tag: Option<&str>,
    parameters: &Parameters,
    prefix: &[u8],
    stores: &AllStores,
) -> Result<Vec<Vec<u8>>, Refusal> {
    Ok(listed(tag, parameters, prefix, stores)?.into_iter().map(|one| one.text).collect())
}

/// Tags, or values of one, of all stores. One that several stores have is counted in each.
fn listed(
    tag: Option<&str>,
    parameters: &Parameters,
    prefix: &[u8],
    stores: &AllStores,
) -> Result<Vec<Counted>, Refusal> {
    let limit = limit(parameters)?;
    let mut all: Vec<Counted> = Vec::new();
    for store in stores.stores() {
        let filter = match parameters.get("filter").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(Filter::new(text).map_err(|bad| argument(bad.to_string()))?),
        };
        let mut list = TagList::new(tag.map(str::as_bytes), filter, prefix, limit, LIMITS);
        while list.step(&store.store.catalog(), SEARCH_STEPS).map_err(too_much)? == Progress::More {
            stores.goes_on().map_err(|stop| refusal(stop.into()))?;
        }
        all.extend(list.finish());
    }
    if stores.stores().len() > 1 {
        all.sort_by(|a, b| a.text.cmp(&b.text));
        all.dedup_by(|later, kept| {
            let is_same = later.text == kept.text;
            kept.count = kept.count.saturating_add(if is_same { later.count } else { 0 });
            is_same
        });
        all.truncate(limit.unwrap_or(usize::MAX));
    }
    Ok(all)
}

fn limit(parameters: &Parameters) -> Result<Option<usize>, Refusal> {
    let limit = parameters.number("limit", -1).map_err(as_json)?;
    Ok(usize::try_from(limit).ok())
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

fn too_much(error: SearchError) -> Refusal {
    (StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}

/// An error of `/tags`, which is JSON.
pub(super) fn argument(why: impl Into<String>) -> Refusal {
    as_json(bad(why))
}

fn as_json((status, why): Refusal) -> Refusal {
    let mut out = b"{\"error\": ".to_vec();
    json::push_text(why.as_bytes(), &mut out);
    out.push(b'}');
    (status, String::from_utf8_lossy(&out).into_owned())
}
