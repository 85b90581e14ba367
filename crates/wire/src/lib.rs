//! Bytes to records and back, one module per protocol: pure, no I/O, no clock.

#[cfg(any(test, feature = "reference"))]
pub mod cost;
#[cfg(not(any(test, feature = "reference")))]
mod cost {
    /// Compiles to nothing except in tests and fuzz targets.
    #[inline(always)]
    pub(crate) fn touch(_bytes: usize) {}
}
pub mod compression;
pub mod first_line;
pub mod frame;
pub mod graphite;
pub mod management;
pub mod number;
pub mod pickle;
pub mod report;
pub mod statsd;
#[cfg(test)]
mod tests;
mod text;

pub use text::series_text;
