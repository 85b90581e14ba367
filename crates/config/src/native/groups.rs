//! The options of a section of outputs, as the plan has them. Which outputs one section can say: `output_group`.

use super::fields::Fields;
use super::output_group::OutputGroup;
use super::{checks, outputs, packets};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::table::OF_OUTPUT_KINDS;
use crate::options::table::email::EMAIL;
use crate::options::table::endpoints::{CONNECTIONS, ENDPOINT};
use crate::options::table::http_output::HTTP_OUTPUT;
use crate::options::table::outputs::FILES;
use crate::options::table::queue::OF_OUTPUTS;
use crate::options::table::riemann_output::RIEMANN_OUTPUT;
use crate::options::table::transport::OUTPUT_TRANSPORT;
use crate::options::table::whisper::STORE;
use crate::plan::{Link, OutputKind, OutputPlan, Plan, StreamLink};
use crate::text::size;

/// The section of a group: its rows define what is printed.
pub(super) fn fields(plan: &Plan, group: &OutputGroup<'_>) -> Fields {
    let output = &group.outputs[0];
    let kind = &output.kind;
    let facts = kind.facts();
    let mut fields = Fields::node(facts.section, plan.names_of(&output.from));
    let is_elsewhere = matches!(facts.link, Link::Requests { form, .. } if !form.has_to());
    if !group.endpoints.is_empty() && !is_elsewhere {
        let to = group.endpoints.iter().map(|to| (to.clone(), Place::new(0, 0)));
        fields.give_value("to", Checked::Endpoints(to.collect()));
    }
    let default = outputs::default_kind(facts.section, &plan.data_dir, &output.name);
    fields.give(&FILES, kind, &default);
    if let Link::File { file_bytes_max: file_bytes_max @ 1.., files_max, .. } = facts.link {
        let most = file_bytes_max.saturating_mul(u64::from(files_max) + 1);
        fields.remark(format!("At most {} on disk: the file and {files_max} rotated ones.", size(most)));
    }
    OF_OUTPUT_KINDS.iter().for_each(|rows| fields.give(rows, kind, &default));
    if let OutputKind::GraphiteDatagrams { syslog: true, .. } = kind {
        fields.give_value("encoding", Checked::Word("syslog"));
    }
    if let OutputKind::Packets(packets) = kind {
        packets::give(&mut fields, group, packets);
    }
    if let (OutputKind::Whisper(plan), OutputKind::Whisper(default)) = (kind, &default) {
        fields.give(&STORE, plan, default);
    }
    if let (OutputKind::Http(plan), OutputKind::Http(default)) = (kind, &default) {
        fields.give(&HTTP_OUTPUT, &**plan, default);
    }
    if let (OutputKind::Email(plan), OutputKind::Email(default)) = (kind, &default) {
        fields.give(&EMAIL, &**plan, default);
    }
    if let (OutputKind::Riemann(plan), OutputKind::Riemann(default)) = (kind, &default) {
        fields.give(&RIEMANN_OUTPUT, &**plan, default);
    }
    if let Some(namespace) = facts.namespace {
        fields.give_table(namespace);
    }
    fields.give(&CONNECTIONS, kind, &default);
    match &facts.link {
        Link::Stream(StreamLink { sender, .. })
        | Link::Datagrams { sender, .. }
        | Link::Requests { sender, .. } => fields.give_table(sender),
        Link::File { .. } | Link::Store(_) | Link::Stdout | Link::Stderr => {}
    }
    fields.give(&OUTPUT_TRANSPORT, kind, &default);
    let default = OutputPlan::new("", default, Vec::new());
    fields.give(&ENDPOINT, output, &default);
    if let Some(check) = checks::options(group.outputs) {
        fields.give_value("check", Checked::Table(Fields::of(&check)));
    }
    fields.give(&OF_OUTPUTS, output, &default);
    fields
}
