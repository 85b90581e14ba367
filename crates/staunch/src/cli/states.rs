//! Words of an output's account that are no outcomes: how its endpoint stands, and figures beside the sum. For `staunch explain`
//! and docs/outcomes.md; docs/top.md has the first of them too.

/// `state` of an output: what it says, and what to do.
pub(crate) const STATES: [(&str, &str); 7] = [
    ("new", "Nothing has been tried yet. Nothing to do: it is so for a moment after a start or a reload."),
    (
        "starting",
        "The first attempt is under way, or nothing was sent yet. If it stays so, nothing is routed to the output, or its endpoint does \
         not answer: look at `last_error`.",
    ),
    ("up", "The endpoint takes what it is sent. Nothing to do."),
    (
        "degraded",
        "The endpoint takes copies, and its queue is over 80 % full. It is slower than what comes: find out why before copies are \
         dropped as `queue_full`, or raise `queue.max_bytes`.",
    ),
    (
        "idle",
        "The endpoint closed the connection while nothing was on the way. Nothing to do: the next copy makes a new connection.",
    ),
    (
        "down",
        "The last attempt failed and nothing has arrived since. `last_error` says why: mend the endpoint. What waits in the queue goes \
         there when it is back; until then the queue fills.",
    ),
    (
        "stopped",
        "The output sends no more, since the daemon stops or a reload took the output away. Nothing to do.",
    ),
];

/// Figures beside the sum of an output, and what its queue on disk is.
pub(crate) const FIGURES: [(&str, &str); 8] = [
    (
        "in_doubt",
        "Copies that were on the way when a connection broke, so that nobody knows whether they arrived; they are sent again. They are no \
         loss, and the endpoint may have some of them twice. If it grows, find out who ends the connections (docs/delivery.md).",
    ),
    (
        "resent",
        "Copies that were sent a second time because their connection broke. Nothing to do, unless the endpoint cannot bear a point twice.",
    ),
    (
        "stalls",
        "Times that a source began to wait because the output's queue was full and `when_full = \"block\"`. Nothing is lost, but clients \
         wait: make the endpoint faster, or the queue larger. `stalled_for_s` says how long one waits already.",
    ),
    (
        "safe",
        "All that waits in the queue on disk is synced: a crash of the machine loses none of it. Nothing to do.",
    ),
    (
        "unsynced",
        "Some of what waits in the queue on disk is not synced yet, and a crash of the machine may lose it. Nothing to do while the number \
         stays small; if it grows, the disk is too slow.",
    ),
    (
        "failing",
        "The disk of the queue takes or gives nothing now, or its files are gone. Look at the log for the system's word, and at the disk's \
         room, health and mount; it goes on by itself.",
    ),
    (
        "blocks_in_doubt",
        "Blocks of the queue on disk whose sync failed, so that nobody knows whether they would survive a crash of the machine. Look at the \
         disk's health; what the endpoint has taken meanwhile needs no disk.",
    ),
    (
        "balanced",
        "Every record or copy has exactly one outcome. It may be false for a moment while records move; if it stays false while nothing \
         moves, that is a bug of ours: please report it.",
    ),
];

#[test]
fn every_state_of_an_output_is_explained_here_and_on_the_page_of_top() {
    use deliver::Status;
    let known = [Status::Starting, Status::Up, Status::Idle, Status::Down, Status::Stopped];
    let words = known.iter().map(|status| status.word()).chain(["new", "degraded"]);
    for word in words {
        assert!(STATES.iter().any(|(state, _)| *state == word), "{word}");
    }
    let top = include_str!("../../../../docs/top.md");
    for (word, about) in STATES.iter().chain(&FIGURES) {
        assert!(about.ends_with('.') || about.ends_with(')'), "{about}");
        let row = format!("| `{word}` | ");
        assert!(*word == "balanced" || top.contains(&row), "`{word}` has no row on the page of top");
    }
}
