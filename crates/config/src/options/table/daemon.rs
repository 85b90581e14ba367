//! What belongs to no source, transform or output: the top level, HTTP and management ports.

use super::{HOUR, row};
use crate::options::Default::{Absent, Depends, Required, Toml};
use crate::options::Section::{Http, Management, Top};
use crate::options::{Family, Row, Type};

/// The top level.
pub(super) const TOP: &[Row] = &[
    // Top level
    row(
        &[Top],
        "data_dir",
        Type::Path,
        Toml("\"./staunch-data\""),
        "\"/var/lib/staunch\"",
        "Where files go that have no path of their own.",
        "Relative paths, here and in all other options, start in the daemon's working directory.",
    ),
    row(
        &[Top],
        "stop_timeout",
        Type::Duration { min_ms: 0, max_ms: HOUR },
        Toml("\"5s\""),
        "\"30s\"",
        "Longest time between SIGTERM and exit.",
        "In this time the last window is flushed and the queues are sent; what is left then is shed as `stopped`.",
    ),
    row(
        &[Top],
        "take_over_timeout",
        Type::Duration { min_ms: 100, max_ms: HOUR },
        Toml("\"10s\""),
        "\"1m\"",
        "Longest time that nobody reads while another process takes over (`--take-over`).",
        "One that is not done by then is refused, and ended if it does not answer; this one goes on with everything. Raise it where the aggregations hold many millions of series.",
    ),
    row(
        &[Top],
        "reload_on_change",
        Type::Flag,
        Toml("false"),
        "true",
        "Reload when this file changes, not only on SIGHUP.",
        "The file is looked at every second, also one that an editor renames into place. A file with a mistake changes nothing: the mistakes are in the log.",
    ),
    row(
        &[Top],
        "sources",
        Type::Named(Family::Sources),
        Required,
        "",
        "Where records come in.",
        "At least one. Names of sources, transforms and outputs: 1 to 64 letters, digits, `_`, `-` and `.`, beginning with a letter or digit. A source and a transform cannot share a name.",
    ),
    row(
        &[Top],
        "transforms",
        Type::Named(Family::Transforms),
        Absent("no transforms"),
        "",
        "What is computed on records.",
        "",
    ),
    row(
        &[Top],
        "outputs",
        Type::Named(Family::Outputs),
        Absent("no outputs"),
        "",
        "Where records are delivered or stored.",
        "",
    ),
    row(&[Top], "http", Type::Table(Http), Absent("the defaults of its options"), "", "The HTTP server.", ""),
    row(
        &[Top],
        "management",
        Type::TableOrTables(Management),
        Absent("no management port"),
        "",
        "StatsD management ports.",
        "",
    ),
];

/// HTTP and management ports.
pub(super) const SERVERS: &[Row] = &[
    // HTTP
    row(&[Http], "enabled", Type::Flag, Toml("true"), "false", "Whether there is an HTTP server.", ""),
    row(
        &[Http],
        "listen",
        Type::Address,
        Toml("\"127.0.0.1:8680\""),
        "\"0.0.0.0:8680\"",
        "Where it listens.",
        "Port 0 takes any free port.",
    ),
    // Management
    row(
        &[Management],
        "listen",
        Type::Address,
        Toml("\"127.0.0.1:8126\""),
        "\"0.0.0.0:8126\"",
        "Where it listens.",
        "Whoever can connect can delete series and set the health, unless `read_only` is set: there are no passwords.",
    ),
    row(
        &[Management],
        "replies",
        Type::Word(&["node", "perl", "proxy"]),
        Toml("\"node\""),
        "\"perl\"",
        "Whose replies it gives: node statsd's, Net::Statsd::Server's, or those of node's cluster proxy.",
        "`proxy` has `status` with the live endpoints of a cluster in place of what speaks of series.",
    ),
    row(
        &[Management],
        "cluster",
        Type::Text,
        Depends("the file's only cluster"),
        "\"nodes\"",
        "The output whose endpoints `proxy` speaks of.",
        "",
    ),
    row(
        &[Management],
        "healthy",
        Type::Flag,
        Toml("true"),
        "false",
        "What `health` answers at first: up or down.",
        "`health up` and `health down` change it.",
    ),
    row(
        &[Management],
        "read_only",
        Type::Flag,
        Toml("false"),
        "true",
        "Refuse what changes something.",
        "`delcounters`, `deltimers`, `delgauges`, `delsets`, `health up` and `health down`; `health` alone still answers.",
    ),
    row(
        &[Management],
        "max_connections",
        Type::Whole { min: 1, max: 100_000 },
        Toml("256"),
        "32",
        "Most clients at once.",
        "When there are so many, the one that has been silent the longest, or has not read its answer for the longest time, gives its place to a new one; with none that has been so for a second the new one is closed.",
    ),
    row(
        &[Management],
        "max_connections_per_peer",
        Type::Whole { min: 1, max: 100_000 },
        Depends("half of `max_connections`"),
        "256",
        "Most clients at once from one address.",
        "As `max_connections`, among the clients of that address. Of IPv6 all addresses of one /64 are one.",
    ),
    row(
        &[Management],
        "config",
        Type::Map,
        Toml("{}"),
        "{ flushInterval = \"10000\" }",
        "What the command `config` prints: texts by key.",
        "For tools that read node statsd's configuration this way. A member of an object is written with the key `\"object > member\"`.",
    ),
];
