//! The options of a section of outputs, as the plan has them. Which outputs one section can say: `output_group`.

use super::fields::Fields;
use super::output_group::{OutputGroup, packets_table};
use super::{checks, outputs, packets};
use crate::diagnostic::Place;
use crate::options::Section;
use crate::options::checked::Checked;
use crate::options::table::endpoints::{CONNECTIONS, ENDPOINT};
use crate::options::table::outputs::{FILE_FORMS, FILES, GRAPHITE, ROTATION};
use crate::options::table::queue::OF_OUTPUTS;
use crate::options::table::transport::OUTPUT_TRANSPORT;
use crate::plan::{OutputKind, OutputPlan, Plan};
use crate::text::size;

/// The section that makes an output.
fn table_of(kind: &OutputKind) -> Section {
    match kind {
        OutputKind::Graphite { .. } | OutputKind::GraphiteDatagrams { .. } => Section::OutputGraphite,
        OutputKind::GraphiteFile { .. } => Section::OutputGraphiteFile,
        OutputKind::Console { .. } => Section::OutputConsole,
        OutputKind::PerlFile { .. } => Section::OutputPerlFile,
        OutputKind::EventFile { .. } => Section::OutputEventFile,
        OutputKind::Packets(packets) => packets_table(&packets.to),
    }
}

/// The section of a group.
pub(super) fn fields(plan: &Plan, group: &OutputGroup<'_>) -> Fields {
    let output = &group.outputs[0];
    let kind = &output.kind;
    let section = table_of(kind);
    let mut fields = Fields::node(section, plan.names_of(&output.from));
    if !group.endpoints.is_empty() {
        let to = group.endpoints.iter().map(|to| (to.clone(), Place::new(0, 0)));
        fields.give_value("to", Checked::Endpoints(to.collect()));
    }
    let default = outputs::default_kind(section, &plan.data_dir, &output.name);
    fields.give(&FILES, kind, &default);
    if let OutputKind::GraphiteFile { file_bytes_max, files_max, .. }
    | OutputKind::EventFile { file_bytes_max, files_max, .. } = kind
        && *file_bytes_max > 0
    {
        let most = file_bytes_max.saturating_mul(u64::from(*files_max) + 1);
        fields.remark(format!("At most {} on disk: the file and {files_max} rotated ones.", size(most)));
    }
    fields.give(&ROTATION, kind, &default);
    fields.give(&GRAPHITE, kind, &default);
    fields.give(&FILE_FORMS, kind, &default);
    match kind {
        OutputKind::Graphite { namespace, sender, .. } => {
            fields.give_table(namespace);
            fields.give(&CONNECTIONS, kind, &default);
            fields.give_table(sender);
            fields.give(&OUTPUT_TRANSPORT, kind, &default);
        }
        OutputKind::GraphiteDatagrams { sender, syslog, .. } => {
            if *syslog {
                fields.give_value("encoding", Checked::Word("syslog"));
            }
            fields.give_table(sender);
        }
        OutputKind::Packets(packets) => {
            packets::give(&mut fields, group, packets);
            fields.give_table(&packets.sender);
        }
        OutputKind::GraphiteFile { namespace, .. } => {
            fields.give_table(namespace);
        }
        OutputKind::Console { .. } | OutputKind::PerlFile { .. } | OutputKind::EventFile { .. } => {}
    }
    let default = OutputPlan::new("", default, Vec::new());
    fields.give(&ENDPOINT, output, &default);
    if let Some(check) = checks::options(group.outputs) {
        fields.give_value("check", Checked::Table(Fields::of(&check)));
    }
    fields.give(&OF_OUTPUTS, output, &default);
    fields
}
