//! Reads configurations of carbon-c-relay, given by path; used by `compat/relay_language.py`.
//!
//! For each path it prints `== PATH`, then the canonical form as the original prints it, or `refused`, then the mistakes
//! as lines of code and message.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::io::{self, Write};

use config::diagnostic::Severity;
use import::relay::{Files, Form, Surroundings, print, read};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let load = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    for path in std::env::args().skip(1) {
        let reading = read(&path, &Files { read: &load, matching: &|_| Vec::new() });
        writeln!(out, "== {path}")?;
        if let Some(conf) = reading.conf {
            let prefix = conf.statistics.prefix_for("Web1.example");
            let surroundings = Surroundings { port: 2003, prefix: Some(&prefix), form: Form::Original };
            writeln!(out, "{}", print(&conf, &surroundings).trim_end())?;
            continue;
        }
        writeln!(out, "refused")?;
        for mistake in &reading.mistakes {
            let diagnostic = &mistake.diagnostic;
            if diagnostic.severity == Severity::Error {
                writeln!(out, "{} {}", diagnostic.code.word(), diagnostic.message)?;
            }
        }
    }
    Ok(())
}
