//! Options of sources: listeners and parsing.

use model::AckWhen;
use wire::graphite::input::{Compatibility, Kept, MessageEncoding, NameForm};
use wire::statsd::{Dialect, GaugeSign, Options};

use super::types::{
    HOUR, KIB, LINES, LISTENING, MIB, POINTS, SECOND, SOURCES, YEAR, duration, number, one_of, size, whole,
};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Slot, rows, words};
use crate::options::row::Default::{Absent, Depends, Toml};
use crate::options::row::Type::{Flag, Listen, Text, Word};
use crate::options::section::Section::SourceSelf;
use crate::plan::{
    CarbonOwnPlan, CarbonProgram, Carries, GraphiteSource, RelayOwnPlan, RelayReport, SourcePlan,
};

words! {
    AckWhen: "accepted" = AckWhen::Accepted, "safe" = AckWhen::Safe, "delivered" = AckWhen::Delivered;
    Carries: "lines" = Carries::Lines, "pickle" = Carries::Messages(MessageEncoding::Pickle),
        "protobuf" = Carries::Messages(MessageEncoding::Protobuf), "http" = Carries::Http;
    Compatibility: "strict" = Compatibility::Strict, "carbon" = Compatibility::Carbon,
        "c-relay" = Compatibility::CRelay, "go-carbon" = Compatibility::GoCarbon;
    MissingTimeIsNow for bool: "reject" = false, "now" = true;
    NameForm: "bare" = NameForm::Bare, "tagged" = NameForm::Tagged, "as_sent" = NameForm::AsSent;
    Dialect: "union" = Dialect::Union, "etsy" = Dialect::Etsy, "perl" = Dialect::Perl,
        "dogstatsd" = Dialect::Dogstatsd;
    GaugeSign: "delta" = GaugeSign::Delta, "absolute" = GaugeSign::Absolute;
    RelayReport: "points" = RelayReport::Points, "log" = RelayReport::Log, "line" = RelayReport::Line,
        "losses" = RelayReport::Losses;
    CarbonProgram: "cache" = CarbonProgram::Cache, "relay" = CarbonProgram::Relay,
        "aggregator" = CarbonProgram::Aggregator;
}

/// A set of bytes, written as a text.
impl Slot for Kept {
    fn of(value: &Checked, place: Place) -> Option<Kept> {
        String::of(value, place).map(|text| Kept::new(text.as_bytes()))
    }

    fn checked(&self) -> Option<Checked> {
        Some(Checked::Text(self.bytes().map(char::from).collect()))
    }
}

rows! {
    LISTENER: SourcePlan;
    in SOURCES {
        "listen": Listen,
            Toml("[\"udp://127.0.0.1:8125\", \"tcp://127.0.0.1:8125\"]"), "[\"udp://0.0.0.0:8125\", \"unixgram:///run/statsd.sock?mode=666\"]",
            "Listen addresses.",
            "`udp://ADDRESS:PORT`, `tcp://ADDRESS:PORT` (lines), `unix://PATH` (stream of lines), `unixgram://PATH` (datagrams), `unix-frames://PATH` (packets after their length as 4 bytes little-endian, as sent by DogStatsD clients). Write IPv6 addresses in brackets: `udp://[::1]:8125`. A path that begins with `@` is a Linux abstract name. If a socket file is deleted, the daemon creates it again within seconds. `?mode=660` after a path sets the socket file's permissions (octal); write `%` and `?` in a path as `%25` and `%3F`. Port 0 is any free port.";
    }
    in LISTENING {
        "receive_buffer" => receive_buffer_bytes: size(4 * KIB, 1024 * MIB), Toml("\"64MiB\""), "\"16MiB\"",
            "Receive buffer to ask the kernel for, per datagram socket.",
            "The kernel may grant less (`net.core.rmem_max`); the daemon then says so at the start. With several `readers`, a UDP address has a socket for each of them.";
        "max_connections" => connections_max: whole(1, 1_000_000), Toml("10000"), "100",
            "Most connections at once, per stream listener.",
            "Further connections are closed at once and counted, or replace one that has long been idle (docs/security.md).";
        "max_connections_per_peer" => connections_per_peer_max: whole(1, 1_000_000),
            Depends("half of `max_connections`"), "10000",
            "Most connections at once from one address, per TCP listener.",
            "Further connections are closed at once and counted. All addresses of one IPv6 /64 count as one peer, and so do both notations of an IPv4 address. All clients behind a proxy, and all on this machine, share one address: in that case, raise it up to `max_connections`. It does not apply to unix sockets.";
        "idle_timeout" => idle_timeout_ms: duration(0, YEAR), Toml("\"1h\""), "\"10m\"",
            "Close connections that send nothing for this long.",
            "`0s`: never.";
    }
    in LINES {
        "max_line_bytes" => line_bytes_max: size(64, 64 * MIB), Toml("\"64KiB\""), "\"8KiB\"",
            "Longest line of a stream, or longest packet of `unix-frames`.",
            "A longer line is rejected as `line_too_long`; a longer frame closes its connection.";
    }
    in SOURCES {
        "tail_counts" => tail_counts: Flag, Toml("true"), "false",
            "Whether the last line of a connection counts without a line feed.",
            "Only if the peer has closed the connection: a line cut off by our own stop may be incomplete. Node statsd drops the line.";
        "ack_when" => ack_when: one_of::<AckWhen>(), Absent("clients get no answer"), "\"accepted\"",
            "Condition for acknowledging a line to its client.",
            "`accepted`: the line is part of an aggregate, or in the queue of each output. `safe`: it is in a queue on disk of each output, and synced. `delivered`: the endpoint of each output has received it. See [acks](acks.md).";
    }
    in POINTS {
        "listen": Listen,
            Toml("[\"udp://127.0.0.1:2003\", \"tcp://127.0.0.1:2003\"]"), "[\"tcp://0.0.0.0:2003\", \"unix:///run/graphite.sock\"]",
            "Listen addresses.",
            "As for StatsD, except for `unix-frames`, which is for DogStatsD. A source of messages or HTTP (`encoding`) has stream listeners only; carbon's port for pickle is 2004, for protobuf 2005, go-carbon's for HTTP 2007.";
        "tail_counts" => tail_counts: Flag, Toml("false"), "true",
            "Whether the last line of a connection counts without a line feed.",
            "None of the originals counts it, because its time may lack digits.";
    }
}

rows! {
    POINT: GraphiteSource = |_| GraphiteSource::of(Compatibility::Strict);
    in POINTS {
        "encoding" => carries: one_of::<Carries>(), Toml("\"lines\""), "\"pickle\"",
            "Format of the data on its connections: lines, messages of many points, or HTTP.",
            "Pickles are decoded without executing anything: only numbers, texts, lists, tuples and dicts are accepted. `http`: bodies of POST requests, which are lines, or one message if their `Content-Type` is `application/python-pickle` or `application/protobuf`. See [points by HTTP](graphite.md#points-by-http).";
        "max_message_bytes" => message_bytes_max: size(64, 64 * MIB), Toml("\"16MiB\""), "\"1MiB\"",
            "Longest pickle or protobuf message.",
            "A longer message closes its connection as `bad_frame`, before any of it is buffered.";
        "compatibility" => reading.compatibility: one_of::<Compatibility>(), Toml("\"strict\""), "\"c-relay\"",
            "Program whose parsing rules apply.",
            "`strict`: rejects lines that the next receiver may reject, with a reason. `carbon`: as carbon's Python daemons. `go-carbon`: as go-carbon. `c-relay`: cleans names as carbon-c-relay does, and checks nothing else. See [Graphite](graphite.md).";
        "missing_timestamp" => reading.missing_time_is_now as MissingTimeIsNow: one_of::<MissingTimeIsNow>(),
            Toml("\"reject\""), "\"now\"",
            "Meaning of a line without a time.",
            "No effect with `c-relay`, which does not parse times.";
        "max_name_bytes" => reading.name_bytes_max: size(0, 64 * KIB), Toml("\"0B\""), "\"255B\"",
            "Longest name after cleaning, without its tags.",
            "A longer name is rejected as `name_too_long`. `0B`: only limited by the line.";
        "names" => reading.names: one_of::<NameForm>(), Toml("\"bare\""), "\"tagged\"",
            "Form of forwarded names, and whether rules and hash rings of a relay use their tags.",
            "`bare`: dots and tags are normalised, and relays use the name without its tags. `tagged`: the same, but tags are part of the name. `as_sent`: the name is forwarded byte for byte, with tags in their original order as part of the name, as in carbon-relay.py. No effect with `c-relay`.";
        "name_characters" => reading.kept: Text, Toml("\"-_:#\""), "\"-_:#+/\"",
            "Characters allowed in names besides letters, digits and dots; others become `_`.",
            "ASCII only, and only with `c-relay`. With `;`, tags are part of the name.";
    }
}

rows! {
    READING: Options = |given| {
        let dialect = given.map_or(Dialect::Union, |given| given.dialect);
        Options { dialect: Dialect::Union, ..Options::of(dialect) }
    };
    in SOURCES {
        "dialect" => dialect: one_of::<Dialect>(), Toml("\"union\""), "\"dogstatsd\"",
            "Program whose parsing rules apply.",
            "`etsy`: node statsd. `perl`: Net::Statsd::Server. `dogstatsd`: the DataDog agent. `union`: the superset for mixed fleets.";
        "gauge_sign" => gauge_sign: one_of::<GaugeSign>(),
            Depends("`delta` in `union` and `etsy`, `absolute` in `dogstatsd` and `perl`"), "\"absolute\"",
            "Meaning of `+3|g` and `-3|g`: a change, or a number with a sign.",
            "Only with `union`.";
        "allow_negative_timers" => allow_negative_timers: Flag,
            Depends("`false` in `union` and `etsy`, `true` in `dogstatsd` and `perl`"), "true",
            "Whether `ms` values may be below 0.",
            "Only with `union`.";
        "strict_numbers" => strict_numbers: Flag,
            Depends("`true` in `union` and `dogstatsd`, `false` in `etsy` and `perl`"), "false",
            "Reject hexadecimal, octal, binary and blank values.";
        "sanitize" => sanitize: Flag, Depends("`true`, but `false` in `dogstatsd`"), "false",
            "Replace spaces and slashes in names and remove other unusual characters.",
            "Not with `dogstatsd`, where each output makes its names safe.";
        "max_key_bytes" => key_bytes_max: size(0, 1024 * MIB), Depends("`4KiB`, but no limit in `etsy`"), "\"1KiB\"",
            "Longest name with its tags.",
            "A longer name is rejected as `key_too_long`. `0B`: only limited by the packet.";
        "max_tags" => tags_max: whole(0, 1_000_000), Depends("256, but no limit in `etsy`"), "32",
            "Most tags on one line.",
            "A line with more is rejected as `too_many_tags`. 0: only limited by the packet.";
        "min_sample_rate" => rate_min: number(0.0, 1.0),
            Depends("1e-9 in `union` and `dogstatsd`, 0 in `etsy` and `perl`"), "0.001",
            "Smallest sample rate that is accepted.",
            "A line with a lower rate is rejected. This prevents a single line from counting as 10^300 samples.";
        "compat_quirks" => compat_quirks: Flag, Toml("false"), "true",
            "Reproduce node statsd's results for infinite values, disguised negative timers and odd sample rates.",
            "Only with `etsy`.";
    }
}

rows! {
    OWN: RelayOwnPlan = |_| RelayOwnPlan {
        every_ms: 10_000,
        reset: false,
        prefix: "staunch".into(),
        report: RelayReport::Points,
    };
    in [SourceSelf] {
        "encoding": Word(&["statsd", "carbon-c-relay", "carbon"]), Toml("\"statsd\""), "\"carbon-c-relay\"",
            "Format of the figures.",
            "`statsd`: counters and gauges of every source and output, as StatsD lines. `carbon-c-relay`: points on the relays, their clients and their endpoints, with carbon-c-relay's names; see [Statistics of a relay](relay-statistics.md). `carbon`: points with the names of carbon's programs; see [Its own metrics](migrate-graphite.md#its-own-metrics).";
        "every" => every_ms: duration(SECOND, 24 * HOUR), Toml("\"10s\""), "\"60s\"",
            "Interval between two reports.";
        "prefix" => prefix: Text, Toml("\"staunch\""), "\"proxy.web1\"",
            "First part of the names, before a dot.",
            "An empty text omits it.";
        "reset" => reset: Flag, Toml("false"), "true",
            "Whether counters restart at 0 with each report.",
            "Only with `encoding = \"carbon-c-relay\"`; StatsD counters always restart.";
        "report" => report: one_of::<RelayReport>(), Toml("\"points\""), "\"log\"",
            "Destination of a report.",
            "Only with `encoding = \"carbon-c-relay\"`. `points`: points, which go to the relays' destination for statistics. `log`: the same lines in the log. `line`: one line on stdout. `losses`: only warnings about lost points and full queues, which the others include.";
    }
}

rows! {
    CARBON_OWN: CarbonOwnPlan = |_| CarbonOwnPlan {
        every_ms: 10_000,
        prefix: "staunch".into(),
        program: CarbonProgram::Cache,
    };
    in [SourceSelf] {
        "program" => program: one_of::<CarbonProgram>(), Toml("\"cache\""), "\"relay\"",
            "The program of carbon whose metrics are reported: `cache`, `relay` or `aggregator`.",
            "Only with `encoding = \"carbon\"`.";
    }
}
