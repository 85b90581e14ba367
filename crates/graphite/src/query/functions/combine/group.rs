//! Functions that combine series in groups: by nodes, by tags, by a template, by `mapSeries` and `reduceSeries`.

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::functions::{filter, nodes};
use crate::query::series::{Series, Tags};

/// One series of a group, by a combining or aggregation function.
fn combined(call: &mut Call<'_>, callback: &str, group: Vec<Series>) -> Result<Option<Series>, QueryError> {
    Ok(call.engine.combine(callback, vec![group], call.range)?.into_iter().next())
}

/// `groupByNode(S, node, callback)`.
pub(crate) fn by_node(call: &mut Call<'_>) -> Answer {
    let node = call.args.value(1).clone();
    let callback = call.args.text(2).unwrap_or_default().to_owned();
    grouped(call, &callback, &[node])
}

/// `groupByNodes(S, callback, *nodes)`.
pub(crate) fn by_nodes(call: &mut Call<'_>) -> Answer {
    let callback = call.args.text(1).unwrap_or_default().to_owned();
    let nodes = call.args.values(2).to_vec();
    grouped(call, &callback, &nodes)
}

fn grouped(call: &mut Call<'_>, callback: &str, nodes: &[Value]) -> Answer {
    let series = call.args.series(0);
    let mut results = Vec::new();
    for (key, group) in nodes::group(series, |one| nodes::key(one, nodes)) {
        if let Some(mut result) = combined(call, callback, group)? {
            result.name = key;
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}

/// `groupByTags(S, callback, *tags)`.
pub(crate) fn by_tags(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let callback = call.args.text(1).unwrap_or_default().to_owned();
    let tags: Vec<String> = call.args.values(2).iter().map(Value::text).collect();
    let by_name = tags.iter().any(|tag| tag == "name");
    let name_of = |one: &Series| one.tags.value("name").unwrap_or_default().to_owned();
    let first = series.first().map(name_of).unwrap_or_default();
    let common = if series.iter().all(|one| name_of(one) == first) { first } else { callback.clone() };
    let key = |one: &Series| {
        let value = |tag: &String| format!("{tag}={}", one.tags.value(tag).unwrap_or_default());
        let mut parts: Vec<String> = tags.iter().filter(|tag| *tag != "name").map(value).collect();
        parts.sort();
        parts.insert(0, if by_name { name_of(one) } else { common.clone() });
        parts.join(";")
    };
    let mut results = Vec::new();
    for (key, group) in nodes::group(series, key) {
        if let Some(mut result) = combined(call, &callback, group)? {
            result.tags = Tags::of_series(&key);
            result.rename_with_path(key);
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}

/// `applyByNode(S, node, template, newName)`: evaluates the template for each distinct beginning of names.
pub(crate) fn apply_by_node(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let count = call.args.int(1).unwrap_or(0).saturating_add(1);
    let template = call.args.text(2).unwrap_or_default().to_owned();
    let new_name = call.args.text(3).map(str::to_owned);
    let mut prefixes: Vec<String> = series
        .iter()
        .map(|one| {
            let nodes: Vec<&str> = one.name.split('.').collect();
            let end = filter::slice_end(count, nodes.len());
            nodes[..end].join(".")
        })
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let mut results = Vec::new();
    for prefix in prefixes {
        let range = call.range;
        for mut result in call.engine.evaluate_text(&template.replace('%', &prefix), range)? {
            if let Some(name) = &new_name {
                result.name = name.replace('%', &prefix);
            }
            result.path.clone_from(&prefix);
            if let Some(last) = series.last() {
                (result.start, result.end) = (last.start, last.end);
            }
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}

/// `mapSeries(S, *nodes)`: a list for each key.
pub(crate) fn map(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let nodes = call.args.values(1).to_vec();
    let groups = nodes::group(series, |one| nodes::key(one, &nodes));
    Ok(Value::Lists(groups.into_iter().map(|(_, group)| group).collect()))
}

/// `reduceSeries(lists, function, node, *matchers)`.
pub(crate) fn reduce(call: &mut Call<'_>) -> Answer {
    let lists = call.args.lists(0);
    let function = call.args.text(1).unwrap_or_default().to_owned();
    let node = usize::try_from(call.args.int(2).unwrap_or(0))
        .map_err(|_| QueryError::argument("the node counts from 0".to_owned()))?;
    let matchers: Vec<String> = call.args.values(3).iter().map(Value::text).collect();
    let mut groups: Vec<(String, Vec<Option<Series>>)> = Vec::new();
    for one in lists.into_iter().flatten() {
        let nodes: Vec<&str> = one.name.split('.').collect();
        let Some(at) = nodes.get(node).and_then(|part| matchers.iter().position(|m| m == part)) else {
            continue;
        };
        let name = format!("{}.reduce.{function}", nodes[..node].join("."));
        call.engine.charge_steps(1 + groups.len())?;
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, slots)) => slots[at] = Some(one),
            None => {
                let mut slots = vec![None; matchers.len()];
                slots[at] = Some(one);
                groups.push((name, slots));
            }
        }
    }
    let mut results = Vec::new();
    for (name, slots) in groups {
        if let Some(at) = slots.iter().position(Option::is_none) {
            let message = format!("`{name}` has no series whose node {node} is `{}`", matchers[at]);
            return Err(QueryError::argument(message));
        }
        let lists = slots.into_iter().map(|slot| slot.into_iter().collect()).collect();
        if let Some(mut result) = call.engine.combine(&function, lists, call.range)?.into_iter().next() {
            result.name = name;
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}
