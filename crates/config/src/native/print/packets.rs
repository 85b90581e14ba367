//! Outputs of packets as native options: the mirror of `native::packets` and `clusters`.

use process::sharding::{KeyForm, RingReplicas, Sharding};
use wire::statsd::rewrite::{Form, RewritePlan};

use super::OutputGroup;
use crate::native::clusters;
use crate::native::fields::Fields;
use crate::options::field::{Checked, Words};
use crate::options::table::packets::{AS_SAMPLES, CONVERT, MODE, PACKET, REWRITE, STAGE};
use crate::plan::{CheckPlan, ClusterPlan, Framing, LinesPlan, OutputKind, PacketsPlan};

pub(super) fn give_packets(fields: &mut Fields, group: &OutputGroup<'_>, packets: &PacketsPlan) {
    // The framing of the section's streams: the first of its endpoints may be a datagram socket.
    let has_frames =
        |kind: &OutputKind| matches!(kind, OutputKind::Packets(of) if of.framing == Framing::Frames);
    let frames = group.outputs.iter().any(|output| has_frames(&output.kind));
    let framing = if frames { Framing::Frames } else { Framing::Lines };
    let default = PacketsPlan::new(packets.to.clone());
    fields.give(&PACKET, &PacketsPlan { framing, ..packets.clone() }, &default);
    if let Some(cluster) = group.cluster {
        give_cluster(fields, cluster, &clusters::default_labels(&group.endpoints));
    }
    let Some(lines) = &packets.lines else { return };
    let default = LinesPlan::new(&packets.to, false);
    // Written out whatever the rest says: whoever reads the file looks for it.
    let packet_bytes_max = lines.packet_bytes_max;
    fields.give_value("mode", Checked::Word(if packet_bytes_max == 0 { "lines" } else { "repack" }));
    if packet_bytes_max != 0 && packet_bytes_max != default.packet_bytes_max {
        fields.give_value("max_packet_bytes", Checked::Whole(packet_bytes_max as u64));
    }
    fields.give(&MODE, lines, &default);
    fields.give(&STAGE, &lines.stage, &default.stage);
    give_rewrite(fields, &lines.rewrite);
    fields.give(&AS_SAMPLES, lines, &default);
}

fn give_cluster(fields: &mut Fields, cluster: &ClusterPlan, names: &[String]) {
    fields.give_value("sharding", Checked::Word(cluster.sharding.name()));
    match &cluster.sharding {
        Sharding::StatsdNode(RingReplicas::Four) => fields.give_value("ring_replicas", Checked::Whole(4)),
        // Those of the Graphite family have nothing but their endpoints, and no section has them.
        Sharding::StatsdNode(RingReplicas::One)
        | Sharding::Ketama
        | Sharding::CarbonCh
        | Sharding::Fnv1aCh
        | Sharding::JumpFnv1aCh
        | Sharding::AnyOf
        | Sharding::CarbonPython { .. } => {}
        Sharding::Jump(table) | Sharding::Murmur3Statsrelay(table) => {
            let shards = names.iter().enumerate().filter(|(at, _)| table.contains(at));
            let shards = shards.map(|(at, name)| (name.clone(), clusters::shards_text(table, at)));
            fields.give_value_unless("shards", Checked::Map(shards.collect()), Checked::Map(Vec::new()));
        }
    }
    if let Some(word) = KeyForm::word(&cluster.key).filter(|_| cluster.key != KeyForm::Node) {
        fields.give_value("key", Checked::Word(word));
    }
    fields.give_value_unless("labels", Checked::texts(&cluster.labels), Checked::texts(names));
}

/// The form by its name when it has one, by single switches otherwise.
fn give_rewrite(fields: &mut Fields, plan: &RewritePlan) {
    let mut default = RewritePlan::default();
    fields.give(&REWRITE, plan, &default);
    if let Some((name, form)) = Form::NAMED.iter().find(|(_, named)| *named == plan.to) {
        fields.give_value_unless("convert", Checked::Word(name), Checked::Word("keep"));
        default.to = *form;
    }
    fields.give(&CONVERT, plan, &default);
}

/// Whether two checks differ in the place only, so that one section can say both.
pub(super) fn checked_alike(one: Option<&CheckPlan>, other: Option<&CheckPlan>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => CheckPlan { at: other.at.clone(), ..one.clone() } == *other,
        _ => false,
    }
}
