//! The options table, configuration files, checks, diagnostics, and imports of the originals' files.

mod address;
mod code;
pub mod diagnostic;
mod exposure;
mod fanout;
pub mod import;
mod loops;
mod native;
pub mod options;
pub mod plan;
pub mod relay;
pub mod text;
mod transport;

pub use exposure::{clear_listeners, open_http, open_management};
pub use fanout::{Fanout, Written, fanout, fanout_source, fanout_target};
pub use loops::own_loops;
pub use native::{Format, SECTIONS_MAX, check, defaults, print};
