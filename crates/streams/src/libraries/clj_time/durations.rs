//! `clj-time.core`: durations such as `(hours 2)`, which are maps, and intervals of two times.

use jiff::{Span, Unit, ZonedDateTime};

use super::dates::at;
use super::moments::{integer, joda, moment, named, now, too_far, zoned};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::ANY;
use crate::natives;
use crate::object::class;
use crate::object::time::Moment;
use crate::value::Value;

/// The units, from the longest to the shortest, with their milliseconds; those of a month and a year depend on the time.
const UNITS: [(&str, Option<i64>); 8] = [
    ("years", None),
    ("months", None),
    ("weeks", Some(604_800_000)),
    ("days", Some(86_400_000)),
    ("hours", Some(3_600_000)),
    ("minutes", Some(60_000)),
    ("seconds", Some(1_000)),
    ("millis", Some(1)),
];

natives! {
    /// What is done with durations and intervals.
    pub(super) NATIVES = {
        "plus", 1, ANY, "A time after durations; of durations only, their sum.", |_, a| shifted(a, 1);
        "minus", 1, ANY, "A time before durations.", |_, a| shifted(a, -1);
        "ago", 1, 1, "The time that is a duration before now.", |m, a| shifted(&[joda(now(m.graph)), a[0].clone()], -1);
        "from-now", 1, 1, "The time that is a duration after now.", |m, a| shifted(&[joda(now(m.graph)), a[0].clone()], 1);
        "interval", 2, 2, "The interval from one time to another, later one.", |_, a| {
            if at(&a[0])? > at(&a[1])? {
                return Err(EvalError::illegal_argument("The end instant must be greater than the start instant"));
            }
            Ok(Value::map([(Value::keyword("start"), a[0].clone()), (Value::keyword("end"), a[1].clone())]))
        };
        "start", 1, 1, "When an interval begins.", |_, a| Ok(named(&a[0], "start").clone());
        "end", 1, 1, "When an interval ends.", |_, a| Ok(named(&a[0], "end").clone());
        "within?", 2, 3, "Whether a time is in an interval, without its end; or from a time to another one.", |_, a| match a {
            [interval, time] => {
                let (start, end) = ends(interval)?;
                Ok((start..end).contains(&at(time)?).into())
            }
            [start, end, time, ..] => Ok((at(start)?..=at(end)?).contains(&at(time)?).into()),
            _ => Ok(Value::Nil),
        };
        "overlaps?", 2, 2, "Whether two intervals have a time in common.", |_, a| {
            let ((start, end), (other_start, other_end)) = (ends(&a[0])?, ends(&a[1])?);
            Ok((start < other_end && other_start < end).into())
        };
        "abuts?", 2, 2, "Whether one of two intervals begins when the other one ends.", |_, a| {
            let ((start, end), (other_start, other_end)) = (ends(&a[0])?, ends(&a[1])?);
            Ok((start == other_end || other_start == end).into())
        };
    }

    /// Durations.
    pub(super) MADE = {
        "years", 1, 1, "A duration of years.", |_, a| duration("years", &a[0]);
        "months", 1, 1, "A duration of months.", |_, a| duration("months", &a[0]);
        "weeks", 1, 1, "A duration of weeks.", |_, a| duration("weeks", &a[0]);
        "days", 1, 1, "A duration of days.", |_, a| duration("days", &a[0]);
        "hours", 1, 1, "A duration of hours.", |_, a| duration("hours", &a[0]);
        "minutes", 1, 1, "A duration of minutes.", |_, a| duration("minutes", &a[0]);
        "seconds", 1, 1, "A duration of seconds.", |_, a| duration("seconds", &a[0]);
        "secs", 1, 1, "A duration of seconds.", |_, a| duration("seconds", &a[0]);
        "millis", 1, 1, "A duration of milliseconds.", |_, a| duration("millis", &a[0]);
    }

    /// How long intervals and durations are.
    pub(super) MEASURES = {
        "in-millis", 1, 1, "The whole milliseconds of an interval or a duration.", |_, a| whole(&a[0], 1);
        "in-msecs", 1, 1, "The whole milliseconds of an interval or a duration.", |_, a| whole(&a[0], 1);
        "in-seconds", 1, 1, "The whole seconds of an interval or a duration.", |_, a| whole(&a[0], 1_000);
        "in-secs", 1, 1, "The whole seconds of an interval or a duration.", |_, a| whole(&a[0], 1_000);
        "in-minutes", 1, 1, "The whole minutes of an interval or a duration.", |_, a| whole(&a[0], 60_000);
        "in-hours", 1, 1, "The whole hours of an interval or a duration.", |_, a| whole(&a[0], 3_600_000);
        "in-days", 1, 1, "The whole days of an interval or a duration.", |_, a| whole(&a[0], 86_400_000);
        "in-weeks", 1, 1, "The whole weeks of an interval or a duration.", |_, a| whole(&a[0], 604_800_000);
        "in-months", 1, 1, "The whole months of an interval or a duration.", |_, a| months(&a[0]).map(Value::from);
        "in-years", 1, 1, "The whole years of an interval or a duration.", |_, a| Ok((months(&a[0])? / 12).into());
    }
}

fn duration(unit: &str, count: &Value) -> Outcome {
    Ok(Value::map([(Value::keyword(unit), integer(count)?.into())]))
}

fn overflow() -> EvalError {
    EvalError::throw(&class::ARITHMETIC, "a duration that is too long")
}

/// How many of each unit a duration has.
fn counts(value: &Value) -> Outcome<[i64; UNITS.len()]> {
    if !matches!(value, Value::Map(_)) || !named(value, "start").is_nil() {
        return Err(crate::nodes::fields::cannot("use as a duration", value));
    }
    let mut counts = [0; UNITS.len()];
    for ((unit, _), count) in UNITS.iter().zip(&mut counts) {
        match named(value, unit) {
            Value::Nil => {}
            some => *count = integer(some)?,
        }
    }
    Ok(counts)
}

/// The first argument, and the durations after it.
fn shifted(arguments: &[Value], sign: i64) -> Outcome {
    let (first, durations) = arguments.split_first().expect("the table asks for one argument at least");
    if let Value::Map(_) = first {
        let mut sum = counts(first)?;
        for duration in durations {
            for (sum, count) in sum.iter_mut().zip(counts(duration)?) {
                *sum =
                    count.checked_mul(sign).and_then(|count| sum.checked_add(count)).ok_or_else(overflow)?;
            }
        }
        let entries = UNITS.iter().zip(sum).filter(|(_, count)| *count != 0);
        return Ok(Value::map(entries.map(|((unit, _), count)| (Value::keyword(unit), count.into()))));
    }
    let mut time = zoned(first)?;
    for duration in durations {
        time = shift(&time, counts(duration)?, sign)?;
    }
    Ok(joda(Moment::joda(time.timestamp().as_millisecond(), moment(first)?.zone)))
}

fn shift(time: &ZonedDateTime, counts: [i64; UNITS.len()], sign: i64) -> Outcome<ZonedDateTime> {
    let counts = counts.map(|count| count.checked_mul(sign));
    let [years, months, weeks, days, hours, minutes, seconds, millis] = counts;
    let span = (|| {
        Span::new()
            .try_years(years?)
            .and_then(|span| span.try_months(months.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_weeks(weeks.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_days(days.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_hours(hours.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_minutes(minutes.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_seconds(seconds.unwrap_or(i64::MAX)))
            .and_then(|span| span.try_milliseconds(millis.unwrap_or(i64::MAX)))
            .ok()
    })();
    time.checked_add(span.ok_or_else(overflow)?).map_err(|_| too_far())
}

/// When an interval begins and ends, in milliseconds.
fn ends(interval: &Value) -> Outcome<(i64, i64)> {
    Ok((at(named(interval, "start"))?, at(named(interval, "end"))?))
}

/// An interval, or a duration without months and years, in units of so many milliseconds, towards zero.
fn whole(value: &Value, unit: i64) -> Outcome {
    if !named(value, "start").is_nil() {
        let (start, end) = ends(value)?;
        return Ok((end.checked_sub(start).ok_or_else(overflow)? / unit).into());
    }
    let mut sum: i64 = 0;
    for ((name, length), count) in UNITS.iter().zip(counts(value)?) {
        if count == 0 {
            continue;
        }
        let Some(length) = length else {
            let message = format!("Cannot convert to a number of seconds, as {name} vary in length");
            return Err(EvalError::throw(&class::UNSUPPORTED, message));
        };
        sum = count.checked_mul(*length).and_then(|part| sum.checked_add(part)).ok_or_else(overflow)?;
    }
    Ok((sum / unit).into())
}

fn months(value: &Value) -> Outcome<i64> {
    let (start, end) = (named(value, "start"), named(value, "end"));
    if !start.is_nil() {
        let start = zoned(start)?;
        let span = start.until((Unit::Month, &zoned(end)?.with_time_zone(start.time_zone().clone())));
        return Ok(span.map_err(|_| too_far())?.get_months().into());
    }
    let [years, months, rest @ ..] = counts(value)?;
    if rest.iter().any(|count| *count != 0) {
        let message = "Cannot convert to a number of months, as months vary in length";
        return Err(EvalError::throw(&class::UNSUPPORTED, message));
    }
    years.checked_mul(12).and_then(|part| part.checked_add(months)).ok_or_else(overflow)
}
