//! Lines that were recorded: those of outputs of type `event_file`, and those that subscribers get and clients send.
//!
//! Their times differ: a file has Unix seconds (`report::event_json_line`), the others have dates.

use model::{EventTime, EventWriter, EventsBuilder, NumberRef};

use super::read::{Members, attribute, bad, decode_members};
use super::text::{Cursor, Token};
use super::{JsonLine, JsonOptions, JsonReject, JsonTimes};
use crate::report::attribute_of;

/// The last second of the year 9999. Times in milliseconds are beyond it.
const SECONDS_MAX: u64 = 253_402_300_799;

/// As [`decode`](super::decode), of a line in either form. Microseconds are kept.
///
/// # Errors
/// Why the line was rejected. No event was added.
pub fn decode_recorded(
    line: &[u8],
    bytes_max: usize,
    received: EventTime,
    into: &mut EventsBuilder,
) -> Result<JsonLine, JsonReject> {
    let options = JsonOptions { bytes_max, times: JsonTimes::Micros };
    match decode_members(line, received, options, Members::Fields, into) {
        Err(JsonReject::BadField { field: "time", .. }) => {
            decode_members(line, received, options, Members::OfFile, into)
        }
        decoded => decoded,
    }
}

/// Unix seconds.
pub(super) fn time(cursor: &mut Cursor<'_>) -> Result<Option<EventTime>, JsonReject> {
    let seconds = match cursor.value()? {
        Token::Null => return Ok(None),
        Token::Number(NumberRef::I64(seconds), _) if seconds.unsigned_abs() <= SECONDS_MAX => {
            return Ok(Some(EventTime::Seconds(seconds)));
        }
        Token::Number(NumberRef::F64(seconds), _) if seconds.abs() <= SECONDS_MAX as f64 => seconds,
        Token::Number(..) | Token::Text(_) | Token::Bool(_) | Token::List | Token::Map => {
            return bad("time", "Unix seconds up to the year 9999, or a date and time as text");
        }
    };
    Ok(Some(match (seconds * 1e6).round() as i64 {
        micros if micros % 1_000_000 == 0 => EventTime::Seconds(micros / 1_000_000),
        micros => EventTime::Micros(micros),
    }))
}

/// Adds the attribute of a member, or those of the object `attributes`.
pub(super) fn attribute_of_file(
    key: &str,
    cursor: &mut Cursor<'_>,
    event: &mut EventWriter<'_>,
) -> Result<(), JsonReject> {
    if key != "attributes" {
        return attribute(attribute_of(key).unwrap_or(key), cursor, event);
    }
    match cursor.value()? {
        Token::Null => Ok(()),
        Token::Map => cursor.entries(|cursor, key| attribute(&key, cursor, event)),
        Token::Bool(_) | Token::Number(..) | Token::Text(_) | Token::List => bad("attributes", "an object"),
    }
}
