//! Options of outputs with endpoints: connections and retries, whether they are required, and health checks.

use deliver::plan::SenderPlan;
use process::sharding::HEALTH_CHECKS_MAX;

use super::types::{ENDPOINTS, HOUR, PACKETS, RETRIED, STREAMS, YEAR, duration, size, whole};
use crate::options::field::rows;
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Flag, Table, Text, Texts, Word};
use crate::options::section::Section::{Check, OutputEmail, OutputGraphite, OutputHttp, OutputRiemann};
use crate::plan::{OutputKind, OutputPlan};

rows! {
    ENDPOINT: OutputPlan;
    in ENDPOINTS {
        "required" => required: Flag, Toml("false"), "true",
            "Whether `/ready` fails while an endpoint is down.";
    }
    in PACKETS {
        "check": Table(Check), Absent("no checks"), "",
            "Health checks of the endpoints.";
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
            "Kind of the health check.",
            "`management`: `health` on a StatsD management port; the reply must contain `up`. `connect`: a TCP connection must succeed. `http`: a GET must return a status of 200 to 299.";
        "port" => port: whole(1, 65_535),
            Depends("the endpoint's own port for `connect` in `tcp`; otherwise `port` or `at` must be given"), "8127",
            "TCP port of the check, on each endpoint's host.";
        "at" => at: Texts, Depends("`port` at each endpoint's host"), "[\"10.0.0.5:8126\"]",
            "Addresses of the checks, `host:port`, in the order of `to`.",
            "Use it instead of `port`.";
        "path" => path: Text, Toml("\"/\""), "\"/healthz\"",
            "Path of the `http` check.",
            "It begins with `/`.";
        "every" => every_ms: duration(1, YEAR), Toml("\"10s\""), "\"1s\"",
            "Interval between two checks, and the timeout of a check.";
        "checks" => checks: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "3",
            "Number of most recent results that count.";
        "down_after" => down_after: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "2",
            "Failures among them that mark an endpoint as down.",
            "At most `checks`. The defaults are those of node's proxy, where one failure marks a node as down.";
        "up_after" => up_after: whole(1, HEALTH_CHECKS_MAX as u64), Toml("1"), "2",
            "Successes among them that mark it as up again.",
            "At most `checks`.";
    }
}

/// The contents of a table `check`.
pub(crate) struct CheckOptions {
    pub(crate) kind: &'static str,
    pub(crate) port: Option<u16>,
    /// The option `at`; empty without it.
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
            "Connections to the endpoint; they share its queue.",
            "A series always uses the same connection, so its points stay in order. For an endpoint with a high round-trip time, or with slow reads per connection.";
        "max_line_bytes" => Graphite { line_bytes_max }: size(1024, 64 << 20), Toml("\"16KiB\""), "\"64KiB\"",
            "Longest line, without its line feed.",
            "A longer line is dropped as `too_big`: carbon closes a connection at a line of more than 16,384 bytes, with all unacknowledged data on it. Raise it for an endpoint that accepts longer lines.";
    }
}

rows! {
    SENDER: SenderPlan = |_| SenderPlan::default();
    in RETRIED {
        "min_retry_delay" => retry_min_ms: duration(1, HOUR), Toml("\"250ms\""), "\"1s\"",
            "First pause after a failure.",
            "It doubles with each failure, up to `max_retry_delay`, with some jitter.";
        "max_retry_delay" => retry_max_ms: duration(1, 24 * HOUR), Toml("\"15s\""), "\"1m\"",
            "Longest pause between attempts.",
            "At least `min_retry_delay`.";
        "connect_timeout" => connect_timeout_ms: duration(1, HOUR), Toml("\"5s\""), "\"1s\"",
            "Timeout of a connection attempt.";
    }
    in STREAMS {
        "write_timeout" => write_timeout_ms: duration(1, HOUR), Toml("\"10s\""), "\"30s\"",
            "Timeout of a connection that accepts no data.";
    }
    in [OutputHttp, OutputEmail, OutputRiemann] {
        "timeout" => write_timeout_ms: duration(1, HOUR), Toml("\"10s\""), "\"30s\"",
            "Timeout of a request, a mail or a message, from its first byte to the end of the answer.";
    }
}
