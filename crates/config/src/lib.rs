//! The options table, native configuration files, checks, diagnostics, and the resulting plan.

pub mod address;
mod code;
pub mod diagnostic;
mod exposure;
pub mod kinds;
mod loops;
pub mod native;
pub mod options;
pub mod plan;
pub mod streams;
pub mod text;
pub mod transport;

pub use exposure::{clear_listeners, is_open, open_http, open_management};
pub use loops::own_loops;
pub use native::{
    File, Format, NoVariables, SECTIONS_MAX, VALUE_BYTES_MAX, Variables, base, by_file, check, check_files,
    check_with, defaults, draft_of_files, includes, print, print_shown,
};
