//! Whether what a source's `ack_when` promises can be kept by what takes from it.
//!
//! Not here: when it is kept (`pipeline`).

use model::{AckWhen, SourceId};

use super::wiring::Named;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Family;
use crate::plan::{Feed, Listen, OutputKind, PacketsPlan, Plan, SourcePlan};

/// Finds promises that cannot be kept. Sections and plans are in the same order.
pub(super) fn check(named: &[Named], plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    let sources = named.iter().filter(|one| one.family == Family::Sources);
    let fields = sources.filter_map(|one| one.fields.as_ref());
    for ((at, source), fields) in plan.sources.iter().enumerate().zip(fields) {
        if let Some(when) = source.ack_when
            && let Some(place) = fields.place_of("ack_when")
        {
            wrong.extend(mistake(plan, source, SourceId(at as u16), when, place));
        }
    }
}

/// The first reason why the source cannot promise it.
fn mistake(
    plan: &Plan,
    source: &SourcePlan,
    id: SourceId,
    when: AckWhen,
    place: Place,
) -> Option<Diagnostic> {
    let name = &source.name;
    let word = when.word();
    let cannot = |label: String, hint: String| {
        let message = format!("source `{name}` cannot acknowledge");
        Some(Diagnostic::error(Code::AckWhen, message).at(place).label(label).hint(hint))
    };
    // A `listen` that was wrong has been told of.
    if !source.listen.is_empty() && source.listen.iter().all(is_datagram) {
        return cannot(
            "it has no connection to answer on".into(),
            "add a listener of `tcp://`, `unix://` or `unix-frames://`, or leave `ack_when` out".into(),
        );
    }
    if when == AckWhen::Accepted {
        return None;
    }
    if let Some(transform) = plan.transforms.iter().find(|transform| transform.from.contains(&id)) {
        return cannot(
            format!("`{}` aggregates what it takes in", transform.name),
            format!(
                "an aggregate is in memory until its window ends: write \"accepted\", or feed \"{}\" from another source",
                transform.name
            ),
        );
    }
    let mut outputs = plan.outputs.iter().filter(|output| output.from.contains(&Feed::Source(id)));
    if when == AckWhen::Safe {
        let output = outputs.find(|output| !output.queue_kind.is_disk())?;
        return cannot(
            format!("the queue of `{}` is in memory", output.name),
            format!("give output `{}` queue = {{ kind = \"disk\" }}, or write \"accepted\"", output.name),
        );
    }
    let output = outputs.find(|output| sends_datagrams(&output.kind))?;
    cannot(
        format!("`{}` sends datagrams, and nothing proves that one has arrived", output.name),
        format!(
            "write \"accepted\" or \"safe\" instead of \"{word}\", or send to `{}` by a stream",
            output.name
        ),
    )
}

fn is_datagram(listen: &Listen) -> bool {
    matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. })
}

fn sends_datagrams(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::Packets(PacketsPlan { to, .. }) if to.is_datagram())
}
