//! Documents of changes to a store: `staunch whisper` writes the orders, the daemon the results.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/stores/NAME/delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeleteOrder {
    /// Names of series, or globs as in `/metrics/find`.
    pub names: Vec<String>,
    /// Expressions such as `host=web1`: the series that all of them fit.
    pub tags: Vec<String>,
    /// Only say what would be deleted.
    pub dry_run: bool,
}

/// Body of `POST /api/v1/stores/NAME/rename`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenameOrder {
    /// Name of a series, or of a branch: all series below it.
    pub from: String,
    /// Its new name.
    pub to: String,
    /// Only say what would be renamed.
    pub dry_run: bool,
}

/// Result of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Name of the output.
    pub store: String,
    /// Series that the order fits.
    pub series: u64,
    /// Those that were changed.
    pub changed: u64,
    /// Those that the request had no time for: ask again.
    pub left: u64,
    /// The first of their names.
    pub names: Vec<String>,
    /// Those that could not be changed.
    pub failed: u64,
    /// The first of these, with the reasons.
    pub failures: Vec<String>,
}

/// Body of `POST /api/v1/stores/NAME/drain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrainOrder {
    /// How many points to wait for, the oldest first: `left` of the last answer. None for all that the output has now.
    pub copies: Option<u64>,
    /// Longest wait for this answer, in milliseconds, if it is shorter than the daemon's own (5 s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

/// Result of `POST /api/v1/stores/NAME/drain`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Name of the output.
    pub store: String,
    /// All points that the output had when the request came are in synced files.
    pub done: bool,
    /// Points that it has had since without an outcome yet.
    pub queued: u64,
    /// Of the points that it had, those that are still missing.
    pub left: u64,
    /// Why the store is down, if it is and none of the points has come into a file since the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
}

/// Result of `GET /api/v1/stores`, as far as a client needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StoreNames {
    /// The open stores.
    pub stores: Vec<StoreName>,
}

/// A store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StoreName {
    /// Name of its output.
    pub name: String,
}
