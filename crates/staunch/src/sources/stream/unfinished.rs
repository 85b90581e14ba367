//! Logs that a connection was closed because its incomplete message found no room, once a minute for each source.
//!
//! Not here: the limit (`pipeline`), the count (`unfinished_full` of the source).

use model::PeerKey;
use pipeline::UnfinishedFull;

use super::socket::Stream;
use crate::sources::listener::StreamSource;
use crate::sources::log_throttle::LogThrottle;
use sys::clock::Clock;

static CLOSED: LogThrottle = LogThrottle::new();

/// One connection of `source`, of the client `from`, was closed for this reason.
pub(super) fn tell_full(source: &StreamSource, (stream, from): (&Stream, PeerKey), full: UnfinishedFull) {
    let closed = CLOSED.note(&source.plan.name, Clock::mono_ns());
    let Some(closed) = closed else { return };
    let whose = match full {
        UnfinishedFull::All => "all connections".to_owned(),
        UnfinishedFull::PerPeer => from.to_string(),
    };
    tracing::warn!(
        "incomplete messages of {whose} have reached their limit in bytes, and a connection of {} to source `{}` was \
         closed: raise `max_unfinished_bytes` if you need such large messages ({closed} closed since the last message)",
        stream.shown_peer(from),
        source.plan.name
    );
}
