//! Searches by name: in slices, with limits on results and on steps.

mod answers;
mod found;
mod listing;
mod walk;

pub use answers::{CompleterRow, TreeRow, completer_query};
pub(in crate::catalog) use found::Budget;
pub use found::{Found, Node, Progress, SearchError, SearchLimits};
pub use listing::Listing;
pub use walk::{Search, Wanted};
