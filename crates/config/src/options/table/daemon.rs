//! What belongs to no source, transform or output: the top level, HTTP and management ports.

use super::types::{HOUR, MIB, TIB, duration, size, whole};
use crate::options::field::{Nested, rows};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{
    Address, Flag, Map, Named, Path, Table, TableOrTables, Text, TextOrTexts, Texts, Word,
};
use crate::options::section::Family;
use crate::options::section::Section::{Http, HttpTls, Management, Top};
use crate::plan::{HttpPlan, ManagementPlan, Plan};

rows! {
    TOP: Plan;
    in [Top] {
        "data_dir" => data_dir: Path, Toml("\"./staunch-data\""), "\"/var/lib/staunch\"",
            "Where files go that have no path of their own.",
            "Relative paths, here and in all other options, start in the daemon's working directory.";
        "stop_timeout" => stop_timeout_ms: duration(0, HOUR), Toml("\"5s\""), "\"30s\"",
            "Longest time between SIGTERM and exit.",
            "In this time the last window is flushed and the queues are sent; what is left in memory then is dropped as `stopped`, what is left on disk waits for the next start.";
        "hot_restart_timeout" => hot_restart_timeout_ms: duration(100, HOUR), Toml("\"10s\""), "\"1m\"",
            "Longest time that nobody reads while another process takes over (`--hot-restart`).",
            "One that is not done by then is refused, and ended if it does not answer; this one goes on with everything. Raise it where the aggregations hold many millions of series.";
        "max_unfinished_bytes" => unfinished_bytes_max: size(MIB, TIB), Toml("\"256MiB\""), "\"64MiB\"",
            "Most memory for lines and messages that have not come whole, of all connections together.",
            "Counted is what a connection holds above 64 KiB, which each may always have; of `transport`, blocks that have not come whole as well. One client may have half of it: an address, of IPv6 a /64, or a process at a unix socket. A connection whose message finds no more room is closed, and the message counted as `unfinished_full`. Lower it where memory is little; raise it where many clients send large messages at once.";
        "readers" => readers: whole(1, Plan::READERS_MAX as u64),
            Depends("the CPU cores that the process may use, minus one, but at least 1 and at most 8"), "4",
            "Number of threads that read connections, and of threads that read datagrams: they decrypt, decompress and parse what clients send.",
            "One thread, the shard, always does the rest: aggregation, routing and queues. With 1, the thread `main` reads the connections and the shard the datagrams. With more, each connection has one reader from its start to its end, so its records keep their order. Each UDP address has a socket for each reader (Linux). The kernel deals packets out by their sender, so the packets of one sender keep their order; a single sender keeps a single reader busy. A change takes effect at the next restart.";
        "reload_on_change" => reload_on_change: Flag, Toml("false"), "true",
            "Reload when this file changes, not only on SIGHUP.",
            "The file is looked at every second, also one that an editor renames into place. A file with a mistake changes nothing: the mistakes are in the log.";
        "include": TextOrTexts, Absent("no other files"), "[\"conf.d\"]",
            "More files of this configuration, and folders of them.",
            "Paths start in the folder of the file that names them. Of a folder, all files `*.toml`, `*.yaml`, `*.yml` and `*.json` are read, in order of names. Together they are one configuration; what two files define is an error.";
        "sources": Named(Family::Sources), Required, "",
            "Where records come in.",
            "At least one. Names of sources, transforms and outputs: 1 to 64 letters, digits, `_`, `-` and `.`, beginning with a letter or digit. A source and a transform cannot share a name.";
        "transforms": Named(Family::Transforms), Absent("no transforms"), "",
            "What is computed on records.";
        "outputs": Named(Family::Outputs), Absent("no outputs"), "",
            "Where records are delivered or stored.";
        "http": Table(Http), Absent("the defaults of its options"), "",
            "The HTTP server.";
        "management": TableOrTables(Management), Absent("no management port"), "",
            "StatsD management ports.";
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
            "Where it listens.",
            "Port 0 takes any free port. On an address that is not loopback, set `token_file` and `tls` as well.";
        "allowed_hosts" => allowed_hosts: Texts, Toml("[]"), "[\"staunch.example.org\"]",
            "Names that requests may be for, beside addresses and `localhost`.",
            "A request whose `Host` is another name is refused with 421, but for `/healthz` and `/ready`: a web page can point a name of its own at this server (DNS rebinding). Names are written without a port.";
        "token_file" => token_file: Path, Absent("requests need no token"), "\"/etc/staunch/http.token\"",
            "File with the token that requests must have: `Authorization: Bearer TOKEN`.",
            "One line of 16 to 512 printable characters, for the daemon's user alone (mode 600). With it every request needs the token, but for `/healthz` and `/ready`. Changes are taken from this machine only, with it or without. Read again at each reload.";
        "tls" => tls as Nested: Table(HttpTls), Absent("connections are not encrypted"), "{ cert = \"/etc/staunch/http.pem\" }",
            "Encrypts its connections.",
            "All of them: on this address nothing is answered without TLS.";
        "max_connections" => connections_max: whole(2, 10_000), Toml("256"), "64",
            "Most connections at once.",
            "At the bound the connection that has been without a request for longest is closed for a new one; when all of them have a request, the oldest of the client that has the most, if it still has more than the new one's client then; else the new one is closed.";
        "max_connections_per_peer" => peer_connections_max: whole(1, 10_000),
            Depends("half of `max_connections`"), "16",
            "Most connections of one client at once, by address (IPv6: by /64).",
            "As with `max_connections`.";
    }
}

rows! {
    MANAGEMENT: ManagementPlan = |_| ManagementPlan::default();
    in [Management] {
        "listen": Address, Toml("\"127.0.0.1:8126\""), "\"0.0.0.0:8126\"",
            "Where it listens.",
            "Whoever can connect can delete series and set the health, unless `read_only` is set: there are no passwords.";
        "replies": Word(&["node", "perl", "proxy"]), Toml("\"node\""), "\"perl\"",
            "Whose replies it gives: node statsd's, Net::Statsd::Server's, or those of node's cluster proxy.",
            "`proxy` has `status` with the live endpoints of a cluster in place of what speaks of series.";
        "cluster": Text, Depends("the file's only cluster"), "\"nodes\"",
            "The output whose endpoints `proxy` speaks of.";
        "healthy" => healthy: Flag, Toml("true"), "false",
            "What `health` answers at first: up or down.",
            "`health up` and `health down` change it.";
        "read_only" => read_only: Flag, Toml("false"), "true",
            "Refuse what changes something.",
            "`delcounters`, `deltimers`, `delgauges`, `delsets`, `health up` and `health down`; `health` alone still answers.";
        "max_connections" => connections_max: whole(1, 100_000), Toml("256"), "32",
            "Most clients at once.",
            "When there are so many, the one that has been silent the longest, or has not read its answer for the longest time, gives its place to a new one; with none that has been so for a second, the oldest of the address that has the most, if it still has more than the new one's address then; else the new one is closed.";
        "max_connections_per_peer" => connections_per_peer_max: whole(1, 100_000),
            Depends("half of `max_connections`"), "256",
            "Most clients at once from one address.",
            "As `max_connections`, among the clients of that address. Of IPv6 all addresses of one /64 are one.";
        "config" => config: Map, Toml("{}"), "{ flushInterval = \"10000\" }",
            "What the command `config` prints: texts by key.",
            "For tools that read node statsd's configuration this way. A member of an object is written with the key `\"object > member\"`.";
    }
}
