//! Points in time as texts. Past the years from -9999 to 9999 they are their number.

use crate::object::time::Moment;

/// ISO 8601 with milliseconds: of a `java.util.Date` as the reader takes it in `#inst`, of clj-time in its own zone.
pub fn iso(moment: Moment) -> String {
    let zone = match moment.zoned() {
        Some(time) if moment.is_joda && time.offset().is_zero() => "Z",
        Some(_) if moment.is_joda => "%:z",
        _ => "-00:00",
    };
    written(moment, &format!("%Y-%m-%dT%H:%M:%S%.3f{zone}"))
}

/// What `str` makes of it: for a `java.util.Date` what Java's `toString` gives where the zone is UTC (spec riemann §14.2),
/// `Tue Nov 14 22:13:20 UTC 2023`.
pub fn plain(moment: Moment) -> String {
    if moment.is_joda { iso(moment) } else { written(moment, "%a %b %d %H:%M:%S UTC %Y") }
}

fn written(moment: Moment, format: &str) -> String {
    moment.zoned().map_or_else(|| moment.milliseconds.to_string(), |time| time.strftime(format).to_string())
}
