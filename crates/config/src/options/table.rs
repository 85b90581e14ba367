//! The rows themselves, by kind of section: a new option is a row in one of these files. Nothing here does work.
//!
//! Here: the lists of sections that share rows. Not here: how a row is written and what comes of it (`field`).

pub(crate) mod daemon;
pub(crate) mod endpoints;
pub(crate) mod named;
pub(crate) mod outputs;
pub(crate) mod packets;
pub(crate) mod queue;
pub(crate) mod relay;
pub(crate) mod sources;
pub(crate) mod transforms;
pub(crate) mod transport;

use super::Section::{
    self, OutputEventFile, OutputGraphite, OutputGraphiteFile, OutputTcp, OutputUdp, OutputUnix,
    SourceGraphite, SourceStatsd, TransformAggregate,
};
use super::field::Words;
use super::{Family, Row, Type};
use crate::text::{DURATION, SIZE};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const YEAR: u64 = 365 * 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// Most values that a timer, or members that a set, may be told to keep exactly.
const EXACT_MAX: u64 = 1_000_000_000;

const SOURCES: &[Section] = &[SourceStatsd];
const POINTS: &[Section] = &[SourceGraphite];
const LISTENING: &[Section] = &[SourceStatsd, SourceGraphite];
const AGGREGATE: &[Section] = &[TransformAggregate];
const OUTPUTS: &[Section] = &Section::of::<{ Section::number(&[Family::Outputs]) }>(&[Family::Outputs]);
const NAMED: &[Section] = &Section::of::<{ Section::number(&Family::ALL) }>(&Family::ALL);
const NAMING: &[Section] = &[OutputGraphite, OutputGraphiteFile, TransformAggregate];
const STREAMS: &[Section] = &[OutputGraphite, OutputTcp, OutputUnix];
const PACKETS: &[Section] = &[OutputUdp, OutputTcp, OutputUnix];
const ENDPOINTS: &[Section] = &[OutputGraphite, OutputUdp, OutputTcp, OutputUnix];
const ROTATED: &[Section] = &[OutputGraphiteFile, OutputEventFile];

/// The timer aggregates that `timer_aggregates` can name (spec statsd §7.7).
pub const TIMER_AGGREGATES: &[&str] = &[
    "count_percent",
    "mean_percent",
    "upper_percent",
    "lower_percent",
    "sum_percent",
    "sum_squares_percent",
    "std",
    "upper",
    "lower",
    "count",
    "count_ps",
    "sum",
    "sum_squares",
    "mean",
    "median",
    "histogram",
];

/// A text such as `"10s"`, in milliseconds.
const fn duration(min: u64, max: u64) -> Type {
    Type::Quantity { of: &DURATION, min, max, or_off: false }
}

const fn duration_or_off(min: u64, max: u64) -> Type {
    Type::Quantity { of: &DURATION, min, max, or_off: true }
}

/// A text such as `"64MiB"`, in bytes.
const fn size(min: u64, max: u64) -> Type {
    Type::Quantity { of: &SIZE, min, max, or_off: false }
}

const fn size_or_off(min: u64, max: u64) -> Type {
    Type::Quantity { of: &SIZE, min, max, or_off: true }
}

const fn whole(min: u64, max: u64) -> Type {
    Type::Whole { min, max }
}

const fn number(min: f64, max: f64) -> Type {
    Type::Number { min, max }
}

/// One of the words that [`words!`](super::field::words) gives to a type.
const fn one_of<W: Words>() -> Type {
    Type::Word(W::WORDS)
}

/// All of them. Rows of one section are in the order of the reference.
pub(super) const TABLES: &[&[Row]] = &[
    daemon::TOP.rows,
    named::OF_NAMED.rows,
    sources::LISTENER.rows,
    sources::POINT.rows,
    sources::READING.rows,
    sources::OWN.rows,
    transport::SOURCE_TRANSPORT.rows,
    transport::LISTEN_TLS.rows,
    transforms::AGGREGATION.rows,
    transforms::BOUNDS.rows,
    transforms::SURROUNDINGS.rows,
    transforms::REPORT.rows,
    transforms::HISTOGRAM.rows,
    transforms::EXPIRY.rows,
    transforms::KEY_FLUSH.rows,
    relay::RELAY.rows,
    relay::CLUSTER.rows,
    relay::RULE.rows,
    relay::STATISTICS.rows,
    outputs::GRAPHITE.rows,
    outputs::NAMESPACE.rows,
    outputs::FILES.rows,
    outputs::ROTATION.rows,
    outputs::FILE_FORMS.rows,
    packets::PACKET.rows,
    packets::MODE.rows,
    packets::STAGE.rows,
    packets::REWRITE.rows,
    packets::CONVERT.rows,
    packets::AS_SAMPLES.rows,
    packets::SHARDING.rows,
    packets::AGGREGATES.rows,
    endpoints::ENDPOINT.rows,
    endpoints::CHECK.rows,
    endpoints::CONNECTIONS.rows,
    endpoints::SENDER.rows,
    transport::OUTPUT_TRANSPORT.rows,
    transport::OUTPUT_TLS.rows,
    queue::OF_OUTPUTS.rows,
    queue::QUEUE.rows,
    daemon::HTTP.rows,
    daemon::MANAGEMENT.rows,
];

#[test]
fn each_key_stands_once_in_a_section_and_its_texts_are_whole() {
    for section in Section::ALL.iter().copied() {
        let mut keys: Vec<_> = section.rows().map(|row| row.key).collect();
        assert!(!keys.is_empty(), "{section:?}");
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "{section:?} has a key twice");
    }
    for row in TABLES.iter().copied().flatten() {
        assert!(row.help.ends_with('.') && !row.help.contains('\n'), "{}: {}", row.key, row.help);
        assert!(row.long.is_empty() || row.long.ends_with(['.', '…']), "{}: {}", row.key, row.long);
        assert!(row.help.len() <= 110, "{}: help is one line", row.key);
    }
}
