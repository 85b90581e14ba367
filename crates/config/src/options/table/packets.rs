//! Options of outputs of packets: which lines they get, what is changed in them, and clusters.

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

/// The list of fields that are taken away.
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
            "With several endpoints each is an output of its own, called `NAME/host:port`.";
    }
    in [OutputTcp] {
        "to": Endpoints(&[Scheme::Tcp]), Required, "[\"tcp://10.0.0.5:8125\"]",
            "Endpoints; each gets every packet, unless `sharding` says otherwise.",
            "With several endpoints each is an output of its own, called `NAME/host:port`.";
    }
    in [OutputUnix] {
        "to": Endpoints(&[Scheme::UnixDatagram, Scheme::UnixStream]), Required, "[\"unixgram:///run/statsd.sock\"]",
            "Sockets; each gets every packet, unless `sharding` says otherwise.",
            "`unixgram://PATH` for datagrams, `unix://PATH` for a stream. With several each is an output of its own, called `NAME/PATH`.";
    }
    in [OutputTcp, OutputUnix] {
        "framing" => framing: one_of::<Framing>(), Toml("\"lines\""), "\"frames\"",
            "How packets follow each other on a stream.",
            "`lines`: a line feed behind each that has none. `frames`: its length before each, 4 bytes little-endian, as DogStatsD has it. Nothing to `unixgram://`.";
    }
    in [OutputUdp, OutputTcp] {
        "addresses" => addresses: one_of::<Addresses>(), Toml("\"first\""), "\"round_robin\"",
            "Which addresses of an endpoint's name get packets.",
            "All of them are one endpoint, with one queue. `first`: the first that works. `round_robin`: in turn, over UDP some packets here and some there, over TCP each connection to the next; at most 16 UDP addresses. One that refuses is passed over while others take packets.";
    }
}

rows! {
    MODE: LinesPlan;
    in PACKETS {
        "mode": Word(&["verbatim", "repack", "lines"]),
            Depends("`verbatim`; `repack` when an option of the section looks into packets or it takes from a transform; `lines` in a cluster"), "\"lines\"",
            "What becomes of packets: they stay as they are, are packed anew, or each line becomes a packet.",
            "`verbatim`: nothing is parsed, borders and bytes stay, bad lines too. `repack`: lines are put together up to `max_packet_bytes` or for `flush_delay`; a line is never split, a longer one goes alone. In a cluster the default is `repack` when one of these two is given. Written out, `verbatim` refuses the options that look into packets.";
        "max_packet_bytes": size(64, 65_507), Depends("`1432B` in `udp`, `8KiB` in `tcp` and `unix`"), "\"512B\"",
            "Longest packet that several lines make.",
            "Only in `repack`.";
        "flush_delay" => flush_delay_ms: duration(0, 60 * SECOND), Depends("`100ms`"), "\"1s\"",
            "Longest time that a line waits for others.",
            "Only in `repack`. `0s`: what was read at once is packed and leaves at once.";
    }
}

rows! {
    STAGE: StagePlan;
    in PACKETS {
        "allow" => allow: Globs, Absent("all"), "[\"api.*\", \"web.{front,back}.*\"]",
            "Only lines whose name matches one of these patterns; the rest ends as `filtered`.",
            "`*` and `?` match any characters, dots too; `[a-z]`, `[!a-z]`, `{a,b}`; `\\` before a character that stands for itself.";
        "deny" => deny: Globs, Absent("none"), "[\"debug.*\"]",
            "No lines whose name matches one of these patterns, whatever `allow` says.";
        "sample" => sample: number(0.0, 1.0), Absent("1, all of them"), "0.1",
            "Share of lines that is sent, by chance; their rates say so (`@0.1`).",
            "Only counters, timers, histograms and distributions; gauges, sets, events and checks are never sampled.";
        "sample_names" => sample_names: Shares, Absent("none"), "{ \"api.*\" = 0.1, \"web.*\" = 0.5 }",
            "Shares for names, in place of `sample`; the first pattern that matches decides.";
        "max_series" => series_max: whole(0, u32::MAX as u64), Absent("0, no cap"), "100000",
            "Most distinct series (name and tags); lines of further ones are dropped as `series_max`.",
            "Each takes 8 to 32 bytes.";
        "series_expiry" => series_idle_ns as Nanoseconds: duration(0, YEAR), Toml("\"1h\""), "\"10m\"",
            "With `max_series`: a series that sent nothing for so long may be forgotten.",
            "After twice as long it is. `0s`: never.";
    }
}

rows! {
    REWRITE: RewritePlan;
    in PACKETS {
        "prefix" => prefix: Text, Absent("none"), "\"dc1.\"",
            "Stands before each name, with its dot if there is to be one.";
        "suffix" => suffix: Text, Absent("none"), "\".dc1\"",
            "Stands behind each name, before tags in the name.";
        "tags_drop" => tags_drop: Texts, Absent("none"), "[\"pod\", \"k8s_*\"]",
            "Keys of tags that are taken away; `*` at the end stands for any rest.";
        "tags_rename" => tags_rename: Map, Absent("none"), "{ environment = \"env\" }",
            "Keys of tags with the key that they get instead.",
            "After `tags_drop`.";
        "tags_add" => tags_add: Texts, Absent("none"), "[\"dc:fra\"]",
            "Tags that lines get unless they have one of that key: `key:value`, or a bare word.",
            "To replace a value, drop its key as well. They go into the name when only that has tags, else behind the value.";
    }
}

rows! {
    CONVERT: RewritePlan;
    in PACKETS {
        "convert": Word(&["keep", "etsy", "etsy_tags", "graphite_tags", "dogstatsd_1_0"]), Absent("`keep`"), "\"etsy\"",
            "The form that lines are put into, for receivers that read another dialect.",
            "`etsy`: node's, without tags, one value on a line, no fields that node does not know, no events. `etsy_tags`: the same with tags in the name. `graphite_tags`: only tags go into the name (`;k=v`). `dogstatsd_1_0`: `#` tags, one value on a line, no newer fields. The switches below change single parts of it.";
        "tag_format" => to.tags: one_of::<TagFormat>(), Absent("as `convert` says"), "\"graphite\"",
            "Where tags stand: as they came, nowhere, behind the value (`|#k:v`), or in the name (`;k=v`).";
        "bare_tag_value" => bare_tag_value: Text, Toml("\"true\""), "\"yes\"",
            "Value of tags that have none, where tags go into the name.",
            "An empty text: they are left out.";
        "one_value_per_line" => to.one_value_per_line: Flag, Absent("as `convert` says"), "true",
            "A line of several values becomes several lines.";
        "distributions" => to.distributions: one_of::<Distributions>(), Absent("as `convert` says"), "\"timers\"",
            "What the type `d` becomes: itself, `h`, or `ms`.";
        "histograms_as_timers" => to.histograms_as_timers: Flag, Absent("as `convert` says"), "true",
            "The type `h` becomes `ms`.",
            "Classic receivers refuse timers below 0, which histograms may be.";
        "gauge_signs" => to.gauges: one_of::<Gauges>(), Absent("as `convert` says"), "\"parts\"",
            "What a sign before a gauge meant to its sender, for receivers that take it for a change.",
            "`changes`: the same; only `=-5` becomes two lines. `parts`: a part of the number, so that `-5` becomes two lines, 0 and then the change, and `+5` loses its sign. `keep`: gauges stay as they are.";
        "strip" => to.strip as Stripped: Words(&STRIPPED),
            Absent("as `convert` says"), "[\"container\", \"time\"]",
            "Fields that are taken away: `c:`, `e:`, `card:`, `T`, and those that no version knows.";
        "events" => to.events: Flag, Absent("as `convert` says"), "false",
            "Whether events and service checks go through.";
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
            "Whether each endpoint gets everything, or each key has one endpoint that gets its lines.",
            "All but `copy` make a cluster of the endpoints of `to`. `statsd-node`: the ring of node's cluster proxy. `ketama`: libketama's with equal weights. `jump`: jump hash over FNV-1a, as the statsrelay in Go. `murmur3-statsrelay`: as the statsrelay in C and Rust. A cluster takes from sources only, and lines, not packets, are placed.";
        "ring_replicas": whole(1, 4), Toml("1"), "4",
            "Points on the ring from one digest: 1, or 4 as node's proxy before 0.8.0.",
            "Only in `statsd-node`.";
        "key": one_of::<KeyForm>(), Toml("\"node\""), "\"series\"",
            "Which part of a line decides where it goes.",
            "`node`: what stands before the first `:`, as node's proxy has it. `name`: the name without tags. `series`: name and tags, in whatever form and order the tags come.";
        "labels": Texts, Depends("each endpoint as `to` names it, without the scheme"), "[\"statsd-1:8125\"]",
            "What the ring knows each endpoint as, in the order of `to`.",
            "A fleet that moves to other addresses keeps its ring when it keeps its labels. Only in `statsd-node` and `ketama`.";
        "shards": Map, Depends("one shard for each endpoint, in the order of `to`"), "{ \"h:8125\" = \"0-511\" }",
            "Which numbered shards each endpoint has: `\"0-511, 600\"`.",
            "By endpoints as `to` names them, without the scheme. Numbers begin at 0; each is given once. With many more shards than endpoints a cluster grows by giving some shards away: the keys of all others stay. Only in `jump` and `murmur3-statsrelay`.";
    }
}

rows! {
    AGGREGATES: AggregateEncoding = |_| LinesPlan::aggregates(0);
    in [Aggregates] {
        "negative_gauges" => negative_gauges: one_of::<NegativeGauges>(), Toml("\"zero_first\""), "\"signed\"",
            "How a gauge below 0 is written.",
            "`zero_first`: `g:0|g` and then `g:-5|g`, right in every dialect. `signed`: `g:-5|g`, for receivers to which a sign is part of the number. `equals`: `g:=-5|g`, for this daemon.";
        "timer_type" => timer_type: one_of::<TimerType>(), Toml("\"timer\""), "\"distribution\"",
            "Type of the values of timers: `ms`, `h` or `d`.";
        "packed" => packed: Flag, Toml("false"), "true",
            "Several values on one line (`1:2:3|ms`), for receivers of DogStatsD 1.1.";
        "zero_counters" => zero_counters: Flag, Toml("false"), "true",
            "Send counters whose sum is 0 too.",
            "Without them the receiver does not see that a series is idle, and not gone.";
        "times" => times: Flag, Toml("false"), "true",
            "Samples that came with a time (`|T`) keep it; otherwise they become samples of now.";
    }
}
