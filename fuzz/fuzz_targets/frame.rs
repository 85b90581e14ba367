//! What the framers give out does not depend on where the reads cut the stream, and they stay within their bounds.
//!
//! The first byte is the limit, the second the length of a read; the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::frame::{LengthFramer, LineFramer};

fuzz_target!(|data: &[u8]| {
    let [max, read, stream @ ..] = data else { return };
    let (max, read) = (usize::from(*max), usize::from(*read).max(1));
    assert_eq!(lines(max, stream.chunks(read)), lines_at_once(max, stream));
    assert_eq!(frames(max, stream.chunks(read)), frames(max, [stream]));
});

/// Lines with their LF, the tail, and how many were too long.
type Lines = (Vec<u8>, Vec<u8>, u64);

fn lines<'a>(max: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> Lines {
    let mut framer = LineFramer::new(max);
    let mut lines = Vec::new();
    for read in reads {
        lines.extend_from_slice(framer.push(read));
        assert!(framer.held() <= max);
    }
    let tail = framer.finish().to_vec();
    (lines, tail, framer.take_too_long())
}

fn lines_at_once(max: usize, stream: &[u8]) -> Lines {
    let mut pieces: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
    let tail = pieces.pop().unwrap_or_default();
    let too_long = pieces.iter().chain([&tail]).filter(|line| line.len() > max).count() as u64;
    let short = pieces.iter().filter(|line| line.len() <= max);
    let lines = short.flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
    (lines, if tail.len() > max { Vec::new() } else { tail.to_vec() }, too_long)
}

/// Frames, whether the stream went bad, and how much of an unfinished frame is held.
fn frames<'a>(max: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool, usize) {
    let mut framer = LengthFramer::new(max);
    let mut frames = Vec::new();
    let mut bad = false;
    for read in reads {
        bad |= framer.push(read, |frame| frames.push(frame.to_vec())).is_err();
        assert!(framer.held() < 4 + max.max(1));
    }
    (frames, bad, framer.held())
}
