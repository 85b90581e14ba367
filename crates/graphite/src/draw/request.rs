//! What an image is drawn for, and why it may not be.

use crate::query::{Stop, TimeZone};

/// Most series of an image.
pub const SERIES_MAX: usize = 10_000;

/// Asked between two series whether to go on.
pub type KeepGoing<'k> = dyn FnMut() -> Result<(), Stop> + 'k;

/// The time range of a request and its zone.
#[derive(Clone, Copy, Debug)]
pub struct View<'z> {
    /// Epoch seconds.
    pub from: i64,
    /// Epoch seconds.
    pub until: i64,
    /// Of the labels.
    pub zone: &'z TimeZone,
}

/// Why there is no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawError {
    /// There are this many series, more than [`SERIES_MAX`].
    TooManySeries(usize),
    /// The request has to end.
    Stopped(Stop),
}
