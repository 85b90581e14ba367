//! Options of outputs of packets: selection of lines, rewriting, and clusters.

use process::sharding::KeyForm;
use process::stage::StagePlan;
use wire::statsd::rewrite::{
    AggregateEncoding, Distributions, Gauges, NegativeGauges, RewritePlan, Strip, TagFormat, TimerType,
};

use super::types::{PACKETS, SECOND, YEAR, duration, number, one_of, size, whole};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Form, Nanoseconds, Nested, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Scheme;
use crate::options::row::Type::{Endpoints, Flag, Globs, Map, Shares, Table, Text, Texts, Word, Words};
use crate::options::section::Section::{Aggregates, OutputTcp, OutputUdp, OutputUnix};
use crate::plan::{Addresses, Framing, LinesPlan, PacketsPlan};

words! {
    Framing: "lines" = Framing::Lines, "frames" = Framing::Frames;
    Addresses: "first" = Addresses::First, "round_robin" = Addresses::RoundRobin;
    TagFormat: "keep" = TagFormat::Keep, "drop" = TagFormat::Drop, "dogstatsd" = TagFormat::Dogstatsd,
        "graphite" = TagFormat::Graphite;
    Distributions: "keep" = Distributions::Keep, "histograms" = Distributions::Histograms,
        "timers" = Distributions::Timers;
    Gauges: "keep" = Gauges::Keep, "changes" = Gauges::SignsAreChanges, "parts" = Gauges::SignsAreParts;
    NegativeGauges: "zero_first" = NegativeGauges::ZeroFirst, "signed" = NegativeGauges::Signed,
        "equals" = NegativeGauges::Equals;
    KeyForm: "node" = KeyForm::Node, "name" = KeyForm::Name, "series" = KeyForm::Series;
    TimerType: "timer" = TimerType::Timer, "histogram" = TimerType::Histogram,
        "distribution" = TimerType::Distribution;
}

/// Words of `strip`, in the order of the fields of [`Strip`].
const STRIPPED: [&str; 5] = ["container", "external", "cardinality", "time", "unknown"];

/// The list of fields to remove.
pub(crate) struct Stripped;

impl Form<Strip> for Stripped {
    fn put(strip: &mut Strip, value: &Checked, _: Place) {
        let Checked::Texts(texts) = value else { return };
        let [container, external, cardinality, time, unknown] =
            STRIPPED.map(|word| texts.iter().any(|(text, _)| text == word));
        *strip = Strip { container, external, cardinality, time, unknown };
    }

    fn checked(strip: &Strip) -> Option<Checked> {
        let taken = [strip.container, strip.external, strip.cardinality, strip.time, strip.unknown];
        let words = STRIPPED.iter().zip(taken).filter(|(_, taken)| *taken);
        Some(Checked::texts(words.map(|(word, _)| *word)))
    }
}

rows! {
    PACKET: PacketsPlan;
    in [OutputUdp] {
        "to": Endpoints(&[Scheme::Udp]), Required, "[\"udp://10.0.0.5:8125\"]",
            "Endpoints; each gets every packet, unless `sharding` says otherwise.",
            "With several endpoints, each is an output named `NAME/host:port`.";
    }
    in [OutputTcp] {
        "to": Endpoints(&[Scheme::Tcp]), Required, "[\"tcp://10.0.0.5:8125\"]",
            "Endpoints; each gets every packet, unless `sharding` says otherwise.",
            "With several endpoints, each is an output named `NAME/host:port`.";
    }
    in [OutputUnix] {
        "to": Endpoints(&[Scheme::UnixDatagram, Scheme::UnixStream]), Required, "[\"unixgram:///run/statsd.sock\"]",
            "Sockets; each gets every packet, unless `sharding` says otherwise.",
            "`unixgram://PATH` for datagrams, `unix://PATH` for a stream. With several sockets, each is an output named `NAME/PATH`.";
    }
    in [OutputTcp, OutputUnix] {
        "framing" => framing: one_of::<Framing>(), Toml("\"lines\""), "\"frames\"",
            "How packets are separated on a stream.",
            "`lines`: a line feed is added to each packet without one. `frames`: the length precedes each packet, as 4 bytes little-endian, as in DogStatsD. No effect for `unixgram://`.";
    }
    in [OutputUdp, OutputTcp] {
        "addresses" => addresses: one_of::<Addresses>(), Toml("\"first\""), "\"round_robin\"",
            "Which addresses of an endpoint's host name get packets.",
            "All addresses are one endpoint with one queue. `first`: the first address that works. `round_robin`: in turn; over UDP, packets are distributed among at most 16 addresses; over TCP, each new connection uses the next address. An address that rejects is skipped while others accept packets.";
    }
}

rows! {
    MODE: LinesPlan;
    in PACKETS {
        "mode": Word(&["verbatim", "repack", "lines"]),
            Depends("`verbatim`; `repack` when an option of the section looks into packets or it takes from a transform; `lines` in a cluster"), "\"lines\"",
            "Whether packets are forwarded unchanged, repacked, or split into one packet per line.",
            "`verbatim`: packets are not parsed; borders and bytes stay the same, also of invalid lines. `repack`: lines are joined up to `max_packet_bytes` or for `flush_delay`; a line is never split, a longer one is sent alone. In a cluster, the default is `repack` if one of these two options is given. An explicit `verbatim` rejects options that parse packets.";
        "max_packet_bytes": size(64, 65_507), Depends("`1432B` in `udp`, `8KiB` in `tcp` and `unix`"), "\"512B\"",
            "Longest packet of several lines.",
            "Only with `repack`.";
        "flush_delay" => flush_delay_ms: duration(0, 60 * SECOND), Depends("`100ms`"), "\"1s\"",
            "Longest time that a line is delayed to be joined with others.",
            "Only with `repack`. `0s`: lines of one read are joined and sent at once.";
    }
}

rows! {
    STAGE: StagePlan;
    in PACKETS {
        "allow" => allow: Globs, Absent("all"), "[\"api.*\", \"web.{front,back}.*\"]",
            "Send only lines whose name matches one of these patterns; others are counted as `filtered`.",
            "`*` and `?` match any characters, including dots; `[a-z]`, `[!a-z]`, `{a,b}`; `\\` escapes the next character.";
        "deny" => deny: Globs, Absent("none"), "[\"debug.*\"]",
            "Omit lines whose name matches one of these patterns, even if `allow` matches.";
        "sample" => sample: number(0.0, 1.0), Absent("1, all of them"), "0.1",
            "Random share of lines to send; their sample rates are changed accordingly (`@0.1`).",
            "This applies to counters, timers, histograms and distributions. Gauges, sets, events and checks are never sampled.";
        "sample_names" => sample_names: Shares, Absent("none"), "{ \"api.*\" = 0.1, \"web.*\" = 0.5 }",
            "Shares by name, instead of `sample`; the first matching pattern is used.";
        "max_series" => series_max: whole(0, u32::MAX as u64), Absent("0, no cap"), "100000",
            "Most distinct series (name and tags); lines of others are dropped as `series_max`.",
            "Each takes 8 to 32 bytes.";
        "series_expiry" => series_idle_ns as Nanoseconds: duration(0, YEAR), Toml("\"1h\""), "\"10m\"",
            "With `max_series`: a series without lines for this long may be removed.",
            "After twice this time it is removed. `0s`: never.";
    }
}

rows! {
    REWRITE: RewritePlan;
    in PACKETS {
        "prefix" => prefix: Text, Absent("none"), "\"dc1.\"",
            "Text before each name, including its dot if there is one.";
        "suffix" => suffix: Text, Absent("none"), "\".dc1\"",
            "Text after each name, before tags in the name.";
        "tags_drop" => tags_drop: Texts, Absent("none"), "[\"pod\", \"k8s_*\"]",
            "Keys of tags to remove; `*` at the end matches any rest.";
        "tags_rename" => tags_rename: Map, Absent("none"), "{ environment = \"env\" }",
            "Keys of tags and their new keys.",
            "After `tags_drop`.";
        "tags_add" => tags_add: Texts, Absent("none"), "[\"dc:fra\"]",
            "Tags to add, unless the line has a tag with that key: `key:value`, or a bare word.",
            "To replace a value, also drop its key. The tags are added to the name if only the name has tags, otherwise after the value.";
    }
}

rows! {
    CONVERT: RewritePlan;
    in PACKETS {
        "convert": Word(&["keep", "etsy", "etsy_tags", "graphite_tags", "dogstatsd_1_0"]), Absent("`keep`"), "\"etsy\"",
            "Convert lines for receivers of another dialect.",
            "`etsy`: node's format, without tags, one value per line, no fields that node does not know, no events. `etsy_tags`: the same with tags in the name. `graphite_tags`: only moves tags into the name (`;k=v`). `dogstatsd_1_0`: `#` tags, one value per line, no newer fields. The options below change single parts of the format.";
        "tag_format" => to.tags: one_of::<TagFormat>(), Absent("as `convert` says"), "\"graphite\"",
            "Position of tags: unchanged, removed, after the value (`|#k:v`), or in the name (`;k=v`).";
        "bare_tag_value" => bare_tag_value: Text, Toml("\"true\""), "\"yes\"",
            "Value for tags without a value, where tags are in the name.",
            "An empty text removes such tags.";
        "one_value_per_line" => to.one_value_per_line: Flag, Absent("as `convert` says"), "true",
            "Split a line with several values into several lines.";
        "distributions" => to.distributions: one_of::<Distributions>(), Absent("as `convert` says"), "\"timers\"",
            "Type for `d`: itself, `h`, or `ms`.";
        "histograms_as_timers" => to.histograms_as_timers: Flag, Absent("as `convert` says"), "true",
            "Change the type `h` to `ms`.",
            "Classic receivers reject negative timers, but histograms may be negative.";
        "gauge_signs" => to.gauges: one_of::<Gauges>(), Absent("as `convert` says"), "\"parts\"",
            "Meaning of a gauge's sign for its sender, for receivers that read it as a change.",
            "`changes`: also a change; only `=-5` becomes two lines. `parts`: a part of the number, so `-5` becomes two lines, 0 and then the change, and `+5` loses its sign. `keep`: gauges are not converted.";
        "strip" => to.strip as Stripped: Words(&STRIPPED),
            Absent("as `convert` says"), "[\"container\", \"time\"]",
            "Fields to remove: `c:`, `e:`, `card:`, `T`, and unknown ones.";
        "events" => to.events: Flag, Absent("as `convert` says"), "false",
            "Whether events and service checks are sent.";
    }
}

rows! {
    AS_SAMPLES: LinesPlan;
    in PACKETS {
        "aggregates" => aggregates as Nested: Table(Aggregates), Absent("the defaults of its options"), "",
            "How aggregates become samples.";
    }
}

rows! {
    SHARDING: ();
    in PACKETS {
        "sharding": Word(&["copy", "statsd-node", "ketama", "jump", "murmur3-statsrelay"]),
            Toml("\"copy\""), "\"statsd-node\"",
            "Whether each endpoint gets all lines, or each key belongs to one endpoint.",
            "All methods except `copy` make the endpoints of `to` a cluster. `statsd-node`: the hash ring of node's cluster proxy. `ketama`: libketama's ring with equal weights. `jump`: jump hash over FNV-1a, as in the Go statsrelay. `murmur3-statsrelay`: as in the C and Rust statsrelay. A cluster takes from sources only, and shards lines, not packets.";
        "ring_replicas": whole(1, 4), Toml("1"), "4",
            "Points on the hash ring from one digest: 1, or 4 as in node's proxy before 0.8.0.",
            "Only with `statsd-node`.";
        "key": one_of::<KeyForm>(), Toml("\"node\""), "\"series\"",
            "The part of a line that is its key.",
            "`node`: the text before the first `:`, as in node's proxy. `name`: the name without tags. `series`: name and tags, in any format and order of the tags.";
        "labels": Texts, Depends("each endpoint as `to` names it, without the scheme"), "[\"statsd-1:8125\"]",
            "Label of each endpoint in the hash ring, in the order of `to`.",
            "If a fleet moves to other addresses and keeps its labels, it keeps its ring. Only with `statsd-node` and `ketama`.";
        "shards": Map, Depends("one shard for each endpoint, in the order of `to`"), "{ \"h:8125\" = \"0-511\" }",
            "Numbers of the shards of each endpoint: `\"0-511, 600\"`.",
            "The keys are the endpoints in `to`, without the scheme. Numbers begin at 0; each is assigned once. With many more shards than endpoints, a cluster grows by reassigning some shards; the keys of all others stay. Only with `jump` and `murmur3-statsrelay`.";
    }
}

rows! {
    AGGREGATES: AggregateEncoding = |_| LinesPlan::aggregates(0);
    in [Aggregates] {
        "negative_gauges" => negative_gauges: one_of::<NegativeGauges>(), Toml("\"zero_first\""), "\"signed\"",
            "Format of negative gauges.",
            "`zero_first`: `g:0|g` and then `g:-5|g`, correct in every dialect. `signed`: `g:-5|g`, for receivers that read a sign as part of the number. `equals`: `g:=-5|g`, for this daemon.";
        "timer_type" => timer_type: one_of::<TimerType>(), Toml("\"timer\""), "\"distribution\"",
            "Type of the values of timers: `ms`, `h` or `d`.";
        "packed" => packed: Flag, Toml("false"), "true",
            "Write several values on one line (`1:2:3|ms`), for receivers of DogStatsD 1.1.";
        "zero_counters" => zero_counters: Flag, Toml("false"), "true",
            "Also send counters with a sum of 0.",
            "Otherwise the receiver cannot distinguish an idle series from a removed one.";
        "times" => times: Flag, Toml("false"), "true",
            "Keep the time of samples that have one (`|T`); otherwise they become samples of now.";
    }
}
