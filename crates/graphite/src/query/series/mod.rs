//! A series of a query: its points as floats in which NaN is null, and what functions note on it.
//!
//! A value that is NaN itself does not occur: the stores refuse it with the point, [`Fetched`] says so, and a
//! computation without a result (`inf - inf`) is null, which is also how graphite-web's JSON shows it.

pub(crate) mod aggregate;
pub(crate) mod align;
pub(crate) mod consolidate;

use std::borrow::Cow;

use consolidate::Consolidation;

/// One series of the store for one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Name with its tags, if it has some: `cpu;host=a`.
    pub name: String,
    /// Epoch seconds of the first value.
    pub start: i64,
    /// Epoch seconds of the end: `start + step · number of values`.
    pub end: i64,
    /// Seconds between two values, at least 1.
    pub step: i64,
    /// The values; NaN where there is no point, as [`series_of_file`](crate::series_of_file) makes them.
    pub values: Vec<f64>,
}

/// What images show of a series beside its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// A colour name or `RRGGBB`, `RRGGBBAA`.
    pub color: Option<String>,
    /// Opacity from 0 to 1.
    pub alpha: Option<f64>,
    /// Width in pixels.
    pub line_width: Option<f64>,
    /// Length of dashes in pixels.
    pub dashed: Option<f64>,
    /// Drawn as an area on the series before it.
    pub is_stacked: bool,
    /// Number of its stack in the request: areas of one stack stand on one another. 0 is none.
    pub stack: usize,
    /// Takes its place in the stack without being drawn.
    pub is_invisible: bool,
    /// Belongs to the right axis.
    pub is_on_second_axis: bool,
    /// Values other than 0 are vertical lines.
    pub is_infinite: bool,
}

/// Tags by name, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tags(Vec<(Cow<'static, str>, String)>);

impl Tags {
    /// Tags with one entry, `name`.
    #[must_use]
    pub fn of_name(name: &str) -> Tags {
        Tags(vec![(Cow::Borrowed("name"), name.to_owned())])
    }

    /// Tags of a name such as `cpu;host=a`. A name that looks like a call, or that is malformed, has itself as `name`.
    #[must_use]
    pub fn of_series(name: &str) -> Tags {
        if !name.contains(';') && !name.starts_with('~') || is_call(name) {
            return Tags::of_name(name);
        }
        let mut parts = name.split(';');
        let metric = parts.next().unwrap_or_default().trim_start_matches('~');
        let mut tags = Tags::of_name(metric);
        for part in parts {
            match part.split_once('=') {
                Some((tag, value)) if !tag.is_empty() => tags.set(tag.to_owned(), value),
                _ => return Tags::of_name(name),
            }
        }
        if metric.is_empty() { Tags::of_name(name) } else { tags }
    }

    /// Value of a tag.
    #[must_use]
    pub fn value(&self, tag: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == tag).map(|(_, value)| value.as_str())
    }

    /// Adds a tag or replaces its value.
    pub fn set(&mut self, tag: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let (tag, value) = (tag.into(), value.into());
        match self.0.binary_search_by(|(name, _)| name.as_ref().cmp(tag.as_ref())) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (tag, value)),
        }
    }

    pub(crate) fn remove(&mut self, tag: &str) {
        self.0.retain(|(name, _)| name != tag);
    }

    /// Keeps the tags that are the same in both.
    pub(crate) fn keep_common(&mut self, other: &Tags) {
        self.0.retain(|(name, value)| other.value(name) == Some(value));
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }
}

/// Letters, then something in parentheses.
fn is_call(name: &str) -> bool {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    letters > 0 && name[letters..].starts_with('(') && name.ends_with(')') && name.len() > letters + 2
}

/// A series between two functions, and in the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the answer.
    pub name: String,
    /// Epoch seconds of the first value.
    pub start: i64,
    /// Epoch seconds at which the series ends.
    pub end: i64,
    /// Seconds between two values.
    pub step: i64,
    /// The values; NaN is null.
    pub values: Vec<f64>,
    /// The text by which it was fetched, or the call that made it: combining functions name their result after it.
    pub path: String,
    /// Tags of the name, and those that functions add.
    pub tags: Tags,
    /// How several values become one.
    pub consolidation: Consolidation,
    /// Share of known values that a consolidated value needs.
    pub x_files_factor: f64,
    /// True when the values are whole numbers that print without a fraction, such as counts.
    pub is_integer: bool,
    /// For images.
    pub drawing: Drawing,
}

impl Series {
    /// A new series without tags but its name.
    pub(crate) fn new(name: String, grid: (i64, i64, i64), values: Vec<f64>) -> Series {
        let (start, end, step) = grid;
        Series {
            path: name.clone(),
            tags: Tags::of_series(&name),
            name,
            start,
            end,
            step: step.max(1),
            values,
            consolidation: Consolidation::Average,
            x_files_factor: 0.0,
            is_integer: false,
            drawing: Drawing::default(),
        }
    }

    /// What the store gave for a path.
    pub(crate) fn from_store(fetched: Fetched, path: &str, x_files_factor: f64) -> Series {
        let grid = (fetched.start, fetched.end, fetched.step);
        let mut series = Series::new(fetched.name, grid, fetched.values);
        path.clone_into(&mut series.path);
        series.x_files_factor = x_files_factor;
        series
    }

    /// The same series under a new name; combining functions see the new name as well.
    pub(crate) fn rename_with_path(&mut self, name: String) {
        self.path.clone_from(&name);
        self.name = name;
    }

    /// A result that keeps tags and factors, but whose path is its name and which is drawn as by default, as the copies
    /// of graphite-web.
    pub(crate) fn copy_as(self, name: String, values: Vec<f64>) -> Series {
        let mut copy = self;
        copy.rename_with_path(name);
        copy.values = values;
        copy.is_integer = false;
        copy.drawing = Drawing::default();
        copy
    }

    /// Epoch seconds of the value at an index.
    pub(crate) fn time(&self, index: usize) -> i64 {
        self.start + self.step * index as i64
    }

    /// Values with their times, as JSON shows them: up to and including the end.
    pub fn points(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        let step = self.step.max(1);
        let times = (0..).map(move |index: i64| self.start + index * step);
        times.take_while(|time| *time <= self.end).zip(self.values.iter().copied())
    }

    /// The known values.
    pub(crate) fn known(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied().filter(|value| !value.is_nan())
    }
}
