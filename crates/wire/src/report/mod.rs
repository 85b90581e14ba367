//! Flushes and events as documents for people and files (spec statsd §7.9, §9.1-9.3).
//!
//! Path of a series: `model::Flushed` -> **`add`** of one of the three documents -> at the flush's end
//! **`finish`** -> the console's or file's writer.
//! Not here: when a flush ends, which file it goes to, and its rotation. Dates are civil UTC computed from
//! Unix seconds: no clock, no time zone.
//! Invariant: a document never holds more than its `document_bytes_max`; each series handed in is either
//! in the document or counted as left out.

mod console;
mod date;
mod event;
mod file;
mod key_flush;

pub(crate) use date::date_time;

pub use console::{Console, ConsoleEncoding, DOCUMENT_BYTES_MAX};
pub use date::numeric_date;
pub use event::event_json_line;
pub use file::PerlFile;
pub use key_flush::{KeyFlushEncoding, key_flush_lines};

/// What became of the series that a document was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Documented {
    /// Series that are in the document. Those that its form leaves out on purpose are not counted at all.
    pub series: u64,
    /// Series that no longer fitted.
    pub left_out: u64,
}

#[cfg(test)]
mod tests;
