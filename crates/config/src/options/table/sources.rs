//! Options of sources: where they listen, and how they read.

use model::AckWhen;
use wire::graphite::input::{Compatibility, Kept, MessageEncoding, NameForm};
use wire::statsd::{Dialect, GaugeSign, Options};

use super::types::{
    HOUR, KIB, LISTENING, MIB, POINTS, SECOND, SOURCES, YEAR, duration, number, one_of, size, whole,
};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Slot, rows, words};
use crate::options::row::Default::{Absent, Depends, Toml};
use crate::options::row::Type::{Flag, Listen, Text, Word};
use crate::options::section::Section::SourceSelf;
use crate::plan::{GraphiteSource, RelayOwnPlan, RelayReport, SourcePlan};

words! {
    AckWhen: "accepted" = AckWhen::Accepted, "safe" = AckWhen::Safe, "delivered" = AckWhen::Delivered;
    Messages for Option<MessageEncoding>: "lines" = None, "pickle" = Some(MessageEncoding::Pickle),
        "protobuf" = Some(MessageEncoding::Protobuf);
    Compatibility: "strict" = Compatibility::Strict, "carbon" = Compatibility::Carbon,
        "c-relay" = Compatibility::CRelay, "go-carbon" = Compatibility::GoCarbon;
    MissingTimeIsNow for bool: "reject" = false, "now" = true;
    NameForm: "bare" = NameForm::Bare, "tagged" = NameForm::Tagged, "as_sent" = NameForm::AsSent;
    Dialect: "union" = Dialect::Union, "etsy" = Dialect::Etsy, "perl" = Dialect::Perl,
        "dogstatsd" = Dialect::Dogstatsd;
    GaugeSign: "delta" = GaugeSign::Delta, "absolute" = GaugeSign::Absolute;
    RelayReport: "points" = RelayReport::Points, "log" = RelayReport::Log, "line" = RelayReport::Line,
        "losses" = RelayReport::Losses;
}

/// A text of the bytes in it.
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
            "Where it listens.",
            "`udp://ADDRESS:PORT`, `tcp://ADDRESS:PORT` (lines), `unix://PATH` (stream of lines), `unixgram://PATH` (datagrams), `unix-frames://PATH` (packets behind their length as 4 bytes little-endian, as DogStatsD clients send them). An IPv6 address stands in brackets: `udp://[::1]:8125`. A path that begins with `@` is a Linux abstract name. A socket file that is deleted under the daemon is made again within seconds. `?mode=660` behind a path sets the socket file's permissions (octal); `%` and `?` in a path are written `%25` and `%3F`. Port 0 takes any free port.";
    }
    in LISTENING {
        "receive_buffer" => receive_buffer_bytes: size(4 * KIB, 1024 * MIB), Toml("\"64MiB\""), "\"16MiB\"",
            "Receive buffer to ask the kernel for, per datagram socket.",
            "The kernel may grant less (`net.core.rmem_max`); the daemon then says so at the start. With several `readers`, a UDP address has a socket for each of them.";
        "max_connections" => connections_max: whole(1, 1_000_000), Toml("10000"), "100",
            "Most connections at once, per stream listener.",
            "Further ones are closed at once and counted, or get the place of one that was silent for long (docs/security.md).";
        "max_connections_per_peer" => connections_per_peer_max: whole(1, 1_000_000),
            Depends("half of `max_connections`"), "10000",
            "Most connections at once from one address, per TCP listener.",
            "Further ones are closed at once and counted. Of IPv6 all addresses of one /64 are one peer, and an IPv4 address is the same however it is written. All clients behind a proxy, and all on this machine, come from one address: raise it up to `max_connections` where that is so. It does not hold for unix sockets.";
        "idle_timeout" => idle_timeout_ms: duration(0, YEAR), Toml("\"1h\""), "\"10m\"",
            "A connection that sent nothing for so long is closed.",
            "`0s`: never.";
        "max_line_bytes" => line_bytes_max: size(64, 64 * MIB), Toml("\"64KiB\""), "\"8KiB\"",
            "Longest line of a stream, or longest packet of `unix-frames`.",
            "A longer line is rejected as `line_too_long`; a longer frame ends its connection.";
    }
    in SOURCES {
        "tail_counts" => tail_counts: Flag, Toml("true"), "false",
            "Whether the last line of a connection counts although its line feed never came.",
            "When its peer has closed it, that is: of a line that a stop cuts off the rest may have been on the way. Node statsd drops it.";
        "ack_when" => ack_when: one_of::<AckWhen>(), Absent("clients get no answer"), "\"accepted\"",
            "When a client on a connection is told that a line need not be kept.",
            "`accepted`: it is part of an aggregate, or in the queue of each output. `safe`: it is in a queue on disk of each output, and synced. `delivered`: the endpoint of each output has it. See [acks](acks.md).";
    }
    in POINTS {
        "listen": Listen,
            Toml("[\"udp://127.0.0.1:2003\", \"tcp://127.0.0.1:2003\"]"), "[\"tcp://0.0.0.0:2003\", \"unix:///run/graphite.sock\"]",
            "Where it listens.",
            "As for StatsD, but for `unix-frames`, which is DogStatsD's. A source of messages (`encoding`) listens on streams only; carbon's port for pickle is 2004, for protobuf 2005.";
        "tail_counts" => tail_counts: Flag, Toml("false"), "true",
            "Whether the last line of a connection counts although its line feed never came.",
            "None of the originals counts it: a time that lost its last digits is another time.";
    }
}

rows! {
    POINT: GraphiteSource = |_| GraphiteSource::of(Compatibility::Strict);
    in POINTS {
        "encoding" => messages as Messages: one_of::<Messages>(), Toml("\"lines\""), "\"pickle\"",
            "What its connections carry: lines, or messages of many points.",
            "Pickles are read by a machine that knows numbers, texts, lists, tuples and dicts, and refuses whatever else: nothing is ever executed.";
        "max_message_bytes" => message_bytes_max: size(64, 64 * MIB), Toml("\"16MiB\""), "\"1MiB\"",
            "Longest pickle or protobuf message.",
            "A longer one ends its connection as `bad_frame`, before any of it is held.";
        "compatibility" => reading.compatibility: one_of::<Compatibility>(), Toml("\"strict\""), "\"c-relay\"",
            "Whose reading of a line holds.",
            "`strict`: refuses what the next reader may refuse, and says why. `carbon`: as carbon's Python daemons. `go-carbon`: as go-carbon. `c-relay`: cleans names as carbon-c-relay does, and looks at nothing else. See [Graphite](graphite.md).";
        "missing_timestamp" => reading.missing_time_is_now as MissingTimeIsNow: one_of::<MissingTimeIsNow>(),
            Toml("\"reject\""), "\"now\"",
            "What a line without a time means.",
            "No effect with `c-relay`, which does not look for a time.";
        "max_name_bytes" => reading.name_bytes_max: size(0, 64 * KIB), Toml("\"0B\""), "\"255B\"",
            "Longest name, as it goes on and without its tags.",
            "A longer one is rejected as `name_too_long`. `0B`: no limit but the line's.";
        "names" => reading.names: one_of::<NameForm>(), Toml("\"bare\""), "\"tagged\"",
            "What of a name goes on, and whether rules and rings of a relay see its tags.",
            "`bare`: dots and tags are put in order, and relays go by the name without its tags. `tagged`: the same, and tags are part of the name. `as_sent`: the name goes on byte for byte, tags are part of it and in the order in which they came, as carbon-relay.py has it. No effect with `c-relay`.";
        "name_characters" => reading.kept: Text, Toml("\"-_:#\""), "\"-_:#+/\"",
            "What names keep besides letters, digits and dots; every other byte becomes `_`.",
            "ASCII. Only with `c-relay`. With `;` in it tags are part of the name.";
    }
}

rows! {
    READING: Options = |given| {
        let dialect = given.map_or(Dialect::Union, |given| given.dialect);
        Options { dialect: Dialect::Union, ..Options::of(dialect) }
    };
    in SOURCES {
        "dialect" => dialect: one_of::<Dialect>(), Toml("\"union\""), "\"dogstatsd\"",
            "Whose reading of a line holds.",
            "`etsy`: as node statsd. `perl`: as Net::Statsd::Server. `dogstatsd`: as the DataDog agent. `union`: the superset for mixed fleets.";
        "gauge_sign" => gauge_sign: one_of::<GaugeSign>(),
            Depends("`delta` in `union` and `etsy`, `absolute` in `dogstatsd` and `perl`"), "\"absolute\"",
            "What `+3|g` and `-3|g` mean: a change, or a number with a sign.",
            "Only `union` has the choice.";
        "allow_negative_timers" => allow_negative_timers: Flag,
            Depends("`false` in `union` and `etsy`, `true` in `dogstatsd` and `perl`"), "true",
            "Whether `ms` values may be below 0.",
            "Only `union` has the choice.";
        "strict_numbers" => strict_numbers: Flag,
            Depends("`true` in `union` and `dogstatsd`, `false` in `etsy` and `perl`"), "false",
            "Refuse hexadecimal, octal, binary and blank values.";
        "sanitize" => sanitize: Flag, Depends("`true`, but `false` in `dogstatsd`"), "false",
            "Replace blanks and slashes in names and remove other unusual characters.",
            "`dogstatsd` never does; its names are made safe by each output.";
        "max_key_bytes" => key_bytes_max: size(0, 1024 * MIB), Depends("`4KiB`, but no limit in `etsy`"), "\"1KiB\"",
            "Longest name with its tags.",
            "A longer one is rejected as `key_too_long`. `0B`: no limit but the packet's.";
        "max_tags" => tags_max: whole(0, 1_000_000), Depends("256, but no limit in `etsy`"), "32",
            "Most tags on one line.",
            "A line with more is rejected as `too_many_tags`. 0: no limit but the packet's.";
        "min_sample_rate" => rate_min: number(0.0, 1.0),
            Depends("1e-9 in `union` and `dogstatsd`, 0 in `etsy` and `perl`"), "0.001",
            "Smallest sample rate that is believed.",
            "A line with a lower one is bad. It guards against one line that claims to stand for 10^300 samples.";
        "compat_quirks" => compat_quirks: Flag, Toml("false"), "true",
            "Give node statsd's result for infinite values, smuggled negative timers and odd sample rates.",
            "Only in `etsy`.";
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
        "encoding": Word(&["statsd", "carbon-c-relay"]), Toml("\"statsd\""), "\"carbon-c-relay\"",
            "What the figures are.",
            "`statsd`: counters and gauges of every source and output, as StatsD lines. `carbon-c-relay`: points on the relays, their clients and their endpoints, under the names that carbon-c-relay has for them; see [Statistics of a relay](relay-statistics.md).";
        "every" => every_ms: duration(SECOND, 24 * HOUR), Toml("\"10s\""), "\"60s\"",
            "Time between two reports.";
        "prefix" => prefix: Text, Toml("\"staunch\""), "\"proxy.web1\"",
            "What the names begin with, before a dot.",
            "An empty text: nothing.";
        "reset" => reset: Flag, Toml("false"), "true",
            "Whether counters begin at 0 again with each report.",
            "Only with `encoding = \"carbon-c-relay\"`; StatsD's counters always do.";
        "report" => report: one_of::<RelayReport>(), Toml("\"points\""), "\"log\"",
            "What becomes of a report.",
            "Only with `encoding = \"carbon-c-relay\"`. `points`: points, which go where the relays send their statistics. `log`: the same lines, in the log. `line`: one line for people on stdout. `losses`: nothing but warnings about what was lost and queues that fill up, which the others have too.";
    }
}
