//! How an output of packets processes lines: `mode`, filters, rewriting, and aggregates as samples.
//!
//! Not here: the endpoints (`outputs`), sharding of lines in a cluster (`clusters`).

use wire::statsd::rewrite::{Form, Rewrite, RewriteError, RewritePlan};

use super::clusters;
use super::fields::Fields;
use super::output_group::OutputGroup;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::checked::Checked;
use crate::options::table::packets::{AS_SAMPLES, CONVERT, MODE, PACKET, REWRITE, STAGE};
use crate::plan::{Destination, Framing, LinesPlan, OutputKind, PacketsPlan};

/// Options for parsed packets that do not themselves require parsing.
const OF_LINES: [&str; 3] = ["series_expiry", "bare_tag_value", "aggregates"];

/// Options that require parsing.
fn parsing_options() -> impl Iterator<Item = &'static str> {
    let rows = [STAGE.rows, REWRITE.rows, CONVERT.rows].into_iter().flatten().map(|row| row.key);
    ["max_packet_bytes", "flush_delay"].into_iter().chain(rows.filter(|key| !OF_LINES.contains(key)))
}

/// Other conditions for an output's lines.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// The lines are sharded among several endpoints.
    pub(super) in_cluster: bool,
    /// It takes from a transform.
    pub(super) takes_aggregates: bool,
}

/// The processing of lines for an output to `to`; `None` when packets are forwarded unchanged.
pub(super) fn lines(
    fields: &Fields,
    to: &Destination,
    around: Around,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Box<LinesPlan>> {
    let asked = parsing_options().find(|key| fields.place_of(key).is_some());
    let packs = ["max_packet_bytes", "flush_delay"].iter().any(|key| fields.place_of(key).is_some());
    let each_its_own = match fields.word("mode") {
        Some("verbatim") => {
            verbatim(fields, asked, around, wrong);
            return None;
        }
        Some("lines") => true,
        Some(_) => false,
        None if around.in_cluster => !packs,
        None if asked.is_some() || around.takes_aggregates => false,
        None => {
            no_effect(fields, &OF_LINES, "packets stay as they are", wrong);
            return None;
        }
    };
    let mut plan = LinesPlan::new(to, each_its_own);
    fields.fill(&mut plan, &AS_SAMPLES);
    plan.aggregates.line_bytes_max = LinesPlan::packet_bytes_default(to);
    if each_its_own {
        no_effect(fields, &["max_packet_bytes", "flush_delay"], "each line is its own packet", wrong);
    } else if let Some(bytes) = fields.value("max_packet_bytes") {
        plan.packet_bytes_max = bytes;
        plan.aggregates.line_bytes_max = bytes;
    }
    fields.fill(&mut plan, &MODE);
    fields.fill(&mut plan.stage, &STAGE);
    if plan.stage.series_max == 0 {
        no_effect(fields, &["series_expiry"], "without `max_series` no series is known", wrong);
    }
    plan.rewrite = rewrite(fields, wrong);
    plan.aggregates.names = plan.rewrite.clone();
    if !around.takes_aggregates {
        no_effect(fields, &["aggregates"], "its `from` names no transform", wrong);
    }
    Some(Box::new(plan))
}

/// `mode = "verbatim"` with an option that needs parsed lines.
fn verbatim(fields: &Fields, asked: Option<&'static str>, around: Around, wrong: &mut Vec<Diagnostic>) {
    let mode = fields.at("mode");
    let (message, place) = match asked {
        Some(key) => (
            format!("`{key}` needs parsed lines, and `verbatim` does not parse packets"),
            fields.place_of(key),
        ),
        None if around.in_cluster => (
            "a cluster needs parsed lines, and `verbatim` does not parse packets".into(),
            fields.place_of("sharding"),
        ),
        None if around.takes_aggregates => (
            "aggregates are sent as lines, and `verbatim` only forwards packets".into(),
            fields.place_of("from"),
        ),
        None => {
            return no_effect(fields, &OF_LINES, "packets stay as they are", wrong);
        }
    };
    wrong.push(
        Diagnostic::error(Code::Verbatim, message)
            .at(place.unwrap_or(mode))
            .label("needs parsed packets")
            .hint("leave `mode` out, or write mode = \"repack\" or mode = \"lines\""),
    );
}

fn no_effect(fields: &Fields, keys: &[&str], why: &str, wrong: &mut Vec<Diagnostic>) {
    for key in keys {
        fields.ignored(key, format!("`{key}` has no effect here: {why}"), wrong);
    }
}

fn rewrite(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> RewritePlan {
    let form = fields.word("convert").and_then(Form::named).unwrap_or(Form::KEEP);
    let mut plan = RewritePlan { to: form, ..RewritePlan::default() };
    fields.fill(&mut plan, &REWRITE);
    fields.fill(&mut plan, &CONVERT);
    if let Err(error) = Rewrite::new(&plan) {
        let key = match &error {
            RewriteError::BadAffix(text) if *text == plan.prefix => "prefix",
            RewriteError::BadAffix(_) => "suffix",
            RewriteError::BadTag(text) if plan.tags_drop.contains(text) => "tags_drop",
            RewriteError::BadTag(text) if plan.tags_add.contains(text) => "tags_add",
            RewriteError::BadTag(text) if *text == plan.bare_tag_value => "bare_tag_value",
            RewriteError::BadTag(_) => "tags_rename",
        };
        fields.wrong(key, Code::BadValue, format!("`{key}` cannot be used"), error.to_string(), wrong);
    }
    plan
}

/// The options of a section of packet outputs.
pub(super) fn give(fields: &mut Fields, group: &OutputGroup<'_>, packets: &PacketsPlan) {
    // The section's framing of streams: its first endpoint may be a datagram socket.
    let has_frames =
        |kind: &OutputKind| matches!(kind, OutputKind::Packets(of) if of.framing == Framing::Frames);
    let frames = group.outputs.iter().any(|output| has_frames(&output.kind));
    let framing = if frames { Framing::Frames } else { Framing::Lines };
    let default = PacketsPlan::new(packets.to.clone());
    fields.give(&PACKET, &PacketsPlan { framing, ..packets.clone() }, &default);
    if let Some(cluster) = group.cluster {
        clusters::give(fields, cluster, &group.endpoints);
    }
    let Some(lines) = &packets.lines else { return };
    let default = LinesPlan::new(&packets.to, false);
    // Always written, because readers of the file look for it.
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

/// The format by its name if it has one, otherwise by single options.
fn give_rewrite(fields: &mut Fields, plan: &RewritePlan) {
    let mut default = RewritePlan::default();
    fields.give(&REWRITE, plan, &default);
    if let Some((name, form)) = Form::NAMED.iter().find(|(_, named)| *named == plan.to) {
        fields.give_value_unless("convert", Checked::Word(name), Checked::Word("keep"));
        default.to = *form;
    }
    fields.give(&CONVERT, plan, &default);
}
