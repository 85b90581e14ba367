//! Options of outputs that have endpoints: connections and pauses, whether they are required, and checks.

use deliver::plan::SenderPlan;
use process::sharding::HEALTH_CHECKS_MAX;

use super::types::{ENDPOINTS, HOUR, PACKETS, STREAMS, YEAR, duration, size, whole};
use crate::options::field::rows;
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Flag, Table, Text, Texts, Word};
use crate::options::section::Section::{Check, OutputGraphite};
use crate::plan::{OutputKind, OutputPlan};

rows! {
    ENDPOINT: OutputPlan;
    in ENDPOINTS {
        "required" => required: Flag, Toml("false"), "true",
            "Whether `/ready` says no while an endpoint is down.";
    }
    in PACKETS {
        "check": Table(Check), Absent("no checks"), "",
            "Active checks of the endpoints.";
    }
}

rows! {
    CHECK: CheckOptions = |_| CheckOptions {
        kind: "connect",
        port: None,
        at: Vec::new(),
        path: "/".into(),
        every_ms: 10_000,
        checks: 1,
        down_after: 1,
        up_after: 1,
    };
    in [Check] {
        "kind" => kind: Word(&["management", "connect", "http"]), Required, "\"connect\"",
            "What is asked.",
            "`management`: `health` on a StatsD management port, whose answer must hold `up`. `connect`: that a TCP connection can be made. `http`: GET, whose status must be 200 to 299.";
        "port" => port: whole(1, 65_535),
            Depends("the endpoint's own port for `connect` in `tcp`; otherwise `port` or `at` must be given"), "8127",
            "The TCP port to ask, at each endpoint's host.";
        "at" => at: Texts, Depends("`port` at each endpoint's host"), "[\"10.0.0.5:8126\"]",
            "Where to ask about each endpoint, `host:port`, in the order of `to`.",
            "In place of `port`.";
        "path" => path: Text, Toml("\"/\""), "\"/healthz\"",
            "What `http` gets.",
            "It begins with `/`.";
        "every" => every_ms: duration(1, YEAR), Toml("\"10s\""), "\"1s\"",
            "Time between two checks, and how long an answer may take.";
        "checks" => checks: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "3",
            "How many of the last results count.";
        "down_after" => down_after: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "2",
            "Bad results among them that take an endpoint down.",
            "At most `checks`. The defaults are those of node's proxy, which takes a node out at once.";
        "up_after" => up_after: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "2",
            "Good results among them that bring it back.",
            "At most `checks`.";
    }
}

/// What a table `check` says.
pub(crate) struct CheckOptions {
    pub(crate) kind: &'static str,
    pub(crate) port: Option<u16>,
    /// As `at` says it; empty without.
    pub(crate) at: Vec<String>,
    pub(crate) path: String,
    pub(crate) every_ms: u64,
    pub(crate) checks: u32,
    pub(crate) down_after: u32,
    pub(crate) up_after: u32,
}

rows! {
    CONNECTIONS: OutputKind;
    in [OutputGraphite] {
        "connections" => Graphite { connections }: whole(1, 16), Toml("1"), "4",
            "Connections to the endpoint, which share its queue.",
            "A series always takes the same one, so its points stay in order. For an endpoint that is far away or slow to read a connection.";
        "max_line_bytes" => Graphite { line_bytes_max }: size(1024, 64 << 20), Toml("\"16KiB\""), "\"64KiB\"",
            "Longest line, without its line feed.",
            "A longer one is dropped as `too_big`: carbon closes the connection of a line of more than 16,384 bytes, with all that is under way on it. Raise it for an endpoint that takes longer ones.";
    }
}

rows! {
    SENDER: SenderPlan = |_| SenderPlan::default();
    in STREAMS {
        "min_retry_delay" => retry_min_ms: duration(1, HOUR), Toml("\"250ms\""), "\"1s\"",
            "First pause after a failure.",
            "It doubles with each failure, up to `max_retry_delay`, with some jitter.";
        "max_retry_delay" => retry_max_ms: duration(1, 24 * HOUR), Toml("\"15s\""), "\"1m\"",
            "Longest pause between attempts.",
            "At least `min_retry_delay`.";
        "connect_timeout" => connect_timeout_ms: duration(1, HOUR), Toml("\"5s\""), "\"1s\"",
            "A connection attempt that takes longer has failed.";
        "write_timeout" => write_timeout_ms: duration(1, HOUR), Toml("\"10s\""), "\"30s\"",
            "A connection that took nothing for so long has failed.";
    }
}
