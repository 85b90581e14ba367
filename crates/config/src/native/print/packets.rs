//! Outputs of packets as native options: the mirror of `native::packets`, `clusters` and `checks`.

use process::sharding::{HealthPlan, KeyForm, RingReplicas, Sharding};
use wire::statsd::rewrite::{AggregateEncoding, Form, RewritePlan};

use super::super::packets::{DISTRIBUTIONS, GAUGES, NEGATIVE_GAUGES, TAG_FORMS, TIMER_TYPES};
use super::super::{checks, clusters};
use super::{Out, Section, bare_or_quoted, bytes, inline, list, text, texts, time};
use crate::address::host_port_text;
use crate::plan::{
    Addresses, CheckKind, CheckPlan, Destination, Endpoint, Framing, LinesPlan, OutputPlan, PacketsPlan,
};

pub(super) fn print_packets(out: &mut Out, section: &Section<'_>, packets: &PacketsPlan) {
    if framing(section, packets) == Framing::Frames {
        out.key("framing", text("frames"));
    }
    if packets.addresses == Addresses::RoundRobin {
        out.key("addresses", text("round_robin"));
    }
    print_cluster(out, section);
    let Some(lines) = &packets.lines else { return };
    let default = LinesPlan::new(&packets.to, false);
    // Written out whatever the rest says: whoever reads the file looks for it.
    out.key("mode", text(if lines.packet_bytes_max == 0 { "lines" } else { "repack" }));
    if lines.packet_bytes_max != 0 {
        out.key_unless(
            "max_packet_bytes",
            bytes(lines.packet_bytes_max as u64),
            bytes(default.packet_bytes_max as u64),
        );
    }
    out.key_unless("flush_delay", time(lines.flush_delay_ms), time(default.flush_delay_ms));
    print_stage(out, lines);
    print_rewrite(out, &lines.rewrite);
    print_aggregates(out, &lines.aggregates, &default.aggregates);
}

/// The framing of the section's streams: the first of its endpoints may be a datagram socket.
fn framing(section: &Section<'_>, packets: &PacketsPlan) -> Framing {
    let frames = section.outputs.iter().any(|output| match &output.kind {
        crate::plan::OutputKind::Packets(packets) => packets.framing == Framing::Frames,
        _ => false,
    });
    if frames { Framing::Frames } else { packets.framing }
}

fn print_cluster(out: &mut Out, section: &Section<'_>) {
    let Some(cluster) = section.cluster else { return };
    out.key("sharding", text(cluster.sharding.name()));
    match &cluster.sharding {
        Sharding::StatsdNode(replicas) => {
            let number = match replicas {
                RingReplicas::One => "1",
                RingReplicas::Four => "4",
            };
            out.key_unless("ring_replicas", number.into(), "1".into());
        }
        // Those of the Graphite family have nothing but their endpoints, and no section has them.
        Sharding::Ketama
        | Sharding::CarbonCh
        | Sharding::Fnv1aCh
        | Sharding::JumpFnv1aCh
        | Sharding::AnyOf
        | Sharding::CarbonPython { .. } => {}
        Sharding::Jump(table) | Sharding::Murmur3Statsrelay(table) => {
            print_shards(out, table, &section.endpoints)
        }
    }
    match cluster.key {
        KeyForm::Node => {}
        KeyForm::Name => out.key("key", text("name")),
        KeyForm::Series => out.key("key", text("series")),
    }
    let labels = |labels: &[String]| texts(labels.iter().map(|label| &**label));
    out.key_unless("labels", labels(&cluster.labels), labels(&clusters::default_labels(&section.endpoints)));
}

fn print_shards(out: &mut Out, table: &[usize], to: &[Destination]) {
    let names = clusters::default_labels(to);
    let shards = names.iter().enumerate().filter(|(at, _)| table.contains(at));
    let pairs: Vec<String> = shards
        .map(|(at, name)| format!("{} = {}", bare_or_quoted(name), text(&clusters::shards_text(table, at))))
        .collect();
    if !pairs.is_empty() {
        out.key("shards", format!("{{ {} }}", pairs.join(", ")));
    }
}

fn print_stage(out: &mut Out, lines: &LinesPlan) {
    let stage = &lines.stage;
    let pattern = |glob: &process::glob::Glob| String::from_utf8_lossy(glob.pattern()).into_owned();
    for (key, globs) in [("allow", &stage.allow), ("deny", &stage.deny)] {
        let patterns = list(globs.iter().map(|glob| text(&pattern(glob))));
        out.key_unless(key, patterns, list([]));
    }
    out.key_unless("sample", stage.sample.to_string(), "1".into());
    let share =
        |(glob, share): &(process::glob::Glob, f64)| format!("{} = {share}", bare_or_quoted(&pattern(glob)));
    if !stage.sample_names.is_empty() {
        let shares: Vec<String> = stage.sample_names.iter().map(share).collect();
        out.key("sample_names", format!("{{ {} }}", shares.join(", ")));
    }
    out.key_unless("max_series", stage.series_max.to_string(), "0".into());
    let idle = |ns: u64| time(ns / 1_000_000);
    out.key_unless("series_expiry", idle(stage.series_idle_ns), idle(LinesPlan::SERIES_IDLE_NS));
}

fn print_rewrite(out: &mut Out, plan: &RewritePlan) {
    let default = RewritePlan::default();
    out.key_unless("prefix", text(&plan.prefix), text(&default.prefix));
    out.key_unless("suffix", text(&plan.suffix), text(&default.suffix));
    let words = |words: &[String]| texts(words.iter().map(|word| &**word));
    out.key_unless("tags_drop", words(&plan.tags_drop), words(&default.tags_drop));
    if !plan.tags_rename.is_empty() {
        let pairs: Vec<String> = plan
            .tags_rename
            .iter()
            .map(|(old, new)| format!("{} = {}", bare_or_quoted(old), text(new)))
            .collect();
        out.key("tags_rename", format!("{{ {} }}", pairs.join(", ")));
    }
    out.key_unless("tags_add", words(&plan.tags_add), words(&default.tags_add));
    out.key_unless("bare_tag_value", text(&plan.bare_tag_value), text(&default.bare_tag_value));
    print_form(out, &plan.to);
}

/// By its name when it has one, by single switches otherwise.
fn print_form(out: &mut Out, form: &Form) {
    if *form == Form::KEEP {
        return;
    }
    if let Some((name, _)) = Form::NAMED.iter().find(|(_, named)| named == form) {
        return out.key("convert", text(name));
    }
    let keep = Form::KEEP;
    out.key_unless("tag_format", word_of(&TAG_FORMS, form.tags), word_of(&TAG_FORMS, keep.tags));
    out.flag_unless("one_value_per_line", form.one_value_per_line, keep.one_value_per_line);
    let distributions = |form: &Form| word_of(&DISTRIBUTIONS, form.distributions);
    out.key_unless("distributions", distributions(form), distributions(&keep));
    out.flag_unless("histograms_as_timers", form.histograms_as_timers, keep.histograms_as_timers);
    out.key_unless("gauge_signs", word_of(&GAUGES, form.gauges), word_of(&GAUGES, keep.gauges));
    let strip = form.strip;
    let fields = [
        ("container", strip.container),
        ("external", strip.external),
        ("cardinality", strip.cardinality),
        ("time", strip.time),
        ("unknown", strip.unknown),
    ];
    let stripped = texts(fields.iter().filter(|(_, stripped)| *stripped).map(|(word, _)| *word));
    out.key_unless("strip", stripped, texts([]));
    out.flag_unless("events", form.events, keep.events);
}

fn word_of<T: PartialEq, const N: usize>(words: &[(&'static str, T); N], meant: T) -> String {
    text(words.iter().find(|(_, known)| *known == meant).map_or("", |(word, _)| word))
}

fn print_aggregates(out: &mut Out, form: &AggregateEncoding, default: &AggregateEncoding) {
    let gauges = |form: &AggregateEncoding| word_of(&NEGATIVE_GAUGES, form.negative_gauges);
    let timers = |form: &AggregateEncoding| word_of(&TIMER_TYPES, form.timer_type);
    let pairs = [
        ("negative_gauges", gauges(form), gauges(default)),
        ("timer_type", timers(form), timers(default)),
        ("packed", form.packed.to_string(), default.packed.to_string()),
        ("zero_counters", form.zero_counters.to_string(), default.zero_counters.to_string()),
        ("times", form.times.to_string(), default.times.to_string()),
    ];
    if let Some(aggregates) = inline(&pairs) {
        out.key("aggregates", aggregates);
    }
}

/// Whether two checks differ in the place only, so that one section can say both.
pub(super) fn checked_alike(one: Option<&CheckPlan>, other: Option<&CheckPlan>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => CheckPlan { at: other.at.clone(), ..one.clone() } == *other,
        _ => false,
    }
}

pub(super) fn print_check(out: &mut Out, outputs: &[OutputPlan]) {
    let checks: Vec<(&OutputPlan, &CheckPlan)> =
        outputs.iter().filter_map(|output| Some((output, output.check.as_ref()?))).collect();
    let Some((_, check)) = checks.first() else { return };
    let (kind, path) = match &check.kind {
        CheckKind::Management => ("management", "/"),
        CheckKind::Connect => ("connect", "/"),
        CheckKind::Http(path) => ("http", path.as_str()),
    };
    let at_host = |(output, check): &(&OutputPlan, &CheckPlan)| host_of(output) == Some(&*check.at.host);
    let port = check.at.port;
    let same = checks.iter().all(|(_, check)| check.at.port == port) && checks.iter().all(at_host);
    let at = list(checks.iter().map(|(_, check)| text(&host_port_text(&check.at))));
    let [checks, down_after, up_after] = counts(check.health);
    let pairs = [
        ("kind", text(kind), String::new()),
        if same { ("port", port.to_string(), String::new()) } else { ("at", at, String::new()) },
        ("path", text(path), text("/")),
        ("every", time(check.every_ms), time(checks::EVERY_MS)),
        ("checks", checks.to_string(), "1".into()),
        ("down_after", down_after.to_string(), "1".into()),
        ("up_after", up_after.to_string(), "1".into()),
    ];
    out.key("check", inline(&pairs).unwrap_or_default());
}

fn counts(health: HealthPlan) -> [u32; 3] {
    [health.checks(), health.down_after(), health.up_after()]
}

fn host_of(output: &OutputPlan) -> Option<&str> {
    match &output.kind {
        crate::plan::OutputKind::Packets(packets) => match &packets.to {
            Destination::Udp(Endpoint { host, .. }) | Destination::Tcp(Endpoint { host, .. }) => Some(host),
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => None,
        },
        _ => None,
    }
}
