//! Options of the queue of an output.

use deliver::plan::QueueLimits;

use super::{OUTPUTS, TIB, YEAR, row};
use crate::options::Default::{Absent, Toml};
use crate::options::Section::Queue;
use crate::options::{Row, Type};

/// In the order of the reference.
pub(super) const ROWS: &[Row] = &[
    // Queues
    row(
        OUTPUTS,
        "queue",
        Type::Table(Queue),
        Absent("the defaults of its options"),
        "{ max_bytes = \"1MiB\" }",
        "Bounds of the output's queue.",
        "",
    ),
    row(
        &[Queue],
        "kind",
        Type::Word(&["memory", "disk"]),
        Toml("\"memory\""),
        "",
        "Where the queue is kept.",
        "`disk`: in the folder `queues` of `data_dir`. What waits there survives the end of the daemon, however it ends; see [delivery.md](delivery.md#a-queue-on-disk).",
    ),
    row(
        &[Queue],
        "max_bytes",
        Type::Size { min: QueueLimits::BYTES_MIN, max: TIB },
        Absent("256MiB in memory, 4GiB on disk"),
        "\"1MiB\"",
        "Most bytes, those on the way included.",
        "Bytes per second times the longest outage to be survived.",
    ),
    row(
        &[Queue],
        "max_records",
        Type::Whole { min: 0, max: 1_000_000_000_000 },
        Toml("0"),
        "100000",
        "Most records, those on the way included.",
        "`0`: as many as there are bytes for. Records come in blocks, and a block is kept or dropped as a whole; one that comes alone may be larger.",
    ),
    row(
        &[Queue],
        "when_full",
        Type::Word(&["drop_oldest", "drop_newest", "block", "block_while_up"]),
        Absent("`drop_oldest` in memory, `block` on disk"),
        "\"block\"",
        "What happens when the queue is full.",
        "`block`: connections (TCP, unix streams) that feed packets to the output are not read until there is room, which makes their senders wait; nothing of them is lost, and other sources go on. Datagrams and aggregates cannot wait: for them it is `drop_newest`. `block_while_up`: as `block` while the endpoint is slow, and `drop_oldest` while it is down, so that a dead endpoint keeps nobody waiting; for datagrams and aggregates it is `drop_oldest`.",
    ),
    row(
        &[Queue],
        "max_age",
        Type::Duration { min_ms: 0, max_ms: YEAR },
        Toml("\"0s\""),
        "\"1h\"",
        "What waited longer is dropped as `too_old`.",
        "`0s`: never.",
    ),
    row(
        &[Queue],
        "sync_window",
        Type::Duration { min_ms: 5, max_ms: 20 },
        Toml("\"10ms\""),
        "\"20ms\"",
        "How long a record waits for others before they are synced to the disk together.",
        "Only with `kind = \"disk\"`. A longer window costs the disk fewer syncs; until a record is synced, a machine that loses power may lose it.",
    ),
];
