//! Memory for what one read holds, lent to the intakes of a thread one after the other.
//!
//! A connection is idle most of the time, and ten thousand of them are many: what is needed to take a read apart belongs to
//! the thread that reads, and a connection keeps its unfinished line or frame only.

use model::{Point, Span};
use wire::{graphite, statsd};

/// Memory of one kind that is kept for the next read, in bytes: about what 64 KiB of the shortest samples take.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// What an intake makes of one read. One for each thread that reads is enough.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) parsed: statsd::Parsed,
    pub(crate) points: graphite::input::Parsed,
    /// Lines or frames that came in pieces, put together.
    pub(crate) whole: Vec<u8>,
    /// Where packets lie.
    pub(crate) packets: Vec<Span>,
    /// Lines of a stream without their ends, where raw routes take them.
    pub(crate) lines: Vec<Span>,
}

impl Scratch {
    /// Empty, for the next read. What a very large one needed goes.
    pub(crate) fn clear(&mut self) {
        let Scratch { parsed, points, whole, packets, lines } = self;
        // Clearing is work for each read. Packets that are only copied have left nothing there.
        if parsed.lines > 0 {
            parsed.clear();
            parsed.shrink_to(KEPT_BYTES_MAX);
        } else {
            debug_assert_eq!(parsed.records(), 0, "each record is in a line");
        }
        points.clear();
        whole.clear();
        packets.clear();
        lines.clear();
        points.bytes.shrink_to(KEPT_BYTES_MAX);
        points.points.shrink_to(KEPT_BYTES_MAX / size_of::<Point>());
        whole.shrink_to(KEPT_BYTES_MAX);
        packets.shrink_to(KEPT_BYTES_MAX / size_of::<Span>());
        lines.shrink_to(KEPT_BYTES_MAX / size_of::<Span>());
    }
}
