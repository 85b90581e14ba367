//! Rule for the files of a crate: no more than two of them may import each other in a circle.
//!
//! Path of a file: its code without tests -> `use` items, and paths that begin with a module -> the file of each name,
//! through re-exports -> the files that reach each other. A parent and its child may use each other, so two files may.
//! A small reader, no compiler: names behind a glob count for the module that has the glob, and names that a macro
//! makes are not seen.
//! Not here: crates that depend on each other (`borders`).

use std::collections::{BTreeMap, BTreeSet};

use super::breach::Breach;
use super::mask::{mask, without_tests};
use super::ratchet;
use super::tree::Tree;

/// Most files of a circle.
const FILES_MAX: usize = 2;

/// Most re-exports of re-exports that are followed.
const HOPS_MAX: usize = 8;

/// A module's path in its crate.
type Place = Vec<String>;

struct Module<'a> {
    file: &'a str,
    code: String,
    /// Names that it imports, with their places; none for those of other crates.
    names: BTreeMap<String, Option<Place>>,
    /// Names that it imports for itself.
    used: Vec<Place>,
}

type Modules<'a> = BTreeMap<Place, Module<'a>>;

/// From each file to each file that it imports from, with one of the names.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// Who changes one file of a circle has to understand all of them.
pub(super) fn files(tree: &Tree) -> Vec<Breach> {
    let allowed = match ratchet::numbers(tree, "circles") {
        Ok(allowed) => allowed,
        Err(reason) => return vec![Breach::new(ratchet::PATH, 1, "circles", reason)],
    };
    let mut breaches = Vec::new();
    let crates = tree.sources().filter_map(|(path, _)| Some(source(path)?.0));
    let listed = allowed.keys().filter_map(|key| key.strip_prefix("crates/"));
    for name in crates.chain(listed).collect::<BTreeSet<&str>>() {
        let modules = modules(tree, name);
        let arrows = arrows(&modules);
        let circles = circles(&arrows);
        let count: usize = circles.iter().map(BTreeSet::len).sum();
        let most = allowed.get(&format!("crates/{name}")).copied().unwrap_or_default();
        if count > most {
            breaches.extend(circles.iter().map(|circle| breach(circle, &arrows)));
        } else if count < most {
            let reason = format!(
                "{count} files of `crates/{name}` are in circles, and no more {most}: lower the number"
            );
            breaches.push(Breach::new(ratchet::PATH, 1, "circles", reason));
        }
    }
    breaches
}

fn breach(circle: &BTreeSet<&str>, arrows: &Arrows<'_>) -> Breach {
    let first = circle.first().copied().unwrap_or_default();
    let short = |file: &str| file.split_once("/src/").map_or(file, |(_, short)| short).to_owned();
    let inside = |from: &&str| {
        let to = arrows.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(*to));
        to.map(|(to, name)| format!("{} -> {} ({name})", short(from), short(to))).collect::<Vec<_>>()
    };
    let each: Vec<String> = circle.iter().flat_map(inside).collect();
    let reason = format!(
        "{} files import each other in a circle; move what both sides use to a file below both: {}",
        circle.len(),
        each.join(", ")
    );
    Breach::new(first, 1, "circles", reason)
}

/// The crate of a source, and the module's place in it. `main.rs` beside a `lib.rs` is a crate of its own, which no
/// other file can import.
fn source(path: &str) -> Option<(&str, Place)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut place: Place = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if place.last().is_some_and(|last| last == "mod") || place == ["lib"] {
        place.pop();
    }
    Some((name, place))
}

fn modules<'a>(tree: &'a Tree, name: &str) -> Modules<'a> {
    let own = tree.sources().filter_map(|(path, text)| Some((path, text, source(path)?)));
    let mut modules: Modules<'_> = own
        .filter(|(_, _, (of, _))| *of == name)
        .map(|(file, text, (_, place))| {
            let code = without_tests(&mask(text, true));
            (place, Module { file, code, names: BTreeMap::new(), used: Vec::new() })
        })
        .collect();
    if let Some(main) = modules.remove(&["main".to_owned()][..]) {
        let has_lib = modules.contains_key(&[][..]);
        modules.insert(if has_lib { vec!["main".into()] } else { Vec::new() }, main);
    }
    let places: BTreeSet<Place> = modules.keys().cloned().collect();
    for (place, module) in &mut modules {
        read_imports(place, module, &places);
    }
    modules
}

/// Moves the `use` items from the code to the names.
fn read_imports(place: &Place, module: &mut Module<'_>, places: &BTreeSet<Place>) {
    let code = std::mem::take(&mut module.code);
    let mut from = 0;
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub") || before.ends_with(')');
        let is_item = is_public || before.is_empty() || before.ends_with([';', '}', ']', '{']);
        let Some(len) = code[at..].find(';').filter(|_| is_item) else { continue };
        module.code.push_str(&code[from..at]);
        from = at + len;
        let mut leaves = Vec::new();
        read_tree(&code[at + "use ".len()..from], &[], &mut leaves);
        for (path, name) in leaves {
            let found = absolute(place, &path, places);
            module.used.extend(found.clone().filter(|_| !is_public));
            module.names.insert(name, found);
        }
    }
    module.code.push_str(&code[from..]);
}

/// The paths of a tree, each with the name that it gets: `a::{b, c as d}`.
fn read_tree(tree: &str, before: &[String], leaves: &mut Vec<(Place, String)>) {
    let (text, inner) = tree.split_once('{').map_or((tree, None), |(text, inner)| (text, Some(inner)));
    let (text, name) = text.split_once(" as ").unwrap_or((text, ""));
    let parts = text.split("::").map(str::trim).filter(|part| !part.is_empty() && *part != "self");
    let path: Place = before.iter().cloned().chain(parts.map(str::to_owned)).collect();
    let Some(inner) = inner else {
        let name =
            if name.is_empty() { path.last().cloned().unwrap_or_default() } else { name.trim().to_owned() };
        leaves.extend((!text.trim().is_empty()).then_some((path, name)));
        return;
    };
    let (mut depth, mut from) = (0_usize, 0);
    for (at, part) in inner.char_indices() {
        match part {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                read_tree(&inner[from..at], &path, leaves);
                from = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// The place of a path of this crate; `None` for one of another crate.
fn absolute(own: &[String], path: &[String], places: &BTreeSet<Place>) -> Option<Place> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    if supers > 0 {
        return Some([own.get(..own.len().checked_sub(supers)?)?, &path[supers..]].concat());
    }
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([own, rest].concat()),
        _ => {
            let child = [own, std::slice::from_ref(first)].concat();
            places.contains(&child).then(|| [own, path].concat())
        }
    }
}

/// The module that defines what is at a place, and the name there; no name for a module itself.
fn definition<'m>(
    modules: &'m Modules<'_>,
    place: &[String],
    hops: usize,
) -> Option<(&'m Place, Option<String>)> {
    let len = (0..=place.len()).rev().find(|len| modules.contains_key(&place[..*len]))?;
    let (module, names) = modules.get_key_value(&place[..len])?;
    let Some((name, rest)) = place[len..].split_first() else { return Some((module, None)) };
    match names.names.get(name) {
        Some(None) => None,
        Some(Some(to)) if hops > 0 => definition(modules, &[to, rest].concat(), hops - 1),
        _ => Some((module, Some(name.clone()))),
    }
}

fn arrows<'a>(modules: &Modules<'a>) -> Arrows<'a> {
    let places: BTreeSet<Place> = modules.keys().cloned().collect();
    let mut arrows = Arrows::new();
    for (own, module) in modules {
        let to = arrows.entry(module.file).or_default();
        for place in module.used.iter().cloned().chain(paths(own, module, &places)) {
            if let Some((found, Some(name))) = definition(modules, &place, HOPS_MAX)
                && found != own
            {
                to.entry(modules[found].file).or_insert(name);
            }
        }
    }
    arrows
}

/// Places of the paths in the code that begin with a module: `crate`, `super`, a child, or one that is imported.
fn paths(own: &[String], module: &Module<'_>, places: &BTreeSet<Place>) -> Vec<Place> {
    let code = &module.code;
    let is_word = |part: char| part.is_alphanumeric() || part == '_' || part == ':';
    let mut found = Vec::new();
    for text in code.split(|part| !is_word(part)).filter(|text| text.contains("::") && !text.starts_with(':'))
    {
        let at = text.as_ptr().addr() - code.as_ptr().addr();
        if code[..at].ends_with("(in ") {
            // A visibility, not a use.
            continue;
        }
        let path: Place = text.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let imported = path.first().and_then(|first| module.names.get(first)).cloned().flatten();
        found.extend(match imported {
            Some(place) => Some([&place, &path[1..]].concat()),
            None => absolute(own, &path, places),
        });
    }
    found
}

/// The files that reach each other, where they are more than [`FILES_MAX`].
fn circles<'a>(arrows: &Arrows<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached = |from: &'a str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            let to = arrows.get(file).into_iter().flatten().map(|(to, _)| *to);
            next.extend(to.filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|file| (*file, reached(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, to) in &reached {
        let circle: BTreeSet<&str> =
            to.iter().copied().filter(|other| reached[other].contains(file)).collect();
        if circle.len() > FILES_MAX {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::breach::places;
    use super::*;

    #[test]
    fn circles_of_three_files_are_found_and_may_only_become_fewer() {
        let third = |text: &'static str| ("crates/a/src/deep/c.rs", text);
        let of = |c: (&'static str, &'static str), lists: &str| {
            let files = [
                ("crates/a/src/lib.rs", "mod a;\nmod b;\npub mod deep;\npub use deep::c::C;\n"),
                ("crates/a/src/a.rs", "use crate::b::{self, B};\nfn a() { b::f::<B>() }\n"),
                ("crates/a/src/b.rs", "use super::{C as D, x as y};\npub(in crate::a) struct B(D);\n"),
                ("crates/a/src/deep/mod.rs", "pub mod c;\n"),
                c,
                (ratchet::PATH, lists),
            ];
            super::files(&Tree::of(&files))
        };
        for (text, is_circle) in [
            ("use super::super::a::A;", true),
            ("pub struct C;\nfn c() -> crate::a::A { todo() }", true),
            ("use crate::{a};\nfn c() { a::new() }", true),
            ("pub(in crate::a) struct C;\n// crate::a::A\n", false),
            ("pub use crate::a::A;", false),
            ("#[cfg(test)]\nmod tests { use crate::a::A; }", false),
            ("use other::a::A;\nconst A: &str = \"crate::a::A\";", false),
        ] {
            let found = of(third(text), "");
            assert_eq!(found.len(), usize::from(is_circle), "{text}: {found:?}");
            assert!(
                found.iter().all(|breach| breach.reason.contains("a.rs -> b.rs (B), b.rs -> deep/c.rs (C)"))
            );
            for (most, right) in [(2, false), (3, is_circle), (4, false)] {
                let found = of(third(text), &format!("[circles]\n\"crates/a\" = {most}\n"));
                assert_eq!(found.is_empty(), right, "{text}, at most {most}: {found:?}");
            }
        }
        let two = [("crates/a/src/x.rs", "use crate::y::Y;"), ("crates/a/src/y.rs", "use super::x::X;")];
        assert_eq!(places(&super::files(&Tree::of(&two))), [""; 0], "two files may");
        let gone = [(ratchet::PATH, "[circles]\n\"crates/gone\" = 3\n")];
        assert_eq!(places(&super::files(&Tree::of(&gone))), [format!("{}:1", ratchet::PATH)]);
    }
}
