//! Advice on every reason of an `err` line, for `staunch explain`. docs/acks.md has the reasons too.
//!
//! They are not outcomes: each is the reason why a connection was closed. Some have the name of an outcome.

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
            "Connect again and resend the lines without an acknowledgement. If that fails the same way, `losses` in `/api/v1/accounts` \
             names the limit, at the source or at one of its outputs. With `when_full = \"block\"` clients wait for a full \
             queue instead."
        }
        Unacked::RejectedByPeer => {
            "Connect again and resend the lines without an acknowledgement. Repair the endpoint: `losses` of the outputs in \
             `/api/v1/accounts` says which one it is."
        }
        Unacked::InDoubt => {
            "Connect again and resend the lines without an acknowledgement. The log has the system's error. Check the disk's \
             health."
        }
        Unacked::Reloaded => {
            "Connect again and resend the lines without an acknowledgement. The new connection has the condition of the new config."
        }
        Unacked::IdleTimeout => {
            "Connect again when there is data to send. If an endpoint may be down for longer than `idle_timeout`, raise that option of \
             the source, or request `safe` instead of `delivered`."
        }
        Unacked::Replaced => {
            "Connect again when there is data to send. Keep fewer idle connections open per address, or raise `max_connections` of \
             the source."
        }
        Unacked::Unread => {
            "Have the client read acknowledgements while it sends: docs/acks.md has an example."
        }
        Unacked::BadFrame => {
            "Raise `max_line_bytes` of the source, or correct the client: on `unix-frames://` each packet follows its \
             length, as four bytes little-endian."
        }
        Unacked::UnfinishedFull => {
            "Connect again later and resend the lines without an acknowledgement, or send smaller messages, or raise \
             `max_unfinished_bytes`."
        }
        Unacked::Stopped => {
            "Connect again and resend the lines without an acknowledgement. If restarts are frequent, `--hot-restart` makes them \
             shorter."
        }
    }
}
