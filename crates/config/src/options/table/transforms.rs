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
            "Length of a window, and so the interval between flushes.",
            "Use the finest retention of the store, because carbon keeps only the last point of each interval.";
        "flush_align" => align: one_of::<FlushAlign>(), Toml("\"wall\""), "\"start\"",
            "Alignment of the flushes.",
            "`wall`: multiples of the window since the Unix epoch. `start`: aligned to the second of the daemon's start, as in node statsd. `interval`: one window after the start and then every window, as in Net::Statsd::Server.";
        "measured_rates" => measured_rates: Flag, Toml("false"), "true",
            "Divide rates by the measured time instead of the window.";
        "percentiles" => percentiles: Percentiles, Toml("[90]"), "[50, 99.9, -10]",
            "Percentiles of timers.",
            "Each `p` gives `count_p`, `mean_p`, `upper_p`, `sum_p` and `sum_squares_p`; a negative `p` is for the largest values (`-10`: `mean_top10`, `lower_top10` …). `[]`: none. A text such as `\"99.90\"` keeps its spelling in the names.";
        "percent_label" => percent_label: one_of::<PercentLabel>(), Toml("\"first\""), "\"every\"",
            "Replace the first `.` and `-` of a percentile in names (node statsd), or every one (Net::Statsd::Server).";
        "histograms" => histograms as Nested: Tables(Histogram), Toml("[]"), "[{ name_contains = \"latency\", bins = [10, 100, \"inf\"] }]",
            "Histograms of timers.";
        "timer_aggregates" => timer_aggregates: Words(TIMER_AGGREGATES),
            Toml("[]"), "[\"mean\", \"upper_percent\", \"count_ps\"]",
            "Compute only these timer aggregates; an empty list means all.",
            "`count_percent`, `mean_percent`, `upper_percent`, `lower_percent`, `sum_percent`, `sum_squares_percent` (each for all percentiles), `std`, `upper`, `lower`, `count`, `count_ps`, `sum`, `sum_squares`, `mean`, `median`, `histogram`.";
        "timer_weights" => timer_weights: Flag, Toml("true"), "false",
            "Weigh sampled timer values in sums, means and percentiles.",
            "If false, a sample rate scales only `count`, as in node statsd.";
        "timer_rate_ignored" => timer_rate_ignored: Flag, Toml("false"), "true",
            "Ignore the sample rate of timers completely, as in Net::Statsd::Server.";
        "max_exact_timer_values" => timer_exact_max: whole(0, EXACT_MAX), Toml("65536"), "0",
            "Values that a timer stores exactly in one window.",
            "With more values, a timer becomes a sketch with a relative error of 1 %. 0: always exact.";
        "max_exact_set_members" => set_exact_max: whole(0, EXACT_MAX), Toml("4096"), "0",
            "Members that a set stores exactly in one window.",
            "With more members, a set becomes an estimate (HyperLogLog). 0: always exact.";
        "set_members" => set_members: Flag, Toml("false"), "true",
            "Pass the members of sets to outputs that can show them.",
            "These are `console` and `perl_file`.";
        "expiry" => idle as AllOrEach: Table(Expiry), Toml("\"5m\""), "{ counters = \"delete\", gauges = \"keep\" }",
            "Expiry of series without samples.";
    }
}

rows! {
    BOUNDS: AggregatePlan;
    in AGGREGATE {
        "max_series" => series_max: whole(1, 1_000_000_000), Toml("2000000"), "100000",
            "Most series; samples of further ones are dropped as `series_max`.";
        "max_bytes" => bytes_max: size(MIB, TIB), Toml("\"4GiB\""), "\"1GiB\"",
            "Most bytes of all series: names, tags, values of timers, members of sets.",
            "At the limit, samples that need more memory are dropped as `aggregate_full`; existing counters and gauges continue.";
        "keep_contains" => keep_contains: Texts,
            Toml("[\"packets_received\", \"metrics_received\", \"bad_lines_seen\"]"), "[]",
            "Counters that never expire: their name contains one of these texts.";
        "allow_non_finite" => allow_non_finite: Flag, Toml("false"), "true",
            "Allow infinite and NaN counters, as in node statsd.",
            "Use it with `compat_quirks` of the source.";
    }
}

rows! {
    SURROUNDINGS: AggregateTransform;
    in AGGREGATE {
        "checkpoint" => checkpoint_ms: duration_or_off(100, HOUR),
            Depends("`5s`, but `off` when the source's dialect is `etsy` or `perl`"), "\"30s\"",
            "Interval of checkpoints: the aggregation's state is written to `data_dir` to survive a crash.",
            "After `kill -9`, at most the samples since the last checkpoint are missing from the open window; gauges and idle series are restored. `off`: a restart begins without state, as in the originals.";
        "stats_prefix" => stats_prefix: Text, Toml("\"statsd\""), "\"statsd.web1\"",
            "First part of the names of the aggregation's own counters.",
            "For example `statsd.packets_received`. An empty text disables them.";
        "self_counters" => self_counters: one_of::<SelfCounters>(), Toml("\"node\""), "\"none\"",
            "Which of its own counters the aggregation adds to the series.",
            "`node`: `bad_lines_seen`, `packets_received`, `metrics_received` and the gauge `timestamp_lag`. `perl`: the first two.";
    }
}

rows! {
    REPORT: AggregateTransform;
    in AGGREGATE {
        "key_flush" => all as KeyFlushReport: Table(KeyFlush), Absent("no report"), "{ interval = \"1m\" }",
            "Report of the names with the most lines.";
    }
}

rows! {
    HISTOGRAM: HistogramPlan = |_| HistogramPlan { name_contains: String::new(), bins: Vec::new() };
    in [Histogram] {
        "name_contains" => name_contains: Text, Toml("\"\""), "\"latency\"",
            "Use it for timers whose name contains this text.",
            "An empty text matches every timer.";
        "bins" => bins: Bins, Required, "[10, 100, \"inf\"]",
            "Upper limits of the bins, ascending.",
            "A bin counts values from the previous limit (included) up to its own (excluded). Values above the last limit are counted only if that is `\"inf\"`. `[]`: no histogram for these timers.";
    }
}

rows! {
    EXPIRY: ExpiryPlan = |_| AggregatePlan::default().idle;
    in [Expiry] {
        "counters" => counters: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"keep\"",
            "Expiry of counters without samples.",
            "`keep`: sent as 0 forever. `delete`: removed after the first window without a sample. A duration: sent as 0 for this long, then removed.";
        "gauges" => gauges: Type::Expiry { gauges: true }, Toml("\"5m\""), "\"3 windows\"",
            "Expiry of gauges without samples.",
            "`keep`: the last value is sent forever. `delete`: it is sent in one flush. `3 windows`: in three flushes. A duration: for this long.";
        "timers" => timers: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"delete\"",
            "Expiry of timers without samples.",
            "The values mean the same as for counters.";
        "sets" => sets: Type::Expiry { gauges: false }, Toml("\"5m\""), "\"1h\"",
            "Expiry of sets without samples.",
            "The values mean the same as for counters.";
    }
}

rows! {
    KEY_FLUSH: KeyFlushPlan = |_| KeyFlushPlan { interval_ms: 60_000, percent: 100.0, round_up: true };
    in [KeyFlush] {
        "interval" => interval_ms: duration(1, YEAR), Required, "\"1m\"",
            "Interval between two reports.";
        "percent" => percent: number(0.000_001, 100.0), Toml("100"), "10",
            "Percentage of the names in a report, those with the most lines first.";
        "round_up" => round_up: Flag, Toml("true"), "false",
            "Round the number of names up (node statsd) or down (Net::Statsd::Server).";
        "log": Path, Absent("stdout"), "\"/var/log/statsd-keys.log\"",
            "File to which the reports are appended.";
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

/// The report of the busiest names, and its file.
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
