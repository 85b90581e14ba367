//! Whether the nodes that take from a source of points can take points.
//!
//! Not here: the processing of points (`pipeline`).

use model::SourceId;

use super::wiring::{Named, SHARING_POINTS};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::kinds::{RecordKind, words};
use crate::options::{Family, Section};
use crate::plan::{Feed, OutputKind, OutputPlan, PacketsPlan, Plan};

/// Reports edges with points to nodes that cannot take them. Sections and plans of sources are in the same order.
pub(super) fn check(named: &[Named], plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    let sources = named.iter().filter(|one| one.family == Family::Sources && one.fields.is_some());
    for ((at, source), section) in plan.sources.iter().enumerate().zip(sources) {
        if !source.kind.gives_points() {
            continue;
        }
        for taker in named.iter().filter(|one| one.family != Family::Sources) {
            let place = taker.from().iter().find(|(from, _)| *from == section.name).map(|(_, place)| *place);
            wrong.extend(place.and_then(|place| mistake(plan, taker, SourceId(at as u16), place)));
        }
    }
}

/// The reason why `taker` cannot take points of the source `id`, if there is one.
fn mistake(plan: &Plan, taker: &Named, id: SourceId, place: Place) -> Option<Diagnostic> {
    let cannot = |label: &str, hint: &str| {
        let message = format!("{} cannot read points", taker.whose);
        Some(Diagnostic::error(Code::WrongRecords, message).at(place).label(label).hint(hint))
    };
    if matches!(taker.section, Some(Section::TransformRelay | Section::TransformStreams)) {
        return None;
    }
    if taker.family == Family::Transforms {
        let hint = "name the source in the `from` of a relay, of a transform of type `streams`, or of an output of type `graphite`, `graphite_file`, `udp`, `tcp` or `unix`";
        return cannot("this source gives Graphite points; an aggregation reads StatsD samples", hint);
    }
    let outputs = plan.outputs.iter().enumerate();
    let mut fed =
        outputs.filter(|(_, output)| output.from.contains(&Feed::Source(id)) && is_of(output, taker));
    let (at, output) = fed.next()?;
    if output.kind.takes().contains(&RecordKind::Points) {
        return None;
    }
    let OutputKind::Packets(PacketsPlan { lines, .. }) = &output.kind else {
        return cannot(
            &format!("this source gives Graphite points; the output takes {}", words(output.kind.takes())),
            "use an output of type `graphite` or `graphite_file`",
        );
    };
    let in_cluster =
        plan.clusters.iter().any(|cluster| cluster.members.iter().any(|member| member.index() == at));
    if lines.is_none() && !in_cluster {
        return None;
    }
    if in_cluster {
        return cannot("`sharding` reads the keys of StatsD lines; this source gives points", SHARING_POINTS);
    }
    let hint = "remove the options that parse lines; `mode = \"verbatim\"` shows which do";
    cannot("its options parse StatsD lines", hint)
}

/// True for the output of a section, or one of its endpoints.
fn is_of(output: &OutputPlan, taker: &Named) -> bool {
    let endpoint = output.name.strip_prefix(&*taker.name);
    endpoint.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
