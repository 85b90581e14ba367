//! Rows of the table: functions of the group Calculate: windows, forecasts, and lines from whole series.

use super::row::{Default, Function, Group, ParamType, WINDOWS, param};
use crate::query::functions::calculate;
use crate::query::functions::calculate::holt_winters;
use crate::query::functions::calculate::window;
use crate::query::functions::generate;
use crate::query::time_ranges::TimeRanges;

/// The group Calculate.
pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "aggregateLine",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("func", ParamType::AggFunc).default(Default::Text("average")),
            param("keepStep", ParamType::Boolean).default(Default::Bool(false)),
        ],
        description: "A line at an aggregate of each series.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: calculate::aggregate_line,
    },
    Function {
        name: "exponentialMovingAverage",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
        ],
        description: "A mean in which newer values weigh more.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: window::exponential,
    },
    Function {
        name: "holtWintersAberration",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("delta", ParamType::Integer).default(Default::Int(3)),
            param("bootstrapInterval", ParamType::Interval)
                .default(Default::Text("7d"))
                .suggest(&["7d", "30d"]),
            param("seasonality", ParamType::Interval).default(Default::Text("1d")).suggest(&["1d", "7d"]),
        ],
        description: "How far values are outside of the limits of expected values.",
        time_ranges: TimeRanges::BootstrapAndSame(2),
        is_aggregator: false,
        run: holt_winters::aberration,
    },
    Function {
        name: "holtWintersConfidenceArea",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("delta", ParamType::Integer).default(Default::Int(3)),
            param("bootstrapInterval", ParamType::Interval)
                .default(Default::Text("7d"))
                .suggest(&["7d", "30d"]),
            param("seasonality", ParamType::Interval).default(Default::Text("1d")).suggest(&["1d", "7d"]),
        ],
        description: "The area between the limits of expected values.",
        time_ranges: TimeRanges::Bootstrap(2),
        is_aggregator: false,
        run: holt_winters::confidence_area,
    },
    Function {
        name: "holtWintersConfidenceBands",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("delta", ParamType::Integer).default(Default::Int(3)),
            param("bootstrapInterval", ParamType::Interval)
                .default(Default::Text("7d"))
                .suggest(&["7d", "30d"]),
            param("seasonality", ParamType::Interval).default(Default::Text("1d")).suggest(&["1d", "7d"]),
        ],
        description: "The lower and the upper limit of expected values.",
        time_ranges: TimeRanges::Bootstrap(2),
        is_aggregator: false,
        run: holt_winters::confidence_bands,
    },
    Function {
        name: "holtWintersForecast",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("bootstrapInterval", ParamType::Interval)
                .default(Default::Text("7d"))
                .suggest(&["7d", "30d"]),
            param("seasonality", ParamType::Interval).default(Default::Text("1d")).suggest(&["1d", "7d"]),
        ],
        description: "A forecast of each value from those before and from earlier seasons.",
        time_ranges: TimeRanges::Bootstrap(1),
        is_aggregator: false,
        run: holt_winters::forecast,
    },
    Function {
        name: "linearRegression",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("startSourceAt", ParamType::Date),
            param("endSourceAt", ParamType::Date),
        ],
        description: "The line that fits a series best, over the range or learned from another one.",
        time_ranges: TimeRanges::Source,
        is_aggregator: false,
        run: calculate::linear_regression,
    },
    Function {
        name: "movingAverage",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "The mean of the values of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: |c| window::fixed(c, "average"),
    },
    Function {
        name: "movingMax",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "The largest value of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: |c| window::fixed(c, "max"),
    },
    Function {
        name: "movingMedian",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "The median of the values of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: |c| window::fixed(c, "median"),
    },
    Function {
        name: "movingMin",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "The smallest value of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: |c| window::fixed(c, "min"),
    },
    Function {
        name: "movingSum",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "The sum of the values of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: |c| window::fixed(c, "sum"),
    },
    Function {
        name: "movingWindow",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("windowSize", ParamType::IntOrInterval).required().suggest(WINDOWS),
            param("func", ParamType::AggFunc).default(Default::Text("average")),
            param("xFilesFactor", ParamType::Float),
        ],
        description: "An aggregate of the values of a window that ends at each time.",
        time_ranges: TimeRanges::Window,
        is_aggregator: false,
        run: window::moving_window,
    },
    Function {
        name: "nPercentile",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("n", ParamType::Float).required(),
        ],
        description: "A line at the percentile of each series.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: calculate::n_percentile,
    },
    Function {
        name: "stdev",
        aliases: &[],
        group: Group::Calculate,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("points", ParamType::Integer).required(),
            param("windowTolerance", ParamType::Float).default(Default::Float(0.1)),
        ],
        description: "The standard deviation of the last points at each time.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: calculate::stdev,
    },
    Function {
        name: "identity",
        aliases: &[],
        group: Group::Calculate,
        params: &[param("name", ParamType::String).required()],
        description: "A series whose values are their own times.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: generate::identity,
    },
];
