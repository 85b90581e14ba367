//! Events in JSON: as subscribers read them (spec riemann §3.4), as clients send them (§6.2), and as files have them.
//!
//! Own code for both directions, because `wire` has no serde: a document would first be a tree of allocated values, and the fields
//! belong into the batch; Java's numbers and nulls are our own to write anyway.

mod read;
mod recorded;
mod reject;
mod text;
mod time;
mod write;

pub use read::{JsonLine, JsonOptions, JsonTimes, decode};
pub use recorded::decode_recorded;
pub use reject::JsonReject;
pub use text::NUMBER_BYTES_MAX;
pub use write::{Absent, encode, error_reply};

/// The reply to an event that was processed.
pub const OK_REPLY: &[u8] = b"{}";
