//! `asPercent`: values as a share of a total, for all series, pairs, or groups by nodes.

use std::collections::BTreeMap;

use super::{divided, rows_of_two};
use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::functions::nodes;
use crate::query::series::Series;
use crate::query::series::aggregate::Aggregation;

fn percent(value: f64, total: f64) -> f64 {
    divided(value, total) * 100.0
}

/// `asPercent(S, total, *nodes)`.
pub(crate) fn as_percent(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let has_totals = matches!(call.args.value(1), Value::Series(_) | Value::Lists(_));
    if !has_totals && !matches!(call.args.value(1), Value::None | Value::Int(_) | Value::Float(_)) {
        return Err(QueryError::argument("the total has to be a number or series".to_owned()));
    }
    let number = call.args.value(1).clone();
    let totals = has_totals.then(|| call.args.series(1));
    let nodes = call.args.values(2).to_vec();
    if series.is_empty() {
        return Ok(Value::Series(Vec::new()));
    }
    let results = if !nodes.is_empty() {
        if number.number().is_some() {
            return Err(QueryError::argument(
                "with nodes, the total is left out or a list of series".to_owned(),
            ));
        }
        by_nodes(call, series, totals, &nodes)?
    } else if let Some(totals) = totals {
        of_totals(call, series, totals)?
    } else if let Some(total) = number.number() {
        of_rows(call, &series, &number.text(), |_| total)?
    } else {
        let total = sum(call, &series)?;
        let name = total.name.clone();
        of_rows(call, &series, &name, |row| total.values.get(row).copied().unwrap_or(f64::NAN))?
    };
    Ok(Value::Series(results))
}

/// The sum of all series, named after their paths.
fn sum(call: &mut Call<'_>, series: &[Series]) -> Result<Series, QueryError> {
    let name = format!("sumSeries({})", nodes::paths(series));
    call.engine.charge_steps(name.len())?;
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else {
        return Ok(Series::new(name, (0, 0, 1), Vec::new()));
    };
    let sums = Aggregation::Sum.of_rows(&columns, grid.rows, 0.0, &mut |work| call.engine.poll(work))?;
    Ok(Series::new(name, grid.times(), sums))
}

/// Each series by a total for each row of their common grid.
fn of_rows(
    call: &mut Call<'_>,
    series: &[Series],
    total_name: &str,
    total: impl Fn(usize) -> f64,
) -> Result<Vec<Series>, QueryError> {
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return Ok(Vec::new()) };
    call.engine.charge_points(grid.rows.saturating_mul(columns.len()))?;
    // Names repeat the total's.
    call.engine.charge_steps(total_name.len().saturating_mul(columns.len()))?;
    let totals: Vec<f64> = (0..grid.rows).map(total).collect();
    let factor = call.x_files_factor();
    let results = series.iter().zip(&columns).map(|(one, column)| {
        let mut values = vec![f64::NAN; grid.rows];
        let places = values[column.offset..].iter_mut().zip(&totals[column.offset..]);
        for ((place, total), value) in places.zip(column.values.iter()) {
            *place = percent(*value, *total);
        }
        let mut result = Series::new(format!("asPercent({},{total_name})", one.name), grid.times(), values);
        result.x_files_factor = factor;
        result
    });
    Ok(results.collect())
}

fn of_totals(
    call: &mut Call<'_>,
    mut series: Vec<Series>,
    mut totals: Vec<Series>,
) -> Result<Vec<Series>, QueryError> {
    if totals.len() != 1 && totals.len() != series.len() {
        let message = format!("{} totals for {} series", totals.len(), series.len());
        return Err(
            QueryError::argument(message).hint("the total is a number, one series, or one for each series")
        );
    }
    if totals.len() == series.len() {
        series.sort_by(|a, b| a.name.cmp(&b.name));
        totals.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let mut results = Vec::with_capacity(series.len());
    for (at, one) in series.iter().enumerate() {
        let total = totals.get(at).filter(|_| totals.len() > 1).unwrap_or(&totals[0]);
        let name = format!("asPercent({},{})", one.name, total.name);
        results.push(rows_of_two(call, one, total, name, percent)?);
    }
    Ok(results)
}

/// Totals for each key of nodes.
fn by_nodes(
    call: &mut Call<'_>,
    series: Vec<Series>,
    totals: Option<Vec<Series>>,
    nodes: &[Value],
) -> Result<Vec<Series>, QueryError> {
    let groups = nodes::group(series, |one| nodes::key(one, nodes));
    let total_groups = match totals {
        Some(totals) => nodes::group(totals, |one| nodes::key(one, nodes)),
        None => groups.clone(),
    };
    let mut sums = Vec::with_capacity(total_groups.len());
    for (key, mut group) in total_groups {
        let total = if group.len() == 1 { group.remove(0) } else { sum(call, &group)? };
        sums.push((key, total));
    }
    let places: BTreeMap<&str, usize> =
        sums.iter().enumerate().map(|(at, (key, _))| (key.as_str(), at)).collect();
    let mut used = vec![false; sums.len()];
    let mut results = Vec::new();
    for (key, group) in &groups {
        let at = places.get(key.as_str()).copied();
        for one in group {
            let total = at.map(|at| &sums[at].1);
            let name = format!("asPercent({},{})", one.name, total.map_or("MISSING", |total| &total.name));
            results.push(match total {
                Some(total) => rows_of_two(call, one, total, name, percent)?,
                None => nulls(call, one, name),
            });
        }
        if let Some(at) = at {
            used[at] = true;
        }
    }
    for ((_, total), used) in sums.iter().zip(used) {
        if !used {
            results.push(nulls(call, total, format!("asPercent(MISSING,{})", total.name)));
        }
    }
    Ok(results)
}

fn nulls(call: &mut Call<'_>, like: &Series, name: String) -> Series {
    let grid = (like.start, like.end, like.step);
    let mut result = Series::new(name, grid, vec![f64::NAN; like.values.len()]);
    result.x_files_factor = call.x_files_factor();
    result
}
