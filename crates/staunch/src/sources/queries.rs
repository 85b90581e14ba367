//! Replies to the queries of a connection: asked of the shard, after everything that its client sent before them.
//!
//! Not here: how a query is found in a message (`pipeline::Intake`), and the search (`pipeline::IndexQuery`).

use model::{PeerKey, SourceId};
use pipeline::ProtocolReplies;
use tokio::sync::watch;

use crate::daemon::shared::Shared;
use crate::sources::listener::{Order, ordered};

/// The replies to a read, with those to its queries. None if the daemon stops or pauses meanwhile: then the client gets no replies.
pub(super) async fn answered(
    replies: ProtocolReplies,
    (source, from): (SourceId, PeerKey),
    shared: &Shared,
    orders: &mut watch::Receiver<Order>,
) -> Option<Vec<u8>> {
    let ProtocolReplies { bytes, queries } = replies;
    if queries.is_empty() {
        return Some(bytes);
    }
    let mut all = Vec::with_capacity(bytes.len());
    let mut written = 0;
    for (at, text) in queries {
        all.extend_from_slice(&bytes[written..at]);
        written = at;
        // Cancel-safe: a query changes nothing.
        let reply = tokio::select! {
            biased;
            _order = ordered(orders) => return None,
            reply = answer(text, (source, from), shared) => reply,
        };
        all.extend_from_slice(&reply?);
    }
    all.extend_from_slice(&bytes[written..]);
    Some(all)
}

/// The reply to one query; None once the shard's thread has ended.
async fn answer(text: String, (source, from): (SourceId, PeerKey), shared: &Shared) -> Option<Vec<u8>> {
    let mut asking = shared.shard.ask_in_line(from).await;
    let mut query = loop {
        let (exchange, text) = (std::sync::Arc::clone(&shared.exchange), text.clone());
        let begun = asking.call(move |worker| {
            // The events that this client sent before are processed first.
            if exchange.holds(source, from) { None } else { Some(worker.turn.shard.query(source, &text)) }
        });
        match begun.await.ok()? {
            Some(query) => break query,
            None => tokio::task::yield_now().await,
        }
    };
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
            let mut reply = Vec::new();
            query.reply(&mut reply);
            return Some(reply);
        }
    }
}
