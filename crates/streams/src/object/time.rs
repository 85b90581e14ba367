//! Points in time as values.

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Milliseconds since 1970 in UTC.
    pub milliseconds: i64,
    /// Whether it is a date of clj-time (`org.joda.time.DateTime`) rather than a `java.util.Date`.
    pub is_joda: bool,
}
