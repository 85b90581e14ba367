//! One table of the file against its section of the options table: what is known, what is missing, what is wrong.
//!
//! The builders (`sources`, `transforms`, `outputs`) then ask by key. A value that was wrong has been reported
//! here and is as good as absent for them: they go on with the default, and the plan is thrown away at the end.
//! `print` goes the other way: it fills a table with what differs from the defaults.

use super::tree::{Entry, Node, Value};
use super::value;
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::options::field::{Checked, Group, Slot, Table};
use crate::options::{self, Default, Family, Row, Section, Type};

/// A checked table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    pub(crate) section: Section,
    /// Where the table is named.
    pub(crate) place: Place,
    /// How messages name it: "output `carbon`".
    pub(crate) whose: String,
    values: Vec<Field>,
    /// A remark for people who read the printed file, and how many options stand before it.
    pub(crate) remark: Option<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    row: &'static Row,
    place: Place,
    /// None after a mistake.
    checked: Option<Checked>,
}

impl Fields {
    /// Checks a table. `whose` names it in messages.
    pub(crate) fn check(
        section: Section,
        whose: String,
        place: Place,
        entries: &[Entry],
        wrong: &mut Vec<Diagnostic>,
    ) -> Fields {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(row) = section.row(&entry.key) else {
                wrong.push(unknown_key(section, &whose, entry));
                continue;
            };
            let checked = value::check(row, &whose, &entry.node, wrong);
            values.push(Field { row, place: entry.node.place, checked });
        }
        for row in section.rows().filter(|row| row.default == Default::Required) {
            if !entries.iter().any(|entry| entry.key == row.key) {
                wrong.push(missing(row, &whose, place));
            }
        }
        Fields { section, place, whose, values, remark: None }
    }

    /// A table without options, to be printed.
    pub(crate) fn empty(section: Section) -> Fields {
        Fields { section, place: Place::new(0, 0), whose: String::new(), values: Vec::new(), remark: None }
    }

    /// A struct of the plan as the table that reads back to it.
    pub(crate) fn of<T: Table>(table: &T) -> Fields {
        let mut fields = Fields::empty(T::GROUP.rows[0].sections[0]);
        fields.give_table(table);
        fields
    }

    /// Adds the options of a struct that are not the default.
    pub(crate) fn give_table<T: Table>(&mut self, table: &T) {
        self.give(&T::GROUP, table, &T::empty(Some(table)));
    }

    /// Adds the options of a group that are not the default.
    pub(crate) fn give<T>(&mut self, group: &Group<T>, plan: &T, default: &T) {
        let section = self.section;
        for option in group.fields.iter().filter(|option| option.sections.contains(&section)) {
            let value = (option.get)(plan);
            if let Some(value) =
                value.filter(|value| option.required || (option.get)(default).as_ref() != Some(value))
            {
                self.give_value(option.key, value);
            }
        }
    }

    /// Adds one option.
    pub(crate) fn give_value(&mut self, key: &str, value: Checked) {
        if let Some(row) = self.section.row(key) {
            self.values.push(Field { row, place: self.place, checked: Some(value) });
        }
    }

    /// Adds one option unless it is the default.
    pub(crate) fn give_value_unless(&mut self, key: &str, value: Checked, default: Checked) {
        if value != default {
            self.give_value(key, value);
        }
    }

    /// Adds a remark behind the options that were given so far.
    pub(crate) fn remark(&mut self, text: String) {
        self.remark = Some((self.values.len(), text));
    }

    /// A source, transform or output with its `type`, and with the names in its `from`.
    pub(crate) fn node<'a>(section: Section, from: impl Iterator<Item = &'a str>) -> Fields {
        let mut fields = Fields::empty(section);
        fields.give_value("type", Checked::Text(section.word().unwrap_or_default().to_owned()));
        if section.row("from").is_some() {
            fields.give_value("from", Checked::texts(from));
        }
        fields
    }

    /// Puts the options into another order.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(&str) -> K) {
        self.values.sort_by_key(|field| order(field.row.key));
    }

    /// The options with their values, in the order in which they were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static Row, &Checked)> {
        self.values.iter().filter_map(|field| Some((field.row, field.checked.as_ref()?)))
    }

    /// The struct that the table says.
    pub(crate) fn read<T: Table>(&self) -> T {
        let mut deciding = T::empty(None);
        self.fill(&mut deciding, &T::GROUP);
        let mut table = T::empty(Some(&deciding));
        self.fill(&mut table, &T::GROUP);
        table
    }

    /// Puts the options of a group that were given, and are right, into their struct.
    pub(crate) fn fill<T>(&self, into: &mut T, group: &Group<T>) {
        for option in group.fields.iter().filter(|option| option.sections.contains(&self.section)) {
            if let Some(Field { place, checked: Some(value), .. }) = self.field(option.key) {
                (option.put)(into, value, *place);
            }
        }
    }

    fn field(&self, key: &str) -> Option<&Field> {
        debug_assert!(self.section.row(key).is_some(), "{:?} has no option `{key}`", self.section);
        self.values.iter().find(|field| field.row.key == key)
    }

    /// Where a value stands; None when the option was left out.
    pub(crate) fn place_of(&self, key: &str) -> Option<Place> {
        Some(self.field(key)?.place)
    }

    /// Where a value stands, or the table that it is missing in.
    pub(crate) fn at(&self, key: &str) -> Place {
        self.place_of(key).unwrap_or(self.place)
    }

    /// A value of the type that the plan has for it.
    pub(crate) fn value<S: Slot>(&self, key: &str) -> Option<S> {
        S::of(self.other(key)?, self.at(key))
    }

    /// Any other kind of value, to be matched by the caller.
    pub(crate) fn other(&self, key: &str) -> Option<&Checked> {
        self.field(key)?.checked.as_ref()
    }

    /// The same for an option that not every section of the family has.
    pub(crate) fn other_of_any(&self, key: &str) -> Option<&Checked> {
        self.section.row(key)?;
        self.other(key)
    }

    pub(crate) fn word(&self, key: &str) -> Option<&'static str> {
        match self.other(key)? {
            Checked::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A list of texts with their places; empty when the option was left out.
    pub(crate) fn texts(&self, key: &str) -> &[(String, Place)] {
        match self.other(key) {
            Some(Checked::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// The table of options that is the value of `key`. None when there is none, and after a mistake.
    pub(crate) fn table(&self, key: &str) -> Option<&Fields> {
        match self.other(key)? {
            Checked::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Tables by names of the user's; empty when the option was left out.
    pub(crate) fn named_tables(&self, key: &str) -> &[(String, Fields)] {
        match self.other(key) {
            Some(Checked::NamedTables(tables)) => tables,
            _ => &[],
        }
    }

    /// A list of tables; empty when the option was left out.
    pub(crate) fn tables(&self, key: &str) -> &[Fields] {
        match self.other(key) {
            Some(Checked::Tables(tables)) => tables,
            _ => &[],
        }
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

    /// Warns of an option that was given and changes nothing; `message` says why.
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

/// The entries of a table, or why it is none. Nothing at all counts as an empty table: a YAML key whose lines are all
/// commented out.
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
        ("http", Value::Flag(_) | Value::Text(_)) => {
            Some("write [http] with enabled = false to switch it off".into())
        }
        ("tls", Value::Flag(false)) => Some("remove the line to turn TLS off".into()),
        _ => None,
    }
}
