//! Rules for crate dependencies: which crates may depend on which, and what the middle crates must not use.

use super::breach::Breach;
use super::mask::{lines_with, mask, without_tests};
use super::tree::{Dependency, Manifest, Tree};

/// The middle crates: bytes, records and time are arguments, and none of them depends on another.
const MIDDLE: &[&str] = &["wire", "process", "streams", "graphite", "deliver"];

/// The crate below the middle ones, with the same purity rules.
const MODEL: &str = "model";

/// The crates of the daemon from the bottom up. A crate may depend on lower layers only.
const LAYERS: &[&[&str]] = &[
    &[MODEL],
    MIDDLE,
    &["config"],
    &["import", "pipeline"],
    &["sim", "sys"],
    &["tls"],
    &["client", "bench"],
    &["staunch"],
    &["xtask"],
];

/// Libraries with I/O, tasks, clocks or serialisation; also all whose names start with one of these and a dash.
const IMPURE: &[&str] = &[
    "tokio", "serde", "socket2", "libc", "mio", "hyper", "axum", "async", "futures", "nix", "rustix",
    "rustls", "polling", "notify",
];

/// Words that the sources of the middle crates must not contain, except in tests.
const IMPURE_WORDS: &[&str] =
    &["std::net", "std::fs", "std::thread", "std::env", "std::process", "Instant", "SystemTime"];

/// The one file of these crates whose hashes are still seeded by the hasher itself; no answer depends on them.
const COUNTS_BUSY_NAMES: &str = "crates/process/src/aggregate/key_flush.rs";

/// Modules that may be imported by `use std::{…}`.
const IMPURE_MODULES: &[&str] = &["net", "fs", "thread", "env", "process"];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn pure(name: &str) -> bool {
    name == MODEL || MIDDLE.contains(&name)
}

/// Each crate with each of its dependencies within the workspace.
fn edges(tree: &Tree) -> Vec<(Manifest, Vec<Dependency>)> {
    let crates = tree.crates();
    let names: Vec<String> = crates.iter().map(|manifest| manifest.name.clone()).collect();
    let inner = |manifest: Manifest| {
        let found = manifest.dependencies().into_iter().filter(|found| names.contains(&found.name)).collect();
        (manifest, found)
    };
    crates.into_iter().map(inner).collect()
}

/// `model` <- the five in the middle <- `config` <- `import`, `pipeline` <- `sim`, `sys` <- `tls` <- `client`, `bench` <-
/// `staunch`, and no crate depends on `xtask`. `client` and `bench` do not depend on each other.
pub(super) fn arrows(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (manifest, dependencies) in edges(tree) {
        let Some(own) = layer(&manifest.name) else {
            let reason =
                format!("crate `{}` is in no layer of the design; add it to `LAYERS` in tidy", manifest.name);
            breaches.push(Breach::new(&manifest.path, 1, "arrows", reason));
            continue;
        };
        for found in dependencies {
            let reason = match layer(&found.name) {
                Some(below) if below < own => continue,
                // The pipeline's tests write their plans in the original programs' formats.
                Some(same) if same == own && found.dev && !pure(&found.name) => continue,
                Some(same) if same == own && MIDDLE.contains(&found.name.as_str()) => format!(
                    "`{}` depends on `{}`: the middle crates must not depend on each other; shared types belong in `{MODEL}`",
                    manifest.name, found.name
                ),
                _ => {
                    format!("`{}` depends on `{}`, which is not in a lower layer", manifest.name, found.name)
                }
            };
            breaches.push(Breach::new(&manifest.path, found.line, "arrows", reason));
        }
    }
    breaches
}

/// The middle crates are pure, so that one thread can simulate the whole daemon.
pub(super) fn middle_dependencies(tree: &Tree) -> Vec<Breach> {
    let impure = |name: &str| {
        let same = |word: &str| {
            name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
        };
        IMPURE.iter().any(|word| same(word))
    };
    let mut breaches = Vec::new();
    for manifest in tree.crates().into_iter().filter(|manifest| pure(&manifest.name)) {
        for found in manifest.dependencies().iter().filter(|found| !found.dev && impure(&found.name)) {
            let reason =
                format!("`{}` has no I/O, tasks, clocks or serde, so no `{}`", manifest.name, found.name);
            breaches.push(Breach::new(&manifest.path, found.line, "middle-dependencies", reason));
        }
    }
    breaches
}

/// The same rule for modules of `std`.
pub(super) fn middle_sources(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in tree.sources() {
        let Some(name) =
            path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")).map(|parts| parts.0)
        else {
            continue;
        };
        if !pure(name) || is_test(path) {
            continue;
        }
        // `thread::panicking` starts no thread.
        let code = without_tests(&mask(text, true)).replace("std::thread::panicking", "");
        let named = IMPURE_WORDS
            .iter()
            .flat_map(|word| lines_with(&code, word).into_iter().map(move |at| (at, *word)));
        for (line, word) in named.chain(grouped(&code)) {
            let reason = format!("`{name}` gets bytes and time as arguments; `{word}` belongs in the binary");
            breaches.push(Breach::new(path, line, "middle-sources", reason));
        }
        if path != COUNTS_BUSY_NAMES {
            for line in lines_with(&code, "RandomState") {
                let reason =
                    format!("`{name}` gets the seed of its hashes as an argument, not from `RandomState`");
                breaches.push(Breach::new(path, line, "middle-sources", reason));
            }
        }
    }
    breaches
}

/// Impure modules in `use std::{…}`, with their lines.
fn grouped(code: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("std::{") {
        let group = &code[at..super::mask::brace_end(code.as_bytes(), at + "std::".len())];
        let first = code[..at].matches('\n').count();
        for module in IMPURE_MODULES {
            found.extend(lines_with(group, module).into_iter().map(|line| (first + line, *module)));
        }
    }
    found
}

/// Crates of the command line.
const COMMAND_LINES: [&str; 3] = ["staunch", "client", "xtask"];

/// `anyhow` erases the error type: fine for a command line, not for a library.
pub(super) fn anyhow_place(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let libraries =
        tree.crates().into_iter().filter(|manifest| !COMMAND_LINES.contains(&manifest.name.as_str()));
    for manifest in libraries {
        for found in manifest.dependencies().iter().filter(|found| found.name == "anyhow") {
            let reason = format!(
                "`{}` is a library: its errors are types; `anyhow` is for {}",
                manifest.name,
                COMMAND_LINES.join(", ")
            );
            breaches.push(Breach::new(&manifest.path, found.line, "anyhow", reason));
        }
    }
    breaches
}

/// `unsafe` is only allowed in the crate of system calls, where it is reviewed.
pub(super) fn unsafe_place(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in tree.sources().filter(|(path, _)| !path.starts_with("crates/sys/")) {
        let code = mask(text, true);
        let mut lines = lines_with(&code, "unsafe");
        lines.extend(allowing(&code, "unsafe_code"));
        for line in lines {
            breaches.push(Breach::new(path, line, "unsafe", "`unsafe` belongs in crates/sys"));
        }
    }
    breaches
}

/// Only one file reads clocks; clippy forbids it elsewhere, and no file may switch that lint off.
pub(super) fn clocks_place(tree: &Tree) -> Vec<Breach> {
    const CALLS: &[&str] = &["Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now"];
    const SYSTEM_CALLS: &[&str] = &["clock_gettime", "monotonic_ns", "realtime_ns"];
    let mut breaches = Vec::new();
    for (path, text) in tree.sources().filter(|(path, _)| path.starts_with("crates/") && !is_test(path)) {
        if path == "crates/sys/src/clock.rs" {
            continue;
        }
        let code = without_tests(&mask(text, true));
        let mut lines: Vec<usize> = CALLS.iter().flat_map(|call| lines_with(&code, call)).collect();
        lines.extend(allowing(&code, "disallowed_methods"));
        // The system call itself is `unsafe`, so it is in `crates/sys` with the others.
        if !path.starts_with("crates/sys/") {
            lines.extend(SYSTEM_CALLS.iter().flat_map(|call| lines_with(&code, call)));
        }
        for line in lines {
            let reason = "time is an argument: only crates/sys/src/clock.rs reads clocks";
            breaches.push(Breach::new(path, line, "clocks", reason));
        }
    }
    breaches
}

/// Lines with an attribute that allows `lint`.
fn allowing(code: &str, lint: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
        let length = code[at..].find(']').unwrap_or(0);
        let attribute = &code[at..at + length];
        if !lines_with(attribute, lint).is_empty()
            && (attribute.contains("allow(") || attribute.contains("expect("))
        {
            found.push(code[..at].matches('\n').count() + 1);
        }
    }
    found
}

/// Test and benchmark code outside of `#[cfg(test)]` in `src`.
fn is_test(path: &str) -> bool {
    ["/tests/", "/examples/", "/benches/"].iter().any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
}

/// A name without meaning attracts unrelated code.
pub(super) fn crate_names(tree: &Tree) -> Vec<Breach> {
    const EMPTY: &[&str] = &["core", "common", "util", "utils", "base", "lib"];
    let mut breaches = Vec::new();
    for (path, _) in tree.files() {
        let Some(rest) = path.strip_prefix("crates/") else { continue };
        let crate_root = rest.split_once('/').is_some_and(|(_, file)| file == "src/lib.rs");
        let parts = rest.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
        for part in parts.filter(|part| EMPTY.contains(part) && !crate_root) {
            let reason = format!("`{part}` says nothing about its content; name its purpose");
            breaches.push(Breach::new(path, 1, "names", reason));
        }
        let own = rest.split('/').next().unwrap_or_default();
        if crate_root && EMPTY.contains(&own) {
            breaches.push(Breach::new(
                path,
                1,
                "names",
                format!("`{own}` says nothing about its content; name its purpose"),
            ));
        }
    }
    breaches
}

/// The lints apply only to crates that inherit them from the workspace.
pub(super) fn lints_inherited(tree: &Tree) -> Vec<Breach> {
    let inherits = |manifest: &Manifest| {
        let lints = manifest.table.get("lints").and_then(|lints| lints.get("workspace"));
        lints.and_then(|value| value.as_bool()) == Some(true)
    };
    let bare = tree.crates().into_iter().filter(|manifest| !inherits(manifest));
    let reason = "without `[lints] workspace = true` the lints of the workspace do not apply";
    bare.map(|manifest| Breach::new(&manifest.path, 1, "lints", reason)).collect()
}

/// Known bugs are enabled only by `--features canary` on a command line, never in a manifest: cargo unifies features,
/// so one crate that enables them would enable them for all crates of the build.
pub(super) fn canaries(tree: &Tree) -> Vec<Breach> {
    let canary =
        |word: &toml::Value| word.as_str().is_some_and(|word| word.rsplit('/').next() == Some("canary"));
    let mut breaches = Vec::new();
    for manifest in tree.manifests() {
        let features = manifest.table.get("features").and_then(|features| features.as_table());
        let forwards = features.into_iter().flatten().filter(|(name, _)| *name != "canary");
        let asks = forwards.map(|(_, list)| list.clone()).chain(feature_lists(&manifest.table));
        if asks.filter_map(|list| list.as_array().cloned()).flatten().any(|word| canary(&word)) {
            let reason =
                "`canary` is a feature with known bugs: only `cargo xtask sim --canary` builds with it";
            breaches.push(Breach::new(&manifest.path, 1, "canaries", reason));
        }
    }
    breaches
}

/// All `features = […]` of the manifest's dependencies, at any depth.
fn feature_lists(table: &toml::Table) -> Vec<toml::Value> {
    let mut lists = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Array(_) if key == "features" => lists.push(value.clone()),
            toml::Value::Table(inner) if key != "features" => lists.extend(feature_lists(inner)),
            _ => {}
        }
    }
    lists
}

#[cfg(test)]
use super::breach::places;

#[test]
fn no_manifest_asks_for_canaries() {
    let table = [
        ("[features]\ncanary = [\"deliver/canary\"]\n[[example]]\nrequired-features = [\"canary\"]\n", 0),
        ("[features]\ndefault = [\"canary\"]\ncanary = []\n", 1),
        ("[features]\nbench = [\"sim/canary\"]\n", 1),
        ("[dependencies]\nsim = { workspace = true, features = [\"canary\"] }\n", 1),
        ("[target.'cfg(unix)'.dev-dependencies]\nsim = { path = \"../sim\", features = [\"canary\"] }\n", 1),
        ("[workspace.dependencies]\nsim = { path = \"crates/sim\", features = [\"canary\"] }\n", 1),
    ];
    for (text, want) in table {
        let tree = Tree::of(&[("crates/staunch/Cargo.toml", text)]);
        assert_eq!(canaries(&tree).len(), want, "{text}");
    }
}

#[test]
fn dependencies_point_to_lower_layers_only() {
    let needs = |names: &[&str]| {
        let lines = names.iter().map(|name| format!("{name}.workspace = true\n"));
        format!("[dependencies]\n{}", lines.collect::<String>())
    };
    let table = [
        ("wire", vec!["model"], 0),
        ("wire", vec!["model", "process"], 1),
        ("model", vec!["wire"], 1),
        ("config", vec!["model", "wire", "process", "deliver"], 0),
        ("config", vec!["pipeline"], 1),
        ("config", vec!["import"], 1),
        ("import", vec!["config"], 0),
        ("pipeline", vec!["import"], 1),
        ("pipeline", vec!["config"], 0),
        ("sim", vec!["pipeline"], 0),
        ("sim", vec!["staunch"], 1),
        ("tls", vec!["config", "sys"], 0),
        ("tls", vec!["staunch"], 1),
        ("client", vec!["deliver", "tls"], 0),
        ("client", vec!["staunch"], 1),
        ("client", vec!["bench"], 1),
        ("bench", vec!["import", "sys"], 0),
        ("bench", vec!["staunch"], 1),
        ("staunch", vec!["client", "bench"], 0),
        ("staunch", vec!["sim", "pipeline"], 0),
        ("staunch", vec!["xtask"], 1),
        ("other", vec![], 1),
    ];
    for (name, dependencies, want) in table {
        let own = format!("crates/{name}/Cargo.toml");
        let text = needs(&dependencies);
        let mut files = vec![(own.as_str(), text.as_str())];
        let others: Vec<String> =
            dependencies.iter().map(|name| format!("crates/{name}/Cargo.toml")).collect();
        files.extend(others.iter().map(|path| (path.as_str(), "")));
        let breaches = arrows(&Tree::of(&files));
        let own: Vec<_> = breaches.iter().filter(|breach| breach.path == own).collect();
        assert_eq!(own.len(), want, "{name} -> {dependencies:?}: {breaches:?}");
    }
}

#[test]
fn middle_crates_depend_on_no_impure_library() {
    let text = "[dependencies]\nmemchr = \"2\"\ntokio-util = \"1\"\nserde = \"1\"\n[dev-dependencies]\nserde_json = \"1\"\n";
    let tree = Tree::of(&[("crates/wire/Cargo.toml", text), ("crates/staunch/Cargo.toml", text)]);
    let mut found = places(&middle_dependencies(&tree));
    found.sort();
    assert_eq!(found, ["crates/wire/Cargo.toml:3", "crates/wire/Cargo.toml:4"]);
}

#[test]
fn middle_crates_use_no_impure_module() {
    let text = "\
// std::fs in a comment
use std::net::IpAddr;
use std::{
    fmt,
    thread,
};
fn now(now: Instant) {}
fn drop() { std::thread::panicking() }
use foldhash::fast::RandomState;
#[cfg(test)]
mod tests { use std::fs; }
";
    let files =
        [("crates/wire/src/a.rs", text), ("crates/wire/tests/b.rs", text), ("crates/staunch/src/a.rs", text)];
    let mut found = places(&middle_sources(&Tree::of(&files)));
    found.sort();
    let lines = [2, 5, 7, 9].map(|line| format!("crates/wire/src/a.rs:{line}"));
    assert_eq!(found, lines);
}

#[test]
fn anyhow_is_only_allowed_in_command_line_crates() {
    let text = "[dependencies]\nanyhow = \"1\"\n";
    let files = [
        ("crates/config/Cargo.toml", text),
        ("crates/staunch/Cargo.toml", text),
        ("crates/xtask/Cargo.toml", text),
    ];
    assert_eq!(places(&anyhow_place(&Tree::of(&files))), ["crates/config/Cargo.toml:2"]);
}

#[test]
fn unsafe_is_only_allowed_in_sys() {
    let text = "#![allow(unsafe_code, reason = \"x\")]\nfn f() { unsafe { g() } }\n// unsafe\n";
    let files =
        [("crates/sys/src/udp.rs", text), ("crates/sys/src/socket.rs", text), ("crates/wire/src/a.rs", text)];
    let mut found = places(&unsafe_place(&Tree::of(&files)));
    found.sort();
    assert_eq!(found, ["crates/wire/src/a.rs:1", "crates/wire/src/a.rs:2"]);
}

#[test]
fn only_one_file_reads_clocks() {
    let text = "\
#[allow(
    clippy::disallowed_methods
)]
fn now() { Instant::now(); }
#[test]
fn t() { Instant::now(); }
";
    let call = "fn now() { clock_gettime(); }\nfn also() { sys::monotonic_ns(); }\n";
    let files = [
        ("crates/sys/src/clock.rs", text),
        ("crates/staunch/src/a.rs", text),
        ("crates/sim/tests/a.rs", text),
        ("crates/sys/src/time.rs", call),
        ("crates/staunch/src/b.rs", call),
    ];
    let mut found = places(&clocks_place(&Tree::of(&files)));
    found.sort();
    let want = ["a.rs:1", "a.rs:4", "b.rs:1", "b.rs:2"].map(|place| format!("crates/staunch/src/{place}"));
    assert_eq!(found, want);
}

#[test]
fn crate_names_without_meaning_are_rejected() {
    let files = [
        ("crates/wire/src/lib.rs", ""),
        ("crates/wire/src/util.rs", ""),
        ("crates/wire/src/common/a.rs", ""),
        ("crates/core/src/lib.rs", ""),
        ("compat/lib/a.py", ""),
    ];
    let found = places(&crate_names(&Tree::of(&files)));
    assert_eq!(
        found,
        ["crates/core/src/lib.rs:1", "crates/wire/src/common/a.rs:1", "crates/wire/src/util.rs:1"]
    );
}

#[test]
fn every_crate_inherits_the_lints() {
    let files =
        [("crates/a/Cargo.toml", "[lints]\nworkspace = true\n"), ("crates/b/Cargo.toml", "[lints]\n")];
    assert_eq!(places(&lints_inherited(&Tree::of(&files))), ["crates/b/Cargo.toml:1"]);
}
