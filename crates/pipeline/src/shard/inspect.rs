//! Reads a shard's series and deletes some, a slice at a time: for the API and the management port.
//!
//! A slice reads a bounded number of series and copies a bounded number of bytes, so that no request delays receiving.
//! Slower work (selecting by name, building documents) is done elsewhere with the copies.

use model::{Kind, SeriesRef, Span};
use process::aggregate::{Current, Visit};

use crate::Shard;

/// Most series that one slice reads: with their copies some hundred microseconds.
pub const SLICE_SERIES_MAX: usize = 1_000;

/// Names, values and members that one slice copies, in bytes, before its last series.
pub const SLICE_BYTES_MAX: usize = 256 * 1024;

/// Most values of a timer in a row.
const VALUES_SHOWN_MAX: usize = 16;

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
    /// Current value: sum of a counter, value of a gauge, number of values of a timer, members of a set.
    pub value: f64,
    /// Values of a timer in the open window, at most 16.
    pub values: Vec<f64>,
}

/// Copies of series, and where to continue.
#[derive(Clone, Debug, Default)]
pub struct SeriesSlice {
    /// Names and tags.
    bytes: Vec<u8>,
    values: Vec<f64>,
    transforms: Vec<String>,
    rows: Vec<Copied>,
    /// Cursor of the rest; none at the end.
    pub next: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Copied {
    cursor: u64,
    transform: usize,
    kind: Kind,
    name: Span,
    tags: Span,
    value: f64,
    /// Start and number of a timer's values.
    values: (usize, usize),
}

/// One series of a slice.
#[derive(Clone, Copy, Debug)]
pub struct SeriesCopy<'a> {
    slice: &'a SeriesSlice,
    row: &'a Copied,
}

impl SeriesSlice {
    /// Its series, in their order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = SeriesCopy<'_>> {
        self.rows.iter().map(|row| SeriesCopy { slice: self, row })
    }

    fn push(&mut self, (kind, cursor): (Kind, u64), series: SeriesRef<'_>, current: &Current<'_>) {
        let mut keep = |bytes: &[u8]| {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            Span::new(at, bytes.len())
        };
        let (name, tags) = (keep(series.name), keep(series.tags));
        let at = self.values.len();
        let value = match current {
            Current::Counter(value) | Current::Gauge(value) => *value,
            Current::Timer { values, count } => {
                self.values.extend(values.iter().take(VALUES_SHOWN_MAX));
                *count
            }
            Current::Set { count, .. } => *count as f64,
        };
        let values = (at, self.values.len() - at);
        let transform = self.transforms.len().saturating_sub(1);
        self.rows.push(Copied { cursor, transform, kind, name, tags, value, values });
    }
}

impl<'a> SeriesCopy<'a> {
    /// Canonical name.
    pub fn name(&self) -> &'a [u8] {
        self.row.name.of(&self.slice.bytes)
    }

    /// Bytes of its name and tags.
    pub fn bytes(&self) -> usize {
        (self.row.name.len + self.row.tags.len) as usize
    }

    /// Its cursor.
    pub fn cursor(&self) -> u64 {
        self.row.cursor
    }

    /// As the API shows it.
    pub fn row(&self) -> SeriesRow {
        let SeriesCopy { slice, row } = self;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tags = row.tags.of(&slice.bytes).split(|byte| *byte == b',').filter(|tag| !tag.is_empty());
        let (at, len) = row.values;
        SeriesRow {
            transform: slice.transforms[row.transform].clone(),
            name: text(self.name()),
            tags: tags.map(text).collect(),
            kind: row.kind,
            value: row.value,
            values: slice.values[at..at + len].to_vec(),
        }
    }
}

/// Cursors number the series of all transforms and kinds: transform, kind and index in one number.
const PLACE_BITS: u32 = 40;

fn cursor_of(list: usize, place: usize) -> u64 {
    ((list as u64) << PLACE_BITS) | place as u64
}

/// Where a dump continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpCursor {
    transform: usize,
    place: usize,
    /// Values, or bytes of members, of the series there that came before.
    offset: usize,
}

/// The content of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// A counter's sum, or a gauge's value.
    Number(f64),
    /// A timer's values.
    Numbers(Vec<f64>),
    /// A set's members, with a line feed between them.
    Members(Vec<u8>),
}

/// A series of a dump, or a piece of one.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpRow {
    /// Its written form: name, and `;` with the tags if it has any.
    pub name: Vec<u8>,
    /// Its content.
    pub held: Held,
    /// It continues the last piece of the previous slice.
    pub goes_on: bool,
}

/// Series of one kind, and where to continue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DumpSlice {
    /// In their order.
    pub rows: Vec<DumpRow>,
    /// None at the end.
    pub next: Option<DumpCursor>,
}

impl Shard {
    /// Copies of the series from `cursor` on, at most `max` of them and within the limits of a slice.
    pub fn series(&self, kind: Option<Kind>, cursor: u64, max: usize) -> SeriesSlice {
        let aggregations = &self.transforms.aggregations;
        let mut slice = SeriesSlice::default();
        let mut list = (cursor >> PLACE_BITS) as usize;
        let mut place = (cursor & ((1 << PLACE_BITS) - 1)) as usize;
        // One more, for the list that they are in.
        let mut left = max.min(SLICE_SERIES_MAX) + 1;
        while let Some(state) = aggregations.iter().nth(list / Kind::ALL.len()) {
            let here = Kind::ALL[list % Kind::ALL.len()];
            if kind.is_none_or(|wanted| wanted == here) {
                if left == 0 || slice.bytes.len() > SLICE_BYTES_MAX {
                    slice.next = Some(cursor_of(list, place));
                    return slice;
                }
                // An empty list costs a step as well.
                left -= 1;
                slice.transforms.push(state.name.clone());
                let next = state.aggregator.visit(here, place, &mut left, |place, series, current| {
                    slice.push((here, cursor_of(list, place)), series, &current);
                    if slice.bytes.len() > SLICE_BYTES_MAX { Visit::Pause } else { Visit::Next }
                });
                if let Some(next) = next {
                    slice.next = Some(cursor_of(list, next));
                    return slice;
                }
            }
            (list, place) = (list + 1, 0);
        }
        slice
    }

    /// A slice of all series of one kind with their content, over all transforms. Content beyond the slice's bytes
    /// comes in further pieces: if its window ends in between, they are of the next one.
    pub fn dump(&self, kind: Kind, from: DumpCursor) -> DumpSlice {
        let mut slice = DumpSlice::default();
        let aggregations = &self.transforms.aggregations;
        let Some(state) = aggregations.iter().nth(from.transform) else { return slice };
        let (mut offset, mut bytes, mut looks) = (from.offset, 0, SLICE_SERIES_MAX);
        let next = state.aggregator.visit(kind, from.place, &mut looks, |_, series, current| {
            let goes_on = std::mem::take(&mut offset);
            let (held, is_whole) = piece(&current, goes_on, SLICE_BYTES_MAX.saturating_sub(bytes));
            let row = DumpRow { name: written(series), held, goes_on: goes_on > 0 };
            bytes += row.name.len() + row.held.bytes();
            if !is_whole {
                offset = goes_on + row.held.len();
            }
            slice.rows.push(row);
            if !is_whole {
                Visit::PauseHere
            } else if bytes >= SLICE_BYTES_MAX {
                Visit::Pause
            } else {
                Visit::Next
            }
        });
        slice.next = match next {
            Some(place) => Some(DumpCursor { place, offset, ..from }),
            None if from.transform + 1 < aggregations.len() => {
                Some(DumpCursor { transform: from.transform + 1, ..DumpCursor::default() })
            }
            None => None,
        };
        slice
    }

    /// Deletes the series `name` of `kind` wherever it is; false when there was none.
    pub fn delete(&mut self, kind: Kind, name: &[u8]) -> bool {
        let deleted =
            self.transforms.aggregations.iter_mut().map(|state| state.aggregator.delete(kind, name));
        // With `count`: `any` would stop at the first.
        deleted.filter(|deleted| *deleted).count() > 0
    }

    /// Deletes, in a slice of the series of `kind`, those whose written form `is` matches, and passes each form to
    /// `deleted`. Returns where to continue; none at the end.
    pub fn delete_some(
        &mut self,
        kind: Kind,
        from: DumpCursor,
        is: impl Fn(&[u8]) -> bool,
        deleted: impl FnMut(&[u8]),
    ) -> Option<DumpCursor> {
        let aggregations = &mut self.transforms.aggregations;
        let transforms = aggregations.len();
        let state = aggregations.iter_mut().nth(from.transform)?;
        match state.aggregator.delete_some(kind, from.place, SLICE_SERIES_MAX, is, deleted) {
            Some(place) => Some(DumpCursor { place, ..from }),
            None if from.transform + 1 < transforms => {
                Some(DumpCursor { transform: from.transform + 1, ..DumpCursor::default() })
            }
            None => None,
        }
    }
}

impl Held {
    /// Values, or bytes of members.
    fn len(&self) -> usize {
        match self {
            Held::Number(_) => 1,
            Held::Numbers(values) => values.len(),
            Held::Members(members) => members.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Held::Number(_) | Held::Members(_) => self.len(),
            Held::Numbers(values) => size_of_val(&**values),
        }
    }
}

fn written(series: SeriesRef<'_>) -> Vec<u8> {
    let mut name = series.name.to_vec();
    if !series.tags.is_empty() {
        name.push(b';');
        name.extend_from_slice(series.tags);
    }
    name
}

/// The content of a series from an offset on, as much as there is room for, and whether that is all. At least one value
/// is included, so that every slice makes progress.
fn piece(current: &Current<'_>, offset: usize, room_bytes: usize) -> (Held, bool) {
    match current {
        Current::Counter(value) | Current::Gauge(value) => (Held::Number(*value), true),
        Current::Timer { values, .. } => {
            let rest = values.get(offset..).unwrap_or_default();
            let len = rest.len().min((room_bytes / size_of::<f64>()).max(1));
            (Held::Numbers(rest[..len].to_vec()), len == rest.len())
        }
        Current::Set { members, .. } => {
            let rest = members.get(offset..).unwrap_or_default();
            let len = rest.len().min(room_bytes.max(1));
            (Held::Members(rest[..len].to_vec()), len == rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_series_comes_in_pieces_within_the_bytes_of_a_slice() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let timer = Current::Timer { values: &values, count: 10.0 };
        // (offset, room in bytes, values, whether that is all)
        let table = [
            (0, 80, 0..10, true),
            (0, 79, 0..9, false),
            (9, 80, 9..10, true),
            (3, 16, 3..5, false),
            (3, 0, 3..4, false),
            (10, 80, 10..10, true),
            (11, 80, 10..10, true),
        ];
        for (offset, room, want, is_whole) in table {
            let (held, whole) = piece(&timer, offset, room);
            assert_eq!((held, whole), (Held::Numbers(values[want].to_vec()), is_whole), "{offset} {room}");
        }
        let set = Current::Set { count: 2, members: b"a\nbc" };
        assert_eq!(piece(&set, 0, 4), (Held::Members(b"a\nbc".to_vec()), true));
        assert_eq!(piece(&set, 2, 1), (Held::Members(b"b".to_vec()), false));
    }
}
