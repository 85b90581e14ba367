//! Options of the queue of an output.

use deliver::plan::{QueueLimits, WhenFull};

use super::{OUTPUTS, TIB, YEAR, duration, one_of, size, whole};
use crate::options::Default::{Absent, Toml};
use crate::options::Section::Queue;
use crate::options::Type::{Table, Word};
use crate::options::field::{rows, words};

words! {
    WhenFull: "drop_oldest" = WhenFull::DropOldest, "drop_newest" = WhenFull::DropNewest,
        "block" = WhenFull::Block, "block_while_up" = WhenFull::BlockWhileUp;
}

rows! {
    OF_OUTPUTS: ();
    in OUTPUTS {
        "queue": Table(Queue), Absent("the defaults of its options"), "{ max_bytes = \"1MiB\" }",
            "Bounds of the output's queue.";
    }
}

rows! {
    QUEUE: QueueLimits;
    in [Queue] {
        "kind": Word(&["memory", "disk"]), Toml("\"memory\""), "",
            "Where the queue is kept.",
            "`disk`: in the folder `queues` of `data_dir`. What waits there survives the end of the daemon, however it ends; see [delivery.md](delivery.md#a-queue-on-disk).";
        "max_bytes" => bytes_max: size(QueueLimits::BYTES_MIN, TIB),
            Absent("256MiB in memory, 4GiB on disk"), "\"1MiB\"",
            "Most bytes, those on the way included.",
            "Bytes per second times the longest outage to be survived.";
        "max_records" => records_max: whole(0, 1_000_000_000_000), Toml("0"), "100000",
            "Most records, those on the way included.",
            "`0`: as many as there are bytes for. Records come in blocks, and a block is kept or dropped as a whole; one that comes alone may be larger.";
        "when_full" => when_full: one_of::<WhenFull>(), Absent("`drop_oldest` in memory, `block` on disk"), "\"block\"",
            "What happens when the queue is full.",
            "`block`: connections (TCP, unix streams) that feed packets to the output are not read until there is room, which makes their senders wait; nothing of them is lost, and other sources go on. Datagrams and aggregates cannot wait: for them it is `drop_newest`. `block_while_up`: as `block` while the endpoint is slow, and `drop_oldest` while it is down, so that a dead endpoint keeps nobody waiting; for datagrams and aggregates it is `drop_oldest`.";
        "max_age" => age_max_ms: duration(0, YEAR), Toml("\"0s\""), "\"1h\"",
            "What waited longer is dropped as `too_old`.",
            "`0s`: never.";
        "sync_window": duration(5, 20), Toml("\"10ms\""), "\"20ms\"",
            "How long a record waits for others before they are synced to the disk together.",
            "Only with `kind = \"disk\"`. A longer window costs the disk fewer syncs; until a record is synced, a machine that loses power may lose it.";
    }
}
