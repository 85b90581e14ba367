//! What stands between a connection's socket and its lines: here a packed stream is unpacked.
//!
//! Path of a byte: the socket -> [`Wrapping::read_once`] -> `wire::packing::Unpacker` -> `Intake::stream`.
//! Not here: who reads when (`stream`), how streams are packed (`wire::packing`).
//! Invariant: the socket is read only when everything before has been unpacked, so a connection holds one read, and what
//! its unpacker may hold.

use std::cell::RefCell;

use model::SampleBatch;
use pipeline::Intake;
use wire::packing::Unpacker;

use crate::clock::Clock;
use crate::sources::stream::{End, Stream, StreamSource, read_scratch};

thread_local! {
    // One buffer for all connections of the runtime's thread: it is in use only between two awaits.
    static UNPACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What a connection's bytes go through.
pub(super) struct Wrapping {
    unpacker: Unpacker,
    /// Why it cannot be followed any further, once what came before has been handed on.
    broken: Option<&'static str>,
}

impl Wrapping {
    /// For a connection that nothing was read of; none where its bytes are lines.
    pub(super) fn new(source: &StreamSource) -> Option<Wrapping> {
        let unpacker = Unpacker::new(source.plan.packing)?;
        Some(Wrapping { unpacker, broken: None })
    }

    /// True when there may be lines, or a reason to end, without another read of the socket.
    pub(super) fn has_more(&self) -> bool {
        self.broken.is_some() || self.unpacker.has_more()
    }

    /// One read of what is there, or else of the socket. `None` when there was nothing to read after all.
    pub(super) fn read_once(
        &mut self,
        stream: &Stream,
        intake: &mut Intake,
    ) -> Result<Option<SampleBatch>, End> {
        if let Some(why) = self.broken {
            return Err(End::Unpackable(why));
        }
        if !self.unpacker.has_more() {
            let read = read_scratch(stream, |bytes| {
                self.unpacker.push(bytes);
                Ok(())
            });
            match read {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                Err(end) => return Err(self.ended(end, intake)),
            }
        }
        UNPACKED.with_borrow_mut(|plain| {
            plain.clear();
            let unpacked = self.unpacker.unpack(plain);
            let batch = intake.stream(plain, Clock::now()).into_owned();
            intake.settle_too_long();
            if let Err(broken) = unpacked {
                intake.reject_packing(broken.why());
                self.broken = Some(broken.why());
            }
            Ok(Some(batch))
        })
    }

    /// How it has ended, the socket having ended so.
    fn ended(&mut self, end: End, intake: &mut Intake) -> End {
        match (end, self.unpacker.end()) {
            (End::Orderly, Err(broken)) => {
                intake.reject_packing(broken.why());
                End::Unpackable(broken.why())
            }
            (end, _) => end,
        }
    }
}
