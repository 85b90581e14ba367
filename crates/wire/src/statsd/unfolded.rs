//! How far a line may unfold: samples that share a name on the wire, each written with all of it.
//!
//! One datagram of two-byte values behind a long name could otherwise ask for 500 MB, wherever each value gets a line: in
//! rewriting (`rewrite`), for values with a time, which no aggregation holds (`dogstatsd`, `union`), and for aggregates sent
//! on as samples.

/// Most bytes that each byte of a line may become, behind the first [`WRITTEN_BYTES_ALWAYS`]. Where name, tags and fields
/// have 512 bytes together, or the line has 2 KiB, no value is left out of a line of 16 KiB or less.
pub const WRITTEN_PER_BYTE_MAX: usize = 256;

/// What any line may become.
pub const WRITTEN_BYTES_ALWAYS: usize = 64 << 10;

/// Most bytes that one line may become where each value gets a line. Lines of clients stay far below, and of 16 KiB or less are
/// bounded by [`WRITTEN_PER_BYTE_MAX`] first.
pub const LINE_WRITTEN_BYTES_MAX: usize = 4 << 20;

/// What a line of so many bytes may become.
pub(super) fn line_written_bytes_max(bytes: usize) -> usize {
    written_bytes_max(bytes).min(LINE_WRITTEN_BYTES_MAX)
}

/// What so many bytes that came in may become.
pub(super) fn written_bytes_max(bytes: usize) -> usize {
    WRITTEN_BYTES_ALWAYS + WRITTEN_PER_BYTE_MAX * bytes
}
