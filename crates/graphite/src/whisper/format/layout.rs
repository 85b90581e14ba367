//! The layout of a new file: its archives, the rules that they keep, and the size of the file (spec graphite §5.1, §5.2).

use std::fmt;

/// Bytes of one point: a time of 4 bytes and a value of 8.
pub const POINT_BYTES: u64 = 12;

/// Most archives of a file. The rules allow no more: each step is at least twice the one before, and has 32 bits.
pub const ARCHIVES_MAX: usize = 32;

/// Largest file that is created. The format has offsets of 32 bits; only the last archive of a file could go beyond.
pub const FILE_BYTES_MAX: u64 = 1 << 32;

/// An archive of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchivePlan {
    /// Seconds per point.
    pub step: u32,
    /// Number of points.
    pub points: u32,
}

impl ArchivePlan {
    /// Seconds that the archive covers.
    pub fn retention(self) -> u64 {
        u64::from(self.step) * u64::from(self.points)
    }

    /// Step and time that it covers, each in its largest unit: `10s:6h`, which [`super::parse_retention`] reads. An archive of no
    /// point or no step has no such text, and is written as it is.
    pub fn in_units(self) -> String {
        if self.step == 0 || self.points == 0 {
            return self.to_string();
        }
        format!("{}:{}", in_unit(u64::from(self.step)), in_unit(self.retention()))
    }
}

/// Units of retentions, largest first. Without weeks: retentions are written as `7d`.
const UNITS: [(u64, char); 4] = [(365 * 86_400, 'y'), (86_400, 'd'), (3_600, 'h'), (60, 'm')];

/// Seconds in the largest unit that divides them.
fn in_unit(seconds: u64) -> String {
    match UNITS.iter().find(|(unit, _)| seconds.is_multiple_of(*unit)) {
        Some((unit, letter)) => format!("{}{letter}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

impl fmt::Display for ArchivePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.step, self.points)
    }
}

/// Which rule of an archive list is broken. `fine` and `coarse` are neighbours, sorted by their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// There is no archive.
    NoArchive,
    /// More than [`ARCHIVES_MAX`] archives.
    TooManyArchives {
        /// Their number.
        archives: usize,
    },
    /// A step or a number of points is 0.
    Zero {
        /// The archive.
        archive: ArchivePlan,
    },
    /// Two archives have the same step.
    SameStep {
        /// The first of them.
        fine: ArchivePlan,
        /// The second.
        coarse: ArchivePlan,
    },
    /// A step is not a multiple of the next finer one.
    NotMultiple {
        /// The finer archive.
        fine: ArchivePlan,
        /// The coarser one.
        coarse: ArchivePlan,
    },
    /// An archive covers no more time than the next finer one.
    NotLonger {
        /// The finer archive.
        fine: ArchivePlan,
        /// The coarser one.
        coarse: ArchivePlan,
    },
    /// An archive has fewer points than one point of the next coarser one is made of.
    TooFewPoints {
        /// The finer archive.
        fine: ArchivePlan,
        /// The coarser one.
        coarse: ArchivePlan,
    },
    /// An archive covers more than 2^32 - 1 seconds.
    TooLong {
        /// The archive.
        archive: ArchivePlan,
    },
    /// The file would be larger than [`FILE_BYTES_MAX`].
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// The xFilesFactor is not between 0 and 1.
    XFilesFactor,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::NoArchive => f.write_str("there is no archive"),
            LayoutError::TooManyArchives { archives } => {
                write!(f, "{archives} archives; at most {ARCHIVES_MAX}")
            }
            LayoutError::Zero { archive } => {
                write!(f, "archive {archive} has a step or a number of points of 0")
            }
            LayoutError::SameStep { fine, coarse } => {
                write!(f, "archives {} have the same step", both(*fine, *coarse))
            }
            LayoutError::NotMultiple { fine, coarse } => {
                let steps = [coarse.step, fine.step].map(|step| in_unit(u64::from(step)));
                let [coarse_step, fine_step] = steps;
                let archives = both(*fine, *coarse);
                write!(f, "{coarse_step} is not a multiple of {fine_step} (archives {archives})")
            }
            LayoutError::NotLonger { fine, coarse } => {
                let (fine, coarse) = (fine.in_units(), coarse.in_units());
                write!(f, "archive `{coarse}` covers no more time than `{fine}`")
            }
            LayoutError::TooFewPoints { fine, coarse } => {
                let needed = coarse.step / fine.step;
                let (points, fine, coarse) = (fine.points, fine.in_units(), coarse.in_units());
                write!(
                    f,
                    "a point of archive `{coarse}` is made of {needed} points, and `{fine}` has {points}"
                )
            }
            LayoutError::TooLong { archive } => {
                write!(f, "archive `{}` covers more than 2^32 - 1 s", archive.in_units())
            }
            LayoutError::TooLarge { bytes } => {
                write!(f, "the file would have {bytes} bytes; at most {FILE_BYTES_MAX}")
            }
            LayoutError::XFilesFactor => f.write_str("the xFilesFactor is not between 0 and 1"),
        }
    }
}

impl std::error::Error for LayoutError {}

fn both(fine: ArchivePlan, coarse: ArchivePlan) -> String {
    format!("`{}` and `{}`", fine.in_units(), coarse.in_units())
}

/// Archives that keep all rules, finest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    archives: Box<[ArchivePlan]>,
}

impl Layout {
    /// Sorts the archives by their steps and checks them.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn new(archives: &[ArchivePlan]) -> Result<Layout, LayoutError> {
        let mut archives = archives.to_vec();
        archives.sort_by_key(|archive| archive.step);
        check_archives(&archives)?;
        let layout = Layout { archives: archives.into() };
        let bytes = layout.file_bytes();
        if bytes > FILE_BYTES_MAX { Err(LayoutError::TooLarge { bytes }) } else { Ok(layout) }
    }

    /// The archives, finest first.
    pub fn archives(&self) -> &[ArchivePlan] {
        &self.archives
    }

    /// Seconds that the coarsest archive covers.
    pub fn retention(&self) -> u64 {
        self.archives.last().map_or(0, |archive| archive.retention())
    }

    /// The archives as in storage-schemas.conf: `10s:6h,1m:7d`.
    pub fn in_units(&self) -> String {
        let archives: Vec<String> = self.archives.iter().map(|archive| archive.in_units()).collect();
        archives.join(",")
    }

    /// Size of a file with this layout: header and points.
    pub fn file_bytes(&self) -> u64 {
        let points: u64 = self.archives.iter().map(|archive| u64::from(archive.points)).sum();
        (points + self.archives.len() as u64) * POINT_BYTES + 16
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, archive) in self.archives.iter().enumerate() {
            write!(f, "{}{archive}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The rules of archives that are sorted by their steps.
pub(super) fn check_archives(archives: &[ArchivePlan]) -> Result<(), LayoutError> {
    if archives.is_empty() {
        return Err(LayoutError::NoArchive);
    }
    if archives.len() > ARCHIVES_MAX {
        return Err(LayoutError::TooManyArchives { archives: archives.len() });
    }
    for archive in archives.iter().copied() {
        if archive.step == 0 || archive.points == 0 {
            return Err(LayoutError::Zero { archive });
        }
        if archive.retention() > u64::from(u32::MAX) {
            return Err(LayoutError::TooLong { archive });
        }
    }
    for pair in archives.windows(2) {
        let (fine, coarse) = (pair[0], pair[1]);
        if fine.step == coarse.step {
            return Err(LayoutError::SameStep { fine, coarse });
        }
        if !coarse.step.is_multiple_of(fine.step) {
            return Err(LayoutError::NotMultiple { fine, coarse });
        }
        if coarse.retention() <= fine.retention() {
            return Err(LayoutError::NotLonger { fine, coarse });
        }
        if fine.points < coarse.step / fine.step {
            return Err(LayoutError::TooFewPoints { fine, coarse });
        }
    }
    Ok(())
}
