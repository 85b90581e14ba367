//! Bytes to records and back, one module per protocol: pure, no I/O, no clock.

pub mod first_line;
pub mod frame;
pub mod graphite;
pub mod management;
pub mod number;
pub mod packing;
pub mod pickle;
pub mod report;
pub mod statsd;
#[cfg(test)]
mod tests;
mod text;

pub use text::series_text;
