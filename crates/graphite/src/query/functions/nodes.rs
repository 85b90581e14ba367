//! Nodes of names: the parts between dots, and tags.

use std::collections::{BTreeMap, BTreeSet};

use crate::query::call::Value;
use crate::query::series::Series;
use crate::query::target::{Expr, ExprKind, ParseOptions, parse};

/// The nodes and tags of a series, joined by dots. Of a name that is a call, the first path in it is used.
pub(super) fn key(series: &Series, nodes: &[Value]) -> String {
    let inner = if series.name.ends_with(')') { first_path(&series.name) } else { None };
    let name = inner.as_deref().unwrap_or(&series.name);
    let parts: Vec<String> = nodes.iter().map(|node| one(series, name, node)).collect();
    parts.join(".")
}

fn one(series: &Series, name: &str, node: &Value) -> String {
    if let Value::Int(number) = node
        && let Some(part) = of_name(name.split(';').next().unwrap_or_default(), *number)
    {
        return part.to_owned();
    }
    series.tags.value(&node.text()).unwrap_or_default().to_owned()
}

/// A node by its number; negative numbers count from the end.
fn of_name(name: &str, number: i64) -> Option<&str> {
    match usize::try_from(number) {
        Ok(number) => name.split('.').nth(number),
        Err(_) => name.rsplit('.').nth(usize::try_from(-(number + 1)).ok()?),
    }
}

/// The first path in a name such as `scale(a.b,2)`.
pub(super) fn first_path(name: &str) -> Option<String> {
    let mut expr: Expr = parse(name, ParseOptions { accept_prefix: true }).ok()?;
    loop {
        match expr.kind {
            ExprKind::Path(path) => return Some(path),
            ExprKind::Call(call) => expr = call.args.into_iter().next()?,
            ExprKind::Template(template) => expr = *template.body,
            ExprKind::Literal(_) => return None,
        }
    }
}

/// Series in groups of one key each, in the order of the first of each group.
pub(super) fn group(series: Vec<Series>, key: impl Fn(&Series) -> String) -> Vec<(String, Vec<Series>)> {
    let mut groups: Vec<(String, Vec<Series>)> = Vec::new();
    let mut places = BTreeMap::<String, usize>::new();
    for one in series {
        let key = key(&one);
        match places.get(&key) {
            Some(at) => groups[*at].1.push(one),
            None => {
                places.insert(key.clone(), groups.len());
                groups.push((key, vec![one]));
            }
        }
    }
    groups
}

/// Distinct paths joined by commas, in order: the arguments in the name of a combined series.
pub(super) fn paths(series: &[Series]) -> String {
    let mut seen = BTreeSet::<&str>::new();
    let distinct: Vec<&str> =
        series.iter().map(|s| s.path.as_str()).filter(|path| seen.insert(path)).collect();
    distinct.join(",")
}
