//! States of outputs, and the fields of their accounts that are not outcomes: for `staunch explain` and
//! docs/outcomes.md. They are also in docs/top.md.

/// `state` of an output: meaning and advice.
pub(crate) const STATES: [(&str, &str); 7] = [
    (
        "new",
        "No attempt was made yet. Nothing to do: an output is in this state for a moment after a start or a reload.",
    ),
    (
        "starting",
        "The first attempt is in progress, or nothing was sent yet. If the state stays, nothing is routed to the output, or its endpoint does \
         not answer: look at `last_error`.",
    ),
    ("up", "The endpoint accepts data. Nothing to do."),
    (
        "degraded",
        "The endpoint accepts data, and the output's queue is more than 80 % full. The endpoint is slower than the traffic: find the cause before \
         copies are dropped as `queue_full`, or raise `queue.max_bytes`.",
    ),
    (
        "idle",
        "The endpoint closed the connection while nothing was being sent. Nothing to do: the next copy opens a new connection.",
    ),
    (
        "down",
        "The last attempt failed, and nothing was delivered since. `last_error` has the reason: repair the endpoint. Queued records are \
         delivered when it is back; until then the queue fills.",
    ),
    (
        "stopped",
        "The output sends no more, because the daemon stops or a reload removed the output. Nothing to do.",
    ),
];

/// Other fields of an output's account, and of its queue on disk.
pub(crate) const FIGURES: [(&str, &str); 8] = [
    (
        "in_doubt",
        "Copies that were being sent when a connection broke: whether they arrived is unknown, and they are sent again. They are \
         not lost, and the endpoint may have some of them twice. If the number grows, find out why the connections break (docs/delivery.md).",
    ),
    (
        "resent",
        "Copies that were sent a second time because their connection broke. Nothing to do, unless the endpoint must not get a point twice.",
    ),
    (
        "stalls",
        "How often a source had to wait because the output's queue was full (`when_full`). While it waits no record is lost, but \
         clients wait: make the endpoint faster, or the queue larger. `stalled_for_s` is the time that the present wait has lasted.",
    ),
    (
        "safe",
        "All records in the queue on disk are synced: a crash of the machine loses none of them. Nothing to do.",
    ),
    (
        "unsynced",
        "Some records in the queue on disk are not synced yet, and a crash of the machine may lose them. Nothing to do while the number \
         stays small; if it grows, the disk is too slow.",
    ),
    (
        "failing",
        "The disk of the queue fails to write or read, or the queue's files are gone. The log has the system's error. Check the disk's \
         free space, health and mount. The queue resumes by itself.",
    ),
    (
        "blocks_in_doubt",
        "Blocks of the queue on disk whose sync failed: whether they would survive a crash of the machine is unknown. Check the \
         disk's health. Records that were delivered in the meantime do not need the disk.",
    ),
    (
        "balanced",
        "True if every record or copy has exactly one outcome. It may be false for a moment while records move. If it stays false while \
         no records move, that is a bug: please report it.",
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
    let top = include_str!("../../../../../docs/top.md");
    for (word, about) in STATES.iter().chain(&FIGURES) {
        assert!(about.ends_with('.') || about.ends_with(')'), "{about}");
        let row = format!("| `{word}` | ");
        assert!(*word == "balanced" || top.contains(&row), "`{word}` has no row on the page of top");
    }
}
