//! Outputs of packets as native options: the mirror of `native::packets`, `clusters` and `checks`.

use process::sharding::{HealthPlan, KeyForm, RingReplicas, Sharding};
use wire::statsd::rewrite::{Form, RewritePlan};

use super::super::{checks, clusters};
use super::{Out, Section, bytes, given, inline, list, table, text, texts, time};
use crate::address::host_port_text;
use crate::options::Section::{Aggregates, OutputUdp};
use crate::options::field::Words;
use crate::options::table::packets::{AGGREGATES, CONVERT, MODE, PACKET, REWRITE, STAGE};
use crate::plan::{
    Addresses, CheckKind, CheckPlan, Destination, Endpoint, Framing, LinesPlan, OutputPlan, PacketsPlan,
};

pub(super) fn print_packets(out: &mut Out, section: &Section<'_>, packets: &PacketsPlan) {
    if framing(section, packets) == Framing::Frames {
        out.key("framing", text("frames"));
    }
    out.options(OutputUdp, &PACKET, packets, &PacketsPlan { addresses: Addresses::First, ..packets.clone() });
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
    out.options(OutputUdp, &MODE, lines, &default);
    out.options(OutputUdp, &STAGE, &lines.stage, &default.stage);
    print_rewrite(out, &lines.rewrite);
    let aggregates = given(Aggregates, &AGGREGATES, &lines.aggregates, &default.aggregates);
    if !aggregates.is_empty() {
        out.key("aggregates", inline(aggregates));
    }
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
    if cluster.key != KeyForm::Node {
        out.key("key", text(KeyForm::word(&cluster.key).unwrap_or_default()));
    }
    let labels = |labels: &[String]| texts(labels.iter().map(|label| &**label));
    out.key_unless("labels", labels(&cluster.labels), labels(&clusters::default_labels(&section.endpoints)));
}

fn print_shards(out: &mut Out, table_of: &[usize], to: &[Destination]) {
    let names = clusters::default_labels(to);
    let shards = names.iter().enumerate().filter(|(at, _)| table_of.contains(at));
    let pairs: Vec<(String, String)> =
        shards.map(|(at, name)| (name.clone(), text(&clusters::shards_text(table_of, at)))).collect();
    if !pairs.is_empty() {
        out.key("shards", table(pairs.into_iter()));
    }
}

/// The form by its name when it has one, by single switches otherwise.
fn print_rewrite(out: &mut Out, plan: &RewritePlan) {
    let mut default = RewritePlan::default();
    out.options(OutputUdp, &REWRITE, plan, &default);
    if let Some((name, form)) = Form::NAMED.iter().find(|(_, named)| *named == plan.to) {
        out.key_unless("convert", text(name), text("keep"));
        default.to = *form;
    }
    out.options(OutputUdp, &CONVERT, plan, &default);
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
        Some(("kind", text(kind))),
        Some(if same { ("port", port.to_string()) } else { ("at", at) }),
        (path != "/").then(|| ("path", text(path))),
        (check.every_ms != checks::EVERY_MS).then(|| ("every", time(check.every_ms))),
        (checks != 1).then(|| ("checks", checks.to_string())),
        (down_after != 1).then(|| ("down_after", down_after.to_string())),
        (up_after != 1).then(|| ("up_after", up_after.to_string())),
    ];
    out.key("check", inline(pairs.into_iter().flatten()));
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
