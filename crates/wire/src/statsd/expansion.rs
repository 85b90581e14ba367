//! Limits on expansion: how many bytes a line may become when each of its values is written with the whole name.
//!
//! Without a limit one datagram of two-byte values after a long name could produce 500 MB wherever each value gets
//! its own line: in rewriting (`rewrite`), for values with a time, which are not aggregated (`dogstatsd`, `union`),
//! and for aggregates sent on as samples.

/// Most output bytes for each byte of a line, in addition to [`WRITTEN_BYTES_ALWAYS`]. When name, tags and fields
/// have 512 bytes together, or the line has 2 KiB, a line of 16 KiB or less loses no value.
pub const WRITTEN_PER_BYTE_MAX: usize = 256;

/// Output bytes that any line may become.
pub const WRITTEN_BYTES_ALWAYS: usize = 64 << 10;

/// Most output bytes of one line where each value gets its own line. Lines of clients stay far below, and lines of 16
/// KiB or less are bounded by [`WRITTEN_PER_BYTE_MAX`] first.
pub const LINE_WRITTEN_BYTES_MAX: usize = 4 << 20;

/// Most output bytes of a line of this length.
pub(super) fn line_written_bytes_max(bytes: usize) -> usize {
    written_bytes_max(bytes).min(LINE_WRITTEN_BYTES_MAX)
}

/// Most output bytes for this many bytes of input.
pub(super) fn written_bytes_max(bytes: usize) -> usize {
    WRITTEN_BYTES_ALWAYS + WRITTEN_PER_BYTE_MAX * bytes
}
