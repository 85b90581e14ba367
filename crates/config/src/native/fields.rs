//! Checks one table of the file against its section of the options table: unknown keys, missing keys, wrong values.
//!
//! The builders (`sources`, `transforms`, `outputs`) then read values by key. A wrong value has been reported here and
//! is absent for them: they continue with the default, and the plan is discarded at the end. `print` works in reverse:
//! it fills a table with the options that differ from the defaults.

use super::tree::{Entry, Node, Value};
use super::value;
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
pub(crate) use crate::options::checked::Fields;
use crate::options::{self, Default, Family, Row, Section, Type};

impl Fields {
    /// Checks a table. `whose` names it in messages.
    pub(crate) fn check(
        section: Section,
        whose: String,
        place: Place,
        entries: &[Entry],
        wrong: &mut Vec<Diagnostic>,
    ) -> Fields {
        let mut fields = Fields::at_place(section, whose, place);
        for entry in entries {
            let Some(row) = section.row(&entry.key) else {
                wrong.push(unknown_key(section, &fields.whose, entry));
                continue;
            };
            let checked = value::check(row, &fields.whose, &entry.node, wrong);
            fields.push(row.key, entry.node.place, checked);
        }
        for row in section.rows().filter(|row| row.default == Default::Required) {
            if !entries.iter().any(|entry| entry.key == row.key) {
                wrong.push(missing(row, &fields.whose, place));
            }
        }
        fields
    }

    /// Reports a `max_connections_per_peer` above the limit of all connections, which `all_key` sets to `all`.
    pub(crate) fn peer_has_no_more(&self, all: usize, all_key: &str, wrong: &mut Vec<Diagnostic>) {
        const KEY: &str = "max_connections_per_peer";
        let all_is_wrong = self.place_of(all_key).is_some() && self.other(all_key).is_none();
        if !all_is_wrong && self.value(KEY).is_some_and(|of_peer: usize| of_peer > all) {
            let (message, label) = (format!("`{KEY}` is above `{all_key}`"), format!("`{all_key}` is {all}"));
            self.wrong(KEY, Code::OutOfRange, message, label, wrong);
        }
    }

    /// Warns about an option that has no effect; `message` gives the reason.
    pub(crate) fn ignored(&self, key: &str, message: impl Into<String>, wrong: &mut Vec<Diagnostic>) {
        if let Some(place) = self.place_of(key) {
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }

    /// Reports a mistake in an option, at its place or that of the table.
    pub(crate) fn wrong(
        &self,
        key: &str,
        code: Code,
        message: impl Into<String>,
        label: impl Into<String>,
        wrong: &mut Vec<Diagnostic>,
    ) {
        wrong.push(Diagnostic::error(code, message).at(self.at(key)).label(label));
    }
}

fn unknown_key(section: Section, whose: &str, entry: &Entry) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::UnknownKey, format!("{whose} has no option `{}`", entry.key))
        .at(entry.key_place)
        .label("unknown option");
    if let Some(near) = nearest(&entry.key, section.rows().map(|row| row.key)) {
        return diagnostic.hint(format!("did you mean `{near}`?"));
    }
    if let Some(ours) = options::other_name(section, &entry.key) {
        return diagnostic.hint(format!("the option is `{ours}`"));
    }
    if let Some((table, ours)) = in_table(section, &entry.key) {
        return diagnostic.hint(format!("it belongs to `{table}`: {table} = {{ {ours} = … }}"));
    }
    if let Some(hint) = section.node().and_then(|(family, _)| options::cluster_hint(family, &entry.key)) {
        return diagnostic.hint(hint);
    }
    let elsewhere = options::rows().find(|row| row.key == entry.key).and_then(|row| row.sections.first());
    match elsewhere {
        Some(Section::Top) => diagnostic.hint("it belongs to the top level, before the first `[…]`"),
        Some(other) if keys(section).len() < OPTIONS_CHARS_MAX => diagnostic.hint(format!(
            "`{}` is an option of `{}`; options here are: {}",
            entry.key,
            other.heading(),
            keys(section)
        )),
        Some(other) => diagnostic.hint(format!("`{}` is an option of `{}`", entry.key, other.heading())),
        None => diagnostic.hint(format!("options are: {}", keys(section))),
    }
}

/// The option of a nested table, such as `tls`, that a key next to the table probably means.
fn in_table(section: Section, key: &str) -> Option<(&'static str, &'static str)> {
    section.rows().find_map(|row| match row.value {
        Type::Table(
            table @ (Section::SourceTls | Section::OutputTls | Section::HttpTls | Section::Queue),
        ) => {
            let ours = table.row(key).map(|row| row.key).or_else(|| options::other_name(table, key));
            // Keys such as `type` are not meant for the queue.
            Some((row.key, ours.filter(|ours| *ours != "kind")?))
        }
        _ => None,
    })
}

/// Longest list of options after another hint.
const OPTIONS_CHARS_MAX: usize = 400;

fn keys(section: Section) -> String {
    section.rows().map(|row| row.key).collect::<Vec<_>>().join(", ")
}

/// The error for a configuration without sources.
pub(crate) fn no_source() -> Diagnostic {
    Diagnostic::error(Code::NoSource, "the file defines no source, so the daemon would receive nothing")
        .label("no source here")
        .hint("add [sources.app] with type = \"statsd\"")
}

fn missing(row: &Row, whose: &str, place: Place) -> Diagnostic {
    if row.key == Family::Sources.key() {
        return no_source();
    }
    let diagnostic = Diagnostic::error(Code::MissingKey, format!("{whose} needs `{}`", row.key)).at(place);
    let wanted = match row.key {
        "from" => "names of sources or transforms".into(),
        _ => row.value.wanted(),
    };
    diagnostic.label(format!("`{}` is missing: {wanted}", row.key))
}

/// The entries of a table, or an error for another value. A missing value counts as an empty table, as for a YAML key
/// whose lines are all commented out.
pub(crate) fn table<'a>(key: &str, node: &'a Node) -> Result<&'a [Entry], Diagnostic> {
    match &node.value {
        Value::Table(entries) => Ok(entries),
        Value::Nothing => Ok(&[]),
        other => {
            let mistake = value::wrong_type(key, "a table", other).at(node.place);
            Err(Diagnostic { hint: table_hint(key, other), ..mistake })
        }
    }
}

/// How to write the table instead of this single value.
fn table_hint(key: &str, got: &Value) -> Option<String> {
    match (key, got) {
        ("queue", Value::Text(kind)) if matches!(&**kind, "disk" | "memory") => {
            Some(format!("write queue = {{ kind = \"{kind}\" }}"))
        }
        ("queue", Value::Text(kind)) if matches!(&**kind, "on_disk" | "on-disk" | "persistent" | "file") => {
            Some("write queue = { kind = \"disk\" }".into())
        }
        ("queue", Value::Text(size)) if crate::text::parse_size(size).is_some() => {
            Some(format!("write queue = {{ max_bytes = \"{size}\" }}"))
        }
        ("tls", Value::Flag(true)) => Some(
            "a listener needs a certificate, tls = { cert = \"FILE\", key = \"FILE\" }; an output needs only tls = {}, or a CA: tls = { ca = \"FILE\" }"
                .into(),
        ),
        ("http", Value::Flag(_) | Value::Text(_)) => {
            Some("write [http] with enabled = false to switch it off".into())
        }
        ("tls", Value::Flag(false)) => Some("remove the line to turn TLS off".into()),
        _ => None,
    }
}
