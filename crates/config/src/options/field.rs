//! One description per option: how a row of the table stores a checked value in the plan, and how it writes it.
//!
//! [`rows!`] makes a [`Group`]: rows that share a struct of the plan. A row is
//!
//! ```text
//! "max_age" => age_max_ms: duration(0, YEAR), Toml("\"0s\""), "\"1h\"",
//!     "The meaning, in one line.",
//!     "Further explanation; may be omitted.";
//! ```
//!
//! The parts are: the key, the field of the group's struct, type and limits, default, an example, help. The check
//! (`native::value`), reading (`Fields::fill`), printing (`Out::options`), the reference and the schema all use the
//! row. To add an option, add a row and the field in the plan. A row without `=> field` has its own code for reading
//! and printing, because it contains a table, names other sections, or decides how other options are read.
//!
//! The macro exists because each row needs two functions of the struct's type, and the table itself must not have a
//! type parameter. A field accepts values by its type ([`Slot`]); an enum gets its words from [`words!`]. `=> field as
//! FORM` is for a field whose type does not define its text: words for a `bool`, or milliseconds for nanoseconds. `as
//! Nested` is for tables within a section, whose struct has its own rows ([`Table`]). `=> all as FORM` passes the whole
//! struct to the form. In a group of an enum, `=> Variant { field }` names the field of one variant; the option has no
//! effect on the others. Not here: checks that need several options (the readers in `native`).

use std::net::SocketAddr;
use std::path::PathBuf;

use process::aggregate::SeriesExpiry;
use process::glob::Glob;

use super::checked::{Checked, Fields};
use super::row::Row;
use super::section::Section;
use crate::diagnostic::Place;
use crate::plan::PemFile;

/// Rows whose values are stored in one struct of the plan.
pub(crate) struct Group<T: 'static> {
    /// All rows, for the table.
    pub(crate) rows: &'static [Row],
    /// The rows with a field.
    pub(crate) fields: &'static [Field<T>],
}

/// A row's field in a struct.
pub(crate) struct Field<T> {
    pub(crate) sections: &'static [Section],
    pub(crate) key: &'static str,
    /// It is written even if it has the default.
    pub(crate) required: bool,
    /// Sets the field to a value of the file.
    pub(crate) put: fn(&mut T, &Checked, Place),
    /// The field as a value of the file; `None` when the file omits it.
    pub(crate) get: fn(&T) -> Option<Checked>,
}

/// A struct of the plan for a table within a section, such as `queue`.
pub(crate) trait Table: Sized + 'static {
    /// Its options.
    const GROUP: Group<Self>;

    /// An empty table. Some defaults depend on other options, which are taken from `given` if there is one.
    fn empty(given: Option<&Self>) -> Self;
}

/// Between a table of the file and the structs of the plan.
impl Fields {
    /// A struct of the plan as a table that parses to it.
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

    /// The struct that the table describes.
    pub(crate) fn read<T: Table>(&self) -> T {
        let mut deciding = T::empty(None);
        self.fill(&mut deciding, &T::GROUP);
        let mut table = T::empty(Some(&deciding));
        self.fill(&mut table, &T::GROUP);
        table
    }

    /// Stores the valid options of a group in their struct.
    pub(crate) fn fill<T>(&self, into: &mut T, group: &Group<T>) {
        for option in group.fields.iter().filter(|option| option.sections.contains(&self.section)) {
            if let Some((value, place)) = self.placed(option.key) {
                (option.put)(into, value, place);
            }
        }
    }

    /// A value of the plan's type.
    pub(crate) fn value<S: Slot>(&self, key: &str) -> Option<S> {
        S::of(self.other(key)?, self.at(key))
    }
}

/// A type of the plan with one text form.
pub(crate) trait Slot: Sized {
    /// Converts a value of the file at its place. `None` when it has another type, which has been reported.
    fn of(value: &Checked, place: Place) -> Option<Self>;
    /// The value as a file contains it.
    fn checked(&self) -> Option<Checked>;
}

/// A text form for fields of the type `T`.
pub(crate) trait Form<T> {
    /// Sets the field, unless the value has another type.
    fn put(field: &mut T, value: &Checked, place: Place);
    /// See [`Slot::checked`].
    fn checked(field: &T) -> Option<Checked>;
}

/// The form given by the field's type.
pub(crate) struct Plain;

impl<S: Slot> Form<S> for Plain {
    fn put(field: &mut S, value: &Checked, place: Place) {
        if let Some(value) = S::of(value, place) {
            *field = value;
        }
    }

    fn checked(field: &S) -> Option<Checked> {
        field.checked()
    }
}

/// Milliseconds in the file, nanoseconds in the plan.
pub(crate) struct Nanoseconds;

impl Form<u64> for Nanoseconds {
    fn put(field: &mut u64, value: &Checked, _: Place) {
        if let Checked::Whole(ms) = value {
            *field = ms.saturating_mul(1_000_000);
        }
    }

    fn checked(field: &u64) -> Option<Checked> {
        Some(Checked::Whole(field / 1_000_000))
    }
}

/// A table of options, or a list of such tables.
pub(crate) struct Nested;

impl<T: Table> Form<T> for Nested {
    fn put(field: &mut T, value: &Checked, _: Place) {
        if let Checked::Table(fields) = value {
            *field = fields.read();
        }
    }

    fn checked(field: &T) -> Option<Checked> {
        Some(Checked::Table(Fields::of(field)))
    }
}

impl<T: Table> Form<Option<Box<T>>> for Nested {
    fn put(field: &mut Option<Box<T>>, value: &Checked, _: Place) {
        if let Checked::Table(fields) = value {
            *field = Some(Box::new(fields.read()));
        }
    }

    fn checked(field: &Option<Box<T>>) -> Option<Checked> {
        field.as_deref().and_then(<Nested as Form<T>>::checked)
    }
}

impl<T: Table> Form<Vec<T>> for Nested {
    fn put(field: &mut Vec<T>, value: &Checked, _: Place) {
        if let Checked::Tables(tables) = value {
            *field = tables.iter().map(Fields::read).collect();
        }
    }

    fn checked(field: &Vec<T>) -> Option<Checked> {
        Some(Checked::Tables(field.iter().map(Fields::of).collect()))
    }
}

/// Words of an option with their meanings. An enum of the plan is its own meaning.
pub(crate) trait Words: 'static {
    /// The value in the plan.
    type Meaning: Clone + PartialEq;
    /// The words, in the order of the reference.
    const WORDS: &'static [&'static str];
    /// Their meanings, in the same order.
    const MEANINGS: &'static [Self::Meaning];

    /// The meaning of a value in the file.
    fn meaning(value: &Checked) -> Option<Self::Meaning> {
        let Checked::Word(word) = value else { return None };
        Self::WORDS.iter().position(|known| known == word).map(|at| Self::MEANINGS[at].clone())
    }

    /// The word for a meaning; `None` if there is none.
    fn word(meaning: &Self::Meaning) -> Option<&'static str> {
        Self::MEANINGS.iter().position(|known| known == meaning).map(|at| Self::WORDS[at])
    }
}

impl<W: Words> Form<W::Meaning> for W {
    fn put(field: &mut W::Meaning, value: &Checked, _: Place) {
        if let Some(meaning) = W::meaning(value) {
            *field = meaning;
        }
    }

    fn checked(field: &W::Meaning) -> Option<Checked> {
        W::word(field).map(Checked::Word)
    }
}

impl<W: Words<Meaning = W>> Slot for W {
    fn of(value: &Checked, _: Place) -> Option<W> {
        W::meaning(value)
    }

    fn checked(&self) -> Option<Checked> {
        W::word(self).map(Checked::Word)
    }
}

/// `words! { Enum: "word" = Enum::Value, … }`, or `words! { Name for Type: … }` if the type has other uses.
macro_rules! words {
    ($($name:ident $(for $meaning:ty)?: $($word:literal = $value:expr),+;)+) => { $(
        $crate::options::field::words!(@of $name $(for $meaning)?: $($word = $value),+);
    )+ };
    (@of $name:ident for $meaning:ty: $($word:literal = $value:expr),+) => {
        pub(crate) struct $name;
        $crate::options::field::words!(@impl $name, $meaning: $($word = $value),+);
    };
    (@of $name:ident: $($word:literal = $value:expr),+) => {
        $crate::options::field::words!(@impl $name, $name: $($word = $value),+);
    };
    (@impl $name:ty, $meaning:ty: $($word:literal = $value:expr),+) => {
        impl $crate::options::field::Words for $name {
            type Meaning = $meaning;
            const WORDS: &'static [&'static str] = &[$($word),+];
            const MEANINGS: &'static [$meaning] = &[$($value),+];
        }
    };
}

/// A group of rows, as shown in the module's header: `rows! { NAME: Struct; in [Section, …] { row; … } … }`. With
/// `NAME: Struct = |given| …;` the struct is a [`Table`], and the closure its `empty`.
macro_rules! rows {
    (
        $name:ident: $plan:ty $(= $empty:expr)?;
        $(in $sections:tt { $(
            $key:literal $(=> $($path:ident).+ $({ $field:ident })? $(as $form:ty)?)?: $type:expr, $default:expr, $example:literal,
            $help:literal $(, $long:literal)?;
        )+ })+
    ) => {
        pub(crate) const $name: $crate::options::field::Group<$plan> = $crate::options::field::Group {
            rows: &[$( $( $crate::options::row::Row {
                sections: &$sections,
                key: $key,
                value: $type,
                default: $default,
                example: $example,
                help: $help,
                long: concat!($($long)?),
            } ),+ ),+],
            fields: &[$( $( $( $crate::options::field::Field {
                sections: &$sections,
                key: $key,
                required: matches!($default, $crate::options::row::Default::Required),
                put: |plan, value, place| {
                    type Form = $crate::options::field::rows!(@form $($form)?);
                    let field = $crate::options::field::rows!(@mut plan: $plan, ($($path).+) $($field)?);
                    if let Some(field) = field {
                        <Form as $crate::options::field::Form<_>>::put(field, value, place);
                    }
                },
                get: |plan| {
                    type Form = $crate::options::field::rows!(@form $($form)?);
                    let field = $crate::options::field::rows!(@ref plan: $plan, ($($path).+) $($field)?);
                    <Form as $crate::options::field::Form<_>>::checked(field?)
                },
            }, )? )+ )+],
        };

        $(impl $crate::options::field::Table for $plan {
            const GROUP: $crate::options::field::Group<$plan> = $name;

            fn empty(given: Option<&$plan>) -> $plan {
                let empty: fn(Option<&$plan>) -> $plan = $empty;
                empty(given)
            }
        })?
    };
    (@mut $plan:ident: $type:ty, (all)) => { Some($plan) };
    (@ref $plan:ident: $type:ty, (all)) => { Some($plan) };
    (@mut $plan:ident: $type:ty, ($($path:ident).+)) => { Some(&mut $plan.$($path).+) };
    (@ref $plan:ident: $type:ty, ($($path:ident).+)) => { Some(&$plan.$($path).+) };
    (@mut $plan:ident: $type:ty, ($variant:ident) $field:ident) => {{
        type Plan = $type;
        if let Plan::$variant { $field, .. } = $plan { Some($field) } else { None }
    }};
    (@ref $plan:ident: $type:ty, ($variant:ident) $field:ident) => {{
        type Plan = $type;
        if let Plan::$variant { $field, .. } = $plan { Some($field) } else { None }
    }};
    (@form) => { $crate::options::field::Plain };
    (@form $form:ty) => { $form };
}

pub(crate) use {rows, words};

/// Types that a checked value converts to directly.
macro_rules! slot {
    ($($type:ty: $variant:ident;)+) => { $(
        impl Slot for $type {
            fn of(value: &Checked, _: Place) -> Option<$type> {
                if let Checked::$variant(value) = value { Some(value.clone()) } else { None }
            }

            fn checked(&self) -> Option<Checked> {
                Some(Checked::$variant(self.clone()))
            }
        }
    )+ };
}

slot! {
    String: Text;
    PathBuf: Path;
    bool: Flag;
    f64: Number;
    u64: Whole;
    SocketAddr: Address;
    SeriesExpiry: Expiry;
    Vec<(f64, String)>: Limits;
    Vec<Glob>: Globs;
    Vec<(Glob, f64)>: Shares;
    Vec<(String, String)>: Map;
    Vec<((String, Place), String)>: Computes;
}

/// Whole numbers; the row's limits ensure that they fit the field's type.
macro_rules! whole {
    ($($type:ident)+) => { $(
        impl Slot for $type {
            fn of(value: &Checked, place: Place) -> Option<$type> {
                u64::of(value, place).map(|whole| $type::try_from(whole).unwrap_or($type::MAX))
            }

            fn checked(&self) -> Option<Checked> {
                u64::try_from(*self).ok().map(Checked::Whole)
            }
        }
    )+ };
}

whole! { u8 u16 u32 usize }

/// One of the row's words.
impl Slot for &'static str {
    fn of(value: &Checked, _: Place) -> Option<&'static str> {
        if let Checked::Word(word) = value { Some(word) } else { None }
    }

    fn checked(&self) -> Option<Checked> {
        Some(Checked::Word(self))
    }
}

impl Slot for Vec<String> {
    fn of(value: &Checked, _: Place) -> Option<Vec<String>> {
        let Checked::Texts(texts) = value else { return None };
        Some(texts.iter().map(|(text, _)| text.clone()).collect())
    }

    fn checked(&self) -> Option<Checked> {
        Some(Checked::texts(self))
    }
}

impl Slot for PemFile {
    fn of(value: &Checked, place: Place) -> Option<PemFile> {
        Some(PemFile { path: PathBuf::of(value, place)?, place: Some(place), file: 0 })
    }

    fn checked(&self) -> Option<Checked> {
        self.path.checked()
    }
}

/// A field that the file may omit.
impl<S: Slot> Slot for Option<S> {
    fn of(value: &Checked, place: Place) -> Option<Option<S>> {
        S::of(value, place).map(Some)
    }

    fn checked(&self) -> Option<Checked> {
        self.as_ref().and_then(S::checked)
    }
}
