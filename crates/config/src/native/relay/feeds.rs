//! Allowed edges to and from a relay: sources of points, and outputs that write points unchanged.
//!
//! Not here: names (`wiring`), other nodes that take points (`points`).

use super::names::File;
use crate::diagnostic::{Code, Diagnostic};
use crate::kinds::{RecordKind, words};
use crate::native::wiring::Named;
use crate::options::Section;
use crate::plan::{Feed, Plan};

/// The aggregation that takes from a source, if there is one.
fn aggregation_of<'a>(file: File<'a>, source: &str) -> Option<&'a str> {
    let takes = |named: &&Named| {
        named.section == Some(Section::TransformAggregate)
            && named.from().iter().any(|(from, _)| from == source)
    };
    file.named.iter().find(takes).map(|named| &*named.name)
}

/// Reports impossible edges of relays.
pub(in crate::native) fn check(file: File<'_>, plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    for named in file.named.iter().filter(|named| named.section == Some(Section::TransformRelay)) {
        for (name, place) in named.from() {
            let source = plan.sources.iter().find(|source| source.name == *name);
            if source.is_some_and(|source| !source.kind.gives_points()) {
                let message = format!("{} cannot read samples", named.whose);
                let label = format!("`{name}` gives samples; `{}` takes points", named.name);
                let hint = format!(
                    "put an aggregation between: add [transforms.stats] with type = \"aggregate\" and from = [\"{name}\"], \
                     and take from \"stats\""
                );
                let hint = match aggregation_of(file, name) {
                    Some(known) => format!("take from \"{known}\", which aggregates them"),
                    None => hint,
                };
                let diagnostic = Diagnostic::error(Code::WrongRecords, message).at(*place);
                wrong.push(diagnostic.label(label).hint(hint));
            }
        }
    }
    for (named, made) in file.outputs() {
        let Some(output) = plan.outputs.get(made.start).filter(|_| !made.is_empty()) else { continue };
        let place_of = |name: &String| {
            named.from().iter().find(|(from, _)| from == name).map_or(named.place, |(_, place)| *place)
        };
        // A section of unknown type has a name but no plan.
        let transforms = output.from.iter().filter_map(|feed| match feed {
            Feed::Transform(id) => plan.transforms.get(id.index()),
            Feed::Source(_) => None,
        });
        for transform in transforms {
            let is_relay = transform.kind.as_relay().is_some();
            if is_relay && !output.kind.takes().contains(&RecordKind::Points) {
                let message = format!("{} cannot read points of a relay", named.whose);
                wrong.push(
                    Diagnostic::error(Code::WrongRecords, message)
                        .at(place_of(&transform.name))
                        .label(format!(
                            "`{}` gives points; `{}` takes {}",
                            transform.name,
                            named.name,
                            words(output.kind.takes())
                        ))
                        .hint("use an output of type `graphite` or `graphite_file`"),
                );
            }
        }
    }
}
