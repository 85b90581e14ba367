//! How a listener parses StatsD lines: the dialect and its options.

/// The program whose line parsing is used (spec statsd §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Same results as node statsd.
    Etsy,
    /// Same results as Net::Statsd::Server.
    Perl,
    /// Same results as the DataDog agent.
    Dogstatsd,
    /// The superset for mixed clients.
    Union,
}

/// Meaning of `+n|g` and `-n|g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaugeSign {
    /// A change of the stored value.
    Delta,
    /// A number with a sign.
    Absolute,
}

/// Options of one listener. A dialect ignores the ones that it does not use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The dialect.
    pub dialect: Dialect,
    /// `etsy` only: node's results for infinities, negative timers that pass its check, and odd rates (the † rows of
    /// §3).
    pub compat_quirks: bool,
    /// Reject hex, octal, binary and blank values.
    pub strict_numbers: bool,
    /// Meaning of a sign on a gauge. `etsy` always reads a delta, `perl` and `dogstatsd` never do.
    pub gauge_sign: GaugeSign,
    /// `union` only: accept `ms` values below 0.
    pub allow_negative_timers: bool,
    /// Sanitise names when they are stored (`keyNameSanitize`). `dogstatsd` never does.
    pub sanitize: bool,
    /// Longest name with tags, in bytes; 0 for no limit.
    pub key_bytes_max: u32,
    /// Most tags on one line; 0 for no limit.
    pub tags_max: u32,
    /// Lowest sample rate: a line with a lower one is rejected. Protects against one line that claims 10^300 samples.
    pub rate_min: f64,
    /// Collect the spans of each line's name for `keyFlush`.
    pub count_names: bool,
}

impl Options {
    /// The dialect's defaults.
    pub fn of(dialect: Dialect) -> Options {
        let classic = matches!(dialect, Dialect::Etsy | Dialect::Perl);
        Options {
            dialect,
            compat_quirks: false,
            strict_numbers: !classic,
            gauge_sign: match dialect {
                Dialect::Etsy | Dialect::Union => GaugeSign::Delta,
                Dialect::Perl | Dialect::Dogstatsd => GaugeSign::Absolute,
            },
            allow_negative_timers: matches!(dialect, Dialect::Perl | Dialect::Dogstatsd),
            sanitize: dialect != Dialect::Dogstatsd,
            key_bytes_max: if dialect == Dialect::Etsy { 0 } else { model::limits::KEY_BYTES_MAX as u32 },
            tags_max: if dialect == Dialect::Etsy { 0 } else { model::limits::TAGS_MAX as u32 },
            rate_min: if classic { 0.0 } else { 1e-9 },
            count_names: false,
        }
    }
}
