//! Queries of clients over the index of a Riemann config, in slices.
//!
//! Path of a query: the intake finds it in a message -> the connection's task calls [`Shard::query`] once everything before it has
//! been processed, and [`IndexQuery::run`] until it is done -> [`IndexQuery::reply`]. Not here: the search itself (`streams::index`).

use std::sync::Arc;

use model::{EventsBuilder, SourceId};
use streams::event::Event;
use streams::index::{Progress, Search, SearchLimits, Stop};
use streams::riemann::record;
use wire::riemann;

use crate::Shard;

/// Events of a reply, at most (spec riemann §17.16).
const RESULTS_MAX: usize = 100_000;
/// Bytes of a reply, at most.
const REPLY_BYTES_MAX: usize = 64 << 20;
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
    /// Why there is no result.
    error: Option<String>,
}

impl IndexQuery {
    fn failed(error: impl Into<String>) -> IndexQuery {
        IndexQuery { at: 0, search: None, found: Vec::new(), error: Some(error.into()) }
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

    /// The reply, with its length before it.
    pub fn reply(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let is_whole = riemann::framed(out, |out| match &self.error {
            Some(error) => riemann::error_reply(error, out),
            None => self.events(out),
        });
        if !is_whole || out.len() - begin > REPLY_BYTES_MAX {
            out.truncate(begin);
            let error = format!("the events that match have more than {REPLY_BYTES_MAX} bytes");
            let is_whole = riemann::framed(out, |out| riemann::error_reply(&error, out));
            debug_assert!(is_whole, "an error is short");
        }
    }

    fn events(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(riemann::OK_REPLY);
        let mut one = EventsBuilder::default();
        for event in &self.found {
            if out.len() - begin > REPLY_BYTES_MAX {
                return;
            }
            one.clear();
            // An event of the index with more attributes than a message may have cannot be sent.
            if record::write(event, &mut one).is_ok() {
                riemann::more_events(one.view().iter(), out);
            }
        }
    }
}

impl Shard {
    /// Begins a query of a client of that source: over the index of the first config that the source feeds and that has one.
    pub fn query(&mut self, source: SourceId, text: &str) -> IndexQuery {
        let Shard { transforms, sources, .. } = self;
        let Some(source) = sources.get(source.index()) else { return IndexQuery::failed(NO_INDEX) };
        let limits = SearchLimits { results_max: RESULTS_MAX, steps_max: STEPS_MAX };
        for at in source.transforms.streams() {
            let Some(streams) =
                transforms.streams.at_mut(at).filter(|streams| streams.engine.index().is_some())
            else {
                continue;
            };
            return match streams.engine.search(text, limits) {
                Ok(search) => IndexQuery { at, search: Some(search), found: Vec::new(), error: None },
                Err(error) => IndexQuery::failed(error.to_string()),
            };
        }
        IndexQuery::failed(NO_INDEX)
    }
}
