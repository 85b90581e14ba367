//! Rows of the table: functions of the group Graph: they change images.

use super::row::{Default, Function, Group, ParamType, param};
use crate::query::functions::draw;
use crate::query::functions::generate;
use crate::query::time_ranges::TimeRanges;

/// The group Graph.
pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "alpha",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("alpha", ParamType::Float).required(),
        ],
        description: "Draws series with an opacity from 0 to 1.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::alpha,
    },
    Function {
        name: "areaBetween",
        aliases: &[],
        group: Group::Graph,
        params: &[param("seriesList", ParamType::SeriesList).required()],
        description: "Draws the area between two series.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::area_between,
    },
    Function {
        name: "color",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("theColor", ParamType::String).required(),
        ],
        description: "Draws series in a colour.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::color,
    },
    Function {
        name: "dashed",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("dashLength", ParamType::Integer).default(Default::Int(5)),
        ],
        description: "Draws series with a dashed line.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::dashed,
    },
    Function {
        name: "drawAsInfinite",
        aliases: &[],
        group: Group::Graph,
        params: &[param("seriesList", ParamType::SeriesList).required()],
        description: "Draws a vertical line at each value that is not 0.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::draw_as_infinite,
    },
    Function {
        name: "lineWidth",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("seriesList", ParamType::SeriesList).required(),
            param("width", ParamType::Float).required(),
        ],
        description: "Draws series with a line width in pixels.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::line_width,
    },
    Function {
        name: "secondYAxis",
        aliases: &[],
        group: Group::Graph,
        params: &[param("seriesList", ParamType::SeriesList).required()],
        description: "Draws series on the right axis.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::second_y_axis,
    },
    Function {
        name: "stacked",
        aliases: &[],
        group: Group::Graph,
        params: &[param("seriesList", ParamType::SeriesList).required(), param("stack", ParamType::String)],
        description: "Adds each series to those before it in its stack, and draws areas.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: draw::stacked,
    },
    Function {
        name: "threshold",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("value", ParamType::Float).required(),
            param("label", ParamType::String),
            param("color", ParamType::String),
        ],
        description: "A line at a number, with a label and a colour.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: generate::threshold,
    },
    Function {
        name: "verticalLine",
        aliases: &[],
        group: Group::Graph,
        params: &[
            param("ts", ParamType::Date).required(),
            param("label", ParamType::String),
            param("color", ParamType::String),
        ],
        description: "A vertical line at a time.",
        time_ranges: TimeRanges::Same,
        is_aggregator: false,
        run: generate::vertical_line,
    },
];
