//! Splits byte streams into packets: lines ended by LF or CR, and frames with a length prefix (spec statsd §2.1,
//! §5.5; graphite §1.1.2, §1.2).
//!
//! Path of a packet: the connection's task reads bytes -> **`LineFramer::push`** or **`LengthFramer::push`** ->
//! complete lines or frames go to the source's parser as one packet, the incomplete rest is buffered until the next
//! read.
//! Not here: datagrams, which are packets already; parsing lines (`statsd`).
//! Invariants: the output does not depend on where reads cut the stream; a framer never buffers more than its `_max`,
//! in bytes as in memory; each byte is copied a bounded number of times, however small the reads are.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memrchr, memrchr2};
use model::Reject;
use model::limits::QUOTED_BYTES_MAX;

use crate::steps::touch;

/// Which bytes end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// LF.
    Lf,
    /// LF or CR, either of them: after CR LF there is an empty line.
    LfOrCr,
}

impl LineEnd {
    fn first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            LineEnd::Lf => memchr(b'\n', bytes),
            LineEnd::LfOrCr => memchr2(b'\n', b'\r', bytes),
        }
    }

    fn last(self, bytes: &[u8]) -> Option<usize> {
        match self {
            LineEnd::Lf => memrchr(b'\n', bytes),
            LineEnd::LfOrCr => memrchr2(b'\n', b'\r', bytes),
        }
    }
}

/// Memory that a framer without an unfinished line or frame keeps for the next one.
const KEPT_BYTES_MAX: usize = 512;

/// Splits a stream at its line ends and buffers the unfinished last line.
#[derive(Clone, Debug)]
pub struct LineFramer {
    /// The unfinished line.
    held: Vec<u8>,
    /// The current line is too long: its bytes are discarded up to its end.
    discarding: bool,
    too_long: u64,
    /// The first bytes of the first such line, for the log.
    first_too_long: Vec<u8>,
    line_bytes_max: usize,
    end: LineEnd,
}

impl LineFramer {
    /// A framer for lines of at most `line_bytes_max` bytes, LF not counted.
    pub fn new(line_bytes_max: usize) -> LineFramer {
        LineFramer::ended_by(LineEnd::Lf, line_bytes_max)
    }

    /// A framer for lines with these line ends, of at most `line_bytes_max` bytes without the line end.
    pub fn ended_by(end: LineEnd, line_bytes_max: usize) -> LineFramer {
        let (held, first_too_long) = (Vec::new(), Vec::new());
        LineFramer { held, discarding: false, too_long: 0, first_too_long, line_bytes_max, end }
    }

    /// Adds received bytes and returns all lines that are complete now, each with its end; empty when there is none.
    /// They are a slice of `bytes`, or of `room` when a line had to be joined from several reads.
    ///
    /// A line over the limit is skipped and counted, see [`LineFramer::take_too_long`].
    pub fn push<'a>(&mut self, bytes: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        let whole = if self.held.is_empty() && !self.discarding && bytes.len() <= self.line_bytes_max {
            let (whole, rest) = bytes.split_at(self.end.last(bytes).map_or(0, |last| last + 1));
            self.hold(rest);
            whole
        } else if self.held.len() + bytes.len() <= self.line_bytes_max && self.end.first(bytes).is_none() {
            // Still in the unfinished line, or in the one that is too long.
            if !self.discarding {
                grow(&mut self.held, bytes, self.line_bytes_max);
            }
            &[]
        } else {
            let given = self.join(bytes, room);
            &room[..given]
        };
        debug_assert!(self.held() <= self.line_bytes_max, "an unfinished line is within the limit");
        whole
    }

    /// Joins the unfinished line and `bytes` in `room`, without lines that are too long. Returns the length of the
    /// complete lines.
    fn join(&mut self, bytes: &[u8], room: &mut Vec<u8>) -> usize {
        touch(self.held.len() + bytes.len());
        room.clear();
        room.extend_from_slice(&self.held);
        let mut rest = bytes;
        // Start of the unfinished line.
        let mut start = 0;
        while !rest.is_empty() {
            if self.discarding {
                let Some(end) = self.end.first(rest) else { break };
                self.discarding = false;
                rest = &rest[end + 1..];
                continue;
            }
            // Each line that ends within this many bytes is within the limit, including the unfinished one: all of
            // them can be taken at once.
            let within = self.line_bytes_max - (room.len() - start) + 1;
            let window = &rest[..rest.len().min(within)];
            if let Some(last) = self.end.last(window) {
                room.extend_from_slice(&rest[..=last]);
                start = room.len();
                rest = &rest[last + 1..];
            } else if window.len() == within {
                if self.too_long == 0 {
                    let begin = room[start..].iter().chain(window);
                    self.first_too_long = begin.take(QUOTED_BYTES_MAX).copied().collect();
                }
                room.truncate(start);
                self.too_long += 1;
                self.discarding = true;
            } else {
                room.extend_from_slice(rest);
                break;
            }
        }
        self.hold(&room[start..]);
        start
    }

    /// Makes `rest` the unfinished line.
    fn hold(&mut self, rest: &[u8]) {
        forget(&mut self.held, rest.len());
        grow(&mut self.held, rest, self.line_bytes_max);
    }

    /// Takes the unfinished line at an orderly close, without LF; empty when there is none or it was too long. Resets
    /// the framer.
    pub fn finish(&mut self) -> Vec<u8> {
        self.discarding = false;
        std::mem::take(&mut self.held)
    }

    /// Number of lines skipped as too long since the last call, and the first bytes of the first of them, as many as
    /// the log quotes.
    pub fn take_too_long(&mut self) -> (u64, Vec<u8>) {
        (std::mem::take(&mut self.too_long), std::mem::take(&mut self.first_too_long))
    }

    /// Bytes of the unfinished line: at most `line_bytes_max`.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Memory for the unfinished line: at most `line_bytes_max`, or [`KEPT_BYTES_MAX`] if that is more.
    pub fn memory_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Discards the unfinished line and its remaining bytes. Nothing is counted here.
    pub fn discard(&mut self) {
        (self.held, self.discarding) = (Vec::new(), true);
    }

    /// The unfinished line, and whether the rest of a line that is too long is still to be discarded.
    pub fn unfinished(&self) -> (&[u8], bool) {
        (&self.held, self.discarding)
    }

    /// Restores the state of another framer. A line that is too long for this framer is skipped and counted.
    pub fn restore(&mut self, unfinished: &[u8], discarding: bool) {
        debug_assert!(!unfinished.contains(&b'\n'), "it would be finished");
        self.push(unfinished, &mut Vec::new());
        self.discarding |= discarding;
    }
}

/// Clears `held`, and frees its memory when `next` bytes do not need it.
fn forget(held: &mut Vec<u8>, next: usize) {
    held.clear();
    if held.capacity() > KEPT_BYTES_MAX.max(4 * next) {
        *held = Vec::new();
    }
}

/// Up to this size memory grows with the content: small messages need no more than their length, whatever the limit is.
const SMALL_BYTES_MAX: usize = 64 * 1024;

/// Appends to `held`, doubling its memory up to `most` bytes, and up to [`SMALL_BYTES_MAX`] while the content is within
/// that.
fn grow(held: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let len = held.len() + bytes.len();
    let most = if len <= SMALL_BYTES_MAX { most.min(SMALL_BYTES_MAX) } else { most };
    touch(bytes.len());
    if len > held.capacity() {
        touch(held.len());
        let room = (2 * held.capacity()).min(most).max(len);
        held.reserve_exact(room - held.len());
    }
    held.extend_from_slice(bytes);
}

/// Bytes of a length prefix: an unsigned integer.
const LENGTH_BYTES: usize = 4;

/// Byte order of a length prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthOrder {
    /// Little-endian: DogStatsD on unix stream sockets.
    Little,
    /// Big-endian: pickle and protobuf of the Graphite family.
    Big,
}

/// Splits a stream of frames with a length prefix. Memory grows with the bytes received, never with the length that was
/// announced.
#[derive(Clone, Debug)]
pub struct LengthFramer {
    /// Length prefix of the unfinished frame, and how many of its bytes were read.
    length: [u8; LENGTH_BYTES],
    length_bytes: usize,
    /// The unfinished frame.
    held: Vec<u8>,
    bad: bool,
    frame_bytes_max: usize,
    order: LengthOrder,
}

impl LengthFramer {
    /// A framer for frames of at most `frame_bytes_max` bytes without the length prefix, in DogStatsD's byte order.
    pub fn new(frame_bytes_max: usize) -> LengthFramer {
        LengthFramer::ordered(LengthOrder::Little, frame_bytes_max)
    }

    /// A framer for frames of at most `frame_bytes_max` bytes, with this byte order of the length prefix.
    pub fn ordered(order: LengthOrder, frame_bytes_max: usize) -> LengthFramer {
        let held = Vec::new();
        LengthFramer { length: [0; LENGTH_BYTES], length_bytes: 0, held, bad: false, frame_bytes_max, order }
    }

    /// Consumes the bytes of the next frame from the front of `bytes`, and returns the frame when it is complete.
    /// `None` when all of `bytes` is consumed.
    ///
    /// # Errors
    /// [`Reject::BadFrame`] when a length prefix is over the limit. The rest of the stream cannot be read: close the
    /// connection. Every later call returns the error again. Earlier frames were returned.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Reject> {
        if self.bad {
            return Err(Reject::BadFrame);
        }
        let come = split_off(bytes, LENGTH_BYTES - self.length_bytes);
        self.length[self.length_bytes..][..come.len()].copy_from_slice(come);
        self.length_bytes += come.len();
        if self.length_bytes < LENGTH_BYTES {
            return Ok(None);
        }
        let len = match self.order {
            LengthOrder::Little => u32::from_le_bytes(self.length),
            LengthOrder::Big => u32::from_be_bytes(self.length),
        } as usize;
        if len > self.frame_bytes_max {
            self.discard();
            return Err(Reject::BadFrame);
        }
        let come = split_off(bytes, len - self.held.len());
        if come.len() == len {
            // Whole frames need no copy.
            self.length_bytes = 0;
            return Ok(Some(Cow::Borrowed(come)));
        }
        grow(&mut self.held, come, len);
        if self.held.len() < len {
            return Ok(None);
        }
        self.length_bytes = 0;
        Ok(Some(Cow::Owned(std::mem::take(&mut self.held))))
    }

    /// Adds received bytes and calls `each` with every complete frame.
    ///
    /// # Errors
    /// See [`Self::next`].
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Reject> {
        let mut rest = bytes;
        while let Some(frame) = self.next(&mut rest)? {
            each(&frame);
        }
        Ok(())
    }

    /// The last length prefix as it was read. For a client that sends no frames it shows the first bytes of its data.
    pub fn length(&self) -> &[u8] {
        &self.length
    }

    /// Bytes of the unfinished frame and its length prefix: less than 4 + `frame_bytes_max`.
    pub fn held(&self) -> usize {
        self.length_bytes + self.held.len()
    }

    /// Memory for the unfinished frame: no more than the frame's length.
    pub fn memory_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Discards the unfinished frame. The rest of the stream cannot be read.
    pub fn discard(&mut self) {
        (self.bad, self.length_bytes, self.held) = (true, 0, Vec::new());
    }

    /// The unfinished frame with its length prefix, or part of the prefix.
    pub fn unfinished(&self) -> Vec<u8> {
        [&self.length[..self.length_bytes], &self.held].concat()
    }

    /// The first `most` bytes of it.
    pub fn begin(&self, most: usize) -> Vec<u8> {
        self.length[..self.length_bytes].iter().chain(&self.held).take(most).copied().collect()
    }

    /// Restores the state of another framer. A frame over this framer's limit is found at the next call.
    pub fn restore(&mut self, unfinished: &[u8]) {
        let (length, frame) = unfinished.split_at(unfinished.len().min(LENGTH_BYTES));
        self.length[..length.len()].copy_from_slice(length);
        (self.length_bytes, self.held) = (length.len(), frame.to_vec());
    }
}

/// Takes up to `most` bytes from the front of `bytes`.
fn split_off<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(bytes.len().min(most));
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The result for a stream that arrives in these pieces: lines (LF included), unfinished line, lines too long.
    fn lines_of<'a>(max: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<u8>, u64) {
        let mut framer = LineFramer::new(max);
        let (mut lines, mut room) = (Vec::new(), Vec::new());
        for piece in pieces {
            let whole = framer.push(piece, &mut room);
            assert!(whole.is_empty() || whole.ends_with(b"\n"), "only whole lines come out");
            lines.extend_from_slice(whole);
            assert!(framer.held() <= max, "held {} > {max}", framer.held());
        }
        let tail = framer.finish();
        assert_eq!(framer.held(), 0);
        (lines, tail, framer.take_too_long().0)
    }

    #[test]
    fn a_restored_framer_gives_the_same_output() {
        let stream = b"a\n12345678\n123456789\nb\nlast";
        for cut in 0..=stream.len() {
            let mut first = LineFramer::new(8);
            let mut room = Vec::new();
            let mut lines = first.push(&stream[..cut], &mut room).to_vec();
            let (unfinished, discarding) = first.unfinished();
            let mut second = LineFramer::new(8);
            second.restore(unfinished, discarding);
            lines.extend_from_slice(second.push(&stream[cut..], &mut room));
            let too_long = first.take_too_long().0 + second.take_too_long().0;
            assert_eq!((&*lines, too_long), (&b"a\n12345678\nb\n"[..], 1), "cut at {cut}");
            assert_eq!(second.finish(), b"last", "cut at {cut}");
        }
        let stream = b"\x02\0\0\0ab\0\0\0\0\x05\0\0\0hello";
        for cut in 0..=stream.len() {
            let (mut first, mut got) = (LengthFramer::new(5), Vec::new());
            first.push(&stream[..cut], |frame| got.push(frame.to_vec())).expect("it is short");
            let mut second = LengthFramer::new(5);
            second.restore(&first.unfinished());
            second.push(&stream[cut..], |frame| got.push(frame.to_vec())).expect("it is short");
            assert_eq!(got, [&b"ab"[..], b"", b"hello"], "cut at {cut}");
        }
        // With a lower limit, lines over it are too long.
        let mut shorter = LineFramer::new(4);
        shorter.restore(b"12345", false);
        assert_eq!(shorter.push(b"6\nok\n", &mut Vec::new()), b"ok\n");
        assert_eq!(shorter.take_too_long().0, 1);
        let mut shorter = LengthFramer::new(4);
        shorter.restore(b"\x05\0\0\0he");
        assert_eq!(shorter.push(b"llo", |_| panic!("it is too long")), Err(Reject::BadFrame));
    }

    /// The same, computed from the whole stream at once.
    fn lines_at_once(max: usize, stream: &[u8]) -> (Vec<u8>, Vec<u8>, u64) {
        let mut pieces: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
        let tail = pieces.pop().unwrap_or_default();
        let too_long = pieces.iter().chain([&tail]).filter(|line| line.len() > max).count() as u64;
        let lines =
            pieces.iter().filter(|line| line.len() <= max).flat_map(|line| [line, &b"\n"[..]].concat());
        (lines.collect(), if tail.len() > max { Vec::new() } else { tail.to_vec() }, too_long)
    }

    #[test]
    fn complete_lines_are_returned_and_the_tail_is_buffered() {
        let (mut framer, mut room) = (LineFramer::new(64), Vec::new());
        assert_eq!(framer.push(b"a:1|c\nb:", &mut room), b"a:1|c\n");
        assert_eq!(framer.held(), 2);
        assert_eq!(framer.push(b"2|c", &mut room), b"");
        assert_eq!(framer.push(b"\n\nc", &mut room), b"b:2|c\n\n");
        assert_eq!(framer.finish(), b"c");
        assert_eq!(framer.push(b"d\n", &mut room), b"d\n", "as new after its end");
        assert_eq!(framer.take_too_long().0, 0);
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
        let table: &[(&str, &str, &str, u64)] = &[
            ("12345678\n", "12345678\n", "", 0),
            ("123456789\n", "", "", 1),
            ("a\n123456789\nb\n", "a\nb\n", "", 1),
            ("123456789", "", "", 1),
            ("12345678", "", "12345678", 0),
            ("123456789abcdefghijklmnopqrstuvwxyz\n12345678\n123456789\nx", "12345678\n", "x", 2),
        ];
        for &(stream, lines, tail, too_long) in table {
            let want = (lines.as_bytes().to_vec(), tail.as_bytes().to_vec(), too_long);
            assert_eq!(lines_of(8, [stream.as_bytes()]), want, "{stream:?} at once");
            assert_eq!(lines_of(8, stream.as_bytes().chunks(1)), want, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn the_start_of_the_first_too_long_line_does_not_depend_on_reads() {
        let long = "first ".repeat(40);
        let stream = format!("a\n{long}\nb\n{}\nc\n", "second".repeat(60));
        for (max, quoted) in [(8, 9), (98, 99), (99, 100), (150, 100)] {
            for step in [1, 7, 64, 4096] {
                let mut framer = LineFramer::new(max);
                for read in stream.as_bytes().chunks(step) {
                    framer.push(read, &mut Vec::new());
                }
                let want = long.as_bytes()[..quoted].to_vec();
                assert_eq!(framer.take_too_long(), (2, want), "{max} bytes, reads of {step}");
                assert_eq!(framer.take_too_long(), (0, Vec::new()), "reported once");
            }
        }
    }

    #[test]
    fn a_frame_at_the_limit_passes_and_one_byte_more_closes() {
        let mut framer = LengthFramer::new(5);
        let mut got = Vec::new();
        let sent = framer.push(b"\x05\0\0\0hello\0\0\0\0\x01\0\0\0x\x02\0", |frame| got.push(frame.to_vec()));
        assert_eq!(sent, Ok(()));
        assert_eq!(got, [&b"hello"[..], b"", b"x"]);
        assert_eq!(framer.held(), 2);

        let mut framer = LengthFramer::new(5);
        let sent = framer.push(b"\x01\0\0\0x\x06\0\0\0hello!", |frame| assert_eq!(frame, b"x"));
        assert_eq!((sent, framer.length()), (Err(Reject::BadFrame), &b"\x06\0\0\0"[..]));
        assert_eq!(framer.push(b"\x01\0\0\0x", |_| panic!("nothing follows")), Err(Reject::BadFrame));
        assert_eq!(framer.held(), 0);
    }

    #[test]
    fn a_cr_ends_a_line_only_with_lf_or_cr() {
        let table: &[(&str, &str, &str, u64)] = &[
            ("a\r\nb\rc", "a\r\nb\r", "c", 0),
            ("123456789\ra\n", "a\n", "", 1),
            ("12345678\r\r\r", "12345678\r\r\r", "", 0),
            ("endless and endless\r\nb\n", "\nb\n", "", 1),
        ];
        for &(stream, lines, tail, too_long) in table {
            for step in 1..=stream.len() {
                let mut framer = LineFramer::ended_by(LineEnd::LfOrCr, 8);
                let mut got = Vec::new();
                for read in stream.as_bytes().chunks(step) {
                    got.extend_from_slice(framer.push(read, &mut Vec::new()));
                    assert!(framer.held() <= 8);
                }
                assert_eq!(got.escape_ascii().to_string(), lines.escape_default().to_string());
                assert_eq!(framer.take_too_long().0, too_long);
                assert_eq!(framer.finish(), tail.as_bytes());
            }
        }
    }

    #[test]
    fn a_length_over_the_limit_is_rejected_before_memory_is_allocated() {
        for (length, fine) in [(16 << 20, true), ((16 << 20) + 1, false), (2 << 30, false), (u32::MAX, false)]
        {
            let mut framer = LengthFramer::ordered(LengthOrder::Big, 16 << 20);
            let bytes = [&length.to_be_bytes()[..], b"\x80\x02"].concat();
            assert_eq!(framer.push(&bytes, |_| panic!("no frame is whole")).is_ok(), fine, "{length}");
            assert_eq!(framer.held(), if fine { 6 } else { 0 });
        }
        let mut framer = LengthFramer::ordered(LengthOrder::Big, 9);
        let mut got = Vec::new();
        let sent = framer.push(b"\0\0\0\x02hi\0\0", |frame| got.push(frame.to_vec()));
        assert_eq!((sent, got, framer.held()), (Ok(()), vec![b"hi".to_vec()], 2));
    }

    #[test]
    fn memory_is_kept_for_the_unfinished_line_only() {
        let mut room = Vec::new();
        let mut framer = LineFramer::new(64 * 1024);
        for read in [vec![b'x'; 64 * 1024], b"\n".to_vec(), b"a:1|c\n".repeat(10_000), b"a:".to_vec()] {
            framer.push(&read, &mut room);
            let most = framer.line_bytes_max.min(KEPT_BYTES_MAX.max(4 * framer.held()));
            assert!(framer.memory_bytes() <= most, "{} for {}", framer.memory_bytes(), framer.held());
        }
        // Fed byte by byte, memory doubles up to the limit.
        let mut framer = LineFramer::new(1_000);
        let mut memory = vec![0];
        for _ in 0..1_000 {
            framer.push(b"x", &mut room);
            memory.push(framer.memory_bytes());
        }
        memory.dedup();
        assert!(memory.len() < 13 && memory.last() == Some(&1_000), "{memory:?}");
        let mut framer = LengthFramer::ordered(LengthOrder::Big, 1_000);
        for byte in b"\0\0\x03\xe8".iter().chain([&b'x'; 999]) {
            assert_eq!(framer.next(&mut &[*byte][..]), Ok(None));
            assert!(framer.held.capacity() <= 1_000);
        }
        assert_eq!(framer.next(&mut &b"x"[..]), Ok(Some(Cow::Owned(vec![b'x'; 1_000]))));
        assert_eq!((framer.held(), framer.held.capacity()), (0, 0));
    }

    /// Cuts `stream` at the places that `cuts` selects.
    fn cut<'a>(stream: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        places.sort_unstable();
        let ends = places.iter().copied().chain([stream.len()]);
        let starts = [0].into_iter().chain(places.iter().copied());
        starts.zip(ends).map(|(start, end)| &stream[start..end]).collect()
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_the_stream_is_cut(
            stream in "[ab\n]{0,120}",
            cuts in proptest::collection::vec(any::<usize>(), 0..12),
            max in 0_usize..12,
        ) {
            let pieces = cut(stream.as_bytes(), &cuts);
            prop_assert_eq!(lines_of(max, pieces), lines_at_once(max, stream.as_bytes()));
        }

        #[test]
        fn frames_do_not_depend_on_where_the_stream_is_cut(
            frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..8),
            cuts in proptest::collection::vec(any::<usize>(), 0..12),
        ) {
            let mut stream = Vec::new();
            for frame in &frames {
                stream.extend_from_slice(&(frame.len() as u32).to_le_bytes());
                stream.extend_from_slice(frame);
            }
            let mut framer = LengthFramer::new(8);
            let mut got = Vec::new();
            for piece in cut(&stream, &cuts) {
                prop_assert_eq!(framer.push(piece, |frame| got.push(frame.to_vec())), Ok(()));
                prop_assert!(framer.held() < 4 + 8);
            }
            prop_assert_eq!(framer.held(), 0);
            prop_assert_eq!(got, frames);
        }
    }
}
