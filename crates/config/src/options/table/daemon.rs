//! The daemon's own options: the top level, HTTP and management ports.

use super::types::{HOUR, MIB, TIB, duration, size, whole};
use crate::options::field::{Nested, rows};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{
    Address, Flag, Map, Named, Path, Table, TableOrTables, Text, TextOrTexts, Texts, Word,
};
use crate::options::section::Family;
use crate::options::section::Section::{CarbonLink, GraphiteApi, Http, HttpTls, Management, Top};
use crate::plan::{CarbonLinkPlan, HttpPlan, ManagementPlan, Plan};

rows! {
    TOP: Plan;
    in [Top] {
        "data_dir" => data_dir: Path, Toml("\"./staunch-data\""), "\"/var/lib/staunch\"",
            "Folder for files without a path of their own.",
            "Relative paths, here and in all other options, start in the daemon's working directory.";
        "stop_timeout" => stop_timeout_ms: duration(0, HOUR), Toml("\"5s\""), "\"30s\"",
            "Longest time between SIGTERM and exit.",
            "In this time, the last window is flushed and the queues are sent. Records left in memory are then dropped as `stopped`; records left on disk stay queued for the next start.";
        "hot_restart_timeout" => hot_restart_timeout_ms: duration(100, HOUR), Toml("\"10s\""), "\"1m\"",
            "Longest pause in reading during a hot restart (`--hot-restart`).",
            "If the new process is not ready by then, it is rejected, and killed if it does not answer; the old process continues. Raise the value for aggregations with many millions of series.";
        "max_unfinished_bytes" => unfinished_bytes_max: size(MIB, TIB), Toml("\"256MiB\""), "\"64MiB\"",
            "Most memory for incomplete lines and messages of all connections together.",
            "Each connection may always have 64 KiB; only memory above that counts, including incomplete blocks of `transport`. One client (an address, an IPv6 /64, or a process at a unix socket) may use half of it. A connection whose message finds no room is closed, and the message is counted as `unfinished_full`. Lower it on machines with little memory; raise it if many clients send large messages at once.";
        "readers" => readers: whole(1, Plan::READERS_MAX as u64),
            Depends("the CPU cores that the process may use, minus one, but at least 1 and at most 8"), "4",
            "Number of threads that read connections, and of those that read datagrams.",
            "They decrypt, decompress and parse what clients send. One thread, the shard, always does the rest: aggregation, routing and queues. With 1, the thread `main` reads the connections and the shard the datagrams. With more, each connection has one reader from its start to its end, so its records keep their order. Each UDP address has a socket for each reader (Linux). The kernel deals packets out by their sender, so the packets of one sender keep their order; a single sender keeps a single reader busy. A change takes effect at the next restart.";
        "reload_on_change" => reload_on_change: Flag, Toml("false"), "true",
            "Reload when this file changes, not only on SIGHUP.",
            "The file is checked every second, including a file that an editor renames into its place. A file with an error changes nothing; the errors are logged.";
        "include": TextOrTexts, Absent("no other files"), "[\"conf.d\"]",
            "More files of this configuration, and folders of such files.",
            "Paths are relative to the folder of the file that names them. From a folder, all files `*.toml`, `*.yaml`, `*.yml` and `*.json` are read, in order of their names. Together they are one configuration; a definition in two files is an error.";
        "sources": Named(Family::Sources), Required, "",
            "Where records are received.",
            "At least one. Names of sources, transforms and outputs: 1 to 64 letters, digits, `_`, `-` and `.`, beginning with a letter or digit. A source and a transform cannot share a name.";
        "transforms": Named(Family::Transforms), Absent("no transforms"), "",
            "Computations on records.";
        "outputs": Named(Family::Outputs), Absent("no outputs"), "",
            "Where records are delivered or stored.";
        "http": Table(Http), Absent("the defaults of its options"), "",
            "The HTTP server.";
        "graphite_api": Table(GraphiteApi), Absent("the defaults of its options"), "",
            "graphite-web's API.";
        "management": TableOrTables(Management), Absent("no management port"), "",
            "StatsD management ports.";
        "carbonlink": Table(CarbonLink), Absent("no such port"), "",
            "carbon-cache's query port, for graphite-web.";
    }
}

rows! {
    CARBONLINK: CarbonLinkPlan = |_| CarbonLinkPlan::default();
    in [CarbonLink] {
        "listen": Address, Toml("\"127.0.0.1:7002\""), "\"0.0.0.0:7002\"",
            "Listen address.",
            "Every client that can connect can read points. Only clients on this machine can change the aggregation method of a file (`set-metadata`).";
        "max_connections" => connections_max: whole(2, 10_000), Toml("256"), "64",
            "Most clients at once; half of them may be of one address.",
            "At the limit, the client that has been idle the longest is closed for a new one.";
    }
}

rows! {
    HTTP: HttpPlan = |given| {
        let connections_max = given.map_or(HttpPlan::CONNECTIONS_MAX, |given| given.connections_max);
        HttpPlan { peer_connections_max: connections_max / 2, ..HttpPlan::default() }
    };
    in [Http] {
        "enabled": Flag, Toml("true"), "false",
            "Whether there is an HTTP server.";
        "listen": Address, Toml("\"127.0.0.1:8680\""), "\"0.0.0.0:8680\"",
            "Listen address.",
            "Port 0 is any free port. On an address that is not loopback, also set `token_file` and `tls`.";
        "allowed_hosts" => allowed_hosts: Texts, Toml("[]"), "[\"staunch.example.org\"]",
            "Host names that requests may use, in addition to addresses and `localhost`.",
            "A request with another name in `Host` is rejected with 421, except for `/healthz` and `/ready`, because a web page could point its own name at this server (DNS rebinding). Write the names without a port.";
        "allowed_origins" => allowed_origins: Texts, Toml("[]"), "[\"https://wiki.example.org\"]",
            "Origins of web pages elsewhere whose scripts may read data.",
            "Such as a Grafana whose data source is of the kind `Browser`, or a page with graphs. The origin is scheme, host and port, as in the address bar of the page. They may not change anything.";
        "token_file" => token_file: Path, Absent("requests need no token"), "\"/etc/staunch/http.token\"",
            "File with the token that requests must have: `Authorization: Bearer TOKEN`.",
            "One line of 16 to 512 printable characters, readable only by the daemon's user (mode 600). Every request then needs the token, except for `/healthz` and `/ready`. Requests that change something are accepted only from this machine, with or without a token. The file is read again at each reload.";
        "tls" => tls as Nested: Table(HttpTls), Absent("connections are not encrypted"), "{ cert = \"/etc/staunch/http.pem\" }",
            "Encrypts its connections.",
            "This applies to all connections: on this address, nothing is served without TLS.";
        "max_connections" => connections_max: whole(2, 10_000), Toml("256"), "64",
            "Most connections at once.",
            "At the limit, the connection that has been idle the longest is closed for a new one. If no connection is idle, the oldest one of the client with the most connections is closed, provided that this client then still has more than the new one's client; otherwise the new one is closed.";
        "max_connections_per_peer" => peer_connections_max: whole(1, 10_000),
            Depends("half of `max_connections`"), "16",
            "Most connections of one client at once, by address (IPv6: by /64).",
            "The rule at the limit is that of `max_connections`.";
    }
}

rows! {
    MANAGEMENT: ManagementPlan = |_| ManagementPlan::default();
    in [Management] {
        "listen": Address, Toml("\"127.0.0.1:8126\""), "\"0.0.0.0:8126\"",
            "Listen address.",
            "Every client that can connect can delete series and set the health, unless `read_only` is set: there are no passwords.";
        "replies": Word(&["node", "perl", "proxy"]), Toml("\"node\""), "\"perl\"",
            "Format of the replies: node statsd, Net::Statsd::Server, or node's cluster proxy.",
            "`proxy` has a command `status` with the live endpoints of a cluster, and no commands for series.";
        "cluster": Text, Depends("the file's only cluster"), "\"nodes\"",
            "The cluster of `proxy`: an output with `sharding`.";
        "healthy" => healthy: Flag, Toml("true"), "false",
            "Initial reply to `health`: up or down.",
            "`health up` and `health down` change it.";
        "read_only" => read_only: Flag, Toml("false"), "true",
            "Reject commands that change something.",
            "These are `delcounters`, `deltimers`, `delgauges`, `delsets`, `health up` and `health down`. `health` alone still replies.";
        "max_connections" => connections_max: whole(1, 100_000), Toml("256"), "32",
            "Most clients at once.",
            "At the limit, the client that has been idle the longest, or has not read its reply for the longest time, is closed for a new one. If no client has been idle for a second, the oldest one of the address with the most clients is closed, provided that this address then still has more than the new one's; otherwise the new one is closed.";
        "max_connections_per_peer" => connections_per_peer_max: whole(1, 100_000),
            Depends("half of `max_connections`"), "256",
            "Most clients at once from one address.",
            "The rule is that of `max_connections`, among the clients of that address. All addresses of one IPv6 /64 count as one.";
        "config" => config: Map, Toml("{}"), "{ flushInterval = \"10000\" }",
            "Reply to the command `config`: texts by key.",
            "For tools that read node statsd's configuration in this way. A member of an object has the key `\"object > member\"`.";
    }
}
