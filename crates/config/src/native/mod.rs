//! Native files: from text to a checked plan, and back.
//!
//! Path of a file: [`check_files`] -> `toml` or `yaml` (text to a tree) -> `files` (one tree of all files) ->
//! `variables` (`${NAME}` in strings) -> `fields` and `value` (each table against the options table) -> `sources`,
//! `transforms`, `outputs` (tables to plans) -> `wiring` (edges) -> `conflicts` (addresses, loops, files) -> [`Plan`].
//! Every step continues after an error, so that all errors are shown. [`print()`] works in reverse: the file that reads
//! a kind of section also has its `fields`, which returns the options of a plan.
//!
//! To add a kind of source, transform or output:
//! 1. a line in `options::section`: its family, its `type`, and the records that it takes and gives. The options `type`,
//!    `from` and `queue`, the schema and the reference follow;
//! 2. its rows, in a file of `options::table`, and the struct that they fill, in `plan`;
//! 3. its reader and its `fields`, with the others of its family: `sources`, `transforms`, or `outputs` and `groups`.
//!
//! The compiler and the tests of the options table name missing places.
//!
//! Not here: names, types and limits of options (`options`), display of errors (`diagnostic`). Invariants: no text
//! causes a panic; a plan is returned only without errors; `check(print(plan)) == plan`.

mod acks;
mod asked;
mod carbonlink;
mod checks;
mod clusters;
mod conflicts;
mod defaults;
mod email;
pub(crate) mod fields;
mod files;
mod graphite_api;
mod groups;
mod http;
mod http_output;
mod management;
mod masked;
mod origins;
mod output_group;
mod outputs;
mod packets;
mod points;
mod print;
mod relay;
mod riemann_output;
mod sources;
mod store;
mod toml;
mod transforms;
mod transport;
mod tree;
mod value;
mod variables;
mod wiring;
mod yaml;

#[cfg(test)]
mod tests;

use model::OutputId;
use model::limits::OUTPUTS_MAX;

pub use defaults::defaults;
pub use files::{File, base, by_file, includes};
pub use outputs::endpoint_name;
pub use print::{print, print_shown};
pub use sources::{
    default_plan as default_source, graphite_plan as graphite_source, own_plan as own_source,
    riemann_plan as riemann_source,
};
pub use variables::{NoVariables, VALUE_BYTES_MAX, Variables};

use self::fields::{Fields, table};
use self::tree::{Entry, Node, Value};
use self::wiring::Named;
use crate::diagnostic::{Code, Diagnostic, Place, Source, has_errors, nearest};
use crate::options::table::daemon::TOP;
use crate::options::{self, Family, Section};
use crate::plan::{ClusterPlan, Feed, OutputPlan, Plan, TransformPlan};

/// Most sources, transforms, or outputs (each endpoint counted) of one file.
pub const SECTIONS_MAX: usize = 1000;

/// Longest name of a source, transform or output, without an endpoint.
const NAME_BYTES_MAX: usize = 64;

/// The format of a native file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML, including JSON.
    Yaml,
}

impl Format {
    /// By the ending of the file's name: `.yaml`, `.yml` and `.json` are YAML, all others are TOML.
    pub fn of_name(name: &str) -> Format {
        Format::of_ending(name).unwrap_or(Format::Toml)
    }

    /// By the ending of the file's name or, for unknown endings, by the beginning of the text.
    pub fn of(name: &str, text: &str) -> Format {
        Format::of_ending(name).unwrap_or_else(|| files::format_of_text(text))
    }

    fn of_ending(name: &str) -> Option<Format> {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match &*ending {
            "toml" => Some(Format::Toml),
            "yaml" | "yml" | "json" => Some(Format::Yaml),
            _ => None,
        }
    }
}

/// Checks a native file without references to variables. Returns the plan if there is no error, and all diagnostics, by
/// place.
pub fn check(source: Source<'_>, format: Format) -> (Option<Plan>, Vec<Diagnostic>) {
    let (file, variables) = files::alone(source, format);
    check_files(&file, &variables)
}

/// Checks a native file. Returns the plan if there is no error, and all diagnostics, by place.
pub fn check_with(
    source: Source<'_>,
    format: Format,
    variables: &dyn Variables,
) -> (Option<Plan>, Vec<Diagnostic>) {
    check_files(&[File { source, format }], variables)
}

/// Checks the files of one configuration. [`by_file`] finds the file of each diagnostic.
pub fn check_files(files: &[File], variables: &dyn Variables) -> (Option<Plan>, Vec<Diagnostic>) {
    let (draft, diagnostics) = draft_of_files(files, variables);
    (draft.filter(|_| !has_errors(&diagnostics)), diagnostics)
}

/// The same, but after errors the plan has what could be read. It is for further checks only: nothing may run from it.
pub fn draft_of_files(files: &[File], variables: &dyn Variables) -> (Option<Plan>, Vec<Diagnostic>) {
    let mut resolved = variables::Resolved::default();
    let (root, mut diagnostics) = files::merged(files, variables, &mut resolved);
    let secrets = std::mem::take(&mut resolved.secrets);
    let plan = root.map(|root| Plan { secrets, ..plan(&root, &mut diagnostics) });
    resolved.hide(&mut diagnostics);
    variables::drop_later_mistakes(&mut diagnostics);
    diagnostics.sort_by_key(|diagnostic| diagnostic.place.map_or(usize::MAX, |place| place.start));
    (plan, diagnostics)
}

/// The plan of a tree; valid only if `wrong` contains no error afterwards.
fn plan(root: &Node, wrong: &mut Vec<Diagnostic>) -> Plan {
    let mut plan = Plan::default();
    let Some(entries) = reported(table("the file", root), wrong) else { return plan };
    let top = Fields::check(Section::Top, value::TOP.into(), Place::new(0, 0), entries, wrong);
    top.fill(&mut plan, &TOP);
    let named: Vec<Named> =
        Family::ALL.into_iter().flat_map(|family| named(family, entries, wrong)).collect();
    if top.place_of("sources").is_some() && !named.iter().any(|named| named.family == Family::Sources) {
        wrong.push(fields::no_source().at(top.at("sources")));
    }
    let links = wiring::check(&named, wrong);
    let mut claims = conflicts::Claims::default();
    let mut made = Vec::with_capacity(named.len());
    for (at, named) in named.iter().enumerate() {
        let first = plan.outputs.len();
        build(named, links.of(at), &mut plan, &mut claims, wrong);
        made.push(first..plan.outputs.len());
    }
    if plan.outputs.len() > OUTPUTS_MAX {
        wrong.push(Diagnostic::error(Code::TooMany, format!("there are more than {OUTPUTS_MAX} outputs")));
    }
    let file = relay::File { named: &named, made: &made };
    relay::build(file, &mut plan, wrong);
    relay::check_feeds(file, &plan, wrong);
    wiring::count_names(&mut plan);
    acks::check(&named, &plan, wrong);
    points::check(&named, &plan, wrong);
    store::check_flushes(&named, &plan, wrong);
    for named in named.iter().filter(|named| named.family == Family::Transforms) {
        if let Some(fields) = &named.fields {
            transforms::resolve(&named.name, fields, &mut plan);
        }
    }
    http::read(&top, &mut plan, &mut claims, wrong);
    let wanted = named.iter().filter(|named| named.fields.as_ref().is_some_and(clusters::is_wanted)).count();
    // An invalid cluster has already been reported: a reference to its name is not a second error.
    let whole = wanted == plan.clusters.len();
    management::read(&top, &mut plan, whole, &mut claims, wrong);
    carbonlink::read(&top, &mut plan, &mut claims, wrong);
    graphite_api::read(&top, &mut plan, wrong);
    claims.check(wrong);
    plan
}

/// The value, or `None` after reporting the error.
fn reported<T>(read: Result<T, Diagnostic>, wrong: &mut Vec<Diagnostic>) -> Option<T> {
    read.map_err(|mistake| wrong.push(mistake)).ok()
}

/// The named sections of one family.
fn named(family: Family, top: &[Entry], wrong: &mut Vec<Diagnostic>) -> Vec<Named> {
    let Some(Entry { node, .. }) = top.iter().find(|entry| entry.key == family.key()) else {
        return Vec::new();
    };
    let entries = reported(table(family.key(), node), wrong).unwrap_or_default();
    if entries.len() > SECTIONS_MAX {
        wrong.push(too_many(family, entries.len(), node.place));
        return Vec::new();
    }
    entries.iter().map(|entry| one_named(family, entry, wrong)).collect()
}

fn too_many(family: Family, number: usize, place: Place) -> Diagnostic {
    Diagnostic::error(Code::TooMany, format!("there are {number} {}", family.key()))
        .at(place)
        .label(format!("at most {SECTIONS_MAX}"))
}

fn one_named(family: Family, entry: &Entry, wrong: &mut Vec<Diagnostic>) -> Named {
    let whose = format!("{} `{}`", family.one(), entry.key);
    let place = entry.key_place;
    let mut named = Named { family, name: entry.key.clone(), place, whose, section: None, fields: None };
    if let Some(entries) = reported(table(&entry.key, &entry.node), wrong) {
        named.section = section_of(family, &named.whose, place, entries, wrong);
        let fields = |section| Fields::check(section, named.whose.clone(), place, entries, wrong);
        named.fields = named.section.map(fields);
        check_name(&named, wrong);
    }
    named
}

/// The section for the `type`.
fn section_of(
    family: Family,
    whose: &str,
    place: Place,
    entries: &[Entry],
    wrong: &mut Vec<Diagnostic>,
) -> Option<Section> {
    let words: Vec<&str> = family.types().map(|(word, _)| word).collect();
    let known = format!("types are: {}", words.join(", "));
    let Some(entry) = entries.iter().find(|entry| entry.key == "type") else {
        wrong.push(
            Diagnostic::error(Code::MissingKey, format!("{whose} needs `type`")).at(place).label(known),
        );
        strange_keys(family, whose, entries, wrong);
        return None;
    };
    let Value::Text(given) = &entry.node.value else {
        wrong.push(value::wrong_type("type", "a string", &entry.node.value).at(entry.node.place).hint(known));
        return None;
    };
    if let Some((_, section)) = family.types().find(|(word, _)| word == given) {
        return Some(section);
    }
    let mut diagnostic = Diagnostic::error(Code::UnknownType, format!("{whose} has an unknown type"))
        .at(entry.node.place)
        .label(known);
    // The rest is checked for the probable type, so that one wrong letter does not hide other errors.
    let near = options::other_type(family, given).or_else(|| nearest(given, words.into_iter()));
    diagnostic.hint = near.map(|near| format!("did you mean \"{near}\"?"));
    if near.is_none() {
        diagnostic.hint = options::type_elsewhere(family, given);
    }
    wrong.push(diagnostic);
    if near.is_none() {
        strange_keys(family, whose, entries, wrong);
    }
    family.types().find(|(word, _)| Some(*word) == near).map(|(_, section)| section)
}

/// For an unknown `type`: reports options that no type of the family has.
fn strange_keys(family: Family, whose: &str, entries: &[Entry], wrong: &mut Vec<Diagnostic>) {
    let keys = || family.types().flat_map(|(_, section)| section.rows()).map(|row| row.key);
    for entry in entries.iter().filter(|entry| keys().all(|key| key != entry.key)) {
        let message =
            format!("{whose} has an option `{}`, and no type of {} has it", entry.key, family.one());
        let mut diagnostic =
            Diagnostic::error(Code::UnknownKey, message).at(entry.key_place).label("unknown option");
        let near = nearest(&entry.key, keys()).map(|near| format!("did you mean `{near}`?"));
        diagnostic.hint = near.or_else(|| options::cluster_hint(family, &entry.key));
        wrong.push(diagnostic);
    }
}

fn check_name(named: &Named, wrong: &mut Vec<Diagnostic>) {
    let (name, endpoint) = match named.name.split_once('/') {
        Some((name, endpoint)) => (name, Some(endpoint)),
        None => (&*named.name, None),
    };
    let plain = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let own_endpoint = || {
        if named.fields.as_ref().is_some_and(clusters::is_wanted) {
            return false;
        }
        let to = named.fields.as_ref().and_then(|fields| fields.other("to"));
        let Some(value::Checked::Endpoints(to)) = to else { return false };
        to.len() == 1 && Some(&*crate::address::destination_name(&to[0].0)) == endpoint
    };
    if !plain || endpoint.is_some() && !own_endpoint() {
        let label = if plain {
            "behind `/` stands an output's only endpoint, and this is none".into()
        } else {
            format!("1 to {NAME_BYTES_MAX} letters, digits, `_`, `-`, `.`; a letter or digit first")
        };
        let message = format!("{} has a name that cannot be used", named.whose);
        wrong.push(Diagnostic::error(Code::BadName, message).at(named.place).label(label));
    }
}

/// Converts one named section to its plans.
fn build(
    named: &Named,
    from: &[Feed],
    plan: &mut Plan,
    claims: &mut conflicts::Claims,
    wrong: &mut Vec<Diagnostic>,
) {
    let Some(fields) = &named.fields else { return };
    let name = named.name.clone();
    match named.family {
        Family::Sources => {
            let (source, places) = sources::build(&name, fields, wrong);
            claims.source(&source, &places);
            plan.sources.push(source);
        }
        Family::Transforms => {
            let kind = transforms::kind(named, fields, claims, wrong);
            plan.transforms.push(TransformPlan { name, kind, from: from.to_vec() });
        }
        Family::Outputs => {
            let asked = asked::Asked { name: &name, fields, from };
            let (outputs, cluster) = outputs::build(&asked, &plan.data_dir, wrong);
            let first = plan.outputs.len();
            for built in outputs {
                claims.output(&built, named.place, wrong);
                if plan.outputs.len() == SECTIONS_MAX {
                    wrong.push(too_many(Family::Outputs, SECTIONS_MAX + 1, named.place));
                }
                plan.outputs.push(OutputPlan { from: from.to_vec(), ..built.plan });
            }
            if let Some(clusters::Draft { sharding, key, labels }) = cluster {
                // Above the limit there is no plan.
                let members = (first..plan.outputs.len()).map(|at| OutputId(at as u16)).collect();
                plan.clusters.push(ClusterPlan { name, sharding, key, members, labels });
            }
        }
    }
}
