//! Why a JSON event was rejected.

use std::fmt::{self, Display, Formatter};

use model::EventLimit;
use model::limits::{EVENT_ENTRIES_MAX, EVENT_NESTING_MAX, EVENT_TAGS_MAX};

use super::text::NUMBER_BYTES_MAX;

/// Why it was rejected. Its text is that of the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonReject {
    /// The line has more bytes than this.
    TooLong(usize),
    /// It is no JSON.
    Syntax {
        /// What stands there in JSON.
        expected: &'static str,
        /// After so many bytes.
        at: usize,
    },
    /// A number has more than [`NUMBER_BYTES_MAX`] bytes.
    LongNumber,
    /// It is JSON, but no object.
    NotAnObject,
    /// A standard field has a value of another type.
    BadField {
        /// The field.
        field: &'static str,
        /// What its value must be.
        want: &'static str,
    },
    /// The begin of a time that is none.
    BadTime(String),
    /// It has more tags, values or nested values than an event may have.
    Limit(EventLimit),
    /// The texts of the batch would take 4 GiB.
    TooMuchText,
}

impl JsonReject {
    /// The reason's name.
    pub fn word(&self) -> &'static str {
        match self {
            JsonReject::TooLong(_) => "line_too_long",
            JsonReject::Syntax { .. } => "bad_json",
            JsonReject::LongNumber => "long_number",
            JsonReject::NotAnObject => "not_an_object",
            JsonReject::BadField { .. } => "bad_field",
            JsonReject::BadTime(_) => "bad_time",
            JsonReject::Limit(EventLimit::Tags) => "too_many_tags",
            JsonReject::Limit(EventLimit::Entries) => "too_many_attributes",
            JsonReject::Limit(EventLimit::Nesting) => "too_deep",
            JsonReject::TooMuchText => "too_much_text",
        }
    }

    /// True where the bytes that follow cannot be read as further events: Riemann ends its reply there.
    pub fn ends_the_body(&self) -> bool {
        match self {
            JsonReject::TooLong(_) | JsonReject::Syntax { .. } | JsonReject::LongNumber => true,
            JsonReject::NotAnObject
            | JsonReject::BadField { .. }
            | JsonReject::BadTime(_)
            | JsonReject::Limit(_)
            | JsonReject::TooMuchText => false,
        }
    }
}

impl From<EventLimit> for JsonReject {
    fn from(limit: EventLimit) -> JsonReject {
        JsonReject::Limit(limit)
    }
}

impl Display for JsonReject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            JsonReject::TooLong(bytes_max) => write!(f, "the event has more than {bytes_max} bytes"),
            JsonReject::Syntax { expected, at } => {
                write!(f, "invalid JSON: expected {expected} after {at} bytes")
            }
            JsonReject::LongNumber => write!(f, "a number has more than {NUMBER_BYTES_MAX} digits"),
            JsonReject::NotAnObject => f.write_str("an event must be an object"),
            JsonReject::BadField { field, want } => write!(f, "`{field}` must be {want}"),
            JsonReject::BadTime(text) => write!(f, "Invalid format: \"{text}\""),
            JsonReject::Limit(EventLimit::Tags) => write!(f, "the event has more than {EVENT_TAGS_MAX} tags"),
            JsonReject::Limit(EventLimit::Entries) => {
                write!(f, "the event has more than {EVENT_ENTRIES_MAX} values in its attributes")
            }
            JsonReject::Limit(EventLimit::Nesting) => {
                write!(f, "a value is in more than {EVENT_NESTING_MAX} lists and objects")
            }
            JsonReject::TooMuchText => f.write_str("the events of this read have too much text"),
        }
    }
}
