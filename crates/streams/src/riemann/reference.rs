//! The page of all functions that a config can use, from the tables that the evaluator uses (docs/riemann-functions.md).

use std::fmt::Write;

use super::namespaces;
use crate::folds::table::FOLDS;
use crate::language::interop::{CONSTRUCTORS, METHODS};
use crate::language::namespace::{Entry, Namespaces};
use crate::language::refused::REFUSED;
use crate::nodes::forms::MACROS;
use crate::nodes::table::{Clock, STREAMS};

/// What a name begins with, what is said of streams at the top of the page.
const HEAD: &str = "# Functions of Riemann configs

This page lists the streams, folds and functions that a riemann.config can use in Staunch. See [Riemann](riemann.md) for what a config does.
Files of a config find outputs and servers of `riemann.config` in Riemann's namespaces for them too, such as `riemann.email`.
It is written by `UPDATE=1 cargo test -p streams --test functions`.

";

/// The page.
pub fn functions_markdown() -> String {
    let mut page = String::from(HEAD);
    streams(&mut page);
    folds(&mut page);
    let world = namespaces::world();
    let namespaces = world.namespaces();
    for space in namespaces.names() {
        // Streams and folds have their own tables, with their arguments; names of `riemann.config` are listed there.
        let is_listed = matches!(space.as_str(), "riemann.streams" | "riemann.folds");
        if !is_listed && !namespaces::is_home(&namespaces, space) {
            namespace(&namespaces, space, &mut page);
        }
    }
    page.push_str("## Names of clojure.core that are not there\n\n| names | why |\n|---|---|\n");
    for refused in REFUSED {
        let names: Vec<String> = refused.names.iter().map(|name| format!("`{name}`")).collect();
        line(&mut page, &[&names.join(", "), refused.why]);
    }
    page
}

fn line(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(page, "| {} |", cells.join(" | ").trim_end()).expect("a String takes any text");
}

/// A sentence of a table that has none: with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn streams(page: &mut String) {
    page.push_str(
        "## Streams\n\nStreams of the server's clock use timers; others go by the time of events, or by their number.\n\n\
         | stream | arguments | clock | what it does |\n|---|---|---|---|\n",
    );
    for stream in STREAMS {
        let clock = match stream.clock {
            Clock::No => "",
            Clock::Server => "server",
            Clock::Event => "events",
            Clock::Both => "both",
            Clock::Count => "number",
        };
        let arguments =
            if stream.arguments.is_empty() { String::new() } else { format!("`{}`", stream.arguments) };
        let name = format!("`{}`", stream.native.name);
        line(page, &[&name, &arguments, clock, &sentence(stream.native.doc)]);
    }
    for native in crate::nodes::library::MACROS {
        let arguments = MACROS.iter().find(|(name, _)| *name == native.name);
        let arguments = arguments.map_or(String::new(), |(_, arguments)| format!("`{arguments}`"));
        line(page, &[&format!("`{}`", native.name), &arguments, "", &sentence(native.doc)]);
    }
    page.push('\n');
}

fn folds(page: &mut String) {
    page.push_str("## Folds\n\nThey are in the namespace `folds`.\n\n| fold | arguments | what it does |\n|---|---|---|\n");
    for fold in FOLDS {
        let name = format!("`{}`", fold.native.name);
        line(page, &[&name, &format!("`{}`", fold.arguments.join(" ")), &sentence(fold.native.doc)]);
    }
    page.push('\n');
}

/// The functions and macros of a namespace, if it has any.
fn namespace(namespaces: &Namespaces, space: &str, page: &mut String) {
    let Some(found) = namespaces.get(space) else { return };
    let own = found.names.iter().filter(|(name, named)| named.home == space && !name.starts_with(' '));
    let title = match space {
        METHODS => "Methods of Java",
        CONSTRUCTORS => "Constructors of Java",
        space => space,
    };
    let mut rows = String::new();
    for (name, named) in own {
        let shown = match space {
            METHODS => format!("`.{name}`"),
            CONSTRUCTORS => format!("`{name}.`"),
            _ => format!("`{name}`"),
        };
        match &named.entry {
            Entry::Native(native) | Entry::Macro(native) => line(&mut rows, &[&shown, &sentence(native.doc)]),
            Entry::Constant(_) => line(&mut rows, &[&shown, "A constant."]),
            Entry::Var(_) => {}
        }
    }
    if !rows.is_empty() {
        write!(page, "## {title}\n\n| name | what it does |\n|---|---|\n{rows}\n")
            .expect("a String takes any text");
    }
}
