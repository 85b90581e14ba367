//! `clj-time.core`: dates, their parts, and zones.

use jiff::Unit;
use jiff::civil::DateTime;

use super::moments::{integer, joda, moment, now, too_far, zone, zoned};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::ANY;
use crate::natives;
use crate::object::time::{Moment, Zone};
use crate::value::Value;

natives! {
    /// Dates.
    pub(super) NATIVES = {
        "now", 0, 0, "The present time.", |m, _| Ok(joda(now(m.graph)));
        "epoch", 0, 0, "The beginning of 1970.", |_, _| Ok(joda(Moment::joda(0, Zone::UTC)));
        "date-time", 1, 7, "A time: `year [month day hour minute second millisecond]`, in UTC.", |_, a| date_time(a);
        "date-midnight", 1, 3, "The beginning of a day: `year [month day]`, in UTC.", |_, a| date_time(a);
        "today-at", 2, 4, "A time of this day: `hour minute [second millisecond]`, in UTC.", |m, a| {
            let mut parts = day_of(&joda(now(m.graph)))?;
            parts.extend_from_slice(a);
            date_time(&parts)
        };
        "today-at-midnight", 0, 0, "The beginning of this day, in UTC.", |m, _| date_time(&day_of(&joda(now(m.graph)))?);
        "with-time-at-start-of-day", 1, 1, "The beginning of a date's day.", |_, a| {
            civil(zoned(&a[0])?.date().to_datetime(jiff::civil::Time::midnight()), moment(&a[0])?.zone)
        };
        "before?", 2, 2, "Whether a time is before another one.", |_, a| Ok((at(&a[0])? < at(&a[1])?).into());
        "after?", 2, 2, "Whether a time is after another one.", |_, a| Ok((at(&a[0])? > at(&a[1])?).into());
        "equal?", 2, 2, "Whether two times are the same, whatever their zones.", |_, a| Ok((at(&a[0])? == at(&a[1])?).into());
        "earliest", 1, ANY, "The earliest of times, or of a list of them.", |m, a| {
            let all = times(m, a)?;
            Ok(all.into_iter().min_by_key(|time| time.milliseconds).map(joda).unwrap_or_default())
        };
        "latest", 1, ANY, "The latest of times, or of a list of them.", |m, a| {
            let all = times(m, a)?;
            Ok(all.into_iter().max_by_key(|time| time.milliseconds).map(joda).unwrap_or_default())
        };
        "min-date", 1, ANY, "The earliest of times.", |m, a| m.call(&Value::Native(&NATIVES[10]), a);
        "max-date", 1, ANY, "The latest of times.", |m, a| m.call(&Value::Native(&NATIVES[11]), a);
        "first-day-of-the-month", 1, 2, "The first day of a time's month, or of `year month`.", |_, a| month_end(a, |time| time.first_of_month());
        "last-day-of-the-month", 1, 2, "The last day of a time's month, or of `year month`.", |_, a| month_end(a, |time| time.last_of_month());
        "number-of-days-in-the-month", 1, 2, "How many days the month of a time has, or that of `year month`.", |_, a| {
            let time = month(a)?;
            Ok(i64::from(zoned(&time)?.datetime().days_in_month()).into())
        };
        "floor", 2, 2, "A time without what is smaller than a part of it: `(floor time hour)`.", floor;
    }

    /// Parts of a time, in its zone.
    pub(super) PARTS = {
        "year", 1, 1, "The year.", |_, a| Ok(i64::from(zoned(&a[0])?.year()).into());
        "month", 1, 1, "The month, from 1 on.", |_, a| Ok(i64::from(zoned(&a[0])?.month()).into());
        "day", 1, 1, "The day of the month.", |_, a| Ok(i64::from(zoned(&a[0])?.day()).into());
        "day-of-week", 1, 1, "The day of the week: 1 is Monday.", |_, a| Ok(i64::from(zoned(&a[0])?.weekday().to_monday_one_offset()).into());
        "hour", 1, 1, "The hour, from 0 to 23.", |_, a| Ok(i64::from(zoned(&a[0])?.hour()).into());
        "minute", 1, 1, "The minute.", |_, a| Ok(i64::from(zoned(&a[0])?.minute()).into());
        "second", 1, 1, "The second.", |_, a| Ok(i64::from(zoned(&a[0])?.second()).into());
        "sec", 1, 1, "The second.", |_, a| Ok(i64::from(zoned(&a[0])?.second()).into());
        "milli", 1, 1, "The millisecond.", |_, a| Ok(i64::from(zoned(&a[0])?.millisecond()).into());
        "week-number-of-year", 1, 1, "The week of ISO 8601.", |_, a| Ok(i64::from(zoned(&a[0])?.date().iso_week_date().week()).into());
        "week-year", 1, 1, "The year of the week of ISO 8601.", |_, a| Ok(i64::from(zoned(&a[0])?.date().iso_week_date().year()).into());
    }

    /// Zones, which are names.
    pub(super) ZONES = {
        "time-zone-for-id", 1, 1, "The zone of a name, such as Europe/Berlin.", |_, a| Ok(Value::from(zone(&a[0])?.name()));
        "time-zone-for-offset", 1, 2, "The zone so many hours, and minutes, east of UTC.", |_, a| {
            let (hours, minutes) = (integer(&a[0])?, a.get(1).map_or(Ok(0), integer)?);
            if !(-23..=23).contains(&hours) || !(0..=59).contains(&minutes) {
                return Err(EvalError::illegal_argument("hours are from -23 to 23, and minutes from 0 to 59"));
            }
            let seconds = hours * 3600 + minutes * 60 * if hours < 0 { -1 } else { 1 };
            Ok(Value::from(Zone::Fixed(i32::try_from(seconds).expect("it is less than a day")).name()))
        };
        "default-time-zone", 0, 0, "UTC: a config means the same on every host.", |_, _| Ok(Value::text("UTC"));
        "available-ids", 0, 0, "The names of all zones.", |m, _| {
            m.budget.memory(64 * 1024)?;
            Ok(Value::set(Zone::names().map(Value::from)))
        };
        "to-time-zone", 2, 2, "The same time in another zone.", |_, a| Ok(joda(Moment::joda(at(&a[0])?, zone(&a[1])?)));
        "from-time-zone", 2, 2, "The time that has the same hour and day in another zone.", |_, a| civil(zoned(&a[0])?.datetime(), zone(&a[1])?);
    }
}

pub(super) fn at(value: &Value) -> Outcome<i64> {
    Ok(moment(value)?.milliseconds)
}

/// The date of clj-time of hours and days in a zone.
pub(super) fn civil(time: DateTime, zone: Zone) -> Outcome {
    Moment::of_civil(time, zone).map(joda).ok_or_else(too_far)
}

fn date_time(parts: &[Value]) -> Outcome {
    let part = |at: usize, default: i64| parts.get(at).map_or(Ok(default), integer);
    let year = i16::try_from(part(0, 1970)?).ok();
    let small = |at: usize, default: i64| Ok::<Option<i8>, EvalError>(i8::try_from(part(at, default)?).ok());
    let small = [small(1, 1)?, small(2, 1)?, small(3, 0)?, small(4, 0)?, small(5, 0)?];
    let milliseconds = i32::try_from(part(6, 0)?).ok().filter(|part| (0..1_000).contains(part));
    let time = (|| {
        let [month, day, hour, minute, second] = small;
        // A leap second is none in Joda.
        let second = second.filter(|second| *second < 60)?;
        DateTime::new(year?, month?, day?, hour?, minute?, second, milliseconds? * 1_000_000).ok()
    })();
    match time {
        Some(time) => civil(time, Zone::UTC),
        None => {
            let text = crate::print::to_text(&Value::vector(parts.iter().cloned()), true);
            Err(EvalError::illegal_argument(format!("there is no time with the parts {text}")))
        }
    }
}

/// Year, month and day of a time, as arguments of `date-time`.
fn day_of(time: &Value) -> Outcome<Vec<Value>> {
    let date = zoned(time)?.date();
    Ok(vec![i64::from(date.year()).into(), i64::from(date.month()).into(), i64::from(date.day()).into()])
}

fn times(machine: &mut crate::language::machine::Machine<'_>, arguments: &[Value]) -> Outcome<Vec<Moment>> {
    match arguments {
        [Value::Moment(one)] => Ok(vec![**one]),
        [list] => machine.collect(list)?.iter().map(moment).collect(),
        all => all.iter().map(moment).collect(),
    }
}

/// A time, or the first day of `year month`.
fn month(arguments: &[Value]) -> Outcome {
    match arguments {
        [time] => moment(time).map(joda),
        parts => date_time(parts),
    }
}

fn month_end(arguments: &[Value], end: fn(DateTime) -> DateTime) -> Outcome {
    let time = month(arguments)?;
    civil(end(zoned(&time)?.datetime()), moment(&time)?.zone)
}

/// `(floor time hour)`: the function says which part is the last one that counts.
fn floor(_: &mut crate::language::machine::Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let (time, part) = (zoned(&arguments[0])?.datetime(), &arguments[1]);
    let name = match part {
        Value::Native(native) => native.name,
        _ => "",
    };
    let zone = moment(&arguments[0])?.zone;
    let midnight = time.date().to_datetime(jiff::civil::Time::midnight());
    let truncated = |unit: Unit| {
        let rounding = jiff::civil::DateTimeRound::new().smallest(unit).mode(jiff::RoundMode::Trunc);
        time.round(rounding).map_err(|_| too_far())
    };
    match name {
        "year" => civil(midnight.first_of_year(), zone),
        "month" => civil(midnight.first_of_month(), zone),
        "day" => civil(midnight, zone),
        "hour" => civil(truncated(Unit::Hour)?, zone),
        "minute" => civil(truncated(Unit::Minute)?, zone),
        "second" | "sec" => civil(truncated(Unit::Second)?, zone),
        "milli" => civil(truncated(Unit::Millisecond)?, zone),
        _ => Err(EvalError::illegal_argument("floor takes year, month, day, hour, minute, second or milli")),
    }
}
