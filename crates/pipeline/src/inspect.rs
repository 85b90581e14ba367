//! Looking into a shard without changing it: pages of series, for the API and the management port.
//!
//! Each call looks at a bounded number of series, so that no question makes receiving wait.

use model::{Kind, SeriesRef};
use process::aggregate::Current;
use process::glob::Glob;

use crate::Shard;

/// Most series that one call looks at.
const LOOKED_AT_MAX: usize = 20_000;

/// One series as the API shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Transform that holds it.
    pub transform: String,
    /// Canonical name.
    pub name: String,
    /// Canonical tags.
    pub tags: Vec<String>,
    /// Its kind.
    pub kind: Kind,
    /// Value so far: sum of a counter, value of a gauge, number of values of a timer, members of a set.
    pub value: f64,
    /// Values of a timer in the open window, at most 16.
    pub values: Vec<f64>,
}

/// Most values of a timer that a row shows.
const VALUES_SHOWN_MAX: usize = 16;

/// Some rows, and where to go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesPage {
    /// Rows that matched.
    pub rows: Vec<SeriesRow>,
    /// Cursor of the next page; none at the end.
    pub next: Option<u64>,
}

/// Cursors number the series of all transforms and kinds: transform, kind and place in one number.
const PLACE_BITS: u32 = 40;

impl Shard {
    /// Series whose name matches `glob`, from `cursor` on, at most `rows_max` of them.
    pub fn series(
        &self,
        glob: Option<&Glob>,
        kind: Option<Kind>,
        cursor: u64,
        rows_max: usize,
    ) -> SeriesPage {
        let mut page = SeriesPage::default();
        let mut list = (cursor >> PLACE_BITS) as usize;
        let mut place = (cursor & ((1 << PLACE_BITS) - 1)) as usize;
        let mut looked_at = 0;
        while let Some(state) = self.aggregations.get(list / Kind::ALL.len()) {
            let here = Kind::ALL[list % Kind::ALL.len()];
            let mut next = Some(place);
            while let Some(from) = next.filter(|_| kind.is_none_or(|wanted| wanted == here)) {
                if page.rows.len() >= rows_max || looked_at >= LOOKED_AT_MAX {
                    page.next = Some(((list as u64) << PLACE_BITS) | from as u64);
                    return page;
                }
                let step = (rows_max - page.rows.len()).min(256);
                looked_at += step;
                next = state.aggregator.visit(here, from, step, |series, current| {
                    if glob.is_none_or(|glob| glob.matches(series.name)) {
                        page.rows.push(row(&state.name, here, series, &current));
                    }
                });
            }
            (list, place) = (list + 1, 0);
        }
        page
    }

    /// Every series of one kind of every transform, `max` at a time: for the management port's dumps.
    /// Returns the next cursor, none at the end.
    pub fn visit(
        &self,
        kind: Kind,
        cursor: (usize, usize),
        max: usize,
        see: impl FnMut(SeriesRef<'_>, Current<'_>),
    ) -> Option<(usize, usize)> {
        let (list, place) = cursor;
        let state = self.aggregations.get(list)?;
        match state.aggregator.visit(kind, place, max, see) {
            Some(place) => Some((list, place)),
            None if list + 1 < self.aggregations.len() => Some((list + 1, 0)),
            None => None,
        }
    }

    /// Deletes the series `name` of `kind` wherever it is; false when it was nowhere.
    pub fn delete(&mut self, kind: Kind, name: &[u8]) -> bool {
        let deleted = self.aggregations.iter_mut().map(|state| state.aggregator.delete(kind, name));
        // Counted, not asked for with `any`: that would stop at the first.
        deleted.filter(|deleted| *deleted).count() > 0
    }

    /// Deletes every series of `kind` whose name starts with `prefix` and tells the names.
    pub fn delete_prefix(&mut self, kind: Kind, prefix: &[u8], mut deleted: impl FnMut(&[u8])) -> usize {
        self.aggregations
            .iter_mut()
            .map(|state| state.aggregator.delete_prefix(kind, prefix, &mut deleted))
            .sum()
    }
}

fn row(transform: &str, kind: Kind, series: SeriesRef<'_>, current: &Current<'_>) -> SeriesRow {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let tags = series.tags.split(|byte| *byte == b',').filter(|tag| !tag.is_empty());
    let (value, values) = match current {
        Current::Counter(value) | Current::Gauge(value) => (*value, Vec::new()),
        Current::Timer { values, count } => (*count, values.iter().take(VALUES_SHOWN_MAX).copied().collect()),
        Current::Set { count, .. } => (*count as f64, Vec::new()),
    };
    SeriesRow {
        transform: transform.to_owned(),
        name: text(series.name),
        tags: tags.map(text).collect(),
        kind,
        value,
        values,
    }
}
