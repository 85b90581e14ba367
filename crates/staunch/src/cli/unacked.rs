//! Every reason of an `err` line with what to do about it, for `staunch explain`. docs/acks.md has the reasons too.
//!
//! They are no outcomes: a connection ends for one of them, and some share their word with an outcome.

use model::Unacked;

use super::outcomes::Page;

/// Every reason.
pub(crate) fn pages() -> Vec<Page> {
    let page = |why: &Unacked| Page { family: "err", word: why.word(), why: why.why(), advice: advice(*why) };
    Unacked::ALL.iter().map(page).collect()
}

fn advice(why: Unacked) -> &'static str {
    match why {
        Unacked::Dropped => {
            "Connect again and send what was not acknowledged. If that ends the same way, `losses` in `/api/v1/accounts` \
             names the limit, at the source or at one of its outputs. `when_full = \"block\"` makes clients wait for a \
             full queue instead."
        }
        Unacked::RejectedByPeer => {
            "Connect again and send what was not acknowledged, and mend the endpoint: `losses` of the outputs in \
             `/api/v1/accounts` says which it is."
        }
        Unacked::InDoubt => {
            "Connect again and send what was not acknowledged. The log has the system's word about the disk; look at its \
             health."
        }
        Unacked::Reloaded => {
            "Connect again and send what was not acknowledged: the new connection has the condition of the config in \
             force."
        }
        Unacked::IdleTimeout => {
            "Connect again when there is something to send. If an endpoint may be away for longer than that, raise \
             `idle_timeout` of the source, or ask for `safe` instead of `delivered`."
        }
        Unacked::Replaced => {
            "Connect again when there is something to send, and let fewer connections of one address be open without a word; \
             or raise `max_connections` of the source."
        }
        Unacked::Unread => "Have the client read its answers while it sends: docs/acks.md has one that does.",
        Unacked::BadFrame => {
            "Raise `max_line_bytes` of the source, or correct the client: on `unix-frames://` each packet stands behind its \
             length as four bytes, little-endian."
        }
        Unacked::UnfinishedFull => {
            "Connect again and send what was not acknowledged, later or in smaller pieces; or raise `max_unfinished_bytes`."
        }
        Unacked::Stopped => {
            "Connect again and send what was not acknowledged. Where restarts are frequent, `--hot-restart` makes them \
             shorter."
        }
    }
}
