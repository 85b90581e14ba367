//! The rows themselves, by kind of section: a new option is a row in one of these files. Nothing here does work.
//!
//! Not here: the lists of sections that share rows, and the limits of values (`types`); how a row is written and what comes of it
//! (`field`).

pub(crate) mod daemon;
pub(crate) mod email;
pub(crate) mod endpoints;
pub(crate) mod graphite_api;
pub(crate) mod http_output;
pub(crate) mod named;
pub(crate) mod opentsdb;
pub(crate) mod outputs;
pub(crate) mod packets;
pub(crate) mod queue;
pub(crate) mod relay;
pub(crate) mod riemann;
pub(crate) mod riemann_output;
pub(crate) mod sources;
pub(crate) mod streams;
pub(crate) mod transforms;
pub(crate) mod transport;
mod types;
pub(crate) mod whisper;

pub use types::TIMER_AGGREGATES;

use super::field::Group;
use super::row::Row;
use crate::plan::OutputKind;

/// All rows. Rows of one section are in the order of the reference.
pub(super) const TABLES: &[&[Row]] = &[
    daemon::TOP.rows,
    named::OF_NAMED.rows,
    sources::LISTENER.rows,
    sources::POINT.rows,
    sources::READING.rows,
    opentsdb::LISTENER.rows,
    riemann::LISTENER.rows,
    riemann::MESSAGES.rows,
    sources::OWN.rows,
    sources::CARBON_OWN.rows,
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
    streams::STREAMS.rows,
    outputs::GRAPHITE.rows,
    opentsdb::PUT.rows,
    outputs::NAMESPACE.rows,
    outputs::FILES.rows,
    outputs::ROTATION.rows,
    outputs::FILE_FORMS.rows,
    whisper::STORE.rows,
    whisper::SCHEMA.rows,
    whisper::AGGREGATION.rows,
    whisper::COMPAT.rows,
    packets::PACKET.rows,
    packets::MODE.rows,
    packets::STAGE.rows,
    packets::REWRITE.rows,
    packets::CONVERT.rows,
    packets::AS_SAMPLES.rows,
    packets::SHARDING.rows,
    packets::AGGREGATES.rows,
    http_output::HTTP_OUTPUT.rows,
    email::EMAIL.rows,
    riemann_output::RIEMANN_OUTPUT.rows,
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
    daemon::CARBONLINK.rows,
    graphite_api::GRAPHITE_API.rows,
];

/// Rows that read into an output's kind, in the order in which they are printed: those about its form. The printer gives the
/// others where they belong.
pub(crate) const OF_OUTPUT_KINDS: &[Group<OutputKind>] =
    &[outputs::ROTATION, outputs::GRAPHITE, outputs::FILE_FORMS, opentsdb::PUT];

#[test]
fn each_key_is_once_in_a_section_and_its_texts_are_sentences() {
    for section in super::section::Section::ALL.iter().copied() {
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
