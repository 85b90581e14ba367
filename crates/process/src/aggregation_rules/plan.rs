//! What an aggregation rule is told to do. Made by `config`.

use crate::bytes::put_varint;

/// One `aggregate` statement's windows and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationRulePlan {
    /// Length of a window in seconds, at least 1. Windows begin at its multiples since the Unix epoch.
    pub every_s: u32,
    /// Seconds after its begin for which a window takes points: above `every_s`.
    pub expire_s: u32,
    /// Which second of its window a result is labelled with.
    pub stamp: Stamp,
    /// What is computed, and under which names; at least one.
    pub computes: Vec<ComputePlan>,
    /// What becomes of points of windows that are over.
    pub late: Late,
    /// Results have as many digits as tell them from every other number, and not six behind the point.
    pub exact: bool,
}

impl AggregationRulePlan {
    /// # Errors
    /// Why it cannot be, in words.
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
    /// Appends what tells it from every other plan, in a form that stays the same from one version to the next.
    pub(crate) fn write_key(&self, to: &mut Vec<u8>) {
        // How results are written is no part of it: what was saved is good for either form.
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

/// Most results of one aggregation.
pub const COMPUTES_MAX: usize = 255;

/// Which second of a window labels its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamp {
    /// The first.
    Start,
    /// Half of it, rounded down, after the first.
    Middle,
    /// The first of the next window.
    #[default]
    End,
}

/// What becomes of points of windows that are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// They are dropped, and counted.
    #[default]
    Dropped,
    /// They count in the oldest window that is open.
    Oldest,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputePlan {
    /// What is computed.
    pub compute: Compute,
    /// Its name as a replacement (spec graphite §2.6): each name that it gives is a series of its own.
    pub name: String,
}

/// What is computed from the values of a window.
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
    /// Sum by number.
    Average,
    /// The value of a nearest rank, in percent from 1 to 99; the median is the 50th.
    Percentile(u8),
    /// A percentile in tenths of a percent, between two values where it falls there: carbon's p50 to p999.
    Interpolated(u16),
    /// Of the whole population, not of a sample.
    Variance,
    /// Its root.
    Stddev,
}

impl Compute {
    /// A number for it, and the one that it has.
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
