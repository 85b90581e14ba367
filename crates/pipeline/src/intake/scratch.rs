//! Memory of one read, lent to the intakes of a thread one after the other.
//!
//! Most of ten thousand connections are idle at any time: memory for parsing a read belongs to the reading thread, and
//! a connection keeps only its unfinished line or frame.

use model::{Point, Span};
use wire::{graphite, statsd};

use crate::intake::events;

/// Memory of one kind that is kept for the next read, in bytes: about what 64 KiB of the shortest samples take.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The results of one read. One for each reading thread is enough.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) parsed: statsd::Parsed,
    pub(crate) points: graphite::input::Parsed,
    pub(crate) events: events::Parsed,
    /// Lines or frames that came in pieces, joined.
    pub(crate) whole: Vec<u8>,
    /// Where packets lie.
    pub(crate) packets: Vec<Span>,
    /// Lines of a stream without their ends, for raw routes.
    pub(crate) lines: Vec<Span>,
}

impl Scratch {
    /// Empties it for the next read. Memory of a very large read is freed.
    pub(crate) fn clear(&mut self) {
        let Scratch { parsed, points, events, whole, packets, lines } = self;
        // Clearing costs time on each read. Packets that are only copied have left nothing there.
        if parsed.lines > 0 {
            parsed.clear();
            parsed.shrink_to(KEPT_BYTES_MAX);
        } else {
            debug_assert_eq!(parsed.records(), 0, "each record is in a line");
        }
        if events.messages > 0 {
            events.clear(KEPT_BYTES_MAX);
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
