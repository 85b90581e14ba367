//! Saves and restores the state of an aggregation, for checkpoints on disk and for hot restarts.
//!
//! [`super::Aggregator::save_begin`] and [`super::Aggregator::save_slice`] write the state a few series at a time,
//! so that the receiving thread never stalls. [`super::Aggregator::restore`] reads it into a new aggregation. The
//! restored state equals the saved one: every bit of a number, weights, members and registers of sets, ages of idle
//! series. Pure: the caller stores the bytes. Not saved: aliases (rebuilt from samples), counts since the start,
//! and names of self-metrics (the daemon knows them).
//!
//! Saved bytes are untrusted input. Whatever they are, reading ends, keeps to `series_max`, and uses memory in
//! proportion to the number of bytes. Damaged series are left out and counted.
//!
//! # The window
//!
//! A saved state belongs to the window that was open when saving began. Saving cannot begin during a sweep, and the
//! end of the window voids a save in progress. Samples may arrive between slices: a series contains all samples
//! from before the save began, and perhaps some of those during it. [`Window`] reports what restoring did with that
//! window:
//!
//! - It has not ended yet: its values continue in the same window, which ends when it would have ended.
//! - It ended while no instance ran: it is closed at once under its own label, if it had a sample.
//! - It was emitted already (the caller knows, see [`LastFlush`]): its values are left out, as after the flush.
//!   Gauges, idle series and their ages are kept. So nothing is counted twice.
//! - The length or grid of windows has changed: as at a reload, the values continue in the open window.
//!
//! When only the label of the last flush is known, windows under a second that share the label count as emitted
//! too.
//!
//! # Format
//!
//! A header, blocks of series, a block of busy names if they are counted, an end block. Numbers are little-endian;
//! `varint` is 7 bits a byte, lowest first, the top bit set on all but the last. Checksums are XXH3-64 of the bytes of
//! the structure before them; those of blocks have the id, a random number, as seed, so that bytes sent by a client
//! are never mistaken for a block.
//!
//! | header | bytes | | block header | bytes | | record of a series | bytes |
//! |---|---|---|---|---|---|---|---|
//! | magic `STNAGG\r\n` | 8 | | marker `f1 53 61 1a` | 4 | | kind (0 counter, 1 gauge, 2 timer, 3 set) | 1 |
//! | version 1 | 4 | | form: 0 series, 1 busy names, 2 end | 4 | | … plus 4: saw a sample in the window | |
//! | size of this header, 96 | 4 | | series, or names, in it | 4 | | beats since its last sample | varint |
//! | id | 8 | | bytes of the body | 4 | | bytes of the name | varint |
//! | number of this save | 8 | | checksum of the body | 8 | | bytes of the tags | varint |
//! | begun at, Unix ns | 8 | | checksum, seed id | 8 | | name, then tags, canonical | |
//! | window, ns | 8 | | | | | state, by kind | |
//! | grid: 0 wall, 1 start, 2 interval | 8 | | end block's body: | | | | |
//! | slot 0 of the grid, Unix ns | 8 | | series in all blocks | 8 | | | |
//! | planned end of the window, Unix ns | 8 | | | | | | |
//! | the window was opened at, Unix ns | 8 | | busy name: | | | | |
//! | label of the window before, all ones: none | 8 | | lines | varint | | | |
//! | checksum, seed 0 | 8 | | bytes of the name, name | varint, | | | |
//!
//! | state | |
//! |---|---|
//! | counter | sum (8) |
//! | gauge | value (8), windows to live (varint) |
//! | timer | observations (8), form (1): 0 values: number (varint), values (8 each) |
//! | | 1: the same, and behind the values a weight for each (8 each) |
//! | | 2: a sketch: `Sketch::save` |
//! | set | form (1): 0 no members |
//! | | 1: members: bytes (varint), text joined with LF |
//! | | 2: an estimate: seed (4), registers (16384) |

mod format;
#[cfg(any(test, feature = "promises"))]
pub mod promises;
mod restore;
mod save;
mod saving;

pub use format::NotRestored;
pub use restore::{LastFlush, Restored, Window};
pub use save::Slice;

pub(super) use saving::Saving;

/// Content of the header of a saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Number of the save: of two saves, the higher number is the newer one.
    pub number: u64,
    /// When saving began, Unix nanoseconds.
    pub begun_wall_ns: u64,
}

/// Reads the header of a saved state.
///
/// # Errors
/// When the bytes do not begin with a valid header.
pub fn peek(bytes: &[u8]) -> Result<Peeked, NotRestored> {
    let header = format::Header::decode(bytes)?;
    Ok(Peeked { number: header.number, begun_wall_ns: header.begun_wall_ns })
}
