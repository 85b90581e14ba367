//! Options of the queue of an output.

use deliver::plan::{QueueKind, QueueLimits, WhenFull};

use super::types::{OUTPUTS, TIB, YEAR, duration, one_of, size, whole};
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Form, Nested, rows, words};
use crate::options::row::Default::{Absent, Toml};
use crate::options::row::Type::{Table, Word};
use crate::options::section::Section::Queue;
use crate::plan::{OutputPlan, SYNC_WINDOW_MS};

words! {
    WhenFull: "wait" = WhenFull::Wait, "drop_oldest" = WhenFull::DropOldest, "drop_newest" = WhenFull::DropNewest,
        "block" = WhenFull::Block, "block_while_up" = WhenFull::BlockWhileUp;
}

rows! {
    OF_OUTPUTS: OutputPlan;
    in OUTPUTS {
        "queue" => all as QueueOfOutput: Table(Queue), Absent("the defaults of its options"), "{ max_bytes = \"1MiB\" }",
            "Limits of the output's queue.";
    }
}

rows! {
    QUEUE: QueuePlan = |given| {
        let kind = given.map_or(QueueKind::Memory, |given| given.kind);
        QueuePlan { limits: QueueLimits::default_of(kind), kind: QueueKind::Memory }
    };
    in [Queue] {
        "kind" => kind as Kind: Word(&["memory", "disk"]), Toml("\"memory\""), "",
            "Where the queue is stored.",
            "`disk`: in the folder `queues` of `data_dir`. Records on disk survive the end of the daemon, including kills and crashes; see [delivery.md](delivery.md#a-queue-on-disk).";
        "max_bytes" => limits.bytes_max: size(QueueLimits::BYTES_MIN, TIB),
            Absent("256MiB in memory, 4GiB on disk"), "\"1MiB\"",
            "Most bytes, including those in flight.",
            "Multiply the bytes per second by the longest outage to survive.";
        "max_records" => limits.records_max: whole(0, 1_000_000_000_000), Toml("0"), "100000",
            "Most records, including those in flight.",
            "`0`: limited by `max_bytes` only. Records are queued in blocks, and a block is kept or dropped as a whole; a single block may be larger than the limit.";
        "when_full" => limits.when_full: one_of::<WhenFull>(), Toml("\"wait\""), "\"block\"",
            "What happens when the queue is full.",
            "`wait`: connections (TCP, unix streams) that feed packets to the output are not read until there is room, for at most `max_wait` in any 10 s. After that, the queue drops its oldest records until it is half empty, so that a slow or failed endpoint does not stop other outputs of the same sources. Datagrams and aggregates cannot wait: for them it is `drop_oldest`. `block`: like `wait`, but without a limit. Connections lose nothing, but while the endpoint accepts nothing, the other outputs of its sources get nothing either. For datagrams and aggregates it is `drop_newest`. `block_while_up`: like `block` while the endpoint is slow, and `drop_oldest` while it is down; for datagrams and aggregates it is `drop_oldest`. `drop_oldest`, `drop_newest`: sources never wait.";
        "max_wait" => limits.max_wait_ms: duration(0, 10_000), Toml("\"1s\""), "\"500ms\"",
            "Longest wait of sources for room in any 10 s, with `when_full = \"wait\"`.",
            "`0s`: sources do not wait.";
        "max_age" => limits.age_max_ms: duration(0, YEAR), Toml("\"0s\""), "\"1h\"",
            "Age at which queued records are dropped as `too_old`.",
            "`0s`: never.";
        "sync_window" => kind as SyncWindow: duration(5, 20), Toml("\"10ms\""), "\"20ms\"",
            "Commit window: the delay of a sync, so that records are synced together.",
            "Only with `kind = \"disk\"`. A longer window needs fewer syncs. A power loss may lose records that are not synced yet.";
    }
}

/// The contents of a table `queue`.
pub(crate) struct QueuePlan {
    limits: QueueLimits,
    kind: QueueKind,
}

/// The queue of an output.
pub(crate) struct QueueOfOutput;

impl Form<OutputPlan> for QueueOfOutput {
    fn put(output: &mut OutputPlan, value: &Checked, place: Place) {
        let mut queue = QueuePlan { limits: output.queue, kind: output.queue_kind };
        Nested::put(&mut queue, value, place);
        (output.queue, output.queue_kind) = (queue.limits, queue.kind);
    }

    fn checked(output: &OutputPlan) -> Option<Checked> {
        Nested::checked(&QueuePlan { limits: output.queue, kind: output.queue_kind })
    }
}

/// Where a queue is stored.
pub(crate) struct Kind;

impl Form<QueueKind> for Kind {
    fn put(kind: &mut QueueKind, value: &Checked, _: Place) {
        let is_disk = matches!(value, Checked::Word("disk"));
        *kind = if is_disk { QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS } } else { QueueKind::Memory };
    }

    fn checked(kind: &QueueKind) -> Option<Checked> {
        Some(Checked::Word(if kind.is_disk() { "disk" } else { "memory" }))
    }
}

/// How often a queue on disk is synced.
pub(crate) struct SyncWindow;

impl Form<QueueKind> for SyncWindow {
    fn put(kind: &mut QueueKind, value: &Checked, _: Place) {
        if let (QueueKind::Disk { sync_window_ms }, Checked::Whole(ms)) = (kind, value) {
            *sync_window_ms = *ms;
        }
    }

    fn checked(kind: &QueueKind) -> Option<Checked> {
        match *kind {
            QueueKind::Disk { sync_window_ms } if sync_window_ms != SYNC_WINDOW_MS => {
                Some(Checked::Whole(sync_window_ms))
            }
            QueueKind::Disk { .. } | QueueKind::Memory => None,
        }
    }
}

#[test]
fn log_lines_use_the_words_of_config_files() {
    use crate::options::field::Words;

    for (word, meaning) in WhenFull::WORDS.iter().zip(WhenFull::MEANINGS) {
        assert_eq!(*word, meaning.as_str());
    }
}
