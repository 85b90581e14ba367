//! The names of all series in memory: found by globs and by tags, saved and read at a start.
//!
//! Pure: no I/O, no clock. Every search has limits on results and on steps, and holds the catalog for a bounded number of
//! steps at a time.

mod glob;
mod id;
mod name;
mod names;
pub mod saved;
mod search;
mod store;
mod tagged;
mod tags;
#[cfg(test)]
mod tests;

pub use glob::{BadGlob, GLOB_BYTES_MAX, GLOB_LEVELS_MAX, NameGlob, is_pattern};
pub use id::SeriesId;
pub use name::{BadName, LEVELS_MAX, NAME_BYTES_MAX, component_of_file, normal_name};
pub use names::{Catalog, CatalogLimits, Inserted, NAMES_MAX, Refused};
pub use search::{
    CompleterRow, Found, Listing, Node, Progress, Search, SearchError, SearchLimits, TreeRow, Wanted,
    completer_query,
};
pub use tags::{
    ALL_COMPILED_BYTES_MAX, BadExpression, Completion, Counted, EXPRESSION_BYTES_MAX, EXPRESSIONS_MAX,
    Expression, Expressions, Filter, TagList, TagSearch,
};
