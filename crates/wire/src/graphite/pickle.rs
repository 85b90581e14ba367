//! Frames of Python pickle, protocol 0, as node writes them (spec statsd §8.4).
//!
//! A frame is a length of four bytes, big-endian, and a list of `(name, (time, value))`, all of it text;
//! the value is a string. Names that come here have no control characters, so LF stands only where the
//! opcodes want it.

use memchr::memmem;

pub(super) use super::name::escape_quoted as escape;

/// Longest body of a frame: carbon closes the connection without a word on a longer one.
pub const FRAME_BYTES_MAX: usize = 1_048_576;

/// Most bytes of points in one frame.
pub const FRAME_POINTS_BYTES_MAX: usize = FRAME_BYTES_MAX - LIST_BEGIN.len() - LIST_END.len();

const LIST_BEGIN: &[u8] = b"(l";
const LIST_END: &[u8] = b".";

pub(super) const POINT_BEGIN: &[u8] = b"(S'";
pub(super) const TIME_BEGIN: &[u8] = b"'\n(L";
pub(super) const VALUE_BEGIN: &[u8] = b"L\nS'";
pub(super) const POINT_END: &[u8] = b"'\ntta";

/// Appends one frame that holds `points`.
///
/// # Panics
/// When they are more than [`FRAME_POINTS_BYTES_MAX`] bytes: the caller should have used [`pickle_frames`].
pub fn pickle_frame(points: &[u8], out: &mut Vec<u8>) {
    assert!(points.len() <= FRAME_POINTS_BYTES_MAX, "{} bytes of points in one frame", points.len());
    let body = LIST_BEGIN.len() + points.len() + LIST_END.len();
    out.reserve(4 + body);
    let length = u32::try_from(body).expect("a body is at most FRAME_BYTES_MAX");
    out.extend_from_slice(&length.to_be_bytes());
    for piece in [LIST_BEGIN, points, LIST_END] {
        out.extend_from_slice(piece);
    }
}

/// Appends as few frames as `points` need, and to `ends` the end of each frame in `out` with its number of
/// points. No points, no frame.
pub fn pickle_frames(mut points: &[u8], out: &mut Vec<u8>, ends: &mut Vec<(u32, u32)>) {
    while !points.is_empty() {
        let (now, later) = points.split_at(whole_points(points));
        let count = memmem::find_iter(now, POINT_END).count();
        pickle_frame(now, out);
        let end = u32::try_from(out.len()).expect("a block of frames is far below 4 GiB");
        ends.push((end, u32::try_from(count).expect("a point has more than one byte")));
        points = later;
    }
}

/// Bytes of the points that fit into one frame.
fn whole_points(points: &[u8]) -> usize {
    if points.len() <= FRAME_POINTS_BYTES_MAX {
        return points.len();
    }
    // `POINT_END` has a LF, which no name and no number has: it stands nowhere else.
    let last = memmem::rfind(&points[..FRAME_POINTS_BYTES_MAX], POINT_END);
    last.expect("one point is at most NAME_BYTES_MAX and a number") + POINT_END.len()
}
