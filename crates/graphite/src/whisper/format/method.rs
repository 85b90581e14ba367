//! Aggregation methods: how the points of a fine archive become one point of a coarser one (spec graphite §5.1, §5.6).

use std::fmt;

/// How points are aggregated. Closed: the number is in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AggregationMethod {
    /// Mean of the known values.
    #[default]
    Average,
    /// Sum of the known values.
    Sum,
    /// The newest known value.
    Last,
    /// The largest known value.
    Max,
    /// The smallest known value.
    Min,
    /// Sum of the known values divided by the number of all slots: unknown values count as 0.
    AvgZero,
    /// The value with the largest absolute value; of equal ones the oldest.
    AbsMax,
    /// The value with the smallest absolute value; of equal ones the oldest.
    AbsMin,
}

impl AggregationMethod {
    /// All methods, in the order of their numbers.
    pub const ALL: [AggregationMethod; 8] = [
        AggregationMethod::Average,
        AggregationMethod::Sum,
        AggregationMethod::Last,
        AggregationMethod::Max,
        AggregationMethod::Min,
        AggregationMethod::AvgZero,
        AggregationMethod::AbsMax,
        AggregationMethod::AbsMin,
    ];

    /// The method with this number in a file: 1 to 8.
    pub fn of_number(number: u32) -> Option<AggregationMethod> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        AggregationMethod::ALL.get(index).copied()
    }

    /// Its number in a file.
    pub fn number(self) -> u32 {
        match self {
            AggregationMethod::Average => 1,
            AggregationMethod::Sum => 2,
            AggregationMethod::Last => 3,
            AggregationMethod::Max => 4,
            AggregationMethod::Min => 5,
            AggregationMethod::AvgZero => 6,
            AggregationMethod::AbsMax => 7,
            AggregationMethod::AbsMin => 8,
        }
    }

    /// The method of this name, as in storage-aggregation.conf. Case matters.
    pub fn of_name(name: &str) -> Option<AggregationMethod> {
        AggregationMethod::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Its name, as in storage-aggregation.conf.
    pub fn name(self) -> &'static str {
        match self {
            AggregationMethod::Average => "average",
            AggregationMethod::Sum => "sum",
            AggregationMethod::Last => "last",
            AggregationMethod::Max => "max",
            AggregationMethod::Min => "min",
            AggregationMethod::AvgZero => "avg_zero",
            AggregationMethod::AbsMax => "absmax",
            AggregationMethod::AbsMin => "absmin",
        }
    }
}

impl fmt::Display for AggregationMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An aggregation in progress. Values are added from the oldest to the newest, with the additions and comparisons of
/// the original in its order, so that results are equal to the last bit.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    method: AggregationMethod,
    known: u32,
    value: f64,
}

impl Fold {
    /// An aggregation without values.
    pub fn new(method: AggregationMethod) -> Fold {
        Fold { method, known: 0, value: 0.0 }
    }

    /// Adds the next known value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let first = self.known == 0;
        self.known += 1;
        let is_better = match self.method {
            AggregationMethod::Average | AggregationMethod::Sum | AggregationMethod::AvgZero => {
                self.value += value;
                return;
            }
            AggregationMethod::Last => true,
            // A comparison with NaN is false: the value before it stays.
            AggregationMethod::Max => value > self.value,
            AggregationMethod::Min => value < self.value,
            AggregationMethod::AbsMax => value.abs() > self.value.abs(),
            AggregationMethod::AbsMin => value.abs() < self.value.abs(),
        };
        if first || is_better {
            self.value = value;
        }
    }

    /// Number of values added.
    pub fn known(&self) -> u32 {
        self.known
    }

    /// The aggregate of the values added, of `slots` slots in all; none without values.
    pub fn value(&self, slots: u32) -> Option<f64> {
        if self.known == 0 {
            return None;
        }
        Some(match self.method {
            AggregationMethod::Average => self.value / f64::from(self.known),
            AggregationMethod::AvgZero => self.value / f64::from(slots),
            AggregationMethod::Sum
            | AggregationMethod::Last
            | AggregationMethod::Max
            | AggregationMethod::Min
            | AggregationMethod::AbsMax
            | AggregationMethod::AbsMin => self.value,
        })
    }

    /// The same, if enough is known: the share of known slots is at least `x_files_factor`. The share is a double, and
    /// so is the factor of the file, widened from 32 bits: 3 of 5 are less than 0.6.
    pub fn value_if_enough(&self, slots: u32, x_files_factor: f32) -> Option<f64> {
        let share = f64::from(self.known) / f64::from(slots);
        if share >= f64::from(x_files_factor) { self.value(slots) } else { None }
    }
}
