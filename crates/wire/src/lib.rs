//! Bytes to records and back, one module per protocol: pure, no I/O, no clock.

pub mod carbonlink;
pub mod compression;
#[cfg(any(test, feature = "reference"))]
pub mod cost;
pub mod first_line;
pub mod frame;
pub mod graphite;
pub mod influxdb;
pub mod mail;
pub mod management;
pub mod number;
pub mod opentsdb;
pub mod pickle;
pub mod report;
pub mod request;
pub mod riemann;
pub mod statsd;
mod steps;
pub mod template;
#[cfg(test)]
mod tests;
mod text;

pub use text::series_text;
