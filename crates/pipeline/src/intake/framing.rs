//! Cuts a connection into lines or frames, and keeps the unfinished one for the next read.
//!
//! Not here: the framers themselves (`wire::frame`), how much all connections may hold (`unfinished`).

use model::{Reject, Span};
use wire::frame::{LengthFramer, LineFramer};

use crate::intake::replies::AckProgress;

/// The state of a connection's intake between two reads, from which another intake continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Bytes of the unfinished line, or of the unfinished frame with its length.
    pub bytes: Vec<u8>,
    /// The end of a line that is too long, and already counted, is still to come.
    pub discarding: bool,
    /// The client's acknowledgements, if it gets them.
    pub acks: Option<AckProgress>,
}

#[derive(Debug)]
pub(crate) enum Framing {
    Lines(LineFramer),
    Frames(LengthFramer),
}

impl Framing {
    /// Cuts a read: the bytes with the complete lines or frames at `packets`, and the reason when the rest cannot be
    /// read.
    pub(crate) fn cut<'a>(
        &mut self,
        bytes: &'a [u8],
        room: &'a mut Vec<u8>,
        packets: &mut Vec<Span>,
    ) -> (&'a [u8], Option<Reject>) {
        match self {
            Framing::Lines(framer) => {
                let whole = framer.push(bytes, room);
                if !whole.is_empty() {
                    packets.push(Span::new(0, whole.len()));
                }
                (whole, None)
            }
            Framing::Frames(framer) => {
                let cut = framer.push(bytes, |frame| {
                    packets.push(Span::new(room.len(), frame.len()));
                    room.extend_from_slice(frame);
                });
                (room, cut.err())
            }
        }
    }

    /// Memory of the unfinished line or frame.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Framing::Lines(framer) => framer.memory_bytes(),
            Framing::Frames(framer) => framer.memory_bytes(),
        }
    }

    /// Bytes of the unfinished line or frame, and whether the end of a line that is too long is still to come.
    pub(crate) fn unfinished(&self) -> (Vec<u8>, bool) {
        match self {
            Framing::Lines(framer) => {
                let (line, discarding) = framer.unfinished();
                (line.to_vec(), discarding)
            }
            Framing::Frames(framer) => (framer.unfinished(), false),
        }
    }

    /// Discards the unfinished line or frame.
    pub(crate) fn give_up(&mut self) {
        match self {
            Framing::Lines(framer) => framer.discard(),
            Framing::Frames(framer) => framer.discard(),
        }
    }

    /// Continues, as new, from the state of another one. False when that one was of messages and this one is of lines: what is unfinished
    /// is lost.
    pub(crate) fn go_on_with(&mut self, unfinished: &Unfinished) -> bool {
        match self {
            Framing::Lines(_) if unfinished.bytes.contains(&b'\n') => return false,
            Framing::Lines(framer) => framer.restore(&unfinished.bytes, unfinished.discarding),
            Framing::Frames(framer) => framer.restore(&unfinished.bytes),
        }
        true
    }
}
