//! Reads the configuration language of carbon-c-relay (spec graphite §2.2 to §2.4), all of it.
//!
//! Path of a file: `read` -> `include` (files in files) -> `lexer` (tokens) -> `parser` (statements, in `syntax`) ->
//! `check` (names, servers, `pattern`s) -> a [`RelayConf`]. `lower` makes a plan of it, and `print` prints the
//! original's canonical form. All mistakes are reported at once; `mistakes` shows them, with the original's messages
//! for scripts that search for those. The native form (issue 5) has the same parts as tables, in one order of rules:
//! `[transforms.x]` with `type = "relay"`, `clusters.NAME = { share = "forward" | "any_of" | "failover" | "carbon_ch"
//! …, replication, dynamic, to = […] }`, and `[[transforms.x.rules]]`, each with `match = […]` and either `to`,
//! `stop`, `validate`, `on_invalid` and `key` (a route), `into` (a rewrite), or `every`, `expire` and `compute` (an
//! aggregation rule). It lowers to the same plan, so that a file can be compared with its native form.
//! Not here: how a record is routed (`process::relay`); parsing arguments (`flags` has their meaning).
//! Invariant: any files give a document or located mistakes; never a panic, in time limited by their size and the `_MAX`
//! constants.

pub mod addresses;
mod changes;
mod check;
mod document;
pub mod flags;
mod host;
mod include;
mod lexer;
mod lower;
mod mistakes;
mod parser;
mod pattern;
pub mod plan;
mod print;
mod span;
mod syntax;
mod upstream;

pub use changes::changes;
pub use document::*;
pub use include::{FILES_MAX, Files, INCLUDE_DEPTH_MAX, TEXT_BYTES_MAX};
pub use lower::{Lowered, RelayOutput, lower};
pub use mistakes::{FileText, MISTAKES_MAX, Mistake, Upstream, UpstreamAt, has_errors, render_mistakes};
pub use pattern::Pattern;
pub use print::{Form, Surroundings, TestView, print, print_test, stub};
pub use upstream::{upstream_lines, upstream_warnings};

/// Result of reading a configuration file and its includes.
#[derive(Debug)]
pub struct Reading {
    /// The document; none when there is an error.
    pub conf: Option<RelayConf>,
    /// The files that were read, the first one first.
    pub files: Vec<FileText>,
    /// Mistakes and warnings, by file and place.
    pub mistakes: Vec<Mistake>,
}

/// Reads the configuration `name`, which may be a pattern for several files.
pub fn read(name: &str, files: &Files<'_>) -> Reading {
    let mut mistakes = mistakes::Mistakes::default();
    let (statements, files) = include::statements(name, files, &mut mistakes);
    let conf = check::conf(statements, &mut mistakes);
    lower::check(&conf, &mut mistakes);
    let mistakes = mistakes.finish();
    Reading { conf: Some(conf).filter(|_| !has_errors(&mistakes)), files, mistakes }
}

/// Reads one text that includes nothing else.
pub fn read_text(name: &str, text: &str) -> Reading {
    let read = |path: &str| {
        if path == name {
            Ok(text.as_bytes().to_vec())
        } else {
            Err("there is only one file here".to_owned())
        }
    };
    self::read(name, &Files { read: &read, matching: &|_| Vec::new() })
}

#[cfg(test)]
mod tests;
