//! What a row of the options table is: key, type and limits, default, example, help.
//!
//! Not here: the rows (`table`), and how a value is read (`field`).

use super::section::{Family, Section};
use crate::text::Quantity;

/// The type of a row's value. Limits are inclusive.
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
    /// A table of result names by computation, or a list of such tables.
    Computes,
    /// A list of these texts; others do no harm.
    Words(&'static [&'static str]),
    /// A list of percentiles: numbers, or texts to keep the exact spelling.
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
    /// Tables of a section, with names given by the user.
    NamedTables(Section),
    /// A list of patterns of names.
    Globs,
    /// A table of shares of lines, by patterns of names; the first match decides.
    Shares,
    /// A table of texts.
    Map,
    /// Named sections: `[sources.NAME]` and so on.
    Named(Family),
}

/// The scheme of an endpoint.
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

    /// The text before `://`.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Tcp => "tcp",
            Scheme::Udp => "udp",
            Scheme::UnixDatagram => "unixgram",
            Scheme::UnixStream => "unix",
        }
    }
}

/// The effect of omitting an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It must not be omitted.
    Required,
    /// The same as this TOML.
    Toml(&'static str),
    /// It depends on other options; a description.
    Depends(&'static str),
    /// The option is off; a description.
    Absent(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The sections of the option. It has the same meaning in each of them.
    pub sections: &'static [Section],
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Type,
    /// The effect of omitting it.
    pub default: Default,
    /// A value in TOML other than the default.
    pub example: &'static str,
    /// One line.
    pub help: &'static str,
    /// Further explanation; may be empty.
    pub long: &'static str,
}

impl Type {
    /// The value in words: `a duration such as "10s"`.
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

    /// Its limits in words; empty when the type is enough.
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
