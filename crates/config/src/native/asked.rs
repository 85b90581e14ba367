//! What readers of outputs share: the section that they read, and what they make of it.
//!
//! Not here: the readers by type (`outputs`, `http_output`, `email`, `riemann_output`).

use deliver::plan::SenderPlan;

use super::clusters::Draft;
use super::fields::Fields;
use super::value::Checked;
use crate::address::destination_name;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::table::endpoints::ENDPOINT;
use crate::options::table::queue::OF_OUTPUTS;
use crate::plan::{Destination, Feed, OutputKind, OutputPlan};

/// The plans of a section, and its cluster if it makes one.
pub(super) type Outputs = (Vec<Built>, Option<Draft>);

/// A plan without its edges, and the place of its endpoint or file.
pub(super) struct Built {
    pub(super) plan: OutputPlan,
    pub(super) place: Place,
}

/// The section of an output.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) fields: &'a Fields,
    pub(super) from: &'a [Feed],
}

impl Asked<'_> {
    /// An output of the section, with the options of all types.
    pub(super) fn output(&self, name: String, kind: OutputKind, place: Place) -> Built {
        let mut plan = OutputPlan::new(name, kind, Vec::new());
        self.fields.fill(&mut plan, &ENDPOINT);
        self.fields.fill(&mut plan, &OF_OUTPUTS);
        Built { plan, place }
    }
}

/// Pauses and time-outs.
pub(super) fn sender(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> SenderPlan {
    let sender: SenderPlan = fields.read();
    if sender.retry_max_ms < sender.retry_min_ms {
        let given = fields.place_of("max_retry_delay").is_some();
        let key = if given { "max_retry_delay" } else { "min_retry_delay" };
        let limits = format!("min_retry_delay is {}", crate::text::duration(sender.retry_min_ms));
        let message = format!(
            "`max_retry_delay` ({}) is below `min_retry_delay`",
            crate::text::duration(sender.retry_max_ms)
        );
        fields.wrong(key, Code::OutOfRange, message, limits, wrong);
    }
    sender
}

/// The endpoints of `to`, with their places.
pub(super) fn endpoints(fields: &Fields) -> &[(Destination, Place)] {
    match fields.other("to") {
        Some(Checked::Endpoints(to)) => to,
        _ => &[],
    }
}

/// Name of one endpoint's output.
pub fn endpoint_name(name: &str, to: &Destination) -> String {
    format!("{name}/{}", destination_name(to))
}
