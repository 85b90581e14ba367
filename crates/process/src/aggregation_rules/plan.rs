//! Options of an aggregation rule, set by `config`.

use crate::bytes::put_varint;

/// Windows and results of one `aggregate` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationRulePlan {
    /// Length of a window in seconds, at least 1. Windows begin at multiples of it since the Unix epoch.
    pub every_s: u32,
    /// Seconds after its begin during which a window accepts points: more than `every_s`.
    pub expire_s: u32,
    /// Which second of its window is a result's timestamp.
    pub stamp: Stamp,
    /// The results to compute; at least one.
    pub computes: Vec<ComputePlan>,
    /// What happens to points of windows that have ended.
    pub late: Late,
    /// Write results with as many digits as needed to be exact, instead of six after the point.
    pub exact: bool,
}

impl AggregationRulePlan {
    /// # Errors
    /// Why the plan is invalid, as text.
    pub fn check(&self) -> Result<(), &'static str> {
        let percentile = |plan: &ComputePlan| match plan.compute {
            Compute::Percentile(percent) => (1..=99).contains(&percent),
            Compute::Interpolated(permille) => permille <= 1000,
            _ => true,
        };
        match () {
            () if self.every_s == 0 => Err("a window is at least one second long"),
            () if self.expire_s <= self.every_s => Err("`expire` must be greater than `every`"),
            () if self.computes.is_empty() => Err("an aggregation needs something to compute"),
            () if self.computes.len() > COMPUTES_MAX => Err("an aggregation computes at most 255 results"),
            () if !self.computes.iter().all(percentile) => Err("a percentile is from 1 to 99"),
            () => Ok(()),
        }
    }
}

impl AggregationRulePlan {
    /// Appends an identifying key, which stays the same between versions.
    pub(crate) fn write_key(&self, to: &mut Vec<u8>) {
        // The format of results is not part of it: saved state is valid for either.
        let AggregationRulePlan { every_s, expire_s, stamp, computes, late, exact: _ } = self;
        let stamp = match stamp {
            Stamp::Start => 0,
            Stamp::Middle => 1,
            Stamp::End => 2,
        };
        let late = match late {
            Late::Dropped => 0,
            Late::Oldest => 1,
        };
        let numbers = [u64::from(*every_s), u64::from(*expire_s), stamp, late, computes.len() as u64];
        numbers.iter().for_each(|number| put_varint(*number, to));
        for ComputePlan { compute, name } in computes {
            let (kind, of) = compute.code();
            put_varint(kind, to);
            put_varint(of, to);
            put_varint(name.len() as u64, to);
            to.extend_from_slice(name.as_bytes());
        }
    }
}

/// Maximum results of one aggregation.
pub const COMPUTES_MAX: usize = 255;

/// The timestamp of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamp {
    /// The first second of the window.
    Start,
    /// The middle of the window, rounded down.
    Middle,
    /// The first second of the next window.
    #[default]
    End,
}

/// Handling of late points: those of windows that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// They are dropped and counted.
    #[default]
    Dropped,
    /// They are added to the oldest open window.
    Oldest,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputePlan {
    /// The function.
    pub compute: Compute,
    /// Its name as a replacement (spec graphite §2.6): each expanded name is a series of its own.
    pub name: String,
}

/// The function of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Their sum.
    Sum,
    /// Their number.
    Count,
    /// The highest.
    Max,
    /// The lowest.
    Min,
    /// Sum divided by number.
    Average,
    /// Nearest-rank percentile, from 1 to 99; the median is 50.
    Percentile(u8),
    /// Percentile in tenths of a percent, interpolated between two values: carbon's p50 to p999.
    Interpolated(u16),
    /// Variance of the whole population, not of a sample.
    Variance,
    /// Square root of the variance.
    Stddev,
}

impl Compute {
    /// A code for the function, and its parameter.
    fn code(self) -> (u64, u64) {
        match self {
            Compute::Sum => (0, 0),
            Compute::Count => (1, 0),
            Compute::Max => (2, 0),
            Compute::Min => (3, 0),
            Compute::Average => (4, 0),
            Compute::Percentile(percent) => (5, u64::from(percent)),
            Compute::Interpolated(permille) => (6, u64::from(permille)),
            Compute::Variance => (7, 0),
            Compute::Stddev => (8, 0),
        }
    }
}
