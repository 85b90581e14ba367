//! Options of outputs that have endpoints: connections and pauses, whether they are required, and checks.

use process::sharding::HEALTH_CHECKS_MAX;

use super::{ENDPOINTS, HOUR, PACKETS, STREAMS, YEAR, row};
use crate::options::Default::{Absent, Depends, Required, Toml};
use crate::options::Section::{Check, OutputGraphite};
use crate::options::{Row, Type};

/// In the order of the reference.
pub(super) const ROWS: &[Row] = &[
    // Endpoints: how they are seen
    row(
        ENDPOINTS,
        "required",
        Type::Flag,
        Toml("false"),
        "true",
        "Whether `/ready` says no while an endpoint is down.",
        "",
    ),
    row(PACKETS, "check", Type::Table(Check), Absent("no checks"), "", "Active checks of the endpoints.", ""),
    row(
        &[Check],
        "kind",
        Type::Word(&["management", "connect", "http"]),
        Required,
        "\"connect\"",
        "What is asked.",
        "`management`: `health` on a StatsD management port, whose answer must hold `up`. `connect`: that a TCP connection can be made. `http`: GET, whose status must be 200 to 299.",
    ),
    row(
        &[Check],
        "port",
        Type::Whole { min: 1, max: 65_535 },
        Depends("the endpoint's own port for `connect` in `tcp`; otherwise `port` or `at` must be given"),
        "8127",
        "The TCP port to ask, at each endpoint's host.",
        "",
    ),
    row(
        &[Check],
        "at",
        Type::Texts,
        Depends("`port` at each endpoint's host"),
        "[\"10.0.0.5:8126\"]",
        "Where to ask about each endpoint, `host:port`, in the order of `to`.",
        "In place of `port`.",
    ),
    row(
        &[Check],
        "path",
        Type::Text,
        Toml("\"/\""),
        "\"/healthz\"",
        "What `http` gets.",
        "It begins with `/`.",
    ),
    row(
        &[Check],
        "every",
        Type::Duration { min_ms: 1, max_ms: YEAR },
        Toml("\"10s\""),
        "\"1s\"",
        "Time between two checks, and how long an answer may take.",
        "",
    ),
    row(
        &[Check],
        "checks",
        Type::Whole { min: 1, max: HEALTH_CHECKS_MAX as u64 },
        Toml("1"),
        "3",
        "How many of the last results count.",
        "",
    ),
    row(
        &[Check],
        "down_after",
        Type::Whole { min: 1, max: HEALTH_CHECKS_MAX as u64 },
        Toml("1"),
        "2",
        "Bad results among them that take an endpoint down.",
        "At most `checks`. The defaults are those of node's proxy, which takes a node out at once.",
    ),
    row(
        &[Check],
        "up_after",
        Type::Whole { min: 1, max: HEALTH_CHECKS_MAX as u64 },
        Toml("1"),
        "2",
        "Good results among them that bring it back.",
        "At most `checks`.",
    ),
    row(
        &[OutputGraphite],
        "connections",
        Type::Whole { min: 1, max: 16 },
        Toml("1"),
        "4",
        "Connections to the endpoint, which share its queue.",
        "A series always takes the same one, so its points stay in order. For an endpoint that is far away or slow to \
         read a connection.",
    ),
    row(
        &[OutputGraphite],
        "max_line_bytes",
        Type::Size { min: 1024, max: 64 << 20 },
        Toml("\"16KiB\""),
        "\"64KiB\"",
        "Longest line, without its line feed.",
        "A longer one is dropped as `too_big`: carbon closes the connection of a line of more than 16,384 bytes, with all that is under way on it. Raise it for an endpoint that takes longer ones.",
    ),
    // Stream senders
    row(
        STREAMS,
        "min_retry_delay",
        Type::Duration { min_ms: 1, max_ms: HOUR },
        Toml("\"250ms\""),
        "\"1s\"",
        "First pause after a failure.",
        "It doubles with each failure, up to `max_retry_delay`, with some jitter.",
    ),
    row(
        STREAMS,
        "max_retry_delay",
        Type::Duration { min_ms: 1, max_ms: 24 * HOUR },
        Toml("\"15s\""),
        "\"1m\"",
        "Longest pause between attempts.",
        "At least `min_retry_delay`.",
    ),
    row(
        STREAMS,
        "connect_timeout",
        Type::Duration { min_ms: 1, max_ms: HOUR },
        Toml("\"5s\""),
        "\"1s\"",
        "A connection attempt that takes longer has failed.",
        "",
    ),
    row(
        STREAMS,
        "write_timeout",
        Type::Duration { min_ms: 1, max_ms: HOUR },
        Toml("\"10s\""),
        "\"30s\"",
        "A connection that took nothing for so long has failed.",
        "",
    ),
];
