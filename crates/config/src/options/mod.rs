//! THE options table: every option of the native file, once.
//!
//! From its rows come the check for unknown keys and wrong values (`native`), reading into the plan and printing of it
//! (`field`), the reference page ([`reference_markdown`]), the JSON schema ([`json_schema`]) and the help of the command
//! line ([`rows`]). How a row is written: `field`.
//! Not here: how a file is read and what a valid section becomes (`native`).
//! Invariant: for each row the default text means the same as leaving the option out, and the example text does
//! not (tests in `native`).

pub(crate) mod field;
mod reference;
mod schema;
mod section;
pub(crate) mod table;

pub use reference::{explain_markdown, reference_markdown};
pub use schema::json_schema;
pub use section::Section;
pub use table::TIMER_AGGREGATES;

use crate::text::Quantity;

/// What a row's value looks like. Limits are inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    /// Any text.
    Text,
    /// A path in UTF-8: at least one character, none of them NUL.
    Path,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number.
    Whole {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A number.
    Number {
        /// Least.
        min: f64,
        /// Most.
        max: f64,
    },
    /// A text such as `"10s"` or `"64MiB"`, in milliseconds or bytes.
    Quantity {
        /// Of what.
        of: &'static Quantity,
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// It may also be `"off"`, which is 0.
        or_off: bool,
    },
    /// A text `address:port`.
    Address,
    /// A list of listen addresses.
    Listen,
    /// A list of endpoints of these schemes; at least one.
    Endpoints(&'static [Scheme]),
    /// A list of names of sources and transforms.
    Names,
    /// A list of texts.
    Texts,
    /// One text, or a list of texts.
    TextOrTexts,
    /// A table of names by what is computed, or a list of such tables.
    Computes,
    /// A list of texts out of these; others do no harm.
    Words(&'static [&'static str]),
    /// A list of percentiles: numbers, or texts when the exact spelling matters.
    Percentiles,
    /// A list of ascending limits, the last may be `"inf"`.
    Bins,
    /// `keep`, `delete`, a number of windows (gauges only), or a duration.
    Expiry {
        /// True for gauges.
        gauges: bool,
    },
    /// A table of a section, or for `idle` also one value for all its keys.
    Table(Section),
    /// A list of tables of a section.
    Tables(Section),
    /// One table or a list of tables of a section.
    TableOrTables(Section),
    /// Tables of a section, by names that the user gives.
    NamedTables(Section),
    /// A list of patterns of names.
    Globs,
    /// A table of shares of lines, by patterns of names; the first that matches decides.
    Shares,
    /// A table of texts.
    Map,
    /// Named sections: `[sources.NAME]` and so on.
    Named(Family),
}

/// How an endpoint is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `tcp://`.
    Tcp,
    /// `udp://`.
    Udp,
    /// `unixgram://`.
    UnixDatagram,
    /// `unix://`.
    UnixStream,
}

impl Scheme {
    /// True when a host and a port follow, not a path.
    pub fn is_host(self) -> bool {
        matches!(self, Scheme::Tcp | Scheme::Udp)
    }

    /// What stands before `://`.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Tcp => "tcp",
            Scheme::Udp => "udp",
            Scheme::UnixDatagram => "unixgram",
            Scheme::UnixStream => "unix",
        }
    }
}

/// The three families of named sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `[sources.NAME]`.
    Sources,
    /// `[transforms.NAME]`.
    Transforms,
    /// `[outputs.NAME]`.
    Outputs,
}

impl Family {
    /// The three, in the order of a record's path.
    pub const ALL: [Family; 3] = [Family::Sources, Family::Transforms, Family::Outputs];

    /// The key in the file: `sources`, `transforms`, `outputs`.
    pub fn key(self) -> &'static str {
        match self {
            Family::Sources => "sources",
            Family::Transforms => "transforms",
            Family::Outputs => "outputs",
        }
    }

    /// One of them: `source`, `transform`, `output`.
    pub fn one(self) -> &'static str {
        match self {
            Family::Sources => "source",
            Family::Transforms => "transform",
            Family::Outputs => "output",
        }
    }

    /// Its types with their sections.
    pub fn types(self) -> impl Iterator<Item = (&'static str, Section)> {
        let of =
            move |section: &Section| Some((section.node()?, *section)).filter(|((of, _), _)| *of == self);
        Section::ALL.iter().filter_map(of).map(|((_, word), section)| (word, section))
    }
}

/// What holds when an option is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It must not be left out.
    Required,
    /// The same as writing this TOML.
    Toml(&'static str),
    /// It depends on other options; in words.
    Depends(&'static str),
    /// Nothing: what the option would switch on is off; in words.
    Absent(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Where it may stand: it means the same in each of them.
    pub sections: &'static [Section],
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Type,
    /// What holds without it.
    pub default: Default,
    /// A value, in TOML, that is not the default.
    pub example: &'static str,
    /// One line.
    pub help: &'static str,
    /// What more there is to say; may be empty.
    pub long: &'static str,
}

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

/// What option of a section a name may mean that another program, or version 0.1.0, has for it.
pub fn other_name(section: Section, key: &str) -> Option<&'static str> {
    let limit = key.strip_suffix("_max").and_then(|of| section.row(&format!("max_{of}")));
    let means = |(ours, others): &&(&'static str, &str)| {
        section.row(ours).is_some() && others.split(' ').any(|other| other == key)
    };
    let other = || OTHER_NAMES.iter().find(means).map(|(ours, _)| *ours);
    limit.map(|row| row.key).or_else(other)
}

/// Options, and the other names for each.
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

impl Type {
    /// How a person would name the value: `a duration such as "10s"`.
    pub fn wanted(self) -> String {
        match self {
            Type::Text => "a string".into(),
            Type::Path => "a path".into(),
            Type::Word(words) => format!("one of {}", quoted(words)),
            Type::Flag => "true or false".into(),
            Type::Whole { .. } => "a whole number".into(),
            Type::Number { .. } => "a number".into(),
            Type::Quantity { of, or_off: false, .. } => of.wanted.into(),
            Type::Quantity { of, or_off: true, .. } => format!("{}, or \"off\"", of.wanted),
            Type::Address => "an address such as \"127.0.0.1:8680\"".into(),
            Type::Listen => "a list of addresses such as [\"udp://127.0.0.1:8125\"]".into(),
            Type::Endpoints(schemes) => {
                let scheme = schemes.first().copied().unwrap_or(Scheme::Tcp);
                let place = if scheme.is_host() { "10.0.0.5:2003" } else { "/run/statsd.sock" };
                format!("a list of endpoints such as [\"{}://{place}\"]", scheme.word())
            }
            Type::Names => "a list of names".into(),
            Type::Texts | Type::Words(_) => "a list of strings".into(),
            Type::TextOrTexts => "a string, or a list of strings".into(),
            Type::Computes => {
                "a table of names such as { sum = \"all.hits\" }, or a list of such tables".into()
            }
            Type::NamedTables(_) => "a table of tables".into(),
            Type::Globs => "a list of patterns such as [\"api.*\"]".into(),
            Type::Shares => "a table of numbers by pattern such as { \"api.*\" = 0.1 }".into(),
            Type::Percentiles => "a list of numbers such as [90, 99]".into(),
            Type::Bins => "a list of limits such as [10, 100, \"inf\"]".into(),
            Type::Expiry { gauges: false } => "\"keep\", \"delete\" or a duration such as \"5m\"".into(),
            Type::Expiry { gauges: true } => {
                "\"keep\", \"delete\", a duration such as \"5m\", or \"3 windows\"".into()
            }
            Type::Table(Section::Expiry) => "a table, or one text for all kinds such as \"5m\"".into(),
            Type::Table(_) | Type::Map => "a table".into(),
            Type::Tables(_) => "a list of tables".into(),
            Type::TableOrTables(_) => "a table, or a list of tables".into(),
            Type::Named(family) => format!("tables with names: [{}.NAME]", family.key()),
        }
    }

    /// Its limits in words; empty when the type says all.
    pub fn limits(self) -> String {
        match self {
            Type::Whole { min, max } if max == u64::MAX => format!("at least {min}"),
            Type::Whole { min, max } => format!("{min} to {max}"),
            Type::Number { min, max } => format!("{min} to {max}"),
            Type::Quantity { of, min, max, .. } => format!("{} to {}", of.text(min), of.text(max)),
            Type::Percentiles => "each -100 to 100".into(),
            Type::Shares => "each 0 to 1".into(),
            _ => String::new(),
        }
    }
}

/// `"a", "b", "c"`.
pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
