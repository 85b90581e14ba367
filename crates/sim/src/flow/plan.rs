//! From the configuration of a flow to a checked plan or its diagnostics.

use config::Format;
use config::diagnostic::{Diagnostic, Place, Severity, Source, render};
use config::plan::Plan;
use import::javascript::Environment;
use import::relay::flags::{Flags, Machine, settings};
use import::relay::plan::Relay;
use import::relay::{Reading, read_text};
use import::statsd;

use super::failure::Failure;
use super::step::{Compat, Config, Form};
use super::streams;

/// The host name for configuration files of original programs.
pub(super) const HOSTNAME: &str = "localhost";

/// The name of a flow file in diagnostics of its own configuration.
const FLOW: &str = "the flow";

/// The diagnostics of an invalid configuration.
#[derive(Clone, Debug)]
pub(crate) struct Mistakes {
    /// The rendered diagnostics and their line.
    pub(crate) failure: Failure,
    /// Codes of all errors.
    pub(crate) codes: Vec<&'static str>,
}

/// Parses and checks a configuration at `line` of the flow file `flow`, with its Riemann configs.
pub(crate) fn plan(
    config: &Config,
    line: usize,
    flow: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, Mistakes> {
    let mut plan = without_streams(config, line, flow, read)?;
    streams::load(&mut plan, &config.env, read).map_err(|wrong| {
        let source = Source { name: &wrong.file.0, text: &wrong.file.1 };
        mistakes(source, line, &wrong.diagnostics)
    })?;
    Ok(plan)
}

/// The same; Riemann configs are only named.
fn without_streams(
    config: &Config,
    line: usize,
    flow: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, Mistakes> {
    if let Some(Form::File(file) | Form::Statsd { file: Some(file), .. } | Form::Relay { file: Some(file) }) =
        &config.form
    {
        let text = read(file).map_err(|error| {
            let message = format!("cannot read `{file}`: {error}");
            Mistakes { failure: Failure { line, message }, codes: Vec::new() }
        })?;
        let source = Source { name: file, text: &text };
        let (plan, diagnostics) = checked(config, source);
        return plan.ok_or_else(|| mistakes(source, line, &diagnostics));
    }
    let inside = Inside::new(config);
    let (plan, mut diagnostics) = checked(config, Source { name: FLOW, text: &inside.text });
    plan.ok_or_else(|| {
        let starts = line_starts(flow);
        for place in diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.place.as_mut()) {
            *place = Place::new(inside.in_flow(place.start, &starts), inside.in_flow(place.end, &starts));
        }
        let source = Source { name: FLOW, text: flow };
        let first =
            diagnostics.iter().filter(|diagnostic| is_error(diagnostic)).find_map(|error| error.place);
        let line = first.map_or(line, |place| starts.partition_point(|start| *start <= place.start));
        mistakes(source, line, &diagnostics)
    })
}

fn checked(config: &Config, source: Source<'_>) -> (Option<Plan>, Vec<Diagnostic>) {
    match &config.form {
        None | Some(Form::Toml) => config::check(source, Format::Toml),
        Some(Form::Yaml) => config::check(source, Format::Yaml),
        Some(Form::File(name)) => config::check(source, Format::of_name(name)),
        Some(Form::Statsd { compat, .. }) => {
            let vars = |name: &str| config.env.get(name).cloned();
            let environment = Environment { vars: &vars, hostname: HOSTNAME.into() };
            let compat = match compat {
                Some(Compat::Node) => statsd::Compat::Node,
                Some(Compat::Perl) => statsd::Compat::Perl,
                None => statsd::detect(source.text),
            };
            statsd::statsd(source.text, &environment, compat, false)
        }
        Some(Form::Relay { .. }) => relay(source),
    }
}

/// A relay.conf without flags and without included files.
fn relay(source: Source<'_>) -> (Option<Plan>, Vec<Diagnostic>) {
    let Reading { conf, mistakes, .. } = read_text(source.name, source.text);
    let mut diagnostics: Vec<Diagnostic> = mistakes.into_iter().map(|mistake| mistake.diagnostic).collect();
    let Some(conf) = conf else { return (None, diagnostics) };
    let flags = Flags { config: Some(source.name.to_owned()), ..Flags::default() };
    let machine = Machine { hostname: HOSTNAME.into(), cores: 1 };
    let settings = settings(&flags, &machine).0.expect("without other flags none is wrong");
    let asked = Relay { conf: &conf, settings: &settings, queue_given: false, queue_dir: None, http: None };
    let (plan, more) = import::relay::plan::relay(&asked);
    diagnostics.extend(more.into_iter().map(|mistake| mistake.diagnostic));
    (plan, diagnostics)
}

/// A configuration inside a flow file, as a separate file.
///
/// Lines with a full path (`config outputs.o = …`) are moved before lines inside a table (`[outputs.o]`): TOML cannot
/// leave a table, and authors of flows need not know that.
struct Inside {
    text: String,
    /// (first byte in `text`, line in the flow file) of each line.
    lines: Vec<(usize, usize)>,
}

impl Inside {
    fn new(config: &Config) -> Inside {
        let begins_table = |(_, text): &(usize, String)| text.trim_start().starts_with('[');
        let rank = |group: &Vec<(usize, String)>| {
            let first = group.iter().find(|(_, text)| !text.trim().is_empty());
            (first.is_some_and(begins_table), group.iter().any(begins_table))
        };
        let mut groups: Vec<&Vec<(usize, String)>> = config.groups.iter().collect();
        groups.sort_by_key(|group| rank(group));
        let mut inside = Inside { text: String::new(), lines: Vec::new() };
        for (line, text) in groups.into_iter().flatten() {
            inside.lines.push((inside.text.len(), *line));
            inside.text.push_str(text);
            inside.text.push('\n');
        }
        inside
    }

    /// The byte of the flow file that corresponds to the byte `at`.
    fn in_flow(&self, at: usize, starts: &[usize]) -> usize {
        let behind = self.lines.partition_point(|(start, _)| *start <= at);
        let Some((start, line)) = behind.checked_sub(1).map(|before| self.lines[before]) else { return 0 };
        starts.get(line - 1).map_or(0, |in_flow| in_flow + (at - start))
    }
}

/// First byte of each line.
fn line_starts(text: &str) -> Vec<usize> {
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
}

fn mistakes(source: Source<'_>, line: usize, diagnostics: &[Diagnostic]) -> Mistakes {
    let message = render(source, diagnostics, false).trim_end().to_owned();
    let codes = diagnostics.iter().filter(|diagnostic| is_error(diagnostic)).map(|error| error.code.word());
    Mistakes { failure: Failure { line, message }, codes: codes.collect() }
}
