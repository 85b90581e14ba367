//! One read of a connection, in memory of the thread, and how a connection ends.

use std::cell::RefCell;
use std::io;

use model::Batches;
use pipeline::{Broken, Intake, Scratch};

use super::socket::Stream;
use sys::clock::Clock;

/// Most bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Most bytes of a connection during a stop: data that its peer had already sent. A peer that continues to send does
/// not delay the end.
const LAST_READ_BYTES_MAX: u64 = 8 << 20;

thread_local! {
    // One buffer for all connections of the runtime's thread: it is only used between two awaits.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
    // The same for the results of a read.
    static PARSED: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// How a connection ended.
pub(in crate::sources) enum End {
    /// It has not ended: it is paused and unchanged.
    AtRest,
    /// The peer closed it: a last line without a line feed is complete.
    Orderly,
    /// It was closed without TLS's close message, so its peer may have had more to send.
    CutOff,
    /// We stopped first: the rest of its last line may be in flight.
    Stopped,
    /// It was silent for long, and its slot was given to another connection.
    Replaced,
    /// Reset, or a timeout.
    Broken(String),
    /// The rest cannot be parsed in its source's format.
    Unreadable(Broken),
    /// A compressed stream that cannot be decompressed.
    Unpackable(&'static str),
    /// The client got `err`.
    Failed,
}

impl End {
    /// After the last read of a paused connection: its peer may have ended it meanwhile.
    pub(in crate::sources) fn at_rest(self) -> End {
        match self {
            End::Stopped => End::AtRest,
            ended => ended,
        }
    }
}

/// Most reads of a stopping connection.
pub(in crate::sources) fn last_reads() -> u64 {
    LAST_READ_BYTES_MAX / READ_BYTES as u64
}

/// One read. `None` when there was nothing to read.
pub(in crate::sources) fn read_once(
    stream: &Stream,
    intake: &mut Intake,
) -> Result<Option<Batches<'static>>, End> {
    SCRATCH.with_borrow_mut(|scratch| {
        let Some(len) = read_bytes(stream, scratch)? else { return Ok(None) };
        let mut batch = take_apart(&scratch[..len], intake);
        batch.ack = intake.mark();
        Ok(Some(batch))
    })
}

/// Parses the next `bytes` of the connection.
pub(in crate::sources) fn take_apart(bytes: &[u8], intake: &mut Intake) -> Batches<'static> {
    let batch = PARSED.with_borrow_mut(|parsed| intake.stream(bytes, Clock::now(), parsed).into_owned());
    intake.settle_too_long();
    batch
}

/// The same for bytes that are not lines yet.
pub(in crate::sources) fn read_scratch<R>(
    stream: &Stream,
    take: impl FnOnce(&[u8]) -> Result<R, End>,
) -> Result<Option<R>, End> {
    SCRATCH.with_borrow_mut(|scratch| match read_bytes(stream, scratch)? {
        Some(len) => take(&scratch[..len]).map(Some),
        None => Ok(None),
    })
}

fn read_bytes(stream: &Stream, into: &mut [u8]) -> Result<Option<usize>, End> {
    match stream.try_read(into) {
        Ok(0) => Err(End::Orderly),
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(End::Broken(error.to_string())),
    }
}

/// More of a message that one read began.
pub(in crate::sources) fn more(intake: &mut Intake) -> Batches<'static> {
    PARSED.with_borrow_mut(|parsed| intake.more(Clock::now(), parsed).into_owned())
}

/// The last batch of a connection, see [`Intake::close`].
pub(in crate::sources) fn close(intake: &mut Intake, orderly: bool) -> Batches<'static> {
    PARSED.with_borrow_mut(|parsed| intake.close(orderly, Clock::now(), parsed).into_owned())
}
