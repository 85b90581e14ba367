//! A plan as native TOML that parses to the same plan, without defaults. Each kind of section returns its options as
//! [`Fields`], in the file that reads it; here is the order of sections and the format of values. A test prints the
//! example of each row and parses it again.
//!
//! Every checked plan can be written as a file, with two exceptions: `built_in` means the absence of a file, and a path
//! that is not UTF-8 is written with replacement characters.

use std::fmt::{Display, Write};

use foldhash::HashSet;
use process::aggregate::SeriesExpiry;
use process::glob::Glob;

use super::fields::Fields;
use super::output_group::groups;
use super::{carbonlink, graphite_api, groups as output_section, http, management, sources, transforms};
use crate::address::listen_text;
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::table::daemon::TOP;
use crate::options::{Section, Type};
use crate::plan::Plan;
use crate::text::duration;

/// The plan as a native TOML file without secrets: the contents of `${file:PATH}` are `***`.
pub fn print_shown(plan: &Plan) -> String {
    super::masked::masked(&print(plan), &plan.secrets)
}

/// The plan as a native TOML file: `check(print(plan))` returns the same plan.
pub fn print(plan: &Plan) -> String {
    let mut out = Out {
        text: String::from(
            "# `staunch check FILE` checks this file; options left out have their defaults.\n",
        ),
    };
    let mut top = Fields::empty(Section::Top);
    top.give(&TOP, plan, &Plan::default());
    out.options("", &top);
    for source in &plan.sources {
        out.section(&format!("sources.{}", bare_or_quoted(&source.name)), &sources::fields(source));
    }
    let outputs = groups(plan);
    for transform in &plan.transforms {
        let fields = transforms::printed(plan, &outputs, transform);
        out.section(&format!("transforms.{}", bare_or_quoted(&transform.name)), &fields);
    }
    for group in &outputs {
        let heading = format!("outputs.{}", bare_or_quoted(group.name));
        out.section(&heading, &output_section::fields(plan, group));
    }
    let http = http::fields(plan);
    if http.given().next().is_some() {
        out.section("http", &http);
    }
    let graphite_api = graphite_api::fields(&plan.graphite_api);
    if graphite_api.given().next().is_some() {
        out.section("graphite_api", &graphite_api);
    }
    for management in &plan.management {
        let heading = if plan.management.len() > 1 { "[management]" } else { "management" };
        out.section(heading, &management::fields(plan, management));
    }
    if let Some(port) = &plan.carbonlink {
        out.section("carbonlink", &carbonlink::fields(port));
    }
    out.text
}

struct Out {
    text: String,
}

impl Out {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, heading: &str, fields: &Fields) {
        self.line(&format!("\n[{heading}]"));
        self.options(heading, fields);
    }

    /// The options of a section; nested tables with their own headings come last.
    fn options(&mut self, heading: &str, fields: &Fields) {
        let mut tables: Vec<(&str, &Checked)> = Vec::new();
        for (at, (key, value)) in fields.given().enumerate() {
            self.remark(at, fields);
            // Readers of several sections give options that not each of these has.
            let Some(row) = fields.section.row(key) else { continue };
            match value {
                Checked::Tables(_) | Checked::NamedTables(_) => tables.push((key, value)),
                Checked::Map(_) if fields.section == Section::Management => tables.push((key, value)),
                _ => self.option(key, value, row.value),
            }
        }
        self.remark(fields.given().count(), fields);
        let heading = heading.trim_matches(['[', ']']);
        for (key, value) in tables {
            match value {
                Checked::Tables(tables) => {
                    tables.iter().for_each(|table| self.section(&format!("[{heading}.{key}]"), table));
                }
                Checked::NamedTables(tables) => {
                    for (name, table) in tables {
                        self.section(&format!("{heading}.{key}.{}", bare_or_quoted(name)), table);
                    }
                }
                Checked::Map(pairs) => {
                    self.line(&format!("\n[{heading}.{key}]"));
                    pairs.iter().for_each(|(key, value)| self.key(&bare_or_quoted(key), &text(value)));
                }
                _ => {}
            }
        }
    }

    /// The comment before an option.
    fn remark(&mut self, at: usize, fields: &Fields) {
        if let Some((_, remark)) = fields.remark.as_ref().filter(|(before, _)| *before == at) {
            self.line(&format!("# {remark}"));
        }
    }

    /// One option; each entry of a long list has its own line.
    fn option(&mut self, key: &str, value: &Checked, of: Type) {
        const LINE_CHARS_MAX: usize = 100;
        let line = written(value, of);
        match entries(value) {
            Some(entries) if line.chars().count() + key.len() > LINE_CHARS_MAX => {
                self.line(&format!("{key} = ["));
                entries.iter().for_each(|entry| self.line(&format!("    {entry},")));
                self.line("]");
            }
            _ => self.key(key, &line),
        }
    }

    fn key(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {value}"));
    }
}

/// A value of a row of the type `of`.
fn written(value: &Checked, of: Type) -> String {
    let pattern = |glob: &Glob| String::from_utf8_lossy(glob.pattern()).into_owned();
    match (value, of) {
        (Checked::Text(value), _) => text(value),
        (Checked::Path(value), _) => text(&value.to_string_lossy()),
        (Checked::Word(word), _) => text(word),
        (Checked::Flag(flag), _) => flag.to_string(),
        (Checked::Number(number), _) => number.to_string(),
        (Checked::Whole(0), Type::Quantity { or_off: true, .. }) => text("off"),
        (Checked::Whole(value), Type::Quantity { of, .. }) => text(&of.text(*value)),
        (Checked::Whole(number), _) => number.to_string(),
        (Checked::Address(address), _) => text(&address.to_string()),
        (Checked::Listen(listen), _) => list(listen.iter().map(|(listen, _)| text(&listen_text(listen)))),
        (Checked::Endpoints(to), _) => list(to.iter().map(|(to, _)| text(&to.to_string()))),
        (Checked::Limits(limits), _) => list(limits.iter().map(|(value, written)| limit(*value, written))),
        (Checked::Expiry(expiry), _) => expiry_text(*expiry),
        (Checked::Globs(globs), _) => list(globs.iter().map(|glob| text(&pattern(glob)))),
        (Checked::Shares(shares), _) => {
            inline(shares.iter().map(|(glob, share)| (bare_or_quoted(&pattern(glob)), share.to_string())))
        }
        (Checked::Map(pairs), _) => {
            inline(pairs.iter().map(|(key, value)| (bare_or_quoted(key), text(value))))
        }
        (Checked::Texts(_), _) => list(entries(value).into_iter().flatten()),
        (Checked::Computes(pairs), _) => match entries(value) {
            Some(entries) => list(entries),
            None => inline(pairs.iter().map(|((compute, _), name)| (compute, text(name)))),
        },
        (Checked::Table(table), _) => {
            let row = |(key, value)| Some((key, written(value, table.section.row(key)?.value)));
            inline(table.given().filter_map(row))
        }
        (Checked::Tables(tables), _) => {
            let inline = |table: &Fields| written(&Checked::Table(table.clone()), of);
            list(tables.iter().map(inline))
        }
        (Checked::NamedTables(tables), _) => {
            let pair = |(name, table): &(String, Fields)| {
                (bare_or_quoted(name), written(&Checked::Table(table.clone()), of))
            };
            inline(tables.iter().map(pair))
        }
    }
}

/// The entries of a list that may be long. `compute` is a list when one computation has several names.
fn entries(value: &Checked) -> Option<Vec<String>> {
    match value {
        Checked::Texts(texts) => Some(texts.iter().map(|(value, _)| text(value)).collect()),
        Checked::Computes(pairs) => {
            let mut seen = HashSet::default();
            let distinct = pairs.iter().all(|((compute, _), _)| seen.insert(compute));
            let each = |((compute, _), name): &((String, Place), String)| inline([(compute, text(name))]);
            (!distinct).then(|| pairs.iter().map(each).collect())
        }
        _ => None,
    }
}

/// A value: a TOML string with escaped references to variables.
pub(super) fn text(text: &str) -> String {
    quoted(&super::variables::escaped(text))
}

/// A TOML string: in `'…'` if possible, because backslashes are not escaped there.
fn quoted(text: &str) -> String {
    if text.contains(['\\', '"']) && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("a String takes all that is written")
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn bare_or_quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { key.to_owned() } else { quoted(key) }
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// An inline table.
fn inline<K: Display>(pairs: impl IntoIterator<Item = (K, String)>) -> String {
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if pairs.is_empty() { "{}".into() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// A number if it has the same meaning as its text, otherwise the text.
fn limit(value: f64, written: &str) -> String {
    // TOML's -0 is 0.
    let same = value.is_finite() && value.to_string() == written && written != "-0";
    if same { written.to_owned() } else { text(written) }
}

fn expiry_text(expiry: SeriesExpiry) -> String {
    match expiry {
        SeriesExpiry::Keep => text("keep"),
        SeriesExpiry::Delete { ttl_windows: 1 } => text("delete"),
        SeriesExpiry::Delete { ttl_windows } => text(&format!("{ttl_windows} windows")),
        SeriesExpiry::After { seconds } => text(&duration(seconds.saturating_mul(1000))),
    }
}
