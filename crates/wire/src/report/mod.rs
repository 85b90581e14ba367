//! Flushes and events as documents for consoles and files (spec statsd §7.9, §9.1-9.3).
//!
//! Path of a series: `model::Flushed` -> **`add`** of one of the three documents -> at the flush's end
//! **`finish`** -> the console's or file's writer.
//! Not here: when a flush ends, the name of the file, and its rotation. Dates are computed from Unix seconds in UTC: no
//! clock, no time zone.
//! Invariant: a document never grows beyond its `document_bytes_max`; each series added is either in the document or
//! counted as left out.

mod console;
mod date;
mod documented;
mod event;
mod file;
mod key_flush;

pub(crate) use date::{date_time, signed_date_time, unix_days};
pub(crate) use event::attribute_of;

pub use console::{Console, ConsoleEncoding, DOCUMENT_BYTES_MAX};
pub use date::{java_date, numeric_date};
pub use documented::Documented;
pub use event::{event_json_line, number as event_number_json, value_json as event_value_json};
pub use file::PerlFile;
pub use key_flush::{KeyFlushEncoding, key_flush_lines};

#[cfg(test)]
mod tests;
