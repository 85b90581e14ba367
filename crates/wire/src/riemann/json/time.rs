//! Times of JSON events: ISO 8601.

use std::fmt::{self, Display, Formatter};

use model::EventTime;

use crate::report::{signed_date_time, unix_days};

/// In UTC with milliseconds, truncated toward 1970: `2026-11-20T20:12:33.000Z`.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsoTime(pub(super) EventTime);

impl Display for IsoTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = match self.0 {
            EventTime::Seconds(seconds) => (seconds, 0),
            EventTime::Micros(micros) => {
                let millis = micros / 1_000;
                (millis.div_euclid(1_000), millis.rem_euclid(1_000))
            }
        };
        write!(f, "{}.{millis:03}Z", signed_date_time(seconds))
    }
}

/// Reads a date, which a time and an offset may follow, as unix microseconds: `2013`, `2013-04`, `2013-04-15`,
/// `2013-04-15T18:06:58.123-07:00`. Digits behind those of microseconds are ignored. Without an offset it is UTC. Dates by week or by
/// day of the year, which Riemann accepts too, are not read.
pub(super) fn read(text: &str) -> Option<i64> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    let mut of_date = [1; 2];
    for part in &mut of_date {
        if skip(&mut rest, b"-") {
            *part = digits(&mut rest, 2)?;
        }
    }
    let days = unix_days(year, of_date[0], of_date[1])?;
    let mut micros = 0;
    if skip(&mut rest, b"Tt") {
        micros = time_of_day(&mut rest)? - offset_s(&mut rest)? * 1_000_000;
    }
    // A year has four digits: it cannot overflow.
    rest.is_empty().then_some(days * 86_400_000_000 + micros)
}

/// `18`, `18:06`, `18:06:58`, `18:06:58.123` in microseconds. The last of the parts may have a fraction.
fn time_of_day(rest: &mut &[u8]) -> Option<i64> {
    const PARTS: [(i64, i64); 3] = [(24, 3_600), (60, 60), (60, 1)];
    let mut micros = 0;
    let mut unit_s = 0;
    for (at, (end, unit)) in PARTS.into_iter().enumerate() {
        if at > 0 && !skip(rest, b":") {
            break;
        }
        let part = digits(rest, 2).filter(|part| *part < end)?;
        micros += part * unit * 1_000_000;
        unit_s = unit;
    }
    if skip(rest, b".,") {
        let mut scale = unit_s * 100_000;
        let before = rest.len();
        while let [digit @ b'0'..=b'9', behind @ ..] = *rest {
            micros += scale * i64::from(digit - b'0');
            scale /= 10;
            *rest = behind;
        }
        if rest.len() == before {
            return None;
        }
    }
    Some(micros)
}

/// `Z`, `+02:00`, `-0700`, `+02`, or nothing.
fn offset_s(rest: &mut &[u8]) -> Option<i64> {
    if rest.is_empty() || skip(rest, b"Zz") {
        return Some(0);
    }
    let sign = match rest.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours = digits(rest, 2).filter(|hours| *hours < 24)?;
    let minutes = if rest.is_empty() {
        0
    } else {
        skip(rest, b":");
        digits(rest, 2).filter(|minutes| *minutes < 60)?
    };
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// Exactly so many digits.
fn digits(rest: &mut &[u8], number: usize) -> Option<i64> {
    let (digits, behind) = rest.split_at_checked(number)?;
    let value = digits
        .iter()
        .try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))?;
    *rest = behind;
    Some(value)
}

/// Skips one of these bytes, if it is there.
fn skip(rest: &mut &[u8], any: &[u8]) -> bool {
    match *rest {
        [byte, behind @ ..] if any.contains(byte) => {
            *rest = behind;
            true
        }
        _ => false,
    }
}

#[test]
fn dates_and_times_are_read_in_their_zone() {
    let table: &[(&str, Option<i64>)] = &[
        ("2013-04-15T18:06:58-07:00", Some(1_366_074_418_000_000)),
        ("2013-04-15T18:06:58.123+11:00", Some(1_366_009_618_123_000)),
        ("2013-04-15T18:06:58Z", Some(1_366_049_218_000_000)),
        ("2013-04-15t18:06:58z", Some(1_366_049_218_000_000)),
        ("2013-04-15T18:06:58", Some(1_366_049_218_000_000)),
        ("2013-04-15T18:06:58+0130", Some(1_366_043_818_000_000)),
        ("2013-04-15T18:06:58-01", Some(1_366_052_818_000_000)),
        ("2013-04-15T18:06:58,5Z", Some(1_366_049_218_500_000)),
        ("2013-04-15T18:06:58.123456789Z", Some(1_366_049_218_123_456)),
        ("2013-04-15T18:06.5Z", Some(1_366_049_190_000_000)),
        ("2013-04-15T18Z", Some(1_366_048_800_000_000)),
        ("2013-04-15", Some(1_365_984_000_000_000)),
        ("2013-04", Some(1_364_774_400_000_000)),
        ("2013", Some(1_356_998_400_000_000)),
        ("1969-12-31T23:59:59.5Z", Some(-500_000)),
        ("", None),
        ("now", None),
        ("13-04-15", None),
        ("2013-4-15", None),
        ("2013-02-29", None),
        ("2013-04-15Z", None),
        ("2013-04-15T", None),
        ("2013-04-15T24:00:00Z", None),
        ("2013-04-15T18:60:00Z", None),
        ("2013-04-15T18:06:60Z", None),
        ("2013-04-15T18:06:58.Z", None),
        ("2013-04-15T18:06:58+1", None),
        ("2013-04-15T18:06:58+24:00", None),
        ("2013-04-15T18:06:58+00:60", None),
        ("2013-04-15T18:06:58Zx", None),
        ("2013-04-15 18:06:58", None),
        ("1366049218", None),
    ];
    for (text, want) in table {
        assert_eq!(read(text), *want, "{text:?}");
    }
}

#[test]
fn times_have_three_decimals_and_are_truncated() {
    let table: &[(EventTime, &str)] = &[
        (EventTime::Seconds(1_763_669_553), "2025-11-20T20:12:33.000Z"),
        (EventTime::Seconds(0), "1970-01-01T00:00:00.000Z"),
        (EventTime::Seconds(-1), "1969-12-31T23:59:59.000Z"),
        (EventTime::Micros(1_763_669_553_123_999), "2025-11-20T20:12:33.123Z"),
        (EventTime::Micros(999), "1970-01-01T00:00:00.000Z"),
        (EventTime::Micros(-999), "1970-01-01T00:00:00.000Z"),
        (EventTime::Micros(-1_000), "1969-12-31T23:59:59.999Z"),
    ];
    for (time, want) in table {
        assert_eq!(IsoTime(*time).to_string(), *want);
    }
}
