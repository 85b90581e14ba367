//! The format of a whisper file, without the file: bytes and texts to checked values and back.
//!
//! | file | job |
//! |---|---|
//! | `header` | header and archive list of a file, and what can be wrong with them |
//! | `layout` | the archives of a new file: rules and sizes |
//! | `method` | aggregation methods and their arithmetic |
//! | `range` | which values a request gets |
//! | `retention` | texts such as `60s:1d` |

mod header;
mod layout;
mod method;
mod range;
mod retention;
#[cfg(test)]
mod tests;

pub use header::{Archive, Damage, HEADER_BYTES, Header, PREFIX_BYTES, is_factor};
pub use layout::{ARCHIVES_MAX, ArchivePlan, FILE_BYTES_MAX, Layout, LayoutError, POINT_BYTES};
pub use method::{AggregationMethod, Fold};
pub use range::{FetchRange, RangeError};
pub use retention::{RETENTION_BYTES_MAX, RetentionError, RetentionFault, parse_retention, parse_retentions};
