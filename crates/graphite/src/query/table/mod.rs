//! The table of functions: names, parameters, descriptions, and what they run.
//!
//! It is what `/functions` lists and what checks the arguments of a target before anything is fetched.

mod calculate;
mod check;
mod combine;
mod filter;
mod graph;
mod names;
mod row;
#[cfg(test)]
mod tests;
mod transform;

pub(crate) use check::{bind, check, literal, value_of};
pub use row::{Default, Function, Group, Param, ParamType};

use super::error::nearest;

/// All functions, by group.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    let groups = [
        combine::FUNCTIONS,
        transform::FUNCTIONS,
        calculate::FUNCTIONS,
        filter::FILTER_SERIES,
        filter::FILTER_DATA,
        filter::SORTING,
        names::ALIAS,
        names::SPECIAL,
        graph::FUNCTIONS,
    ];
    groups.into_iter().flatten()
}

/// The function of a name or an alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Function> {
    functions().find(|function| function.name == name || function.aliases.contains(&name))
}

/// The nearest name of a function, for a spelling mistake.
pub(crate) fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(
        name,
        functions()
            .flat_map(|function| std::iter::once(function.name).chain(function.aliases.iter().copied())),
    )
}

/// Names of the functions of pie charts, which make one number of a series.
pub const PIE: [&str; 3] = ["average", "maximum", "minimum"];

/// The slice of a series in a pie chart; None for an unknown name or an empty series.
#[must_use]
pub fn pie(series: &super::series::Series, name: &str) -> Option<f64> {
    super::functions::generate::pie(series, name)
}
