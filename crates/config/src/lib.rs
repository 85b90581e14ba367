//! The options table, configuration files, checks, diagnostics, and imports of the originals' files.

mod address;
mod code;
pub mod diagnostic;
pub mod import;
mod native;
pub mod options;
pub mod plan;
pub mod text;

pub use native::{Format, SECTIONS_MAX, check, defaults, print};
