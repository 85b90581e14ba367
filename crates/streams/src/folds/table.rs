//! The table of all folds (spec riemann §11).

use super::samples;
use crate::function::{Arity, Native};
use crate::language::error::Outcome;
use crate::language::machine::{Machine, Run};
use crate::value::Value;

/// A row of the table.
#[derive(Debug)]
pub struct Fold {
    /// Its name in the namespace `riemann.folds`, and what it computes.
    pub native: Native,
    /// Its arguments; each is needed.
    pub arguments: &'static [&'static str],
}

/// The arguments of a fold, with lazy sequences computed.
fn run(machine: &mut Machine<'_>, arguments: &mut [Value], run: Folding) -> Outcome {
    for argument in arguments.iter_mut().filter(|argument| matches!(argument, Value::Seq(_))) {
        *argument = machine.realize(argument)?;
    }
    run(arguments, machine)
}

type Folding = fn(&[Value], &mut Machine<'_>) -> Outcome;

macro_rules! folds {
    ($($name:literal $arguments:expr, $doc:literal, $run:expr;)*) => {
        /// All folds.
        pub static FOLDS: &[Fold] =
            &[$(Fold {
                native: Native {
                    name: $name,
                    arity: Arity { min: $arguments.len(), max: Some($arguments.len()) },
                    doc: $doc,
                    code: &Run(|machine, arguments| run(machine, arguments, $run)),
                },
                arguments: &$arguments,
            }),*];
    };
}

folds! {
    "mean" ["events"], "the first event with the mean of all metrics", super::mean;
    "sum" ["events"], "the first event with the sum of all metrics", super::sum;
    "count" ["events"], "the first event with the number of events", super::count;
    "maximum" ["events"], "the event with the largest metric", super::maximum;
    "minimum" ["events"], "the event with the smallest metric", super::minimum;
    "quotient" ["events"], "the first event with its metric divided by the others", super::quotient;
    "difference" ["events"], "the first event with its metric minus the others", super::difference;
    "fold-all" ["f" , "events"], "the first event with all metrics reduced by f", super::fold_all;
    "quotient-sloppy" ["events"], "as quotient, but 0 if a metric is 0", super::quotient_sloppy;
    "median" ["events"], "the event in the middle of the order of metrics", super::median;
    "std-dev" ["events"], "the first event with the standard deviation of all metrics", super::std_dev;
    "product" ["events"], "the first event with the product of all metrics", super::product;
    "mode" ["events"], "an event with the most frequent metric", super::mode;
    "modes" ["events"], "an event of each of the most frequent metrics", super::modes;
    "sorted-sample" ["events", "points"], "the events at these points of the order of metrics, renamed",
        samples::sorted_sample;
    "sorted-sample-extract" ["events", "points"], "the events at these points of the order of metrics",
        samples::sorted_sample_extract;
    "sum*" ["events"], "as sum; throws if a metric is missing", super::sum_strict;
    "product*" ["events"], "as product; throws if a metric is missing", super::product_strict;
    "difference*" ["events"], "as difference; throws if a metric is missing", super::difference_strict;
    "quotient*" ["events"], "as quotient; throws if a metric is missing", super::quotient_strict;
    "fold*" ["f", "events"], "the first event with all metrics reduced by f; throws if one is missing", super::fold_strict;
    "fold" ["f", "events"], "the first event with the metrics that are there reduced by f", super::fold;
    "extremum" ["cmp", "events"], "the event whose metric comes first by cmp", super::extremum;
    "non-nil-metrics" ["events"], "the metrics that are there", super::non_nil_metrics;
}
