//! Keys of the attributes that DogStatsD's events and checks have, and their fixed values.

/// [`EVENT`] or [`CHECK`].
pub const KIND: &str = "kind";
/// The kind of `_e{…}`.
pub const EVENT: &str = "event";
/// The kind of `_sc|…`.
pub const CHECK: &str = "check";
/// `normal` or `low`.
pub const PRIORITY: &str = "priority";
/// `error`, `warning`, `info` or `success`.
pub const ALERT_TYPE: &str = "alert_type";
/// Key that groups events.
pub const AGGREGATION_KEY: &str = "aggregation_key";
/// What sent the event: `nagios`, `jenkins`.
pub const SOURCE_TYPE_NAME: &str = "source_type_name";
/// Container of the client.
pub const CONTAINER_ID: &str = "container_id";
