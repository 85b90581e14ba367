//! The naming scheme of a Graphite output (spec statsd §8.1).

/// Naming of a Graphite output. All texts may be empty: the element is omitted then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Use `stats.`, `stats_counts.`, `stats.timers.` …: all prefix fields except `stats_prefix` are then ignored.
    pub legacy: bool,
    /// First element of the new namespace.
    pub global_prefix: String,
    /// Element of counters.
    pub counter_prefix: String,
    /// Element of timers.
    pub timer_prefix: String,
    /// Element of gauges.
    pub gauge_prefix: String,
    /// Element of sets.
    pub set_prefix: String,
    /// Last element of every name, before its tags.
    pub global_suffix: String,
    /// Element of the daemon's own series (`prefixStats`).
    pub stats_prefix: String,
    /// Also write a counter's sum of the window, not only its rate (`flush_counts`).
    pub counts: bool,
    /// Value of tags that have none: carbon rejects tags without `=`.
    pub bare_tag_value: String,
    /// How numbers are written.
    pub numbers: Numbers,
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// As JavaScript prints them: shortest digits that parse back.
    Shortest,
    /// As Net::Statsd::Server prints them: `%.6f`, counts `%d` (spec statsd §4).
    Perl,
}

impl Default for Namespace {
    fn default() -> Self {
        Namespace {
            legacy: true,
            global_prefix: "stats".into(),
            counter_prefix: "counters".into(),
            timer_prefix: "timers".into(),
            gauge_prefix: "gauges".into(),
            set_prefix: "sets".into(),
            global_suffix: String::new(),
            stats_prefix: "statsd".into(),
            counts: true,
            bare_tag_value: "true".into(),
            numbers: Numbers::Shortest,
        }
    }
}
