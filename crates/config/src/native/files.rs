//! Several native files as one configuration.
//!
//! Path of the files: each text to its tree (`toml`, `yaml`) -> [`merged`] (one tree) -> the same checks as for one
//! file. Places count through all texts as if they were concatenated: [`by_file`] finds the file of each. Not here:
//! finding and reading the files.
//! Invariant: an option in two files is an error that names both places. No file overrides another.

use super::fields;
use super::tree::{Entry, Node, Value};
use super::variables::{NoVariables, Resolved, Variables, resolve};
use super::{Format, toml, yaml};
use crate::diagnostic::{Code, Diagnostic, Place, Source};
use crate::options::Family;

/// The option that names more files.
pub(super) const INCLUDE: &str = "include";

/// A file of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name and text.
    pub source: Source<'a>,
    /// Its format.
    pub format: Format,
}

/// Where the places of each file begin.
fn bases<'a>(files: &'a [File]) -> impl Iterator<Item = usize> + 'a {
    let mut next = 0;
    files.iter().map(move |file| {
        let base = next;
        // One more, so that the end of a text differs from the beginning of the next one.
        next += file.source.text.len() + 1;
        base
    })
}

/// The base of a file: add it to a place in the file to get a place in the configuration.
pub fn base(files: &[File], index: usize) -> usize {
    bases(files).nth(index).unwrap_or_default()
}

/// The diagnostics of each file, with places in its text. Those without a place belong to the first file.
pub fn by_file<'a>(files: &[File<'a>], diagnostics: &[Diagnostic]) -> Vec<(Source<'a>, Vec<Diagnostic>)> {
    let bases: Vec<usize> = bases(files).collect();
    let mut split: Vec<_> = files.iter().map(|file| (file.source, Vec::new())).collect();
    for diagnostic in diagnostics {
        let start = diagnostic.place.map_or(0, |place| place.start);
        let at = bases.partition_point(|base| *base <= start).saturating_sub(1);
        let mut own = diagnostic.clone();
        own.place = own.place.map(|place| moved_back(place, bases[at]));
        if let Some((_, diagnostics)) = split.get_mut(at) {
            diagnostics.push(own);
        }
    }
    split
}

fn moved_back(place: Place, base: usize) -> Place {
    Place::new(place.start - base, place.end.saturating_sub(base))
}

/// Parses one text: its tree, with places in that text.
fn read(file: File) -> (Option<Node>, Vec<Diagnostic>, usize) {
    // Editors on some systems begin a file with a byte order mark; places count it.
    let (text, skipped) = match file.source.text.strip_prefix('\u{feff}') {
        Some(text) => (text, '\u{feff}'.len_utf8()),
        None => (file.source.text, 0),
    };
    let (root, diagnostics) = match file.format {
        Format::Toml => toml::read(text),
        Format::Yaml => yaml::read(text),
    };
    (root, diagnostics, skipped)
}

/// The files and folders that a file includes, as written, with their places. Empty for a file that cannot be parsed:
/// its check reports the reason.
pub fn includes(file: File, variables: &dyn Variables) -> Vec<(String, Place)> {
    let (Some(mut root), _, skipped) = read(file) else { return Vec::new() };
    resolve(&mut root, variables, &mut Resolved::default(), &mut Vec::new());
    let Value::Table(entries) = root.value else { return Vec::new() };
    let included =
        entries.into_iter().filter(|entry| entry.key == INCLUDE).flat_map(|entry| list(entry.node));
    let place = |place: Place| Place::new(place.start + skipped, place.end + skipped);
    included
        .filter_map(|node| match node.value {
            Value::Text(text) => Some((text, place(node.place))),
            _ => None,
        })
        .collect()
}

fn list(node: Node) -> Vec<Node> {
    match node.value {
        Value::List(list) => list,
        _ => vec![node],
    }
}

/// One tree of all files, and the mistakes so far. `None` when a text cannot be parsed, because later checks would
/// report its options as missing.
pub(super) fn merged(
    files: &[File],
    variables: &dyn Variables,
    resolved: &mut Resolved,
) -> (Option<Node>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let mut roots = Vec::with_capacity(files.len());
    for (file, base) in files.iter().zip(bases(files)) {
        let (root, diagnostics, skipped) = read(*file);
        let by = base + skipped;
        wrong.extend(diagnostics.into_iter().map(|diagnostic| Diagnostic {
            place: diagnostic.place.map(|place| Place::new(place.start + by, place.end + by)),
            ..diagnostic
        }));
        roots.push(root.map(|mut root| {
            move_places(&mut root, by);
            resolve(&mut root, variables, resolved, &mut wrong);
            root
        }));
    }
    let Some(mut roots) = roots.into_iter().collect::<Option<Vec<Node>>>() else { return (None, wrong) };
    if roots.len() == 1 {
        return (roots.pop(), wrong);
    }
    let mut entries: Vec<Entry> = Vec::new();
    for root in roots {
        match fields::table("the file", &root) {
            Ok(own) => own.iter().for_each(|entry| add(files, &mut entries, entry.clone(), &mut wrong)),
            Err(mistake) => wrong.push(mistake),
        }
    }
    let value = Value::Table(entries);
    (Some(Node { place: Place::new(0, 0), value, substituted: false }), wrong)
}

fn move_places(node: &mut Node, by: usize) {
    let moved = |place: Place| Place::new(place.start + by, place.end + by);
    node.place = moved(node.place);
    match &mut node.value {
        Value::List(list) => list.iter_mut().for_each(|node| move_places(node, by)),
        Value::Table(entries) => {
            for entry in entries {
                entry.key_place = moved(entry.key_place);
                move_places(&mut entry.node, by);
            }
        }
        Value::Text(_) | Value::Number { .. } | Value::Flag(_) | Value::Nothing | Value::Date => {}
    }
}

/// Adds an entry of the top level.
fn add(files: &[File], entries: &mut Vec<Entry>, entry: Entry, wrong: &mut Vec<Diagnostic>) {
    let Some(at) = entries.iter().position(|known| known.key == entry.key) else {
        entries.push(entry);
        return;
    };
    let known = &mut entries[at];
    let family = Family::ALL.into_iter().find(|family| family.key() == entry.key);
    match (&mut known.node.value, entry.node.value, family) {
        (Value::Table(into), Value::Table(from), Some(family)) => {
            for section in from {
                match into.iter().find(|known| known.key == section.key) {
                    None => into.push(section),
                    Some(first) => {
                        let what = format!("{} `{}`", family.one(), section.key);
                        wrong.push(twice(
                            files,
                            &what,
                            first.key_place,
                            section.key_place,
                            Code::DuplicateName,
                        ));
                    }
                }
            }
        }
        // A key whose lines are all commented out.
        (_, Value::Nothing, Some(_)) => {}
        (value @ Value::Nothing, from, Some(_)) => *value = from,
        (value, from, None) if entry.key == INCLUDE => {
            let mut all = match std::mem::replace(value, Value::Nothing) {
                Value::List(list) => list,
                first => vec![Node { place: known.node.place, value: first, substituted: false }],
            };
            all.extend(list(Node { place: entry.node.place, value: from, substituted: false }));
            *value = Value::List(all);
        }
        _ => {
            let what = format!("`{}`", entry.key);
            wrong.push(twice(files, &what, known.key_place, entry.key_place, Code::Repeated));
        }
    }
}

fn twice(files: &[File], what: &str, first: Place, second: Place, code: Code) -> Diagnostic {
    let bases: Vec<usize> = bases(files).collect();
    let at = bases.partition_point(|base| *base <= first.start).saturating_sub(1);
    let (text, name) = (files[at].source.text, files[at].source.name);
    let start = (first.start - bases[at]).min(text.len());
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
    Diagnostic::error(code, format!("{what} is defined in two files"))
        .at(second)
        .label(format!("the first definition is at {name}:{line}"))
        .hint("remove one of them: no file overrides another")
}

/// The format of a text whose file name has no known ending: TOML, unless it begins like YAML or JSON.
pub(super) fn format_of_text(text: &str) -> Format {
    if toml::begins_as_yaml(text) { Format::Yaml } else { Format::Toml }
}

/// A single file.
pub(super) fn alone(source: Source<'_>, format: Format) -> ([File<'_>; 1], NoVariables) {
    ([File { source, format }], NoVariables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::render_files;
    use crate::native::check_files;

    const SOURCE: &str = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:1\"]\n";
    const TRANSFORM: &str = "transforms:\n  stats: { type: aggregate, from: [app] }\n";
    const OUTPUT: &str =
        "\u{feff}[outputs.o]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://127.0.0.1:2\"]\n";

    fn checked(texts: &[(&str, &str)]) -> (Option<crate::plan::Plan>, String) {
        let files: Vec<File> = texts
            .iter()
            .map(|(name, text)| File { source: Source { name, text }, format: Format::of(name, text) })
            .collect();
        let (plan, wrong) = check_files(&files, &NoVariables);
        let split = by_file(&files, &wrong);
        let split: Vec<_> = split.iter().map(|(source, wrong)| (*source, &**wrong)).collect();
        (plan, render_files(&split, false))
    }

    #[test]
    fn files_of_both_formats_are_one_configuration() {
        let (plan, wrong) = checked(&[("a.toml", SOURCE), ("b.yaml", TRANSFORM), ("c.toml", OUTPUT)]);
        let plan = plan.expect(&wrong);
        let together =
            format!("{SOURCE}[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\n{}", &OUTPUT[3..]);
        assert_eq!(Some(plan), checked(&[("one.toml", &together)]).0);
        assert_eq!(wrong, "");
    }

    #[test]
    fn a_section_of_two_files_is_an_error_with_both_places() {
        for (first, second, want) in [
            (SOURCE, SOURCE, "error[C008]: source `app` is defined in two files\n --> second.toml:1:10"),
            (
                "data_dir = \"a\"\n",
                "\n\ndata_dir = \"b\"\n",
                "error[C021]: `data_dir` is defined in two files\n --> second.toml:3:1",
            ),
            ("[http]\n", "[http]\n", "`http` is defined in two files"),
        ] {
            let (plan, wrong) = checked(&[("first.toml", first), ("second.toml", second)]);
            assert!(plan.is_none() && wrong.contains("the first definition is at first.toml:1"), "{wrong}");
            let want = want.split("[C0").last().unwrap_or(want).split("]: ").last().unwrap_or(want);
            assert!(wrong.contains(want), "{want}: {wrong}");
        }
    }

    #[test]
    fn diagnostics_name_the_file_and_line_that_they_are_about() {
        let wrong_output = OUTPUT.replace("graphite", "grahpite");
        let (plan, wrong) = checked(&[("a.toml", SOURCE), ("b.yaml", TRANSFORM), ("c.toml", &wrong_output)]);
        assert!(plan.is_none() && wrong.contains(" --> c.toml:2:8"), "{wrong}");
        let (plan, wrong) = checked(&[("a.toml", SOURCE), ("b.yaml", "a: [1\n"), ("c.toml", "x =\n")]);
        assert!(plan.is_none() && wrong.contains("b.yaml:") && wrong.contains("c.toml:1"), "{wrong}");
        assert!(!wrong.contains("a.toml"), "nothing is said about the rest: {wrong}");
    }

    #[test]
    fn included_names_have_places_and_add_up() {
        let text = "\u{feff}include = [\"b.toml\", \"conf.d\"]\n";
        let file = File { source: Source { name: "a.toml", text }, format: Format::Toml };
        let found = includes(file, &NoVariables);
        let shown: Vec<_> =
            found.iter().map(|(name, place)| (&**name, &text[place.start..place.end])).collect();
        assert_eq!(shown, [("b.toml", "\"b.toml\""), ("conf.d", "\"conf.d\"")]);
        let (plan, wrong) = checked(&[
            ("a.toml", "include = \"x\"\n"),
            ("b.yaml", &format!("include: [y]\n{TRANSFORM}")),
            ("c.toml", SOURCE),
            ("d.toml", OUTPUT),
        ]);
        assert!(plan.is_some(), "{wrong}");
    }

    #[test]
    fn the_text_decides_the_format_when_the_name_does_not() {
        for (name, text, want) in [
            ("a", "sources:\n  app: {}\n", Format::Yaml),
            ("-", "# a\n---\na: b\n", Format::Yaml),
            ("a", "{\n \"sources\": {}}", Format::Yaml),
            ("a", SOURCE, Format::Toml),
            ("a.toml", "sources:\n", Format::Toml),
            ("a.yaml", SOURCE, Format::Yaml),
            ("a.d/file", "", Format::Toml),
        ] {
            assert_eq!(Format::of(name, text), want, "{name} {text:?}");
        }
    }
}
