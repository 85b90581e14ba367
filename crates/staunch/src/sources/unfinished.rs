//! Says that a connection was closed because its unfinished message found no room, once a minute.
//!
//! Not here: who finds room (`pipeline`), the count (`unfinished_full` of the source).

use std::net::IpAddr;

use pipeline::UnfinishedFull;

use crate::admission::Refusals;
use crate::sources::stream::StreamSource;
use sys::clock::Clock;

thread_local! {
    // All connections are on the runtime's thread.
    static CLOSED: Refusals = Refusals::default();
}

/// One connection of `source` was closed so, of the client `from`.
pub(super) fn tell_full(source: &StreamSource, from: Option<IpAddr>, full: UnfinishedFull) {
    let Some(closed) = CLOSED.with(|closed| closed.note(Clock::mono_ns())) else { return };
    let whose = match (full, from) {
        (UnfinishedFull::All, _) => "all connections".to_owned(),
        (UnfinishedFull::PerPeer, Some(from)) => from.to_canonical().to_string(),
        (UnfinishedFull::PerPeer, None) => "clients of unix sockets".to_owned(),
    };
    tracing::warn!(
        "unfinished messages of {whose} hold as much memory as they may, and a connection to source `{}` was closed: \
         raise `max_unfinished_bytes` if so large messages are wanted ({closed} closed since this was last said)",
        source.plan.name
    );
}
