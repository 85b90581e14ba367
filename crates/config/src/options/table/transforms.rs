//! Options of transforms.

use process::aggregate::{
    AggregatePlan, ExpiryPlan, FlushAlign, HistogramPlan, KeyFlushPlan, PercentLabel, SeriesExpiry,
};

use super::types::{
    AGGREGATE, EXACT_MAX, HOUR, MIB, TIB, TIMER_AGGREGATES, YEAR, duration, duration_or_off, number, one_of,
    size, whole,
};
use crate::diagnostic::Place;
use crate::options::checked::{Checked, Fields};
use crate::options::field::{Form, Nested, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{self, Bins, Flag, Path, Percentiles, Table, Tables, Text, Texts, Words};
use crate::options::section::Section::{Expiry, Histogram, KeyFlush};
use crate::plan::{AggregateTransform, SelfCounters};

words! {
    FlushAlign: "wall" = FlushAlign::Wall, "start" = FlushAlign::Start, "interval" = FlushAlign::Interval;
    PercentLabel: "first" = PercentLabel::First, "every" = PercentLabel::Every;
    SelfCounters: "node" = SelfCounters::Node, "perl" = SelfCounters::Perl, "none" = SelfCounters::None;
}

rows! {
    AGGREGATION: AggregatePlan;
    in AGGREGATE {
        "window" => window_ms: duration(1, YEAR), Toml("\"10s\""), "\"60s\"",
            "Length of a window: every so often there is one flush.",
            "As long as the finest retention of what stores the points, since carbon keeps only the last point of each slot.";
        "flush_align" => align: one_of::<FlushAlign>(), Toml("\"wall\""), "\"start\"",
            "Which grid the flushes hang on.",
            "`wall`: multiples of the window since the Unix epoch. `start`: the second in which the daemon started, as node statsd does. `interval`: one window after the start and then every window, as Net::Statsd::Server does.";
        "measured_rates" => measured_rates: Flag, Toml("false"), "true",
            "Divide rates by the time that really passed instead of the window.";
        "percentiles" => percentiles: Percentiles, Toml("[90]"), "[50, 99.9, -10]",
            "Percentiles of timers.",
            "For each `p` there are `count_p`, `mean_p`, `upper_p`, `sum_p` and `sum_squares_p`; a negative one speaks of the largest values (`-10`: `mean_top10`, `lower_top10` …). `[]`: none. A text such as `\"99.90\"` keeps its spelling in the names.";
        "percent_label" => percent_label: one_of::<PercentLabel>(), Toml("\"first\""), "\"every\"",
            "Replace the first `.` and `-` of a percentile in names (node statsd), or every one (Net::Statsd::Server).";
        "histograms" => histograms as Nested: Tables(Histogram), Toml("[]"), "[{ name_contains = \"latency\", bins = [10, 100, \"inf\"] }]",
            "Histograms of timers.";
        "timer_aggregates" => timer_aggregates: Words(TIMER_AGGREGATES),
            Toml("[]"), "[\"mean\", \"upper_percent\", \"count_ps\"]",
            "Only these timer aggregates; an empty list means all.",
            "`count_percent`, `mean_percent`, `upper_percent`, `lower_percent`, `sum_percent`, `sum_squares_percent` (each for all percentiles), `std`, `upper`, `lower`, `count`, `count_ps`, `sum`, `sum_squares`, `mean`, `median`, `histogram`.";
        "timer_weights" => timer_weights: Flag, Toml("true"), "false",
            "Weigh sampled timer values in sums, means and percentiles.",
            "When false, a sample rate scales `count` only, as in node statsd.";
        "timer_rate_ignored" => timer_rate_ignored: Flag, Toml("false"), "true",
            "Ignore the sample rate of timers altogether, as Net::Statsd::Server does.";
        "max_exact_timer_values" => timer_exact_max: whole(0, EXACT_MAX), Toml("65536"), "0",
            "Values that a timer keeps exactly in one window.",
            "A timer with more turns into a sketch with a relative error of 1 %. 0: always exact.";
        "max_exact_set_members" => set_exact_max: whole(0, EXACT_MAX), Toml("4096"), "0",
            "Members that a set keeps exactly in one window.",
            "A set with more turns into an estimate (HyperLogLog). 0: always exact.";
        "set_members" => set_members: Flag, Toml("false"), "true",
            "Hand the members of sets to outputs that can show them.",
            "`console` and `perl_file` can.";
        "expiry" => idle as AllOrEach: Table(Expiry), Toml("\"5m\""), "{ counters = \"delete\", gauges = \"keep\" }",
            "What becomes of series that see no samples.";
    }
}

rows! {
    BOUNDS: AggregatePlan;
    in AGGREGATE {
        "max_series" => series_max: whole(1, 1_000_000_000), Toml("2000000"), "100000",
            "Most series at once; samples of new ones past it are dropped as `series_max`.";
        "max_bytes" => bytes_max: size(MIB, TIB), Toml("\"4GiB\""), "\"1GiB\"",
            "Most bytes that the series take: names, tags, values of timers, members of sets.",
            "Past it samples that need more are dropped as `aggregate_full`; counters and gauges that are known go on.";
        "keep_contains" => keep_contains: Texts,
            Toml("[\"packets_received\", \"metrics_received\", \"bad_lines_seen\"]"), "[]",
            "Counters whose name contains one of these texts are never deleted as idle.";
        "allow_non_finite" => allow_non_finite: Flag, Toml("false"), "true",
            "Let counters become infinite or NaN, as node statsd does.",
            "Goes with `compat_quirks` of the source.";
    }
}

rows! {
    SURROUNDINGS: AggregateTransform;
    in AGGREGATE {
        "checkpoint" => checkpoint_ms: duration_or_off(100, HOUR),
            Depends("`5s`, but `off` when the source's dialect is `etsy` or `perl`"), "\"30s\"",
            "How often what the aggregation holds is written to disk, under `data_dir`, so that it outlives a crash.",
            "After `kill -9` at most what arrived since the last checkpoint is missing from the open window, and gauges and idle series are still there. `off`: a restart begins with nothing, as the originals do.";
        "stats_prefix" => stats_prefix: Text, Toml("\"statsd\""), "\"statsd.web1\"",
            "First part of the names of the counters about itself.",
            "Such as `statsd.packets_received`. An empty text: there are none.";
        "self_counters" => self_counters: one_of::<SelfCounters>(), Toml("\"node\""), "\"none\"",
            "Which counters about itself there are among the series.",
            "`node`: `bad_lines_seen`, `packets_received`, `metrics_received` and the gauge `timestamp_lag`. `perl`: the first two.";
    }
}

rows! {
    REPORT: AggregateTransform;
    in AGGREGATE {
        "key_flush" => all as KeyFlushReport: Table(KeyFlush), Absent("no report"), "{ interval = \"1m\" }",
            "Report of the busiest names.";
    }
}

rows! {
    HISTOGRAM: HistogramPlan = |_| HistogramPlan { name_contains: String::new(), bins: Vec::new() };
    in [Histogram] {
        "name_contains" => name_contains: Text, Toml("\"\""), "\"latency\"",
            "Applies to timers whose name contains this text.",
            "An empty text fits every timer.";
        "bins" => bins: Bins, Required, "[10, 100, \"inf\"]",
            "Upper limits of the bins, ascending.",
            "A bin counts values from the limit before it (included) up to its own (excluded). Values past the last limit are counted only when that is `\"inf\"`. `[]`: no histogram for these timers.";
    }
}

rows! {
    EXPIRY: ExpiryPlan = |_| AggregatePlan::default().idle;
    in [Expiry] {
        "counters" => counters: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"keep\"",
            "Idle counters.",
            "`keep`: sent as 0 for ever. `delete`: removed after the first window without a sample. A duration: sent as 0 for so long, then removed.";
        "gauges" => gauges: Type::Expiry { gauges: true }, Toml("\"5m\""), "\"3 windows\"",
            "Idle gauges.",
            "`keep`: the last value is sent for ever. `delete`: it is sent in one flush. `3 windows`: in three flushes. A duration: for so long.";
        "timers" => timers: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"delete\"",
            "Idle timers.",
            "As counters.";
        "sets" => sets: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"1h\"",
            "Idle sets.",
            "As counters.";
    }
}

rows! {
    KEY_FLUSH: KeyFlushPlan = |_| KeyFlushPlan { interval_ms: 60_000, percent: 100.0, round_up: true };
    in [KeyFlush] {
        "interval" => interval_ms: duration(1, YEAR), Required, "\"1m\"",
            "Time between two reports.";
        "percent" => percent: number(0.000_001, 100.0), Toml("100"), "10",
            "Share of the names that a report shows, the busiest first.";
        "round_up" => round_up: Flag, Toml("true"), "false",
            "Round the number of names up (node statsd) or down (Net::Statsd::Server).";
        "log": Path, Absent("stdout"), "\"/var/log/statsd-keys.log\"",
            "File that the reports are appended to.";
    }
}

/// `expiry = "5m"` for all kinds, or a table with a key for each.
pub(crate) struct AllOrEach;

impl Form<ExpiryPlan> for AllOrEach {
    fn put(plan: &mut ExpiryPlan, value: &Checked, place: Place) {
        match *value {
            Checked::Expiry(all) => *plan = ExpiryPlan { counters: all, gauges: all, timers: all, sets: all },
            _ => Nested::put(plan, value, place),
        }
    }

    fn checked(plan: &ExpiryPlan) -> Option<Checked> {
        let all_one = [plan.gauges, plan.timers, plan.sets].iter().all(|other| *other == plan.counters);
        let by_windows = matches!(plan.gauges, SeriesExpiry::Delete { ttl_windows } if ttl_windows != 1);
        if all_one && !by_windows { Some(Checked::Expiry(plan.counters)) } else { Nested::checked(plan) }
    }
}

/// The report of the busiest names, and the file that it goes to.
pub(crate) struct KeyFlushReport;

impl Form<AggregateTransform> for KeyFlushReport {
    fn put(transform: &mut AggregateTransform, value: &Checked, _: Place) {
        if let Checked::Table(fields) = value {
            transform.plan.key_flush = Some(fields.read());
            transform.key_flush_log = fields.value("log");
        }
    }

    fn checked(transform: &AggregateTransform) -> Option<Checked> {
        let mut fields = Fields::of(transform.plan.key_flush.as_ref()?);
        if let Some(log) = &transform.key_flush_log {
            fields.give_value("log", Checked::Path(log.clone()));
        }
        Some(Checked::Table(fields))
    }
}
