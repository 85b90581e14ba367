//! One table of the file against its section of the options table: what is known, what is missing, what is wrong.
//!
//! The builders (`sources`, `transforms`, `outputs`) then ask by key. A value that was wrong has been reported
//! here and is as good as absent for them: they go on with the default, and the plan is thrown away at the end.

use super::tree::{Entry, Node, Value};
use super::value::{self, Checked};
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::options::field::{Group, Slot};
use crate::options::{self, Default, Family, Row, Section, Type};

/// A checked table.
pub(super) struct Fields<'a> {
    section: Section,
    /// Where the table is named.
    pub(super) place: Place,
    values: Vec<Field<'a>>,
}

struct Field<'a> {
    key: &'static str,
    place: Place,
    node: &'a Node,
    checked: Option<Checked>,
}

impl<'a> Fields<'a> {
    /// Checks a table. `whose` names it in messages: "output `carbon`".
    pub(super) fn read(
        section: Section,
        whose: &str,
        place: Place,
        entries: &'a [Entry],
        wrong: &mut Vec<Diagnostic>,
    ) -> Fields<'a> {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(row) = section.row(&entry.key) else {
                wrong.push(unknown_key(section, whose, entry));
                continue;
            };
            let checked = if holds_table(row) { None } else { value::check(row, &entry.node, wrong) };
            values.push(Field { key: row.key, place: entry.node.place, node: &entry.node, checked });
        }
        for row in section.rows().filter(|row| row.default == Default::Required) {
            if !entries.iter().any(|entry| entry.key == row.key) {
                wrong.push(missing(row, whose, place));
            }
        }
        Fields { section, place, values }
    }

    /// Puts the options of a group that were given, and are right, into their struct.
    pub(super) fn fill<T>(&self, into: &mut T, group: &Group<T>) {
        for option in group.fields.iter().filter(|option| option.sections.contains(&self.section)) {
            if let Some(Field { place, checked: Some(value), .. }) = self.field(option.key) {
                (option.put)(into, value, *place);
            }
        }
    }

    /// The table of options that is the value of `key`. None when there is none, and after a mistake.
    pub(super) fn table(
        &self,
        key: &str,
        section: Section,
        whose: &str,
        wrong: &mut Vec<Diagnostic>,
    ) -> Option<Fields<'a>> {
        let node = self.node(key)?;
        Some(Fields::read(section, whose, node.place, table(key, node, wrong)?, wrong))
    }

    fn field(&self, key: &str) -> Option<&Field<'a>> {
        debug_assert!(self.section.row(key).is_some(), "{:?} has no option `{key}`", self.section);
        self.values.iter().find(|field| field.key == key)
    }

    fn checked(&self, key: &str) -> Option<&Checked> {
        self.field(key)?.checked.as_ref()
    }

    /// Where a value stands; None when the option was left out.
    pub(super) fn place_of(&self, key: &str) -> Option<Place> {
        Some(self.field(key)?.place)
    }

    /// Where a value stands, or the table that it is missing in.
    pub(super) fn at(&self, key: &str) -> Place {
        self.place_of(key).unwrap_or(self.place)
    }

    /// A value of the type that the plan has for it.
    pub(super) fn value<S: Slot>(&self, key: &str) -> Option<S> {
        let Field { place, checked: Some(value), .. } = self.field(key)? else { return None };
        S::of(value, *place)
    }

    /// The value as it stands in the file: for options that hold tables.
    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        Some(self.field(key)?.node)
    }

    pub(super) fn word(&self, key: &str) -> Option<&'static str> {
        match self.checked(key)? {
            Checked::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The same for an option that not every section of the family has.
    pub(super) fn other_of_any(&self, key: &str) -> Option<&Checked> {
        self.section.row(key)?;
        self.checked(key)
    }

    /// Any other kind of value, to be matched by the caller.
    pub(super) fn other(&self, key: &str) -> Option<&Checked> {
        self.checked(key)
    }

    /// Reports a `max_connections_per_peer` above the limit of all connections, which `all_key` sets to `all`.
    pub(super) fn peer_has_no_more(&self, all: usize, all_key: &str, wrong: &mut Vec<Diagnostic>) {
        const KEY: &str = "max_connections_per_peer";
        let all_is_wrong = self.place_of(all_key).is_some() && self.checked(all_key).is_none();
        if !all_is_wrong && self.value(KEY).is_some_and(|of_peer: usize| of_peer > all) {
            let (message, label) = (format!("`{KEY}` is above `{all_key}`"), format!("`{all_key}` is {all}"));
            self.wrong(KEY, Code::OutOfRange, message, label, wrong);
        }
    }

    /// Warns of an option that was given and changes nothing; `message` says why.
    pub(super) fn ignored(&self, key: &str, message: impl Into<String>, wrong: &mut Vec<Diagnostic>) {
        if let Some(place) = self.place_of(key) {
            wrong.push(Diagnostic::warning(Code::NoEffect, message).at(place).label("ignored"));
        }
    }

    /// Reports a mistake in an option, at its place or that of the table.
    pub(super) fn wrong(
        &self,
        key: &str,
        code: Code,
        message: impl Into<String>,
        label: impl Into<String>,
        wrong: &mut Vec<Diagnostic>,
    ) {
        wrong.push(Diagnostic::error(code, message).at(self.at(key)).label(label));
    }

    /// Replaces `into` when the option was given.
    pub(super) fn set<T>(into: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *into = value;
        }
    }
}

fn holds_table(row: &Row) -> bool {
    matches!(
        row.value,
        Type::Table(_) | Type::Tables(_) | Type::TableOrTables(_) | Type::Named(_) | Type::NamedTables(_)
    )
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

/// The option of a table of this section, such as `tls`, that a key may mean which was written beside the table.
fn in_table(section: Section, key: &str) -> Option<(&'static str, &'static str)> {
    section.rows().find_map(|row| match row.value {
        Type::Table(
            table @ (Section::SourceTls | Section::OutputTls | Section::HttpTls | Section::Queue),
        ) => {
            let ours = table.row(key).map(|row| row.key).or_else(|| options::other_name(table, key));
            // `type` and its like are not meant for the queue.
            Some((row.key, ours.filter(|ours| *ours != "kind")?))
        }
        _ => None,
    })
}

/// Longest list of options that stands behind another hint.
const OPTIONS_CHARS_MAX: usize = 400;

fn keys(section: Section) -> String {
    section.rows().map(|row| row.key).collect::<Vec<_>>().join(", ")
}

/// Nothing can come in.
pub(super) fn no_source() -> Diagnostic {
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

/// The entries of a table; none, with a mistake, when it is something else. Nothing at all counts as an empty
/// table: a YAML key whose lines are all commented out.
pub(super) fn table<'a>(key: &str, node: &'a Node, wrong: &mut Vec<Diagnostic>) -> Option<&'a [Entry]> {
    match &node.value {
        Value::Table(entries) => Some(entries),
        Value::Nothing => Some(&[]),
        other => {
            let mut diagnostic = value::wrong_type(key, "a table", other).at(node.place);
            diagnostic.hint = table_hint(key, other);
            wrong.push(diagnostic);
            None
        }
    }
}

/// How the table is written that a single value was meant to be.
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
        ("tls", Value::Flag(false)) => Some("remove the line to turn TLS off".into()),
        _ => None,
    }
}

/// The tables of a list of tables.
pub(super) fn tables<'a>(
    key: &str,
    node: &'a Node,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<(Place, &'a [Entry])> {
    let Value::List(list) = &node.value else {
        wrong.push(value::wrong_type(key, "a list of tables", &node.value).at(node.place));
        return Vec::new();
    };
    if list.len() > value::LIST_MAX {
        let message = format!("`{key}` has {} entries", list.len());
        let most = format!("at most {}", value::LIST_MAX);
        wrong.push(Diagnostic::error(Code::TooMany, message).at(node.place).label(most));
        return Vec::new();
    }
    list.iter().filter_map(|each| Some((each.place, table(key, each, wrong)?))).collect()
}
