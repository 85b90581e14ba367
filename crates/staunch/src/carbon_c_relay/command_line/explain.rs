//! `staunch relay -f FILE --explain NAME`: the routes of names, without starting the relay.

use std::io::IsTerminal;
use std::process::ExitCode;

use import::relay::flags::Settings;
use import::relay::{FileText, RelayConf, lower};
use process::relay::{Entry, Router};

use super::args::RelayArgs;
use super::diagnostics::{colour, rendered};
use super::files;
use crate::carbon_c_relay::test_mode::meetings::Parts;
use crate::cli::MISTAKES;
use crate::route_explanation::Way;
use client::stdio;
use client::stdio::wants_colour;

/// Prints the route of each given name.
pub(crate) fn explain(args: &RelayArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let reading = files::reading(&settings.config);
    stdio::say(&rendered(&reading, colour()));
    let Some(conf) = &reading.conf else { return Ok(ExitCode::from(MISTAKES)) };
    let plan = lower(conf).plan;
    let router = Router::new(&plan).expect("the check of the configuration made this router before");
    let place = |statement, expression| place(conf, &reading.files, statement, expression);
    let way = |line: &String| {
        let line = Parts::of(line.as_bytes(), settings.allowed.contains(&b';')).line;
        Way::new(&plan, line, &router.explain(Entry::Records, line, 0), &place)
    };
    let ways: Vec<Way> = args.explain.iter().map(way).collect();
    if args.json {
        let mut json = serde_json::to_vec_pretty(&ways)?;
        json.push(b'\n');
        stdio::data(&json)?;
    } else {
        let colour = wants_colour(std::io::stdout().is_terminal());
        let texts: Vec<String> = ways.iter().map(|way| way.text(colour)).collect();
        stdio::data(texts.join("\n").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// File and line of an expression.
pub(crate) fn place(conf: &RelayConf, files: &[FileText], statement: usize, expression: usize) -> String {
    let span = conf.rules[statement].patterns()[expression].span;
    let file = &files[span.file];
    let line = file.text.as_bytes()[..span.place.start].iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("{}:{line}", file.name)
}
