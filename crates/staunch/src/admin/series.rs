//! `/api/v1/series`: what is being counted, a page at a time.

use axum::http::StatusCode;
use model::Kind;
use pipeline::{SeriesPage, SeriesRow};
use process::glob::Glob;
use serde::{Deserialize, Serialize};

use crate::daemon::shared::Shared;

/// Rows of a page when the request does not say.
const ROWS: usize = 100;

/// Most rows of a page.
const ROWS_MAX: usize = 1000;

/// Pages of the shard that one request may walk to fill its own.
const STEPS_MAX: usize = 50;

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

/// Answers a request.
///
/// # Errors
/// A status with a sentence: the query cannot be read, or the shard has ended.
pub async fn page(shared: &Shared, query: SeriesQuery) -> Result<SeriesDocument, (StatusCode, String)> {
    let kind = match query.kind.as_deref() {
        None => None,
        Some(word) => Some(kind_of(word).ok_or_else(|| {
            let message = format!("`type` is counter, gauge, timer or set, not `{word}`");
            (StatusCode::BAD_REQUEST, message)
        })?),
    };
    let glob = match &query.name {
        None => None,
        Some(text) if text.len() > GLOB_BYTES_MAX => {
            return Err((StatusCode::BAD_REQUEST, format!("`name` is longer than {GLOB_BYTES_MAX} bytes")));
        }
        Some(text) => Some(
            Glob::new(text.as_bytes())
                .map_err(|error| (StatusCode::BAD_REQUEST, format!("`name` is no glob: {error}")))?,
        ),
    };
    if query.limit == Some(0) {
        return Err((StatusCode::BAD_REQUEST, format!("`limit` is 1 to {ROWS_MAX}")));
    }
    let limit = query.limit.unwrap_or(ROWS).min(ROWS_MAX);
    let mut document = SeriesDocument { series: Vec::new(), next: Some(query.cursor.unwrap_or(0)) };
    for _step in 0..STEPS_MAX {
        let Some(cursor) = document.next else { break };
        let wanted = limit - document.series.len();
        if wanted == 0 {
            break;
        }
        let glob = glob.clone();
        let answer =
            shared.shard.call(move |worker| worker.shard.series(glob.as_ref(), kind, cursor, wanted));
        let page: SeriesPage =
            answer.await.map_err(|_gone| (StatusCode::SERVICE_UNAVAILABLE, "the daemon stops".to_owned()))?;
        document.series.extend(page.rows.into_iter().map(item));
        document.next = page.next;
    }
    Ok(document)
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
