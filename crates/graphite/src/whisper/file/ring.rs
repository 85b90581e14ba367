//! Slots of an archive: a ring of points of 12 bytes (spec graphite §5.3).

use model::{DiskError, TreeFile};

use crate::whisper::format::{Archive, POINT_BYTES};

const POINT: usize = POINT_BYTES as usize;

/// Most points that are read by one call.
pub const CHUNK_POINTS_MAX: usize = 4096;

/// The begin of the step that the time is in.
#[inline]
pub(super) fn aligned(time: i64, step: u32) -> i64 {
    time - time.rem_euclid(i64::from(step))
}

/// The slot of an interval, in an archive with this base.
#[inline]
pub(super) fn slot(archive: Archive, base: u32, interval: i64) -> u32 {
    let steps = (interval - i64::from(base)).div_euclid(i64::from(archive.step));
    let slot = steps.rem_euclid(i64::from(archive.points));
    u32::try_from(slot).expect("less than the points of the archive, which have 32 bits")
}

/// Appends the bytes of a point. Intervals of written points have 32 bits.
#[inline]
pub(super) fn push_point(bytes: &mut Vec<u8>, interval: i64, value: f64) {
    let time = u32::try_from(interval).expect("points outside 32 bits are not written");
    let mut point = [0; POINT];
    point[..4].copy_from_slice(&time.to_be_bytes());
    point[4..].copy_from_slice(&value.to_bits().to_be_bytes());
    bytes.extend_from_slice(&point);
}

/// Writes a run of points from a slot on, and goes on in the first slot behind the last one.
pub(super) fn write(file: &impl TreeFile, archive: Archive, slot: u32, run: &[u8]) -> Result<(), DiskError> {
    debug_assert!(run.len() as u64 <= archive.bytes() && slot < archive.points);
    let start = u64::from(archive.offset) + u64::from(slot) * POINT_BYTES;
    let fits = usize::try_from(archive.end() - start).map_or(run.len(), |room| room.min(run.len()));
    file.write_at(start, &run[..fits])?;
    if fits < run.len() {
        file.write_at(u64::from(archive.offset), &run[fits..])?;
    }
    Ok(())
}

/// Reads `count` slots from `first` on, around the ring as often as it takes, and gives each to `each`: stored time and
/// value. Uses at most [`CHUNK_POINTS_MAX`] points of `buffer`.
#[inline]
pub(super) fn read(
    file: &impl TreeFile,
    archive: Archive,
    first: u32,
    count: u64,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(u32, f64),
) -> Result<(), DiskError> {
    let (mut slot, mut left) = (u64::from(first), count);
    while left > 0 {
        let points = left.min(u64::from(archive.points) - slot).min(CHUNK_POINTS_MAX as u64);
        let length = points as usize * POINT;
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        file.read_at(u64::from(archive.offset) + slot * POINT_BYTES, &mut buffer[..length])?;
        for point in buffer[..length].as_chunks::<POINT>().0 {
            let [a, b, c, d, value @ ..] = *point;
            each(u32::from_be_bytes([a, b, c, d]), f64::from_bits(u64::from_be_bytes(value)));
        }
        left -= points;
        slot = (slot + points) % u64::from(archive.points);
    }
    Ok(())
}
