//! Limits and behaviour of a store, and the rules of new files.

use crate::catalog::CatalogLimits;
use crate::whisper::names::NameOptions;
use crate::whisper::rules::{Aggregations, Schemas};
use crate::whisper::{Space, UpdateOptions};

/// Attempts to write a file that cannot be opened while others can: some two minutes.
pub const ATTEMPTS_MAX: u32 = 7;

/// Limits and behaviour.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Points are written at this age, in seconds.
    pub write_after_s: u32,
    /// Most bytes of points in memory, 12 a point and what its array has in reserve. Above three quarters of it points are written at once.
    pub points_bytes_max: u64,
    /// Most series.
    pub series_max: u32,
    /// Most bytes of the catalog.
    pub names_bytes_max: usize,
    /// Most updates of files in a second; 0: no limit.
    pub updates_per_second_max: u32,
    /// Most new files in a minute; 0: no limit.
    pub creates_per_minute_max: u32,
    /// How the space of a new file is taken.
    pub space: Space,
    /// Lock each file while it is written.
    pub lock: bool,
    /// Paths of tagged series.
    pub names: NameOptions,
    /// Differences from the Python library.
    pub update: UpdateOptions,
}

impl StoreOptions {
    /// Limits of the names.
    pub fn catalog_limits(&self) -> CatalogLimits {
        CatalogLimits { names_max: self.series_max, bytes_max: self.names_bytes_max }
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            write_after_s: 270,
            points_bytes_max: 512 << 20,
            series_max: 2_000_000,
            names_bytes_max: 512 << 20,
            updates_per_second_max: 0,
            creates_per_minute_max: 0,
            space: Space::Sparse,
            lock: false,
            names: NameOptions::default(),
            update: UpdateOptions::default(),
        }
    }
}

/// Layout and method of new files.
#[derive(Debug, PartialEq)]
pub struct Rules {
    /// Archives, by name.
    pub schemas: Schemas,
    /// Methods, by name.
    pub aggregations: Aggregations,
}
