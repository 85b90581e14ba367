//! Queries of a connection: asked of the shard, after everything that its client sent before them.
//!
//! Path of a query: `compiled` -> [`answer`], in slices on the shard.
//! Not here: how a query is found in a message (`pipeline::Intake`), and the search (`pipeline::IndexQuery`).

use std::sync::Arc;

use model::{PeerKey, SourceId};
use pipeline::IndexQuery;
use tokio::sync::watch;

use crate::daemon::shared::Shared;
use crate::daemon::worker::Asking;
use crate::sources::listener::{Order, ordered};

/// The answer to one query, whose reply can be written. None if the daemon stops or pauses meanwhile.
pub(super) async fn answer(
    text: String,
    of: (SourceId, PeerKey),
    shared: &Shared,
    orders: &mut watch::Receiver<Order>,
) -> Option<IndexQuery> {
    // Cancel-safe: a query changes nothing.
    tokio::select! {
        biased;
        _order = ordered(orders) => None,
        answer = searched(text, of, shared) => answer,
    }
}

/// The result of a query; None once the shard's thread has ended.
async fn searched(text: String, (source, from): (SourceId, PeerKey), shared: &Shared) -> Option<IndexQuery> {
    let compiled = match shared.queries.compiled(&text).await {
        Ok(compiled) => compiled,
        Err(error) => return Some(IndexQuery::failed(error)),
    };
    let mut asking = shared.shard.ask_in_line(from).await;
    let query = loop {
        let (exchange, compiled) = (Arc::clone(&shared.exchange), Arc::clone(&compiled));
        let begun = asking.call(move |worker| {
            // The events that this client sent before are processed first.
            if exchange.holds(source, from) { None } else { Some(worker.turn.shard.query(source, &compiled)) }
        });
        match begun.await.ok()? {
            Some(query) => break query,
            None => tokio::task::yield_now().await,
        }
    };
    finished(&mut asking, query).await
}

/// A query that was begun, once it has ended; None once the shard's thread has ended.
pub(super) async fn finished(asking: &mut Asking, mut query: IndexQuery) -> Option<IndexQuery> {
    loop {
        let (back, is_done) = asking
            .call(move |worker| {
                let is_done = query.run(&mut worker.turn.shard);
                (query, is_done)
            })
            .await
            .ok()?;
        query = back;
        if is_done {
            return Some(query);
        }
    }
}
