//! The state of an aggregation as bytes: what a checkpoint on disk and a hand-over to another process carry.
//!
//! [`super::Aggregator::save_begin`] and [`super::Aggregator::save_slice`] write it a few series at a time, so that the
//! thread that receives never stalls; [`super::Aggregator::restore`] reads it into an aggregation that has seen nothing
//! yet. What comes back is what was saved: every bit of a number, weights, members and registers of sets, the ages of
//! idle series. Pure: where the bytes live is the caller's matter. Not here: aliases (learnt anew), counts since the
//! start, and our own names (known by the daemon that runs).
//!
//! Bytes that are read are outside data: whatever they are, reading ends, holds to `series_max`, and takes no more
//! memory than the bytes could have stood for. What is damaged is left out and counted.
//!
//! # One window
//!
//! Saved state belongs to one window, the one that was open: saving is refused during a sweep, and a save that a
//! window's end catches is void. Slices let samples in between them, so that a series holds all that came before the
//! save began, and perhaps some of what came during it. [`Window`] says what restoring makes of that window:
//!
//! - it has not ended yet: its values go on in the same window, which then ends when it would have ended;
//! - it ended while nobody ran: it is closed at once under its own label, if any sample had come in it;
//! - it was told already (the caller knows that, see [`Told`]): its values are left out, as after the flush, and gauges, idle
//!   series and their ages stay. So nothing is counted twice.
//! - windows have another length or grid now: as at a reload, the values go on in the window that is open.
//!
//! Where only the label of what was told is known, windows under a second that share it count as told as well.
//!
//! # Format
//!
//! A header, blocks of series, a block of busy names if they are counted, an end block. Numbers are little-endian;
//! `varint` is 7 bits a byte, lowest first, the top bit set on all but the last. Checksums are XXH3-64 of the bytes of
//! the structure before them; those of blocks have the id, a random number, as seed, so that no bytes that somebody
//! sent us are ever taken for a block.
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

pub use restore::{NotRestored, Restored, Told, Window};
pub use save::Slice;

pub(super) use crate::bytes::{Bytes, put_f64, put_varint};
pub(super) use save::Saving;

/// What is known of saved state from its header alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Number that it was saved under: the higher of two is the younger.
    pub number: u64,
    /// When saving began, Unix nanoseconds.
    pub begun_wall_ns: u64,
}

/// Looks at the header of saved state.
///
/// # Errors
/// When the bytes do not begin with one.
pub fn peek(bytes: &[u8]) -> Result<Peeked, NotRestored> {
    let header = format::Header::decode(bytes)?;
    Ok(Peeked { number: header.number, begun_wall_ns: header.begun_wall_ns })
}
