//! Whether the nodes that take from a source can keep the promise of its `ack_when`.
//!
//! Not here: the obstacles ([`Plan::against`]), and the acknowledgements themselves (`pipeline`).

use model::{AckWhen, SourceId};

use super::wiring::Named;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Family;
use crate::plan::{Against, Listen, OutputPlan, Plan, SourcePlan, TransformPlan};

/// Reports promises that cannot be kept. Sections and plans are in the same order.
pub(super) fn check(named: &[Named], plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    let sources = named.iter().filter(|one| one.family == Family::Sources);
    let fields = sources.filter_map(|one| one.fields.as_ref());
    for ((at, source), fields) in plan.sources.iter().enumerate().zip(fields) {
        if let Some(when) = source.ack_when
            && let Some(place) = fields.place_of("ack_when")
        {
            let id = SourceId(at as u16);
            let mistake = mistake(plan, source, id, when, place);
            wrong.extend(mistake.or_else(|| warning(plan, source, id, when, place)));
        }
    }
}

/// An output whose queue drops lines that clients rely on.
fn warning(
    plan: &Plan,
    source: &SourcePlan,
    id: SourceId,
    when: AckWhen,
    place: Place,
) -> Option<Diagnostic> {
    let output = plan.drops_acked(id, when)?;
    let name = &output.name;
    let (message, label) = match when {
        AckWhen::Safe => (
            format!("lines of source `{}` may be dropped after their acknowledgement", source.name),
            format!("the queue of `{name}` drops its oldest lines when it is full"),
        ),
        AckWhen::Delivered | AckWhen::Accepted => (
            format!("a full queue closes the connections of source `{}`", source.name),
            format!("the queue of `{name}` then drops lines that nobody has acknowledged"),
        ),
    };
    // The section of an output with several endpoints has the name before the `/`.
    let section = name.split('/').next().unwrap_or(name);
    let hint = format!(
        "write when_full = \"block\" in `queue` of output `{section}`: its clients then wait while the queue is full"
    );
    Some(Diagnostic::warning(Code::AckedDropped, message).at(place).label(label).hint(hint))
}

/// The first obstacle for the source's promise.
fn mistake(
    plan: &Plan,
    source: &SourcePlan,
    id: SourceId,
    when: AckWhen,
    place: Place,
) -> Option<Diagnostic> {
    let name = &source.name;
    let cannot = |label: String, hint: String| {
        let message = format!("source `{name}` cannot acknowledge");
        Some(Diagnostic::error(Code::AckWhen, message).at(place).label(label).hint(hint))
    };
    // An invalid `listen` has already been reported.
    if !source.listen.is_empty() && source.listen.iter().all(Listen::is_datagram) {
        return cannot(
            "it has no stream listener, so it cannot reply".into(),
            "add a listener of `tcp://`, `unix://` or `unix-frames://`, or leave `ack_when` out".into(),
        );
    }
    match plan.against(id, when)? {
        Against::Aggregated(TransformPlan { name, .. }) => cannot(
            format!("`{name}` is an aggregation"),
            format!(
                "an aggregate is in memory until its window ends: write \"accepted\", or feed \"{name}\" from another source"
            ),
        ),
        Against::InMemory(OutputPlan { name, .. }) => cannot(
            format!("the queue of `{name}` is in memory"),
            format!("give output `{name}` queue = {{ kind = \"disk\" }}, or write \"accepted\""),
        ),
        Against::Datagrams(OutputPlan { name, .. }) => cannot(
            format!("`{name}` sends datagrams, whose delivery cannot be confirmed"),
            format!(
                "write \"accepted\" or \"safe\" instead of \"{}\", or send to `{name}` by a stream",
                when.word()
            ),
        ),
    }
}
