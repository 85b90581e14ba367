//! The options table: every option of the native file, once.
//!
//! Its rows define the check for unknown keys and wrong values (`native`), reading and printing (`field`), the
//! reference page ([`reference_markdown`]), the JSON schema ([`json_schema`]) and the help of the command line
//! ([`rows`]). Format of a row: `field`. Not here: reading files and building plans (`native`).
//! Invariant: for each row, writing the default has the same effect as omitting the option, and writing the example
//! does not (tests in `native`).

pub(crate) mod checked;
pub(crate) mod field;
mod reference;
pub(crate) mod row;
mod schema;
pub(crate) mod section;
pub(crate) mod table;

pub use reference::{explain_markdown, reference_markdown};
pub(crate) use row::quoted;
pub use row::{Default, Row, Scheme, Type};
pub use schema::json_schema;
pub use section::{Family, NODES, Section};
pub use table::TIMER_AGGREGATES;

impl Section {
    /// Its options, in the order of the reference.
    pub fn rows(self) -> impl Iterator<Item = &'static Row> {
        rows().filter(move |row| row.sections.contains(&self))
    }

    /// One of its options.
    pub fn row(self, key: &str) -> Option<&'static Row> {
        self.rows().find(|row| row.key == key)
    }
}

/// Every option of the native file.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    table::TABLES.iter().copied().flatten()
}

/// The option of a section that another program, or version 0.1.0, calls by this name.
pub fn other_name(section: Section, key: &str) -> Option<&'static str> {
    let limit = key.strip_suffix("_max").and_then(|of| section.row(&format!("max_{of}")));
    let means = |(ours, others): &&(&'static str, &str)| {
        section.row(ours).is_some() && others.split(' ').any(|other| other == key)
    };
    let other = || OTHER_NAMES.iter().find(means).map(|(ours, _)| *ours);
    limit.map(|row| row.key).or_else(other)
}

/// Options with their other names.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("ca", "ca_file cafile"),
    ("cert", "cert_file certificate crt_file"),
    ("encoding", "form"),
    ("expiry", "idle"),
    ("from", "inputs"),
    ("hot_restart_timeout", "take_over_timeout"),
    ("key", "key_file key_path keyfile"),
    ("kind", "type"),
    ("listen", "address bind port"),
    ("max_aggregation_bytes", "rollup_bytes_max"),
    ("max_aggregation_series", "rollup_series_max"),
    ("max_bytes", "max_size"),
    ("max_exact_set_members", "set_exact_max"),
    ("max_exact_timer_values", "timer_exact_max"),
    ("max_retry_delay", "retry_max"),
    ("min_retry_delay", "retry_min"),
    ("min_sample_rate", "rate_min"),
    ("outputs", "backends destinations sinks"),
    ("queue", "buffer"),
    ("series_expiry", "series_idle"),
    ("skip_hostname_check", "any_name"),
    ("sources", "inputs receivers"),
    ("tag_format", "tag_form"),
    ("to", "address addresses destinations endpoint endpoints host hosts servers url"),
    ("token_file", "token"),
    ("type", "share"),
    ("window", "flush_interval interval"),
];

/// Types, and other words for each: names of programs, and words that other programs use.
const OTHER_TYPES: &[(Family, &str, &str)] = &[
    (Family::Sources, "statsd", "dogstatsd tcp udp unix unixgram"),
    (Family::Sources, "graphite", "carbon pickle"),
    (Family::Sources, "self", "internal internal_metrics"),
    (Family::Transforms, "aggregate", "aggregation aggregator"),
    (Family::Transforms, "relay", "route router"),
    (Family::Outputs, "graphite", "carbon pickle"),
    (Family::Outputs, "graphite_file", "file"),
    (Family::Outputs, "console", "stderr stdout"),
    (Family::Outputs, "event_file", "events"),
    (Family::Outputs, "udp", "dogstatsd statsd"),
    (Family::Outputs, "unix", "unixgram"),
];

/// The type for a word that other programs use.
pub fn other_type(family: Family, word: &str) -> Option<&'static str> {
    let means = |(of, _, others): &&(Family, &str, &str)| {
        *of == family && others.split(' ').any(|other| other == word)
    };
    OTHER_TYPES.iter().find(means).map(|(_, ours, _)| *ours)
}

/// What to write instead of a `type` that exists in another family, or is an option here.
pub fn type_elsewhere(family: Family, word: &str) -> Option<String> {
    let of_family = |other: &Family| other.types().any(|(known, _)| known == word);
    let other = Family::ALL.into_iter().filter(|other| *other != family).find(of_family);
    let other =
        other.map(|other| format!("\"{word}\" is a type of {}: write [{}.NAME]", other.one(), other.key()));
    cluster_hint(family, word).or(other)
}

/// How to write a cluster, for an output with an option or a `type` of such a name.
pub fn cluster_hint(family: Family, word: &str) -> Option<String> {
    let is_cluster = matches!(word, "cluster" | "clusters" | "hash_ring" | "hashring" | "ring");
    (is_cluster && family == Family::Outputs).then(|| {
        "StatsD lines are shared out by `sharding` in an output of type \"udp\", \"tcp\" or \"unix\"; points by a relay: \
         [transforms.NAME.clusters.CLUSTER]"
            .into()
    })
}
