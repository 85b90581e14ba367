//! The cost of reading, held to the bytes that were read: steps and memory per byte have a bound for every parser, and for what is
//! written for lines of StatsD, where a name that came once is written for each of its values.
//!
//! A step is a byte that a parser goes over once more: [`touch`] stands where a run of bytes is scanned, copied, cleared or
//! hashed, and at each opcode and element. It compiles to nothing but in tests and with the feature `reference`. Memory is what
//! is asked of the allocator meanwhile; the caller counts it.
//! [`check`] has one input, for the fuzz targets; [`check_doubled`] the worst inputs that we know, in two sizes, for `cargo
//! test`: a parser may be within its bound for one size and over it for the next.
//! Not here: time. A machine that is busy would be found guilty.
//! Invariant: a check that nothing fails may be asleep, so a canary reads messages without their bound and has to be found.

mod inputs;
#[cfg(test)]
mod tests;
mod writers;

use std::cell::Cell;

use model::Span;

use crate::compression::{Compression, Decompressor};
use crate::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};
use crate::graphite::input::{self, Compatibility, MessageEncoding};
use crate::statsd::{self, Dialect, WRITTEN_PER_BYTE_MAX};

pub use inputs::{Input, inputs};
pub use writers::Writer;

/// Steps that a byte of input may take, and memory that it may ask for: all that is given back at once included, since vectors
/// double.
#[derive(Clone, Copy, Debug)]
struct PerByte {
    steps: u64,
    allocated: u64,
}

/// Lines and frames: two or three steps, and a sample for two bytes.
const LINES: PerByte = PerByte { steps: 16, allocated: 192 };

/// A byte of a message may refer to 128 others, which are gone over when they are written, read as a line, and hashed; and may
/// unfold to a line with its point.
const MESSAGES: PerByte = PerByte { steps: 512, allocated: 768 };

/// Lines are read, and a byte of one may become so many that are written, and gone over once more. A vector that doubles asks
/// for four times of what it holds at most.
const WRITTEN: PerByte = PerByte {
    steps: LINES.steps + 2 * WRITTEN_PER_BYTE_MAX as u64,
    allocated: LINES.allocated + 4 * WRITTEN_PER_BYTE_MAX as u64,
};

/// Room is cleared for members of twenty bytes.
const PACKED: PerByte = PerByte { steps: 128, allocated: 32 };

/// Memory that is asked for whatever the input: a window, the first of everything.
pub const ALLOCATED_ALWAYS_MAX: u64 = 128 * 1024;

/// What is gone over whatever the input.
pub const STEPS_ALWAYS_MAX: u64 = 16 * 1024;

/// Twice the input may cost so many times as much, in percent, and [`STEPS_ALWAYS_MAX`] or [`ALLOCATED_ALWAYS_MAX`] more.
const DOUBLED_PERCENT_MAX: u64 = 250;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// So many bytes are gone over.
#[inline]
pub(crate) fn touch(bytes: usize) {
    STEPS.set(STEPS.get() + bytes as u64);
}

/// Something that bytes from outside are read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parser {
    /// StatsD packets.
    Statsd(Dialect),
    /// Graphite lines.
    Graphite(Compatibility),
    /// One message.
    Message(MessageEncoding),
    /// A stream of lines, in reads of so many bytes.
    Lines(LineEnd, usize),
    /// A stream of frames, in reads of so many bytes.
    Frames(LengthOrder, usize),
    /// A packed stream, in reads of so many bytes, up to a megabyte of what it gives.
    Packed(Compression, usize),
    /// Lines as a rewriting endpoint takes them apart.
    Parts,
    /// Lines, and what is written for them.
    Written(Writer),
}

/// What reading an input took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes gone over.
    pub steps: u64,
    /// Bytes asked of the allocator.
    pub allocated: u64,
}

impl Parser {
    fn per_byte(self) -> PerByte {
        match self {
            Parser::Message(_) => MESSAGES,
            Parser::Packed(..) => PACKED,
            Parser::Written(_) => WRITTEN,
            Parser::Statsd(_)
            | Parser::Graphite(_)
            | Parser::Parts
            | Parser::Lines(..)
            | Parser::Frames(..) => LINES,
        }
    }
}

impl Cost {
    /// Of `run`; `allocated` runs what it is given, and says how many bytes that asked for.
    pub fn of(allocated: impl FnOnce(&mut dyn FnMut()) -> u64, run: &mut dyn FnMut()) -> Cost {
        let before = STEPS.get();
        let allocated = allocated(run);
        Cost { steps: STEPS.get() - before, allocated }
    }

    /// Within the bounds for `bytes` of input, those included that a packed stream gave.
    fn is_within(self, parser: Parser, bytes: u64) -> bool {
        let PerByte { steps, allocated } = parser.per_byte();
        self.steps <= STEPS_ALWAYS_MAX + steps * bytes
            && self.allocated <= ALLOCATED_ALWAYS_MAX + allocated * bytes
    }

    /// In proportion for an input twice as long as that of `half`.
    fn is_twice(self, half: Cost) -> bool {
        let within = |twice: u64, once: u64, always: u64| twice <= once * DOUBLED_PERCENT_MAX / 100 + always;
        within(self.steps, half.steps, STEPS_ALWAYS_MAX)
            && within(self.allocated, half.allocated, ALLOCATED_ALWAYS_MAX)
    }
}

/// Reads `bytes` and holds what it took to the bounds.
///
/// # Panics
/// When it took more.
pub fn check(parser: Parser, bytes: &[u8], allocated: impl FnOnce(&mut dyn FnMut()) -> u64) {
    let mut given = 0;
    let cost = Cost::of(allocated, &mut || given = run(parser, bytes));
    assert!(
        cost.is_within(parser, bytes.len() as u64 + given),
        "{parser:?}: {cost:?} for {} bytes",
        bytes.len()
    );
}

/// Reads `input` in two sizes, the second one twice the first, and holds what that took to the bounds and to each other.
///
/// # Panics
/// When it took more.
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
    assert!(twice.is_twice(once), "{parser:?}, {name}: {twice:?} for twice what took {once:?}");
}

/// Reads `bytes` as the daemon does. Gives the bytes that a packed stream gave.
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
        Parser::Message(form) => {
            let reader = input::Reader::new(input::Options::of(Compatibility::Strict), 1);
            reader.message(form, bytes, packet, NOW_S, &mut input::Parsed::default());
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
                // It goes on as broken.
                let _broken = framer.push(read, |_frame| touch(1));
            }
        }
        Parser::Written(writer) => writers::run(writer, bytes),
        Parser::Packed(compression, step) => return unpack(compression, step, bytes),
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

fn unpack(compression: Compression, step: usize, bytes: &[u8]) -> u64 {
    const GIVEN_BYTES_MAX: u64 = 1 << 20;
    let Some(mut decompressor) = Decompressor::new(compression) else { return 0 };
    let (mut out, mut given) = (Vec::new(), 0);
    for read in bytes.chunks(step.max(1)) {
        decompressor.push(read);
        while decompressor.has_more() && given < GIVEN_BYTES_MAX {
            out.clear();
            let broken = decompressor.unpack(&mut out).is_err();
            given += out.len() as u64;
            if broken {
                return given;
            }
        }
        if given >= GIVEN_BYTES_MAX {
            break;
        }
    }
    given
}
