//! One StatsD observation in a compact form: offsets into the batch's arena.

use crate::Span;

/// Kind of a sample: decides how it is aggregated. Series of different kinds never share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Adds up over a window.
    Counter,
    /// Keeps its last value.
    Gauge,
    /// Keeps all values of a window; histograms and distributions have this kind too.
    Timer,
    /// Counts distinct members of a window.
    Set,
}

impl Kind {
    /// Every kind, in node's report order.
    pub const ALL: [Kind; 4] = [Kind::Counter, Kind::Timer, Kind::Gauge, Kind::Set];

    /// The name in options, the API and self-metrics.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Timer => "timer",
            Kind::Set => "set",
        }
    }
}

/// Effect of a gauge sample on the stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GaugeOp {
    /// Replace it.
    Assign,
    /// Add to it when it exists and is not 0; otherwise replace it (spec statsd §7.4).
    Delta,
}

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Counters, timers and gauges: finite, except under `compat_quirks`.
    Number(f64),
    /// Sets: the member's text in the arena.
    Text(Span),
}

/// One observation. The spans point into the arena of the sample's batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Seeded hash of (kind, raw name, raw tags).
    pub hash: u64,
    /// The observed value.
    pub value: Value,
    /// Number of observations that this sample counts for: `1 / rate`, computed once, as node computes it.
    pub weight: f64,
    /// Text before the first `:`.
    pub name: Span,
    /// Text of the tag field without `#`; empty when there is none.
    pub tags: Span,
    /// Kind.
    pub kind: Kind,
    /// Only for gauges; `Assign` otherwise.
    pub gauge_op: GaugeOp,
    /// 0, or 1 + the index of this sample's [`Extra`] in its batch.
    pub extra: u16,
}

/// Rare fields of samples, stored separately to keep samples small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extra {
    /// Unix seconds set by the client: the sample bypasses aggregation (DogStatsD 1.3).
    pub timestamp_s: Option<u64>,
    /// DogStatsD container id (`c:`); empty when absent.
    pub container: Span,
    /// DogStatsD external data (`e:`); empty when absent.
    pub external: Span,
}

const _: () = assert!(size_of::<Sample>() <= 56, "a sample stays within one cache line");
