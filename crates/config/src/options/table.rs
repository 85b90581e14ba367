//! The rows themselves, by kind of section: a new option is a row in one of these files. Nothing here does work.
//!
//! Here: what sections are for, and the lists of sections that share rows.

mod daemon;
mod endpoints;
mod named;
mod outputs;
mod packets;
mod queue;
mod relay;
mod sources;
mod transforms;
mod transport;

use super::Section::{
    self, Aggregates, Check, Expiry, Histogram, Http, HttpTls, KeyFlush, Management, OutputConsole,
    OutputEventFile, OutputGraphite, OutputGraphiteFile, OutputPerlFile, OutputTcp, OutputTls, OutputUdp,
    OutputUnix, Queue, RelayCluster, RelayRule, RelayStatistics, SourceGraphite, SourceSelf, SourceStatsd,
    SourceTls, Top, TransformAggregate, TransformRelay,
};
use super::{Default, Row, Type};

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
const OUTPUTS: &[Section] = &[
    OutputGraphite,
    OutputGraphiteFile,
    OutputConsole,
    OutputPerlFile,
    OutputUdp,
    OutputTcp,
    OutputUnix,
    OutputEventFile,
];
const NAMED: &[Section] = &[
    SourceStatsd,
    SourceGraphite,
    SourceSelf,
    TransformAggregate,
    TransformRelay,
    OutputGraphite,
    OutputGraphiteFile,
    OutputConsole,
    OutputPerlFile,
    OutputUdp,
    OutputTcp,
    OutputUnix,
    OutputEventFile,
];
const NAMING: &[Section] = &[OutputGraphite, OutputGraphiteFile, TransformAggregate];
const STREAMS: &[Section] = &[OutputGraphite, OutputTcp, OutputUnix];
const PACKETS: &[Section] = &[OutputUdp, OutputTcp, OutputUnix];
const ENDPOINTS: &[Section] = &[OutputGraphite, OutputUdp, OutputTcp, OutputUnix];
const ROTATED: &[Section] = &[OutputGraphiteFile, OutputEventFile];

/// The timer aggregates that `timer_aggregates` can name (spec statsd §7.7).
pub(crate) const TIMER_AGGREGATES: &[&str] = &[
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

const fn row(
    sections: &'static [Section],
    key: &'static str,
    value: Type,
    default: Default,
    example: &'static str,
    help: &'static str,
    long: &'static str,
) -> Row {
    Row { sections, key, value, default, example, help, long }
}

const POINTS_ABOUT: &str = "Takes in Graphite points, as lines in datagrams and on streams or as pickle or protobuf on streams, and hands each on as a line. See [Graphite](graphite.md).";
const SELF_ABOUT: &str = "The daemon's own figures as StatsD lines, for outputs and aggregations to take from. It listens nowhere, and its lines are not counted as traffic.";
const UNIX_ABOUT: &str = "Sends each packet of a source on to a unix socket, as a datagram or over a stream: byte for byte, or what its options make of the lines.";
const AGGREGATES_ABOUT: &str = "How an output of packets that takes from a transform writes aggregates as samples: counters as their sums, gauges as their values, sets as their members, timers as the values of the window.";
const CHECK_ABOUT: &str = "Asks each endpoint regularly whether it is well. A cluster gives the keys of an endpoint that is down to the others until it is up.";

/// Heading in TOML, and what the section is for.
pub(super) fn section_text(section: Section) -> (&'static str, &'static str) {
    match section {
        Top => ("Top level", "What belongs to no source, transform or output."),
        SourceStatsd => (
            "[sources.NAME] type = \"statsd\"",
            "Takes in StatsD samples, and DogStatsD events and service checks, as datagrams or on streams.",
        ),
        SourceGraphite => ("[sources.NAME] type = \"graphite\"", POINTS_ABOUT),
        SourceSelf => ("[sources.NAME] type = \"self\"", SELF_ABOUT),
        TransformAggregate => (
            "[transforms.NAME] type = \"aggregate\"",
            "Turns the samples of each window into one value per counter, gauge and set, and several per timer.",
        ),
        Histogram => (
            "[[transforms.NAME.histograms]]",
            "Counts a timer's values by bins. Of several entries the first whose `name_contains` fits a timer applies.",
        ),
        Expiry => (
            "[transforms.NAME.expiry]",
            "What becomes of a series that saw no sample in a window. `expiry = \"5m\"` sets all four at once.",
        ),
        KeyFlush => (
            "[transforms.NAME.key_flush]",
            "A regular report of the names that got the most lines. Without this table there is none.",
        ),
        TransformRelay | RelayCluster | RelayRule | RelayStatistics => relay::section_text(section),
        OutputGraphite => (
            "[outputs.NAME] type = \"graphite\"",
            "Sends aggregates to carbon, a relay, or whatever speaks its protocol.",
        ),
        OutputGraphiteFile => (
            "[outputs.NAME] type = \"graphite_file\"",
            "Writes aggregates as Graphite lines to a file of bounded size.",
        ),
        OutputConsole => (
            "[outputs.NAME] type = \"console\"",
            "Prints each window's aggregates as one document, to try things out.",
        ),
        OutputPerlFile => (
            "[outputs.NAME] type = \"perl_file\"",
            "Appends to a file in the form of Net::Statsd::Server's file backend. The file is not rotated.",
        ),
        OutputUdp => (
            "[outputs.NAME] type = \"udp\"",
            "Sends each packet of a source on as a datagram: byte for byte, or what its options make of the lines.",
        ),
        OutputTcp => (
            "[outputs.NAME] type = \"tcp\"",
            "Sends each packet of a source on over TCP: byte for byte, or what its options make of the lines.",
        ),
        OutputUnix => ("[outputs.NAME] type = \"unix\"", UNIX_ABOUT),
        OutputEventFile => (
            "[outputs.NAME] type = \"event_file\"",
            "Writes events and service checks as JSON lines to a file of bounded size.",
        ),
        Aggregates => ("[outputs.NAME.aggregates]", AGGREGATES_ABOUT),
        SourceTls | OutputTls | HttpTls => transport::section_text(section),
        Check => ("[outputs.NAME.check]", CHECK_ABOUT),
        Queue => (
            "[outputs.NAME.queue]",
            "What stands between the pipeline and an output that is slow or away. Each endpoint has a queue of its own.",
        ),
        Http => ("[http]", "`/healthz`, `/ready`, `/metrics` and `/api/v1`."),
        Management => (
            "[management]",
            "The management port of the originals (`stats`, `health`, `delcounters` …). Several: `[[management]]`.",
        ),
    }
}

/// All of them. Rows of one section are in the order of the reference.
pub(super) const TABLES: &[&[Row]] = &[
    daemon::TOP,
    named::ROWS,
    sources::ROWS,
    transport::OF_SOURCES,
    transforms::ROWS,
    relay::ROWS,
    outputs::ROWS,
    packets::ROWS,
    endpoints::ROWS,
    transport::OF_OUTPUTS,
    queue::ROWS,
    daemon::SERVERS,
];

#[test]
fn each_key_stands_once_in_a_section_and_its_texts_are_whole() {
    for section in Section::ALL {
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
