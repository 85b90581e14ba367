//! Packs lines into packets of a bounded size: the mode `repack` of a fan-out (spec statsd §14 R4).
//!
//! Path of a line: `Rewrite::write` -> **[`Packer`]** -> packets for the endpoint's queue.
//! Not here: the clock. The caller passes the time, and calls again at [`Packer::due_ns`].
//! Invariants: a line is never split, lost or duplicated; lines keep their order; no packet is longer than the limit,
//! except a single line that is; no packet is empty or ends in LF.

use memchr::{memchr, memchr_iter};
use model::PacketBatch;

/// Collects lines into one open packet, and closes it when it is full or its delay is over.
#[derive(Debug)]
pub struct Packer {
    packet_bytes_max: usize,
    delay_ns: u64,
    open: Vec<u8>,
    lines: u64,
    /// When the open packet is closed at the latest; unused while it is empty.
    due_ns: u64,
}

impl Packer {
    /// A packer with packets of at most `packet_bytes_max` bytes, which keeps no line longer than `delay_ns` as long
    /// as it is called in time. With a delay of 0, the lines of one call are packed and returned at once.
    ///
    /// # Panics
    /// When `packet_bytes_max` is 0.
    pub fn new(packet_bytes_max: usize, delay_ns: u64) -> Packer {
        assert!(packet_bytes_max > 0, "a packet holds at least a byte");
        Packer { packet_bytes_max, delay_ns, open: Vec::new(), lines: 0, due_ns: 0 }
    }

    /// Adds lines joined with LF, with or without one at the end; empty lines are removed. Packets that are full, or
    /// due at `now_ns`, are appended to `into`.
    ///
    /// `now_ns` is any monotonic clock.
    pub fn push(&mut self, text: &[u8], now_ns: u64, into: &mut PacketBatch) {
        // Older lines are sent in time, even when new ones arrive continuously.
        self.close_due(now_ns, into);
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.take(rest, now_ns, into);
        }
        if self.delay_ns == 0 {
            self.close(into);
        }
    }

    /// Adds as many complete lines of `text` as one packet holds and returns the rest.
    fn take<'a>(&mut self, text: &'a [u8], now_ns: u64, into: &mut PacketBatch) -> &'a [u8] {
        let line_end = memchr(b'\n', text).unwrap_or(text.len());
        let (line, rest) = (&text[..line_end], text.get(line_end + 1..).unwrap_or_default());
        if line.is_empty() {
            return rest;
        }
        let border = usize::from(!self.open.is_empty());
        if self.open.len() + border + line.len() > self.packet_bytes_max {
            self.close(into);
        }
        if line.len() >= self.packet_bytes_max {
            debug_assert!(self.open.is_empty(), "nothing fits beside such a line");
            into.push(line);
            return rest;
        }
        if self.open.is_empty() {
            self.due_ns = now_ns.saturating_add(self.delay_ns);
        } else {
            self.open.push(b'\n');
        }
        self.open.extend_from_slice(line);
        self.lines += 1;
        rest
    }

    /// When the open packet is due; `None` when there is none.
    pub fn due_ns(&self) -> Option<u64> {
        (!self.open.is_empty()).then_some(self.due_ns)
    }

    /// Closes the open packet if it is due at `now_ns`.
    pub fn close_due(&mut self, now_ns: u64, into: &mut PacketBatch) {
        if self.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.close(into);
        }
    }

    /// Closes the open packet, due or not: before a stop.
    pub fn close(&mut self, into: &mut PacketBatch) {
        if self.open.is_empty() {
            return;
        }
        debug_assert_eq!(memchr_iter(b'\n', &self.open).count() as u64 + 1, self.lines);
        into.push(&self.open);
        self.open.clear();
        self.lines = 0;
    }

    /// Most bytes of a packet, except for a single longer line.
    pub fn packet_bytes_max(&self) -> usize {
        self.packet_bytes_max
    }

    /// Number of lines in the open packet: added and not yet returned.
    pub fn lines_held(&self) -> u64 {
        self.lines
    }

    /// Bytes of the open packet.
    pub fn bytes_held(&self) -> usize {
        self.open.len()
    }
}
