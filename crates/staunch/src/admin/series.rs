//! `/api/v1/series`: the current series, a page at a time.
//!
//! The shard's thread returns copies of some series at a time ([`pipeline::SeriesSlice`]) without filtering. Names are
//! matched on the HTTP thread, which serves other requests in between, also within a long name. A page ends at its
//! limit of rows or bytes, or at the request's limit of work; its cursor continues there. Limits: rows are written one
//! by one into the page. The memory for the page and the copies is reserved before ([`MAKING_BYTES`] of the total for
//! all responses).

use axum::http::StatusCode;
use model::Kind;
use pipeline::{SLICE_SERIES_MAX, SeriesRow};
use process::glob::Glob;
use serde::{Deserialize, Serialize};

use super::bodies::Room;
use super::refusal::Refusal;
use crate::daemon::worker::Asking;

/// Default number of rows in a page.
const ROWS: usize = 100;

/// Most rows of a page.
const ROWS_MAX: usize = 1000;

/// Most bytes of a page. A longer series is alone on its page.
const PAGE_BYTES_MAX: usize = 512 * 1024;

/// Memory for building a page: the page, the slice with its series, and one of them as a row.
pub(super) const MAKING_BYTES: usize = 4 * PAGE_BYTES_MAX;

/// Memory for a row per byte of its name and tags: as text, and as JSON, which writes some bytes as `\\u0000`.
const ROW_FACTOR: usize = 16;

/// Most series that one request may check.
const LOOKS_MAX: usize = 1_000_000;

/// Most work of one request for its glob, in steps of some nanoseconds ([`process::glob::Search::feed`]).
const WORK_MAX: u64 = 20_000_000;

/// Work after which other requests are served.
const WORK_SLICE: u64 = 200_000;

/// Longest glob.
const GLOB_BYTES_MAX: usize = 1024;

/// Query of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Only names that match this glob (`*`, `?`, `[a-z]`, `{a,b}`).
    pub name: Option<String>,
    /// Only this kind: `counter`, `gauge`, `timer`, `set`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The cursor of the previous page.
    pub cursor: Option<u64>,
    /// Most rows.
    pub limit: Option<usize>,
}

/// A page of series as JSON: `series`, the rows, and `next`, the cursor of the next page, absent at the end.
pub struct SeriesPage {
    json: Vec<u8>,
    rows: usize,
}

impl Default for SeriesPage {
    fn default() -> SeriesPage {
        let mut json = Vec::with_capacity(PAGE_BYTES_MAX);
        json.extend_from_slice(b"{\"series\":[");
        SeriesPage { json, rows: 0 }
    }
}

impl SeriesPage {
    /// Adds a row; false when it belongs on the next page.
    pub fn push(&mut self, item: &SeriesItem) -> bool {
        let row = serde_json::to_vec(item).expect("text and numbers are JSON");
        if self.rows > 0 && self.json.len() + row.len() + PAGE_END.len() > PAGE_BYTES_MAX {
            return false;
        }
        if self.rows > 0 {
            self.json.push(b',');
        }
        self.json.extend_from_slice(&row);
        self.rows += 1;
        true
    }

    /// The complete page.
    pub fn end(mut self, next: Option<u64>) -> Vec<u8> {
        let end = match next {
            Some(next) => format!("],\"next\":{next}}}"),
            None => "]}".to_owned(),
        };
        self.json.extend_from_slice(end.as_bytes());
        self.json
    }
}

/// The longest end of a page, with a comma before it.
const PAGE_END: &str = ",],\"next\":18446744073709551615}";

/// One series.
#[derive(Debug, Serialize)]
pub struct SeriesItem {
    /// Canonical name.
    pub name: String,
    /// Canonical tags.
    pub tags: Vec<String>,
    /// Kind.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its transform.
    pub transform: String,
    /// Value in the open window: a counter's sum, a gauge's value, a timer's count, a set's size.
    pub value: f64,
    /// First values of a timer in the open window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

/// The parsed query.
struct Wanted {
    glob: Option<Glob>,
    kind: Option<Kind>,
    limit: usize,
}

/// The work of a request so far.
#[derive(Default)]
struct Spent {
    looks: usize,
    work: u64,
    /// The work when other requests were last served.
    yielded_at: u64,
}

impl Spent {
    fn is_all(&self) -> bool {
        self.looks >= LOOKS_MAX || self.work >= WORK_MAX
    }

    async fn let_others_through(&mut self) {
        if self.work - self.yielded_at >= WORK_SLICE {
            self.yielded_at = self.work;
            tokio::task::yield_now().await;
        }
    }
}

/// Serves a request.
///
/// # Errors
/// A status and a sentence: the query is invalid, there is no memory for a long series, or the shard has ended.
pub(super) async fn page(
    asking: &mut Asking,
    room: &mut Room,
    query: SeriesQuery,
) -> Result<Vec<u8>, Refusal> {
    let wanted = understood(&query)?;
    let (mut page, mut next) = (SeriesPage::default(), Some(query.cursor.unwrap_or(0)));
    let mut spent = Spent::default();
    'page: while let Some(cursor) = next {
        let left = wanted.limit - page.rows;
        if left == 0 || spent.is_all() {
            break;
        }
        let (kind, max) = (wanted.kind, if wanted.glob.is_some() { SLICE_SERIES_MAX } else { left });
        let slice = asking.call(move |worker| worker.turn.shard.series(kind, cursor, max)).await?;
        next = slice.next;
        for series in slice.rows() {
            if page.rows == wanted.limit || spent.is_all() {
                next = Some(series.cursor());
                break 'page;
            }
            // Each check has a cost.
            (spent.looks, spent.work) = (spent.looks + 1, spent.work + 1);
            let matches = match &wanted.glob {
                None => true,
                Some(glob) => matches(glob, series.name(), &mut spent).await,
            };
            if matches {
                let fits = make_room(&page, room, series.bytes())? && page.push(&item(series.row()));
                if !fits {
                    next = Some(series.cursor());
                    break 'page;
                }
            }
        }
    }
    Ok(page.end(next))
}

/// Whether a name matches. Other requests are also served within a long name.
async fn matches(glob: &Glob, name: &[u8], spent: &mut Spent) -> bool {
    let mut search = glob.search();
    let piece = usize::try_from(WORK_SLICE / glob.work_per_byte()).unwrap_or(usize::MAX).max(1);
    for piece in name.chunks(piece) {
        search.feed(piece, &mut spent.work);
        spent.let_others_through().await;
    }
    search.matches()
}

/// Reserves memory for the row of a series whose name and tags have this many bytes. False when the page ends before
/// it.
fn make_room(page: &SeriesPage, room: &mut Room, bytes: usize) -> Result<bool, Refusal> {
    if bytes * ROW_FACTOR <= MAKING_BYTES / 2 {
        return Ok(true);
    }
    if page.rows > 0 {
        return Ok(false);
    }
    room.resize(MAKING_BYTES + bytes * ROW_FACTOR)?;
    Ok(true)
}

fn understood(query: &SeriesQuery) -> Result<Wanted, Refusal> {
    let bad = |message: String| (StatusCode::BAD_REQUEST, message);
    let kind = match query.kind.as_deref() {
        None => None,
        Some(word) => Some(
            kind_of(word)
                .ok_or_else(|| bad(format!("`type` is counter, gauge, timer or set, not `{word}`")))?,
        ),
    };
    let glob = match &query.name {
        None => None,
        Some(text) if text.len() > GLOB_BYTES_MAX => {
            return Err(bad(format!("`name` is longer than {GLOB_BYTES_MAX} bytes")));
        }
        Some(text) => {
            Some(Glob::new(text.as_bytes()).map_err(|error| bad(format!("`name` is no glob: {error}")))?)
        }
    };
    if query.limit == Some(0) {
        return Err(bad(format!("`limit` is 1 to {ROWS_MAX}")));
    }
    Ok(Wanted { glob, kind, limit: query.limit.unwrap_or(ROWS).min(ROWS_MAX) })
}

fn kind_of(word: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word)
}

fn item(row: SeriesRow) -> SeriesItem {
    SeriesItem {
        name: row.name,
        tags: row.tags,
        kind: row.kind.word(),
        transform: row.transform,
        value: row.value,
        values: row.values,
    }
}

#[test]
fn a_page_has_a_byte_limit_and_at_least_one_series() {
    let of = |name: &str| SeriesItem {
        name: name.to_owned(),
        tags: vec!["a=b".to_owned()],
        kind: "gauge",
        transform: "stats".to_owned(),
        value: 1.5,
        values: vec![2.0],
    };
    let many = |name: &str| {
        let mut page = SeriesPage::default();
        let rows = (0..10_000).take_while(|_| page.push(&of(name))).count();
        let json = page.end(Some(u64::MAX));
        let read: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        assert_eq!(read["series"].as_array().map(Vec::len), Some(rows));
        (rows, json.len())
    };
    for name in ["x".repeat(4096), "\u{1}".repeat(4096), "\u{1}".repeat(65_000)] {
        let row = serde_json::to_vec(&of(&name)).expect("it is JSON").len();
        let (rows, bytes) = many(&name);
        assert!(bytes <= PAGE_BYTES_MAX && bytes + row + PAGE_END.len() > PAGE_BYTES_MAX, "{rows} {bytes}");
    }
    assert_eq!(many(&"x".repeat(PAGE_BYTES_MAX)).0, 1, "alone");
    let none = SeriesPage::default().end(None);
    assert_eq!(none, b"{\"series\":[]}");
}
