//! Keys of carbon.conf: supported ones, irrelevant ones, and unsupported ones that have an effect in carbon.
//!
//! Not here: their meaning (`conf`).

use super::ini;
use crate::report::Reports;
use config::diagnostic::{Code, Diagnostic, nearest};

/// Supported keys.
const KEYS: &str = "\
    LINE_RECEIVER_INTERFACE LINE_RECEIVER_PORT ENABLE_UDP_LISTENER UDP_RECEIVER_INTERFACE \
    UDP_RECEIVER_PORT PICKLE_RECEIVER_INTERFACE PICKLE_RECEIVER_PORT PICKLE_RECEIVER_MAX_LENGTH \
    PROTOBUF_RECEIVER_INTERFACE PROTOBUF_RECEIVER_PORT MAX_RECEIVER_CONNECTIONS \
    METRIC_CLIENT_IDLE_TIMEOUT RELAY_METHOD DESTINATIONS DESTINATION_PROTOCOL REPLICATION_FACTOR \
    DIVERSE_REPLICAS ROUTER_HASH_TYPE DYNAMIC_ROUTER MAX_QUEUE_SIZE USE_FLOW_CONTROL RELAY_RULES \
    REWRITE_RULES AGGREGATION_RULES FORWARD_ALL CONF_DIR USE_INSECURE_UNPICKLER USE_WHITELIST \
    TAG_RELAY_NORMALIZED DESTINATION_TRANSPORT DESTINATION_SSL_CA CACHE_QUERY_INTERFACE \
    CACHE_QUERY_PORT CARBON_METRIC_PREFIX CARBON_METRIC_INTERVAL";

/// Keys of other daemons, of logs and of process management: ignoring them loses nothing.
const OTHERS: &str = "\
    LOG_DIR STORAGE_DIR LOCAL_DATA_DIR PID_DIR WHITELISTS_DIR \
    \
    TCP_KEEPALIVE TCP_KEEPIDLE TCP_KEEPINTVL TCP_KEEPCNT \
    MAX_DATAPOINTS_PER_MESSAGE TIME_TO_DEFER_SENDING QUEUE_LOW_WATERMARK_PCT MAX_QUEUE_SIZE_HARD_PCT \
    USE_RATIO_RESET MIN_RESET_STAT_FLOW MIN_RESET_RATIO MIN_RESET_INTERVAL DYNAMIC_ROUTER_MAX_RETRIES \
    CACHE_METRIC_NAMES_MAX CACHE_METRIC_NAMES_TTL MAX_CACHE_SIZE \
    MANHOLE_INTERFACE MANHOLE_PORT MANHOLE_USER MANHOLE_PUBLIC_KEY \
    DESTINATION_POOL_REPLICAS MAX_UPDATES_PER_SECOND \
    MAX_CREATES_PER_MINUTE DATABASE \
    WHISPER_SPARSE_CREATE WHISPER_FALLOCATE_CREATE WHISPER_LOCK_WRITES \
    CERES_MAX_SLICE_GAP CERES_NODE_CACHING_BEHAVIOR CERES_SLICE_CACHING_BEHAVIOR CERES_LOCK_WRITES \
    TAG_HASH_FILENAMES \
    MANHOLE_HOST_KEY_DIR RAVEN_DSN AMQP_VERBOSE AMQP_METRIC_NAME_IN_BODY AMQP_SPEC BIND_PATTERNS";

/// Keys with an effect in the original and none here, which loses nothing of the data: the value without an effect there, and
/// the replacement.
const NO_EFFECT: [(&str, &str, &str); 22] = [
    ("USER", "", "set the user in the service manager: `User=` of the systemd unit"),
    ("CACHE_WRITE_STRATEGY", "", WRITES),
    (
        "MAX_UPDATES_PER_SECOND_ON_SHUTDOWN",
        "",
        "a stop writes without this limit, for `stop_timeout` of the store",
    ),
    ("MIN_TIMESTAMP_LAG", "0", WRITES),
    ("WHISPER_AUTOFLUSH", "false", "nothing is kept in a buffer of the process after a write"),
    ("WHISPER_FADVISE_RANDOM", "false", "the store reads files only where it needs them"),
    ("ENABLE_LOGROTATION", "false", "rotate the log with logrotate: SIGHUP opens it again"),
    ("LOG_UPDATES", "false", LOG),
    ("LOG_CREATES", "false", LOG),
    ("LOG_CACHE_HITS", "false", LOG),
    ("LOG_CACHE_QUEUE_SORTS", "false", LOG),
    ("LOG_LISTENER_CONN_SUCCESS", "false", LOG),
    ("LOG_LISTENER_CONN_LOST", "false", LOG),
    ("LOG_AGGREGATOR_MISSES", "false", LOG),
    ("ENABLE_MANHOLE", "false", "there is no shell in the process: use `staunch status` and the HTTP API"),
    ("ENABLE_AMQP", "false", "message brokers are not supported as input"),
    ("ENABLE_TAGS", "true", TAGS),
    ("SKIP_TAGS_FOR_NONTAGGED", "true", TAGS),
    ("TAG_UPDATE_INTERVAL", "", TAGS),
    ("TAG_BATCH_SIZE", "", TAGS),
    ("TAG_QUEUE_SIZE", "", TAGS),
    ("GRAPHITE_URL", "", TAGS),
];
const WRITES: &str = "a file is written `write_after` its oldest point came";
const LOG: &str = "there is one log; figures are at `/metrics`";
const TAGS: &str = "Staunch indexes tags itself, and reports them to no other program";

/// Keys with an effect in the original and none here: the values without an effect there, and the replacement. No value has none
/// either.
const NOT_HERE: [(&str, &[&str], &str); 4] = [
    ("MIN_TIMESTAMP_RESOLUTION", &["0", "1"], TIMES),
    ("MAX_AGGREGATION_INTERVALS", &["5"], LATE),
    ("WRITE_BACK_FREQUENCY", &["none"], LATE),
    ("AMQP_HOST", &[], "message brokers are not supported as input"),
];
const TIMES: &str = "timestamps are forwarded as sent";
const LATE: &str = "each aggregate is sent once; late points are accepted until `expire`";

/// Reports keys that are not supported or not known. `has_store`: the daemon of the section stores points itself.
pub(super) fn tell(section: &ini::Section<'_>, has_store: bool, wrong: &mut Vec<Diagnostic>) {
    for (key, value, place) in section.keys() {
        let same = |known: &&str| known.eq_ignore_ascii_case(key);
        if KEYS.split_whitespace().chain(OTHERS.split_whitespace()).any(|known| same(&known)) {
            continue;
        }
        if let Some((known, silent, instead)) = NOT_HERE.iter().find(|(known, ..)| same(known)) {
            if !value.is_empty() && !silent.contains(&&*value.to_ascii_lowercase()) {
                let report =
                    wrong.warning(Code::NotCarriedOver, place, format!("{known} has no counterpart"));
                let stores = has_store && *instead == TIMES;
                report.label("left out").hint(if stores {
                    "timestamps are stored as sent"
                } else {
                    *instead
                });
            }
            continue;
        }
        if let Some((known, silent, instead)) = NO_EFFECT.iter().find(|(known, ..)| same(known)) {
            if !value.is_empty() && !value.eq_ignore_ascii_case(silent) {
                let report =
                    wrong.warning(Code::ImportNoEffect, place, format!("{known} has no effect here"));
                report.label("ignored").hint(*instead);
            }
            continue;
        }
        let message = format!("carbon knows no key `{key}` in [{}]", section.name);
        let warning = Diagnostic::warning(Code::ImportUnknownKey, message).at(place).label("ignored");
        let known = KEYS.split_whitespace().chain(OTHERS.split_whitespace());
        let known = known.chain(NO_EFFECT.iter().map(|(known, ..)| *known));
        let known = known.chain(NOT_HERE.iter().map(|(known, ..)| *known));
        let near = nearest(key, known).map(|near| format!("did you mean {near}?"));
        wrong.push(Diagnostic { hint: near, ..warning });
    }
}
