//! Bytes to records and back, one module per protocol: pure, no I/O, no clock.

pub mod carbonlink;
pub mod compression;
#[cfg(any(test, feature = "reference"))]
pub mod cost;
pub mod first_line;
pub mod frame;
pub mod graphite;
pub mod management;
pub mod number;
pub mod opentsdb;
pub mod pickle;
pub mod report;
pub mod riemann;
pub mod statsd;
mod steps;
#[cfg(test)]
mod tests;
mod text;

pub use text::series_text;
