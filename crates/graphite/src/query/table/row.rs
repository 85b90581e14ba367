//! What the table says of a function and of its parameters.

use crate::query::call::{Answer, Call};
use crate::query::time_ranges::TimeRanges;

/// A function of the query language.
#[derive(Debug)]
pub struct Function {
    /// Name in targets.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// Where lists of functions show it.
    pub group: Group,
    /// Its parameters in order.
    pub params: &'static [Param],
    /// What it does, in one sentence.
    pub description: &'static str,
    /// For which ranges it evaluates its first argument.
    pub(crate) time_ranges: TimeRanges,
    /// True when `groupByNode` and its like take it as their callback.
    pub is_aggregator: bool,
    pub(crate) run: fn(&mut Call<'_>) -> Answer,
}

impl Function {
    /// The function with its parameters, as clients show it: `scale(seriesList, factor)`.
    #[must_use]
    pub fn signature(&self, name: &str) -> String {
        let shown = |param: &Param| {
            let default = match param.default {
                Some(default) => format!("={}", default.text()),
                None if !param.is_required && !param.is_multiple => "=None".to_owned(),
                None => String::new(),
            };
            format!("{}{}{default}", if param.is_multiple { "*" } else { "" }, param.name)
        };
        let params: Vec<String> = self.params.iter().map(shown).collect();
        format!("{name}({})", params.join(", "))
    }
}

/// Groups of functions, by which clients list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those that clients show")]
pub enum Group {
    Alias,
    Calculate,
    Combine,
    FilterData,
    FilterSeries,
    Graph,
    Sorting,
    Special,
    Transform,
}

impl Group {
    /// The name that clients show.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Alias => "Alias",
            Group::Calculate => "Calculate",
            Group::Combine => "Combine",
            Group::FilterData => "Filter Data",
            Group::FilterSeries => "Filter Series",
            Group::Graph => "Graph",
            Group::Sorting => "Sorting",
            Group::Special => "Special",
            Group::Transform => "Transform",
        }
    }
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name, for arguments by name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamType,
    /// True when it cannot be left out.
    pub is_required: bool,
    /// True when it takes all further arguments.
    pub is_multiple: bool,
    /// The value when it is left out.
    pub default: Option<Default>,
    /// The only values that it takes; empty for all of its type.
    pub options: &'static [&'static str],
    /// Values that clients offer.
    pub suggestions: &'static [&'static str],
}

/// A parameter that may be left out.
pub(super) const fn param(name: &'static str, kind: ParamType) -> Param {
    Param {
        name,
        kind,
        is_required: false,
        is_multiple: false,
        default: None,
        options: &[],
        suggestions: &[],
    }
}

impl Param {
    pub(super) const fn required(self) -> Param {
        Param { is_required: true, ..self }
    }

    pub(super) const fn multiple(self) -> Param {
        Param { is_multiple: true, ..self }
    }

    pub(super) const fn default(self, default: Default) -> Param {
        Param { default: Some(default), ..self }
    }

    pub(super) const fn options(self, options: &'static [&'static str]) -> Param {
        Param { options, ..self }
    }

    pub(super) const fn suggest(self, suggestions: &'static [&'static str]) -> Param {
        Param { suggestions, ..self }
    }
}

/// A value when an argument is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(&'static str),
    /// True or false.
    Bool(bool),
    /// No limit.
    Infinity,
}

impl Default {
    fn text(self) -> String {
        match self {
            Default::Int(int) => int.to_string(),
            Default::Float(float) => crate::query::numbers::repr(float),
            Default::Text(text) => format!("'{text}'"),
            Default::Bool(flag) => if flag { "True" } else { "False" }.to_owned(),
            Default::Infinity => "inf".to_owned(),
        }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// An aggregation function.
    AggFunc,
    /// An aggregation function or a combining function.
    AggOrSeriesFunc,
    /// Anything.
    Any,
    /// True or false, also as text, 1 or 0.
    Boolean,
    /// A time expression or epoch seconds.
    Date,
    /// A number.
    Float,
    /// A whole number or infinity.
    IntOrInf,
    /// A whole number or an interval.
    IntOrInterval,
    /// A whole number.
    Integer,
    /// An interval such as `5min`.
    Interval,
    /// The number of a node.
    Node,
    /// The number of a node, or a tag.
    NodeOrTag,
    /// A list of series.
    SeriesList,
    /// Lists of series, from `mapSeries`.
    SeriesLists,
    /// Text.
    String,
    /// The name of a tag.
    Tag,
}

impl ParamType {
    /// The name that clients know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ParamType::AggFunc => "aggFunc",
            ParamType::AggOrSeriesFunc => "aggOrSeriesFunc",
            ParamType::Any => "any",
            ParamType::Boolean => "boolean",
            ParamType::Date => "date",
            ParamType::Float => "float",
            ParamType::IntOrInf => "intOrInf",
            ParamType::IntOrInterval => "intOrInterval",
            ParamType::Integer => "integer",
            ParamType::Interval => "interval",
            ParamType::Node => "node",
            ParamType::NodeOrTag => "nodeOrTag",
            ParamType::SeriesList => "seriesList",
            ParamType::SeriesLists => "seriesLists",
            ParamType::String => "string",
            ParamType::Tag => "tag",
        }
    }
}

/// Windows that clients offer.
pub(super) const WINDOWS: &[&str] = &["5", "7", "10", "1min", "5min", "10min", "30min", "1hour"];

/// Units that `smartSummarize` aligns to.
pub(super) const UNITS: &[&str] = &["years", "months", "weeks", "days", "hours", "minutes", "seconds"];

/// Values that `legendValue` appends.
pub(super) const LEGEND_VALUES: &[&str] = &[
    "average", "median", "sum", "min", "max", "diff", "stddev", "count", "range", "multiply", "last",
    "avg_zero", "rangeOf", "avg", "total", "current", "si", "binary",
];
