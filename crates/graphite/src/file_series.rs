//! Values of a whisper file as a series of a query: the one place where an absent value changes its form.
//!
//! In files and their tools an absent value is `None`, because a file of another program can hold the number NaN. In
//! queries it is NaN, so that loops over values have no branches and a value has eight bytes.

use crate::{query, whisper};

/// The series of a name, of what was fetched from its file. A stored NaN is absent.
#[must_use]
pub fn series_of_file(name: String, fetched: whisper::Fetched) -> query::Fetched {
    let whisper::Fetched { start, end, step, values } = fetched;
    let values = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    query::Fetched { name, start, end, step: i64::from(step), values }
}

#[test]
fn absent_and_stored_nan_are_nan() {
    let values = vec![Some(1.5), None, Some(f64::NAN), Some(f64::INFINITY)];
    let fetched = whisper::Fetched { start: 60, end: 300, step: 60, values };
    let series = series_of_file("a;b=c".to_owned(), fetched);
    assert_eq!((series.name.as_str(), series.start, series.end, series.step), ("a;b=c", 60, 300, 60));
    assert_eq!(series.values[0], 1.5);
    assert!(series.values[1].is_nan() && series.values[2].is_nan());
    assert_eq!(series.values[3], f64::INFINITY);
}
