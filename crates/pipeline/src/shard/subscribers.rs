//! How a client subscribes: to the index of a Riemann config, whose events come first, or to a channel (spec riemann §6).
//!
//! Not here: the messages for it ([`super::feeds`]), and the search of the index (`queries`).

use std::sync::Arc;

use model::SourceId;
use streams::query::Query;
use streams::riemann::surroundings::INDEX_CHANNEL;

use super::feeds::{Pump, Subscriber};
use super::queries::IndexQuery;
use crate::Shard;

/// What a client of a channel wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The channel; none for the index, whose events come first.
    pub channel: Option<String>,
    /// The query.
    pub query: String,
    /// Whether it wants later events; always true of a channel.
    pub subscribes: bool,
}

/// A subscription that has begun.
#[derive(Debug)]
pub struct Subscribed {
    /// The search of the index, for the caller to run.
    pub query: Option<IndexQuery>,
    /// What comes later.
    pub later: Option<Subscriber>,
    /// The task that wakes it and all others with its query, for the caller to run on their thread; none if it runs already.
    pub pump: Option<Pump>,
}

impl Shard {
    /// Subscribes a client of that source to the first config that the source feeds and, for the index, that has one. The query gives the
    /// events of the index; what changes meanwhile comes after them.
    ///
    /// # Errors
    /// Why not, in words for the client.
    pub fn subscribe(
        &mut self,
        source: SourceId,
        (of, compiled): (&Subscription, &Arc<Query>),
    ) -> Result<Subscribed, String> {
        let is_index = of.channel.is_none();
        let source_state = self.sources.get(source.index());
        let places = source_state.map(|source| source.transforms.streams().collect::<Vec<_>>());
        let at = places.into_iter().flatten().find(|at| {
            let streams = self.transforms.streams.at_mut(*at);
            streams.is_some_and(|streams| !is_index || streams.engine.index().is_some())
        });
        let Some(streams) = at.and_then(|at| self.transforms.streams.at_mut(at)) else {
            return Err(if is_index { "no index" } else { "no streams" }.to_owned());
        };
        let channel = of.channel.as_deref().map_or(INDEX_CHANNEL, Into::into);
        let (later, pump) = match of.subscribes || !is_index {
            true => {
                let subscribed =
                    streams.feeds.subscribe(&mut streams.engine, &channel, (&of.query, compiled));
                let (later, pump) = subscribed.map_err(|error| error.to_string())?;
                (Some(later), pump)
            }
            false => (None, None),
        };
        let query = is_index.then(|| self.query(source, compiled));
        Ok(Subscribed { query, later, pump })
    }
}
