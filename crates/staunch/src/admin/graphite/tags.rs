//! `/tags` (spec graphite §6.9): what is there, on this node and on others. Not here: changes of the index (`tagging`).

use graphite::answer::{find, json};
use graphite::catalog::{Completion, Counted, Expressions, Filter, Progress, TagList, TagSearch, Wanted};
use graphite::query::Selector;
use graphite::store::SEARCH_STEPS;

use super::names::{LIMITS, too_much};
use super::page::{Page, wrapped};
use super::parameters::{Parameters, bad};
use super::peers::{CountsOf, TextsOf};
use super::queries::{AllStores, refusal};
use crate::admin::refusal::Refusal;

/// Default of `limit` of completions.
const COMPLETIONS: i64 = 100;

/// `/tags`
pub(super) fn tags(parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let theirs = CountsOf { path: "/tags".to_owned(), parameters: parameters.repeated(), of_values: false };
    let all = stores.beside(theirs, |stores| listed(None, parameters, b"", stores))?;
    wrapped(parameters, find::tags(&joined(all, limit(parameters)?)))
}

/// `/tags/TAG`
pub(super) fn tag(tag: &str, parameters: &Parameters, stores: &mut AllStores) -> Result<Page, Refusal> {
    let path = format!("/tags/{}", percent_encoded(tag));
    let theirs = CountsOf { path, parameters: parameters.repeated(), of_values: true };
    let mut id = None;
    let all = stores.beside(theirs, |stores| {
        let known = listed(None, &Parameters::default(), b"", stores)?;
        id = known.iter().find(|known| known.text == tag.as_bytes()).map(|known| known.id);
        match id {
            None => Ok(Vec::new()),
            Some(_) => listed(Some(tag), parameters, b"", stores),
        }
    })?;
    // A tag that only other nodes have is one of theirs.
    let id = id.or_else(|| all.1.iter().flatten().next().map(|_| CountsOf::ELSEWHERE));
    let Some(id) = id else { return wrapped(parameters, b"null".to_vec()) };
    wrapped(parameters, find::values(id, tag.as_bytes(), &joined(all, limit(parameters)?)))
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
    all.extend(theirs.into_iter().flatten().map(String::into_bytes));
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

/// Tags, or values of one, of the stores of this node.
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
    Ok(joined((all, Vec::new()), limit))
}

/// The texts of stores and nodes, sorted. What several have is counted in each.
fn joined((mut all, theirs): (Vec<Counted>, Vec<Vec<Counted>>), limit: Option<usize>) -> Vec<Counted> {
    all.extend(theirs.into_iter().flatten());
    // Stable: the number of this node's own stays.
    all.sort_by(|a, b| a.text.cmp(&b.text));
    all.dedup_by(|later, kept| {
        let is_same = later.text == kept.text;
        kept.count = kept.count.saturating_add(if is_same { later.count } else { 0 });
        is_same
    });
    all.truncate(limit.unwrap_or(usize::MAX));
    all
}

/// A text as a part of a path.
fn percent_encoded(text: &str) -> String {
    let form: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    form.replace('+', "%20")
}

fn limit(parameters: &Parameters) -> Result<Option<usize>, Refusal> {
    let limit = parameters.number("limit", -1).map_err(as_json)?;
    Ok(usize::try_from(limit).ok())
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
