//! `[carbonlink]`: carbon-cache's query port.

use super::conflicts::Claims;
use super::fields::Fields;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::Section;
use crate::options::checked::Checked;
use crate::plan::{CarbonLinkPlan, OutputKind, Plan};

/// Reads the section.
pub(super) fn read(top: &Fields, plan: &mut Plan, claims: &mut Claims, wrong: &mut Vec<Diagnostic>) {
    let Some(fields) = top.table("carbonlink") else { return };
    let mut port: CarbonLinkPlan = fields.read();
    match fields.value("listen") {
        Some(listen) => port.listen = listen,
        None if fields.place_of("listen").is_some() => return,
        None => {}
    }
    let place = fields.at("listen");
    claims.tcp("CarbonLink", port.listen, Some(place));
    if !plan.outputs.iter().any(|output| matches!(output.kind, OutputKind::Whisper(_))) {
        let warning = Diagnostic::warning(
            Code::NoEffect,
            "there is no output `whisper` whose points CarbonLink could have",
        );
        wrong.push(
            warning
                .at(place)
                .label("every answer is empty")
                .hint("remove the section, or add an output with type = \"whisper\""),
        );
    }
    plan.carbonlink = Some(port);
}

/// The section.
pub(super) fn fields(port: &CarbonLinkPlan) -> Fields {
    let mut fields = Fields::empty(Section::CarbonLink);
    if port.listen != CarbonLinkPlan::default().listen {
        fields.give_value("listen", Checked::Address(port.listen));
    }
    fields.give_table(port);
    fields
}
