//! Dumps of all series of a kind, page by page: copied on the shard's thread, written before the next page is asked for.
//!
//! Not here: the text (`wire::management::Dump`).
//! Invariant: a page holds [`PAGE_BYTES`] and one piece of a series more at most; a long timer or set goes over several.

use model::Kind;
use pipeline::Shard;
use process::aggregate::Current;
use tokio::io::AsyncWrite;
use wire::management::Dump;

use super::ClientEnd;
use super::reply::Reply;
use crate::daemon::shared::Shared;

/// Bytes of names and values that end a page.
const PAGE_BYTES: usize = 32 * 1024;

/// Series of one page at most.
const PAGE_SERIES: usize = 1_000;

/// Counters and gauges that are looked at between two looks at the bytes.
const STEP_SERIES: usize = 32;

/// Values of a timer in one piece.
const PIECE_VALUES: usize = 4_096;

/// Members of a set in one piece.
const PIECE_MEMBERS: usize = 64;

/// Where a page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cursor {
    at: (usize, usize),
    /// The series there was shown up to so many of its values.
    begun: Option<(Vec<u8>, usize)>,
}

/// Some series.
#[derive(Debug, Default)]
struct Page {
    rows: Vec<Row>,
    next: Option<Cursor>,
}

/// A series, or a piece of one.
#[derive(Debug, PartialEq)]
struct Row {
    name: Vec<u8>,
    held: Held,
    /// It goes on with the values that the row before left out.
    goes_on: bool,
}

/// What a series holds, copied off the shard.
#[derive(Debug, PartialEq)]
enum Held {
    Number(f64),
    Numbers(Vec<f64>),
    Texts(Vec<Vec<u8>>),
}

/// Writes all series of a kind.
///
/// # Errors
/// When the client is gone, or does not read.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    shared: &Shared,
    kind: Kind,
    json: bool,
    reply: &mut Reply<'_, W>,
) -> Result<(), ClientEnd> {
    let mut dump = Dump::begin(json, &mut reply.made);
    let mut cursor = Some(Cursor::default());
    let mut open = false;
    while let Some(from) = cursor {
        let page = shared.shard.call(move |worker| page(&worker.shard, kind, from)).await;
        // The shard is gone only while the daemon stops.
        let Page { rows, next } = page.unwrap_or_default();
        for Row { name, held, goes_on } in rows {
            if open && !goes_on {
                dump.list_end(&mut reply.made);
                open = false;
            }
            match held {
                Held::Number(value) => dump.number(&name, value, &mut reply.made),
                Held::Numbers(values) => {
                    if !open {
                        dump.list_begin(&name, &mut reply.made);
                    }
                    open = true;
                    values.iter().for_each(|value| dump.list_number(*value, &mut reply.made));
                }
                Held::Texts(members) => {
                    if !open {
                        dump.list_begin(&name, &mut reply.made);
                    }
                    open = true;
                    members.iter().for_each(|member| dump.list_text(member, &mut reply.made));
                }
            }
            reply.go_on().await?;
        }
        cursor = next;
    }
    if open {
        dump.list_end(&mut reply.made);
    }
    dump.end(&mut reply.made);
    Ok(())
}

/// One page. On the shard's thread.
fn page(shard: &Shard, kind: Kind, from: Cursor) -> Page {
    let step = if matches!(kind, Kind::Timer | Kind::Set) { 1 } else { STEP_SERIES };
    let mut rows: Vec<Row> = Vec::new();
    let mut bytes = 0;
    let mut begun = from.begun;
    let mut next = Some(from.at);
    while let Some(at) = next.filter(|_| bytes < PAGE_BYTES && rows.len() < PAGE_SERIES) {
        let mut unfinished = None;
        next = shard.visit(kind, at, step, |series, current| {
            let mut name = series.name.to_vec();
            if !series.tags.is_empty() {
                name.push(b';');
                name.extend_from_slice(series.tags);
            }
            // Another one may have come in its place meanwhile, or it may have been flushed.
            let shown = begun.take().filter(|(of, _)| *of == name).map_or(0, |(_, shown)| shown);
            let (held, held_bytes, left) = Held::piece(&current, shown);
            bytes += name.len() + held_bytes;
            if let Some(now_shown) = left {
                unfinished = Some((name.clone(), now_shown));
            }
            rows.push(Row { name, held, goes_on: shown > 0 });
        });
        if unfinished.is_some() {
            return Page { rows, next: Some(Cursor { at, begun: unfinished }) };
        }
    }
    Page { rows, next: next.map(|at| Cursor { at, begun: None }) }
}

impl Held {
    /// What a series holds behind the first `shown` values; with the bytes of that, and how many are shown then when
    /// there are more.
    fn piece(current: &Current<'_>, shown: usize) -> (Held, usize, Option<usize>) {
        match current {
            Current::Counter(value) | Current::Gauge(value) => (Held::Number(*value), size_of::<f64>(), None),
            Current::Timer { values, .. } => {
                let rest = &values[shown.min(values.len())..];
                let piece = &rest[..rest.len().min(PIECE_VALUES)];
                let left = (piece.len() < rest.len()).then_some(shown + piece.len());
                (Held::Numbers(piece.to_vec()), size_of_val(piece), left)
            }
            Current::Set { members, .. } => {
                let rest = &members[shown.min(members.len())..];
                let piece = &rest[..rest.len().min(PIECE_MEMBERS)];
                let left = (piece.len() < rest.len()).then_some(shown + piece.len());
                let bytes = piece.iter().map(|member| member.len()).sum();
                (Held::Texts(piece.iter().map(|member| member.to_vec()).collect()), bytes, left)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_comes_in_pieces_and_all_of_it() {
        let values: Vec<f64> = (0..2 * PIECE_VALUES + 1).map(|value| value as f64).collect();
        let timer = Current::Timer { values: &values, count: 1.0 };
        let (mut got, mut shown, mut pieces) = (Vec::new(), 0, 0);
        loop {
            let (held, bytes, left) = Held::piece(&timer, shown);
            let Held::Numbers(piece) = held else { panic!("a timer holds numbers") };
            assert!(bytes == piece.len() * 8 && piece.len() <= PIECE_VALUES);
            got.extend(piece);
            pieces += 1;
            match left {
                Some(now) => shown = now,
                None => break,
            }
        }
        assert_eq!((got, pieces), (values, 3));
        let members: Vec<&[u8]> = vec![b"m"; PIECE_MEMBERS + 1];
        let set = Current::Set { count: 1, members };
        assert_eq!(Held::piece(&set, 0).2, Some(PIECE_MEMBERS));
        assert_eq!(Held::piece(&set, PIECE_MEMBERS), (Held::Texts(vec![b"m".to_vec()]), 1, None));
        // Flushed between two pieces: there is nothing behind what was shown.
        let empty = Current::Timer { values: &[], count: 0.0 };
        assert_eq!(Held::piece(&empty, 7), (Held::Numbers(Vec::new()), 0, None));
    }
}
