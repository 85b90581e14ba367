//! Header and archive list of a file: 16 bytes, then 12 for each archive, big-endian (spec graphite §5.1).
//!
//! A file is taken as it is if every archive lies inside it, behind the header, and the archives keep the rules of
//! [`Layout`]. Bytes between and behind the archives are ignored, as the original does.

use std::fmt;

use super::layout::{ARCHIVES_MAX, ArchivePlan, Layout, LayoutError, POINT_BYTES, check_archives};
use super::method::AggregationMethod;
use crate::codec::u32_be;

/// Bytes of the header without the archive list, and of each entry of that list.
pub const HEADER_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 12;

/// First bytes of a file that contain every valid header, and in most files the first points.
pub const PREFIX_BYTES: usize = 512;

const _: () = assert!(HEADER_BYTES + ENTRY_BYTES * ARCHIVES_MAX as u64 + POINT_BYTES <= PREFIX_BYTES as u64);

/// First bytes of a file in go-whisper's compressed format, which is another one.
const COMPRESSED: &[u8] = b"whisper_compressed";

/// An archive of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Archive {
    /// Place of its first point in the file.
    pub offset: u32,
    /// Seconds per point.
    pub step: u32,
    /// Number of points.
    pub points: u32,
}

impl Archive {
    /// Step and number of points.
    pub fn plan(self) -> ArchivePlan {
        ArchivePlan { step: self.step, points: self.points }
    }

    /// Seconds that the archive covers: step × points. At most 2^32 - 1.
    pub fn retention(self) -> i64 {
        i64::from(self.step) * i64::from(self.points)
    }

    /// Bytes of its points.
    pub fn bytes(self) -> u64 {
        u64::from(self.points) * POINT_BYTES
    }

    /// Place of the byte behind its last point.
    pub fn end(self) -> u64 {
        u64::from(self.offset) + self.bytes()
    }
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// How points are aggregated.
    pub method: AggregationMethod,
    /// The maximum retention in seconds as it is in the file; normally that of the coarsest archive.
    pub max_retention: u32,
    /// Least share of known points for which an aggregate is written: 0 to 1.
    pub x_files_factor: f32,
    /// At least one, finest first.
    archives: Box<[Archive]>,
}

/// Why a file is not a whisper file that can be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Damage {
    /// The file is empty: its creation was interrupted.
    Empty,
    /// Its beginning has only zeros: a power loss came after its creation, or something overwrote it.
    Zeros,
    /// The file ends inside the header or the archive list.
    HeaderShort {
        /// Bytes of the file.
        bytes: u64,
        /// Bytes that its header needs.
        needed: u64,
    },
    /// The file is in go-whisper's compressed format.
    Compressed,
    /// The aggregation type is unknown.
    Method {
        /// The number in the file; known are 1 to 8.
        number: u32,
    },
    /// The xFilesFactor is not between 0 and 1.
    XFilesFactor {
        /// Its bits in the file.
        bits: u32,
    },
    /// More than [`ARCHIVES_MAX`] archives.
    TooManyArchives {
        /// Their number in the file.
        archives: u32,
    },
    /// The archives break a rule.
    Layout(LayoutError),
    /// An archive begins inside the header or inside the archive before it.
    Overlap {
        /// Number of the archive, from 0.
        archive: usize,
        /// Place of its first point.
        offset: u32,
        /// First place that is free.
        free: u64,
    },
    /// The file ends before the end of its archives.
    Truncated {
        /// Bytes of the file.
        bytes: u64,
        /// Bytes that its archives need.
        needed: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Empty => f.write_str("the file is empty"),
            Damage::Zeros => f.write_str("the file begins with zeros, where its header should be"),
            Damage::HeaderShort { bytes, needed } => {
                write!(f, "the file has {bytes} bytes, and its header needs {needed}")
            }
            Damage::Compressed => f.write_str("the file is in the compressed format of go-whisper"),
            Damage::Method { number } => write!(f, "aggregation type {number} is unknown"),
            Damage::XFilesFactor { bits } => {
                write!(f, "the xFilesFactor {} is not between 0 and 1", f32::from_bits(*bits))
            }
            Damage::TooManyArchives { archives } => write!(f, "{archives} archives; at most {ARCHIVES_MAX}"),
            Damage::Layout(error) => write!(f, "{error}"),
            Damage::Overlap { archive, offset, free } => {
                write!(f, "archive {archive} begins at byte {offset}, before byte {free}")
            }
            Damage::Truncated { bytes, needed } => {
                write!(f, "the file has {bytes} bytes, and its archives need {needed}")
            }
        }
    }
}

impl std::error::Error for Damage {}

/// True for an xFilesFactor that a file may have.
pub fn is_factor(x_files_factor: f32) -> bool {
    (0.0..=1.0).contains(&x_files_factor)
}

impl Header {
    /// The header of a new file.
    ///
    /// # Errors
    /// [`LayoutError::XFilesFactor`]: it is not between 0 and 1.
    pub fn new(
        layout: &Layout,
        method: AggregationMethod,
        x_files_factor: f32,
    ) -> Result<Header, LayoutError> {
        if !is_factor(x_files_factor) {
            return Err(LayoutError::XFilesFactor);
        }
        let mut next = HEADER_BYTES + layout.archives().len() as u64 * ENTRY_BYTES;
        let place = |plan: &ArchivePlan| {
            let offset =
                u32::try_from(next).map_err(|_| LayoutError::TooLarge { bytes: layout.file_bytes() })?;
            next += u64::from(plan.points) * POINT_BYTES;
            Ok(Archive { offset, step: plan.step, points: plan.points })
        };
        let archives = layout.archives().iter().map(place).collect::<Result<_, _>>()?;
        let max_retention =
            u32::try_from(layout.retention()).expect("a layout's archives cover 32 bits of seconds");
        Ok(Header { method, max_retention, x_files_factor, archives })
    }

    /// Reads the header from the first bytes of a file. `prefix` has [`PREFIX_BYTES`], or the whole file if that is
    /// shorter; `file_bytes` is the size of the file.
    ///
    /// # Errors
    /// The first damage.
    pub fn parse(prefix: &[u8], file_bytes: u64) -> Result<Header, Damage> {
        if file_bytes == 0 {
            return Err(Damage::Empty);
        }
        if prefix.len() > HEADER_BYTES as usize && prefix.iter().all(|byte| *byte == 0) {
            return Err(Damage::Zeros);
        }
        if prefix.starts_with(COMPRESSED) {
            return Err(Damage::Compressed);
        }
        let short = |needed| Damage::HeaderShort { bytes: file_bytes, needed };
        let field = |at| u32_be(prefix, at).ok_or(short(HEADER_BYTES));
        let (number, max_retention, bits, archives) = (field(0)?, field(4)?, field(8)?, field(12)?);
        let method = AggregationMethod::of_number(number).ok_or(Damage::Method { number })?;
        let x_files_factor = f32::from_bits(bits);
        if !is_factor(x_files_factor) {
            return Err(Damage::XFilesFactor { bits });
        }
        if archives as usize > ARCHIVES_MAX {
            return Err(Damage::TooManyArchives { archives });
        }
        let header_end = HEADER_BYTES + u64::from(archives) * ENTRY_BYTES;
        let entry = |index: usize| {
            let at = HEADER_BYTES as usize + index * ENTRY_BYTES as usize;
            let field = |at| u32_be(prefix, at).ok_or(short(header_end));
            Ok(Archive { offset: field(at)?, step: field(at + 4)?, points: field(at + 8)? })
        };
        let archives = (0..archives as usize).map(entry).collect::<Result<Box<[Archive]>, Damage>>()?;
        check_places(&archives, header_end, file_bytes)?;
        Ok(Header { method, max_retention, x_files_factor, archives })
    }

    /// The bytes of header and archive list.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = u32::try_from(self.archives.len()).expect("at most ARCHIVES_MAX");
        let words = [self.method.number(), self.max_retention, self.x_files_factor.to_bits(), count];
        let entries = self.archives.iter().flat_map(|archive| [archive.offset, archive.step, archive.points]);
        words.into_iter().chain(entries).flat_map(u32::to_be_bytes).collect()
    }

    /// The archives, finest first; at least one.
    pub fn archives(&self) -> &[Archive] {
        &self.archives
    }

    /// Size of the file that the archives need.
    pub fn file_bytes(&self) -> u64 {
        self.archives.last().map_or(0, |archive| archive.end())
    }

    /// Seconds that the file covers: the maximum retention, but never more than the coarsest archive has.
    pub fn retention(&self) -> i64 {
        let coarsest = self.archives.last().map_or(0, |archive| archive.retention());
        coarsest.min(i64::from(self.max_retention))
    }

    /// True when both files have the same archives at the same places, so that one can be merged into the other.
    pub fn has_archives_of(&self, other: &Header) -> bool {
        self.archives == other.archives
    }
}

fn check_places(archives: &[Archive], header_end: u64, file_bytes: u64) -> Result<(), Damage> {
    let mut free = header_end;
    let mut plans = [ArchivePlan { step: 0, points: 0 }; ARCHIVES_MAX];
    for (index, archive) in archives.iter().enumerate() {
        plans[index] = archive.plan();
        // The rules expect a sorted list, which the original writes.
        if index > 0 && plans[index - 1].step > archive.step {
            let (fine, coarse) = (plans[index - 1], archive.plan());
            return Err(Damage::Layout(LayoutError::NotMultiple { fine, coarse }));
        }
        if u64::from(archive.offset) < free {
            return Err(Damage::Overlap { archive: index, offset: archive.offset, free });
        }
        free = archive.end();
    }
    check_archives(&plans[..archives.len()]).map_err(Damage::Layout)?;
    if free > file_bytes {
        return Err(Damage::Truncated { bytes: file_bytes, needed: free });
    }
    Ok(())
}
