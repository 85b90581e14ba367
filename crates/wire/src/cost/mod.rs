//! Cost accounting for parsers: steps and memory per input byte have a bound for every parser, and for every writer
//! of StatsD lines, where a name that arrives once is written for each of its values.
//!
//! A step is one more pass of a parser over a byte. Code calls [`touch`] (`steps`) where it scans, copies, clears
//! or hashes a run of bytes, and at each opcode and element.
//! Memory is the sum of allocations during the run; the caller counts it. [`check`] takes one input, for the fuzz
//! targets. [`check_doubled`] takes the worst known inputs in two sizes, for `cargo test`: a parser may be within its
//! bound for one size and over it for the next.
//! Not here: time, because a busy machine would fail the checks.
//! Invariant: a check that never fails may be broken. A canary reads messages without their bound, and the check must
//! fail.

mod inputs;
#[cfg(test)]
mod tests;
mod writers;

use model::{EventTime, EventsBuilder, Span};

use crate::compression::{Compression, Decompressor};
use crate::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};
use crate::graphite::input::{self, Compatibility, MessageEncoding};
use crate::opentsdb;
use crate::riemann;
use crate::statsd::{self, Dialect, WRITTEN_PER_BYTE_MAX};
use crate::steps::{steps, touch};

pub use inputs::{Input, inputs};
pub use writers::Writer;

/// Most steps per input byte, and most bytes allocated per input byte. Freed memory counts too, because vectors double.
#[derive(Clone, Copy, Debug)]
struct PerByte {
    steps: u64,
    allocated: u64,
}

/// Lines and frames: two or three steps per byte, and a sample for two bytes.
const LINES: PerByte = PerByte { steps: 16, allocated: 192 };

/// A byte of a message may reference 128 others, which are scanned when they are written, parsed as a line, and
/// hashed. It may expand to a line with its point.
const MESSAGES: PerByte = PerByte { steps: 512, allocated: 768 };

/// An event of two bytes takes 96 in the batch, and a vector that doubles allocates up to four times its content. Texts that are not
/// UTF-8 triple.
const EVENTS: PerByte = PerByte { steps: LINES.steps, allocated: 4 * 48 + 4 * 3 };

/// Lines are parsed; a byte of a line may expand to many output bytes, which are scanned once more. A vector that
/// doubles allocates up to four times its content.
const WRITTEN: PerByte = PerByte {
    steps: LINES.steps + 2 * WRITTEN_PER_BYTE_MAX as u64,
    allocated: LINES.allocated + 4 * WRITTEN_PER_BYTE_MAX as u64,
};

/// Buffers are cleared for gzip members of twenty bytes.
const COMPRESSED: PerByte = PerByte { steps: 128, allocated: 32 };

/// Memory allocated for any input: a window, the first element of each vector.
pub const ALLOCATED_ALWAYS_MAX: u64 = 128 * 1024;

/// Steps for any input.
pub const STEPS_ALWAYS_MAX: u64 = 16 * 1024;

/// Twice the input may cost this percentage of the single cost, plus [`STEPS_ALWAYS_MAX`] or [`ALLOCATED_ALWAYS_MAX`].
const DOUBLED_PERCENT_MAX: u64 = 250;

/// A parser or writer under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parser {
    /// StatsD packets.
    Statsd(Dialect),
    /// Graphite lines.
    Graphite(Compatibility),
    /// Lines of OpenTSDB.
    OpenTsdb,
    /// One message.
    Message(MessageEncoding),
    /// One message of Riemann's protocol.
    Riemann,
    /// A JSON event of Riemann's.
    EventJson,
    /// A stream of lines, in reads of this many bytes.
    Lines(LineEnd, usize),
    /// A stream of frames, in reads of this many bytes.
    Frames(LengthOrder, usize),
    /// A compressed stream, in reads of this many bytes, up to 1 MiB of output.
    Compressed(Compression, usize),
    /// Lines as a rewriting endpoint splits them into parts.
    Parts,
    /// Lines, and the output written for them.
    Written(Writer),
}

/// The cost of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Passes over bytes.
    pub steps: u64,
    /// Bytes allocated.
    pub allocated: u64,
}

impl Parser {
    fn per_byte(self) -> PerByte {
        match self {
            Parser::Message(_) => MESSAGES,
            Parser::Riemann | Parser::EventJson => EVENTS,
            Parser::Compressed(..) => COMPRESSED,
            Parser::Written(_) => WRITTEN,
            Parser::Statsd(_)
            | Parser::Graphite(_)
            | Parser::OpenTsdb
            | Parser::Parts
            | Parser::Lines(..)
            | Parser::Frames(..) => LINES,
        }
    }
}

impl Cost {
    /// The cost of `run`; `allocated` calls its argument and returns how many bytes that allocated.
    pub fn of(allocated: impl FnOnce(&mut dyn FnMut()) -> u64, run: &mut dyn FnMut()) -> Cost {
        let before = steps();
        let allocated = allocated(run);
        Cost { steps: steps() - before, allocated }
    }

    /// True when it is within the bounds for `bytes` of input, including the output of a compressed stream.
    fn is_within(self, parser: Parser, bytes: u64) -> bool {
        let PerByte { steps, allocated } = parser.per_byte();
        self.steps <= STEPS_ALWAYS_MAX + steps * bytes
            && self.allocated <= ALLOCATED_ALWAYS_MAX + allocated * bytes
    }

    /// True when it is proportional to `half`, the cost of half the input.
    fn is_twice(self, half: Cost) -> bool {
        let within = |twice: u64, once: u64, always: u64| twice <= once * DOUBLED_PERCENT_MAX / 100 + always;
        within(self.steps, half.steps, STEPS_ALWAYS_MAX)
            && within(self.allocated, half.allocated, ALLOCATED_ALWAYS_MAX)
    }
}

/// Reads `bytes` and checks the cost against the bounds.
///
/// # Panics
/// When the cost is over the bounds.
pub fn check(parser: Parser, bytes: &[u8], allocated: impl FnOnce(&mut dyn FnMut()) -> u64) {
    let mut given = 0;
    let cost = Cost::of(allocated, &mut || given = run(parser, bytes));
    assert!(
        cost.is_within(parser, bytes.len() as u64 + given),
        "{parser:?}: {cost:?} for {} bytes",
        bytes.len()
    );
}

/// Reads `input` in two sizes, the second twice the first, and checks both costs against the bounds and each other.
///
/// # Panics
/// When a cost is over the bounds.
pub fn check_doubled(input: &Input, bytes: usize, allocated: impl Fn(&mut dyn FnMut()) -> u64) {
    let [once, twice] = [bytes, 2 * bytes].map(|bytes| {
        let made = (input.make)(bytes);
        let mut given = 0;
        let cost = Cost::of(&allocated, &mut || given = run(input.parser, &made));
        let read = made.len() as u64 + given;
        let Input { name, parser, .. } = input;
        assert!(cost.is_within(*parser, read), "{parser:?}, {name}: {cost:?} for {read} bytes");
        cost
    });
    let Input { name, parser, .. } = input;
    assert!(twice.is_twice(once), "{parser:?}, {name}: {twice:?} for twice the input of {once:?}");
}

/// Reads `bytes` as the daemon does. Returns the bytes of decompressed output.
fn run(parser: Parser, bytes: &[u8]) -> u64 {
    const NOW_S: u64 = 1_700_000_000;
    let packet = Span::new(0, bytes.len());
    match parser {
        Parser::Statsd(dialect) => {
            let options = statsd::Options { key_bytes_max: 0, ..statsd::Options::of(dialect) };
            statsd::Parser::new(options, 1).packet(bytes, packet, NOW_S, &mut statsd::Parsed::default());
        }
        Parser::Graphite(compatibility) => {
            let reader = input::Reader::new(input::Options::of(compatibility), 1);
            reader.packet(bytes, packet, NOW_S, &mut input::Parsed::default());
        }
        Parser::OpenTsdb => {
            opentsdb::Reader::new(1).packet(bytes, packet, &mut input::Parsed::default());
        }
        Parser::Message(form) => {
            let reader = input::Reader::new(input::Options::of(Compatibility::Strict), 1);
            reader.message(form, bytes, packet, NOW_S, &mut input::Parsed::default());
        }
        Parser::Riemann => {
            // A message that is rejected costs as well.
            let (received, limits) = (EventTime::Seconds(NOW_S as i64), riemann::Limits::default());
            if riemann::decode(bytes, received, limits, &mut EventsBuilder::default()).is_err() {
                riemann::events_in_rejected(bytes);
            }
        }
        Parser::EventJson => {
            let options = riemann::json::JsonOptions {
                bytes_max: bytes.len(),
                times: riemann::json::JsonTimes::Micros,
            };
            let received = EventTime::Seconds(NOW_S as i64);
            let _rejected = riemann::json::decode(bytes, received, options, &mut EventsBuilder::default());
        }
        Parser::Lines(end, step) => {
            let (mut framer, mut room) = (LineFramer::ended_by(end, 64 * 1024), Vec::new());
            for read in bytes.chunks(step.max(1)) {
                framer.push(read, &mut room);
            }
        }
        Parser::Frames(order, step) => {
            let mut framer = LengthFramer::ordered(order, 16 << 20);
            for read in bytes.chunks(step.max(1)) {
                // The rest fails with the same error.
                let _broken = framer.push(read, |_frame| touch(1));
            }
        }
        Parser::Written(writer) => writers::run(writer, bytes),
        Parser::Compressed(compression, step) => return decompress(compression, step, bytes),
        Parser::Parts => {
            for line in bytes.split(|byte| *byte == b'\n') {
                touch(line.len());
                if let Ok(parts) = statsd::rewrite::parts(line) {
                    parts.fields().for_each(|_field| touch(1));
                }
            }
        }
    }
    0
}

fn decompress(compression: Compression, step: usize, bytes: &[u8]) -> u64 {
    const OUTPUT_BYTES_MAX: u64 = 1 << 20;
    let Some(mut decompressor) = Decompressor::new(compression) else { return 0 };
    let (mut out, mut given) = (Vec::new(), 0);
    for read in bytes.chunks(step.max(1)) {
        decompressor.push(read);
        while decompressor.has_more() && given < OUTPUT_BYTES_MAX {
            out.clear();
            let broken = decompressor.decompress(&mut out).is_err();
            given += out.len() as u64;
            if broken {
                return given;
            }
        }
        if given >= OUTPUT_BYTES_MAX {
            break;
        }
    }
    given
}
