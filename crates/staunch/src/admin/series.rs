//! `/api/v1/series`: what is being counted, a page at a time.
//!
//! The shard's thread gives copies of some series at a time ([`pipeline::SeriesSlice`]) and knows nothing of names that are
//! looked for: those are chosen here, on HTTP's thread, which lets other requests through in between. A page ends where
//! it is full, or where the request has had its share of work: its cursor says where to go on.

use axum::http::StatusCode;
use model::Kind;
use pipeline::{SLICE_SERIES_MAX, SeriesRow};
use process::glob::Glob;
use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::daemon::worker::Asking;

/// Rows of a page when the request does not say.
const ROWS: usize = 100;

/// Most rows of a page.
const ROWS_MAX: usize = 1000;

/// Series that one request may look at.
const LOOKS_MAX: usize = 1_000_000;

/// Work that one request may spend on its glob, in steps of some nanoseconds ([`Glob::matches_within`]).
const WORK_MAX: u64 = 20_000_000;

/// Work after which other requests are let through.
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
    /// Where the page before said to go on.
    pub cursor: Option<u64>,
    /// Most rows.
    pub limit: Option<usize>,
}

/// A page of series.
#[derive(Debug, Serialize)]
pub struct SeriesDocument {
    /// The rows.
    pub series: Vec<SeriesItem>,
    /// Cursor of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

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
    /// Transform that holds it.
    pub transform: String,
    /// Value in the open window: a counter's sum, a gauge's value, a timer's count, a set's size.
    pub value: f64,
    /// First values of a timer in the open window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

/// What a query asks for, understood.
struct Wanted {
    glob: Option<Glob>,
    kind: Option<Kind>,
    limit: usize,
}

/// What a request has had so far.
#[derive(Default)]
struct Spent {
    looks: usize,
    work: u64,
}

impl Spent {
    fn is_all(&self) -> bool {
        self.looks >= LOOKS_MAX || self.work >= WORK_MAX
    }
}

/// Answers a request.
///
/// # Errors
/// A status with a sentence: the query cannot be read, or the shard has ended.
pub async fn page(asking: &mut Asking, query: SeriesQuery) -> Result<SeriesDocument, Refusal> {
    let wanted = understood(&query)?;
    let mut document = SeriesDocument { series: Vec::new(), next: Some(query.cursor.unwrap_or(0)) };
    let mut spent = Spent::default();
    while let Some(cursor) = document.next {
        let left = wanted.limit - document.series.len();
        if left == 0 || spent.is_all() {
            break;
        }
        let (kind, max) = (wanted.kind, if wanted.glob.is_some() { SLICE_SERIES_MAX } else { left });
        let slice = asking.call(move |worker| worker.shard.series(kind, cursor, max)).await?;
        document.next = slice.next;
        let mut yielded_at = spent.work;
        for series in slice.rows() {
            if document.series.len() == wanted.limit || spent.is_all() {
                document.next = Some(series.cursor());
                break;
            }
            spent.looks += 1;
            let glob = wanted.glob.as_ref();
            if glob.is_none_or(|glob| glob.matches_within(series.name(), &mut spent.work)) {
                document.series.push(item(series.row()));
            }
            if spent.work - yielded_at >= WORK_SLICE {
                yielded_at = spent.work;
                tokio::task::yield_now().await;
            }
        }
    }
    Ok(document)
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
