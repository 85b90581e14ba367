//! Queries of clients over the index of a Riemann config, in slices.
//!
//! Path of a query: the intake finds it in a message -> the connection's task calls [`Shard::query`] once everything before it has
//! been processed, and [`IndexQuery::run`] until it is done -> [`IndexQuery::measure`] until all events are measured ->
//! [`IndexQuery::begin_reply`] -> [`IndexQuery::more`]; or [`IndexQuery::next_json`] for a subscriber. Each call does a slice of the work,
//! and other connections have their turn in between. Not here: the search itself (`streams::index`).

use std::sync::Arc;

use model::{EventsBuilder, SourceId};
use streams::event::Event;
use streams::index::{Progress, Search, SearchLimits, Stop};
use streams::query::Query;
use streams::riemann::record;
use streams::riemann::watching::Shape;
use wire::riemann;

use super::feeds;
use crate::Shard;

/// Events of a reply, at most (spec riemann §17.16).
const RESULTS_MAX: usize = 100_000;
/// Bytes of a reply, at most.
const REPLY_BYTES_MAX: usize = 64 << 20;
const _: () = assert!(REPLY_BYTES_MAX <= u32::MAX as usize, "its length has four bytes");
/// Bytes of a reply that are written at a time, about.
const PIECE_BYTES: usize = 64 << 10;
/// Work of a query, at most, in steps of some ten nanoseconds: about five seconds.
const STEPS_MAX: u64 = 500_000_000;
/// Steps of a slice: it takes well under a millisecond.
const SLICE_STEPS: u64 = 40_000;

/// The reply where no config has an index.
const NO_INDEX: &str = "no index";

/// A query that is under way, or has ended.
#[derive(Debug)]
pub struct IndexQuery {
    /// Place of the config.
    at: usize,
    search: Option<Search>,
    found: Vec<Arc<Event>>,
    /// Events of the reply whose length is known, and the length of all of them.
    measured: usize,
    bytes: usize,
    /// Events of the reply that are written.
    written: usize,
    /// Why there is no result.
    error: Option<String>,
    /// Buffer for an event of the reply.
    one: EventsBuilder,
}

impl IndexQuery {
    fn of(at: usize, search: Option<Search>) -> IndexQuery {
        IndexQuery {
            at,
            search,
            found: Vec::new(),
            measured: 0,
            bytes: 0,
            written: 0,
            error: None,
            one: EventsBuilder::default(),
        }
    }

    /// One that ends with an error.
    pub fn failed(error: impl Into<String>) -> IndexQuery {
        IndexQuery { error: Some(error.into()), ..IndexQuery::of(0, None) }
    }

    /// Searches a slice of the index. Returns whether the query has ended.
    pub fn run(&mut self, shard: &mut Shard) -> bool {
        let Some(search) = &mut self.search else { return true };
        let Some(streams) = shard.transforms.streams.at_mut(self.at) else {
            *self = IndexQuery::failed(NO_INDEX);
            return true;
        };
        match streams.engine.continue_search(search, SLICE_STEPS, &mut self.found) {
            Progress::More => return false,
            Progress::Done => self.search = None,
            Progress::Stopped(stop) => {
                *self = IndexQuery::failed(match stop {
                    Stop::Results => format!("more than {RESULTS_MAX} events match"),
                    Stop::Steps => "the query takes too long".to_owned(),
                });
            }
        }
        true
    }

    /// The events that were found, for a client that reads JSON: at most so many.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn found(&self) -> Result<usize, &str> {
        self.error.as_deref().map_or(Ok(self.found.len()), Err)
    }

    /// The JSON of the next event that was found.
    pub fn next_json(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some(event) = self.found.get(self.written) {
            self.written += 1;
            // One with more tags or attributes than an event may have is left out.
            if feeds::write(event, Shape::Record, &mut self.one, out) {
                return true;
            }
        }
        false
    }

    /// Measures some more events of the reply, which begins with its length. Returns whether all are measured.
    pub fn measure(&mut self) -> bool {
        let (mut out, end) = (Vec::new(), self.bytes + PIECE_BYTES);
        while self.bytes < end {
            let Some(event) = self.found.get(self.measured).filter(|_| self.error.is_none()) else {
                return true;
            };
            out.clear();
            write(event, &mut self.one, &mut out);
            self.measured += 1;
            self.bytes += out.len();
            if self.bytes > REPLY_BYTES_MAX - riemann::OK_REPLY.len() {
                self.error = Some(format!("the events that match have more than {REPLY_BYTES_MAX} bytes"));
            }
        }
        false
    }

    /// Appends the length of the reply, and its beginning: after [`IndexQuery::measure`]. A client may read slowly, so that the events
    /// follow in pieces: [`IndexQuery::more`].
    pub fn begin_reply(&mut self, out: &mut Vec<u8>) {
        debug_assert!(self.error.is_some() || self.measured == self.found.len(), "all events are measured");
        let bytes = self.bytes + riemann::OK_REPLY.len();
        match &self.error {
            Some(error) => {
                self.found.clear();
                let is_whole = riemann::framed(out, |out| riemann::error_reply(error, out));
                debug_assert!(is_whole, "an error is short");
            }
            None => {
                out.extend_from_slice(&(bytes as u32).to_be_bytes());
                out.extend_from_slice(riemann::OK_REPLY);
            }
        }
    }

    /// Appends some more events of the reply. Returns whether there are more.
    pub fn more(&mut self, out: &mut Vec<u8>) -> bool {
        let end = out.len() + PIECE_BYTES;
        while out.len() < end {
            let Some(event) = self.found.get(self.written) else { return false };
            write(event, &mut self.one, out);
            self.written += 1;
        }
        self.written < self.found.len()
    }
}

/// Appends an event to a reply. One with more tags or attributes than a message may have is left out.
fn write(event: &Event, one: &mut EventsBuilder, out: &mut Vec<u8>) {
    one.clear();
    if record::write(event, one).is_ok() {
        riemann::more_events(one.view().iter(), out);
    }
}

impl Shard {
    /// Begins a query of a client of that source: over the index of the first config that the source feeds and that has one.
    pub fn query(&mut self, source: SourceId, query: &Arc<Query>) -> IndexQuery {
        let Shard { transforms, sources, .. } = self;
        let Some(source) = sources.get(source.index()) else { return IndexQuery::failed(NO_INDEX) };
        let limits = SearchLimits { results_max: RESULTS_MAX, steps_max: STEPS_MAX };
        let mut searches = source.transforms.streams().filter_map(|at| {
            let search = transforms.streams.at_mut(at)?.engine.search(query, limits)?;
            Some(IndexQuery::of(at, Some(search)))
        });
        searches.next().unwrap_or_else(|| IndexQuery::failed(NO_INDEX))
    }
}

#[cfg(test)]
mod tests {
    use streams::event::Field;
    use streams::value::Value;

    use super::*;

    fn query(events: usize, description: usize) -> IndexQuery {
        let event = |number: usize| {
            let mut event = Event::default();
            event.set(Field::Host, Value::from(format!("web{number}")));
            event.set(Field::Description, Value::from("x".repeat(description)));
            Arc::new(event)
        };
        IndexQuery { found: (0..events).map(event).collect(), ..IndexQuery::of(0, None) }
    }

    /// The whole reply, in how many slices it was measured, and in how many written.
    fn reply(query: &mut IndexQuery) -> (Vec<u8>, usize, usize) {
        let (mut out, mut slices, mut pieces) = (Vec::new(), 1, 1);
        while !query.measure() {
            slices += 1;
        }
        query.begin_reply(&mut out);
        while query.more(&mut out) {
            pieces += 1;
        }
        (out, slices, pieces)
    }

    #[test]
    fn a_long_reply_is_measured_and_written_in_slices() {
        for (events, description) in [(0, 0), (1, 10), (10, PIECE_BYTES / 4), (10_000, 100)] {
            let mut query = query(events, description);
            let mut want = Vec::new();
            let found = query.found.clone();
            let is_whole = riemann::framed(&mut want, |out| {
                out.extend_from_slice(riemann::OK_REPLY);
                found.iter().for_each(|event| write(event, &mut EventsBuilder::default(), out));
            });
            let (out, slices, pieces) = reply(&mut query);
            assert!(is_whole && out == want, "{events} events of {description} bytes");
            let most = want.len() / PIECE_BYTES + 2;
            assert!((most - 2..=most).contains(&slices), "{slices} slices of {} bytes", want.len());
            assert!((most - 2..=most).contains(&pieces), "{pieces} pieces of {} bytes", want.len());
        }
    }

    #[test]
    fn a_reply_past_its_limit_is_an_error_as_soon_as_that_is_known() {
        let (out, slices, pieces) = reply(&mut query(100, 1 << 20));
        assert!(String::from_utf8_lossy(&out).contains("more than 67108864 bytes"), "{out:?}");
        assert!(out.len() < 100 && slices <= 66 && pieces == 1, "{slices} {pieces}");
    }
}
