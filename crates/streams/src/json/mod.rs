//! JSON of values and of events, and values of JSON (spec riemann §3.4).
//!
//! [`write()`](write::write) and [`event_json`]: how Riemann and cheshire write. [`read()`](read::read) and [`charged()`]: within a budget. Not here: the
//! functions of a config (`libraries::cheshire`).

mod charged;
pub mod read;
pub mod write;

#[cfg(test)]
mod tests;

pub use charged::charged;
pub use write::{EVENT_BYTES_MAX, event_json};
