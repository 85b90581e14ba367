//! A table of the file whose keys and values are right, each by itself: what readers ask and printers fill.
//!
//! A value that was wrong has been reported, and is as good as absent. Not here: the check (`native::fields`), and the structs
//! of the plan that a table becomes (`field`).

use std::net::SocketAddr;
use std::path::PathBuf;

use process::aggregate::SeriesExpiry;
use process::glob::Glob;

use super::section::Section;
use crate::diagnostic::Place;
use crate::plan::{Destination, Listen};

/// A value with the type, form and limits of its row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Checked {
    Text(String),
    Path(PathBuf),
    /// One of the row's words.
    Word(&'static str),
    Flag(bool),
    Number(f64),
    /// A whole number, milliseconds or bytes.
    Whole(u64),
    Address(SocketAddr),
    Listen(Vec<(Listen, Place)>),
    Endpoints(Vec<(Destination, Place)>),
    Texts(Vec<(String, Place)>),
    /// Percentiles or bins, each with its original text.
    Limits(Vec<(f64, String)>),
    Expiry(SeriesExpiry),
    Globs(Vec<Glob>),
    Shares(Vec<(Glob, f64)>),
    Map(Vec<(String, String)>),
    /// Computations, with their places, and the names of the results.
    Computes(Vec<((String, Place), String)>),
    Table(Fields),
    Tables(Vec<Fields>),
    NamedTables(Vec<(String, Fields)>),
}

impl Checked {
    /// Texts without a place in a file.
    pub(crate) fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Checked {
        Checked::Texts(texts.into_iter().map(|text| (text.into(), Place::new(0, 0))).collect())
    }
}

/// A checked table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    pub(crate) section: Section,
    /// The place of the table's heading.
    pub(crate) place: Place,
    /// The table's name in messages: "output `carbon`".
    pub(crate) whose: String,
    values: Vec<Given>,
    /// A comment for readers of the printed file, and the number of options before it.
    pub(crate) remark: Option<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Given {
    key: &'static str,
    place: Place,
    /// `None` after an error.
    checked: Option<Checked>,
}

impl Fields {
    /// A table as the file has it, so far without options.
    pub(crate) fn at_place(section: Section, whose: String, place: Place) -> Fields {
        Fields { section, place, whose, values: Vec::new(), remark: None }
    }

    /// Adds an option of the file; without a value after a mistake.
    pub(crate) fn push(&mut self, key: &'static str, place: Place, checked: Option<Checked>) {
        self.values.push(Given { key, place, checked });
    }

    /// A table without options, to be printed.
    pub(crate) fn empty(section: Section) -> Fields {
        Fields { section, place: Place::new(0, 0), whose: String::new(), values: Vec::new(), remark: None }
    }

    /// Adds one option.
    pub(crate) fn give_value(&mut self, key: &'static str, value: Checked) {
        self.values.push(Given { key, place: self.place, checked: Some(value) });
    }

    /// Adds one option unless it is the default.
    pub(crate) fn give_value_unless(&mut self, key: &'static str, value: Checked, default: Checked) {
        if value != default {
            self.give_value(key, value);
        }
    }

    /// Adds a comment after the options so far.
    pub(crate) fn remark(&mut self, text: String) {
        self.remark = Some((self.values.len(), text));
    }

    /// A source, transform or output with its `type`, and with the names in its `from`.
    pub(crate) fn node<'a>(section: Section, from: impl Iterator<Item = &'a str>) -> Fields {
        let mut fields = Fields::empty(section);
        fields.give_value("type", Checked::Text(section.word().unwrap_or_default().to_owned()));
        fields.give_value("from", Checked::texts(from));
        fields
    }

    /// Sorts the options.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(&str) -> K) {
        self.values.sort_by_key(|field| order(field.key));
    }

    /// The options with their values, in the order of their addition.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &Checked)> {
        self.values.iter().filter_map(|field| Some((field.key, field.checked.as_ref()?)))
    }

    fn field(&self, key: &str) -> Option<&Given> {
        self.values.iter().find(|field| field.key == key)
    }

    /// A value with its place; none when it was left out, and after a mistake.
    pub(super) fn placed(&self, key: &str) -> Option<(&Checked, Place)> {
        let field = self.field(key)?;
        Some((field.checked.as_ref()?, field.place))
    }

    /// The place of a value; `None` when the option was omitted.
    pub(crate) fn place_of(&self, key: &str) -> Option<Place> {
        Some(self.field(key)?.place)
    }

    /// The place of a value, or of the table without it.
    pub(crate) fn at(&self, key: &str) -> Place {
        self.place_of(key).unwrap_or(self.place)
    }

    /// Any other kind of value, to be matched by the caller.
    pub(crate) fn other(&self, key: &str) -> Option<&Checked> {
        self.field(key)?.checked.as_ref()
    }

    pub(crate) fn word(&self, key: &str) -> Option<&'static str> {
        match self.other(key)? {
            Checked::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A list of texts with their places; empty when the option was omitted.
    pub(crate) fn texts(&self, key: &str) -> &[(String, Place)] {
        match self.other(key) {
            Some(Checked::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// The table of options in `key`. `None` when it was omitted, and after an error.
    pub(crate) fn table(&self, key: &str) -> Option<&Fields> {
        match self.other(key)? {
            Checked::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Tables with names from the user; empty when the option was omitted.
    pub(crate) fn named_tables(&self, key: &str) -> &[(String, Fields)] {
        match self.other(key) {
            Some(Checked::NamedTables(tables)) => tables,
            _ => &[],
        }
    }

    /// A list of tables; empty when the option was omitted.
    pub(crate) fn tables(&self, key: &str) -> &[Fields] {
        match self.other(key) {
            Some(Checked::Tables(tables)) => tables,
            _ => &[],
        }
    }
}
