//! Fuzzes the framers: the output does not depend on where the reads cut the stream, and memory stays within limits.
//!
//! The first byte is the limit, the second the length of a read; the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::frame::{LengthFramer, LengthOrder, LineEnd, LineFramer};

fuzz_target!(|data: &[u8]| {
    let [max, read, stream @ ..] = data else { return };
    let (max, read) = (usize::from(*max), usize::from(*read).max(1));
    for end in [LineEnd::Lf, LineEnd::LfOrCr] {
        assert_eq!(lines(end, max, stream.chunks(read)), lines_at_once(end, max, stream));
        check(Parser::Lines(end, read), stream, allocated);
    }
    for order in [LengthOrder::Little, LengthOrder::Big] {
        assert_eq!(frames(order, max, stream.chunks(read)), frames(order, max, [stream]));
        check(Parser::Frames(order, read), stream, allocated);
    }
});

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}

/// Lines with their LF, the unfinished line, and the number of lines that were too long.
type Lines = (Vec<u8>, Vec<u8>, u64);

fn lines<'a>(end: LineEnd, max: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> Lines {
    let mut framer = LineFramer::ended_by(end, max);
    let (mut lines, mut room) = (Vec::new(), Vec::new());
    for read in reads {
        lines.extend_from_slice(framer.push(read, &mut room));
        assert!(framer.held() <= max);
    }
    let tail = framer.finish();
    (lines, tail, framer.take_too_long().0)
}

fn lines_at_once(end: LineEnd, max: usize, stream: &[u8]) -> Lines {
    let ends = |byte: u8| byte == b'\n' || (byte == b'\r' && end == LineEnd::LfOrCr);
    let mut lines = Vec::new();
    let mut too_long = 0;
    let mut line = Vec::new();
    for byte in stream {
        line.push(*byte);
        if ends(*byte) {
            too_long += u64::from(line.len() > max + 1);
            let line = std::mem::take(&mut line);
            lines.extend(if line.len() > max + 1 { Vec::new() } else { line });
        }
    }
    too_long += u64::from(line.len() > max);
    (lines, if line.len() > max { Vec::new() } else { line }, too_long)
}

/// Frames, whether the stream had an error, and the buffered length of an unfinished frame.
fn frames<'a>(
    order: LengthOrder,
    max: usize,
    reads: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, bool, usize) {
    let mut framer = LengthFramer::ordered(order, max);
    let mut frames = Vec::new();
    let mut bad = false;
    for read in reads {
        bad |= framer.push(read, |frame| frames.push(frame.to_vec())).is_err();
        assert!(framer.held() < 4 + max.max(1));
    }
    (frames, bad, framer.held())
}
