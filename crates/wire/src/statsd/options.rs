//! How a listener reads StatsD lines: the dialect and its switches.

/// Which original's reading of a line holds (spec statsd §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Result-identical to node statsd.
    Etsy,
    /// Result-identical to Net::Statsd::Server.
    Perl,
    /// The DataDog agent's reading.
    Dogstatsd,
    /// The superset for mixed fleets.
    Union,
}

/// What `+n|g` and `-n|g` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaugeSign {
    /// A change of the stored value.
    Delta,
    /// A number with a sign.
    Absolute,
}

/// Switches of one listener. Values that the dialect does not look at are ignored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whose reading holds.
    pub dialect: Dialect,
    /// `etsy` only: node's result for infinities, smuggled negative timers and odd rates (the † rows of §3).
    pub compat_quirks: bool,
    /// Refuse hex, octal, binary and blank values.
    pub strict_numbers: bool,
    /// Meaning of a sign on a gauge. `etsy` always reads a delta, `perl` and `dogstatsd` never do.
    pub gauge_sign: GaugeSign,
    /// `union` only: take `ms` values below 0.
    pub allow_negative_timers: bool,
    /// Sanitise names when they are stored (`keyNameSanitize`). `dogstatsd` never does.
    pub sanitize: bool,
    /// Longest name with tags, in bytes; 0 for none.
    pub key_bytes_max: u32,
    /// Most tags on one line; 0 for none.
    pub tags_max: u32,
    /// Smallest sample rate that is believed: a lower one is a bad line. Guards against one line that claims 10^300
    /// samples.
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
