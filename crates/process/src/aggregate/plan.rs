//! Options of an aggregation, as checked by `config`.

/// Grid of the flush times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushAlign {
    /// Multiples of the window since the Unix epoch. A point's timestamp is the start of the slot in which its
    /// window ends.
    Wall,
    /// Counted from the second in which the daemon started, as node does (spec statsd §7.1).
    Start,
    /// One window after the start and then every window, as Net::Statsd::Server does.
    Interval,
}

/// What happens to a series that had no sample in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesExpiry {
    /// Never expires: sent with zeros, or with a gauge's last value.
    Keep,
    /// Removed at once; gauges after `ttl_windows` (node's delete switches and `gaugesMaxTTL`).
    Delete {
        /// Flushes that a gauge survives after its last update; 1 for the other kinds.
        ttl_windows: u32,
    },
    /// Sent as with `Keep` until this many seconds after the last sample, then removed.
    After {
        /// Seconds.
        seconds: u64,
    },
}

/// Expiry of idle series, per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryPlan {
    /// Counters.
    pub counters: SeriesExpiry,
    /// Gauges.
    pub gauges: SeriesExpiry,
    /// Timers.
    pub timers: SeriesExpiry,
    /// Sets.
    pub sets: SeriesExpiry,
}

/// One entry of node's `histogram` list (spec statsd §7.5).
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPlan {
    /// Applies to timers whose name contains this text; the first entry that applies wins.
    pub name_contains: String,
    /// Upper limits, ascending, with their label text; `f64::INFINITY` for `inf`. Empty: no histogram.
    pub bins: Vec<(f64, String)>,
}

/// `keyFlush`: report of the names with the most lines (spec statsd §7.9). The output decides where it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyFlushPlan {
    /// Milliseconds between reports.
    pub interval_ms: u64,
    /// Share of the names in a report: `0 < percent <= 100`.
    pub percent: f64,
    /// Round the number of names up (node) or down (Perl).
    pub round_up: bool,
}

/// How percentile labels are made from a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentLabel {
    /// The first `.` becomes `_`, the first `-` becomes `top` (node).
    First,
    /// Every `.` becomes `_` and every `-` becomes `top` (Perl).
    Every,
}

/// All options of one aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatePlan {
    /// Length of a window in milliseconds: at least 1.
    pub window_ms: u64,
    /// Grid of the flushes.
    pub align: FlushAlign,
    /// Divide rates by the elapsed time instead of the window.
    pub measured_rates: bool,
    /// Thresholds in configured order with the decimal text they were written as; `-100 <= p <= 100`.
    pub percentiles: Vec<(f64, String)>,
    /// How their labels are made.
    pub percent_label: PercentLabel,
    /// Histograms, first match wins.
    pub histograms: Vec<HistogramPlan>,
    /// Only these timer aggregates (`calculatedTimerMetrics`, spec statsd §7.7); empty for all.
    pub timer_aggregates: Vec<String>,
    /// Weigh sampled timer values in sums and percentiles (`union`); otherwise only `count` is scaled (node).
    pub timer_weights: bool,
    /// Ignore the sample rate of timers (`perl`).
    pub timer_rate_ignored: bool,
    /// Values that a timer keeps exactly in one window; beyond it a sketch with 1 % relative error. 0: always
    /// exact.
    pub timer_exact_max: usize,
    /// Members that a set keeps exactly; beyond it an estimate (HyperLogLog, p = 14). 0: always exact.
    pub set_exact_max: usize,
    /// Pass the members of sets to the outputs.
    pub set_members: bool,
    /// Expiry of idle series.
    pub idle: ExpiryPlan,
    /// Maximum number of series; new ones beyond it are dropped as `series_max`.
    pub series_max: u32,
    /// Maximum bytes of all series: keys, aliases, timer values and set members. Samples that need more are dropped
    /// as `aggregate_full`.
    pub bytes_max: u64,
    /// Texts that exempt self counters from deletion when the name contains one of them.
    pub keep_contains: Vec<String>,
    /// Let counters become infinite or NaN (`compat_quirks`).
    pub allow_non_finite: bool,
    /// Report of the busiest names; None to switch it off.
    pub key_flush: Option<KeyFlushPlan>,
}

impl Default for AggregatePlan {
    /// The native defaults (dialect `union`).
    fn default() -> Self {
        let idle = SeriesExpiry::After { seconds: 300 };
        AggregatePlan {
            window_ms: 10_000,
            align: FlushAlign::Wall,
            measured_rates: false,
            percentiles: vec![(90.0, "90".into())],
            percent_label: PercentLabel::First,
            histograms: Vec::new(),
            timer_aggregates: Vec::new(),
            timer_weights: true,
            timer_rate_ignored: false,
            timer_exact_max: 65_536,
            set_exact_max: model::limits::SET_EXACT_MAX,
            set_members: false,
            idle: ExpiryPlan { counters: idle, gauges: idle, timers: idle, sets: idle },
            series_max: model::limits::SERIES_MAX,
            bytes_max: model::limits::SERIES_BYTES_MAX,
            keep_contains: ["packets_received", "metrics_received", "bad_lines_seen"]
                .map(String::from)
                .into(),
            allow_non_finite: false,
            key_flush: None,
        }
    }
}
