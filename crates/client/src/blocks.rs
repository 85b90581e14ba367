//! Blocks of queues as text and back: plain lines, or JSON lines that keep the borders of frames and packets.
//!
//! Path of a packet: none. `staunch queue export` writes them; `staunch queue replay` and `POST …/replay` read them.
//! Not here: reading queues (`deliver::disk_queue::inspect`), appending to them (`deliver::queue`).
//! Invariant: a block written as JSON is read back as the same block. Input is checked, so that no sender reads outside a block.

use std::sync::Arc;

use config::plan::{OutputKind, Written};
use deliver::queue::{BLOCK_BYTES_MAX, Block, BlockEncoding};
use deliver::shared_queue::PARTITIONS;
use model::Span;
use serde::{Deserialize, Serialize};

/// Longest line that is put back, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// What is known of a block, beside what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The queue that it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its number: counts all blocks that the queue ever took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ms: Option<u64>,
    /// Not settled yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<bool>,
    /// The file of the quarantine that it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its checksum holds; of blocks from the quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<bool>,
}

/// One line of JSON.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    about: About,
    /// Earlier versions wrote it as `form`.
    #[serde(rename = "encoding", alias = "form")]
    form: Form,
    copies: u32,
    /// Of the block's series, when they are all of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<u8>,
    /// (end, copies) of each frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frames: Vec<(u32, u32)>,
    /// (offset, length) of each packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    packets: Vec<(u32, u32)>,
    bytes: Bytes,
}

/// How a block divides into copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Lines.
    Lines,
    /// Frames, each of some copies.
    Frames,
    /// Packets.
    Packets,
}

impl Form {
    /// That of a block.
    pub fn of(block: &Block) -> Form {
        match block.encoding {
            BlockEncoding::Lines => Form::Lines,
            BlockEncoding::Frames(_) => Form::Frames,
            BlockEncoding::Packets(_) => Form::Packets,
        }
    }

    /// Whether a block has one of the forms that an output sends.
    ///
    /// # Errors
    /// A sentence, when it has another.
    pub fn check(block: &Block, forms: &[Form]) -> Result<(), String> {
        let form = Form::of(block);
        if forms.contains(&form) {
            return Ok(());
        }
        let takes: Vec<&str> = forms.iter().map(|form| form.word()).collect();
        Err(format!("these are {}, and the output takes {}", form.word(), takes.join(" or ")))
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Form::Lines => "lines",
            Form::Frames => "frames",
            Form::Packets => "packets",
        }
    }
}

/// The forms of blocks that an output sends.
pub fn takes(kind: &OutputKind) -> &'static [Form] {
    match kind.facts().written {
        Written::Pickle | Written::Documents => &[Form::Frames],
        Written::PointLines | Written::Lines => &[Form::Lines],
        Written::Packets => &[Form::Packets, Form::Frames],
    }
}

/// Text as it is; other bytes as hexadecimal digits.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Hex { hex: String },
}

/// The block as one line of JSON, LF included.
pub fn to_json(about: &About, block: &Block) -> Vec<u8> {
    let (frames, packets) = match &block.encoding {
        BlockEncoding::Lines => (Vec::new(), Vec::new()),
        BlockEncoding::Frames(frames) => (frames.clone(), Vec::new()),
        BlockEncoding::Packets(packets) => {
            (Vec::new(), packets.iter().map(|span| (span.at, span.len)).collect())
        }
    };
    let bytes = match std::str::from_utf8(&block.bytes) {
        Ok(text) => Bytes::Text(text.to_owned()),
        Err(_) => Bytes::Hex { hex: to_hex(&block.bytes) },
    };
    let row = Row {
        about: about.clone(),
        form: Form::of(block),
        copies: block.copies,
        partition: block.partition,
        frames,
        packets,
        bytes,
    };
    let mut line = serde_json::to_vec(&row).expect("texts and numbers are JSON");
    line.push(b'\n');
    line
}

/// The block in a line of JSON, made at `at_ns`.
///
/// # Errors
/// What is wrong with it, in a few words.
pub fn from_json(line: &[u8], at_ns: u64) -> Result<Block, String> {
    let row: Row = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let bytes = match row.bytes {
        Bytes::Text(text) => text.into_bytes(),
        Bytes::Hex { hex } => from_hex(&hex).ok_or("`hex` is no row of pairs of hexadecimal digits")?,
    };
    let len = u32::try_from(bytes.len()).map_err(|_| "it has over 4 GiB".to_owned())?;
    let block = match row.form {
        Form::Lines if bytes.ends_with(b"\n") => lines(bytes, at_ns),
        Form::Lines => return Err("the last of its lines has no line feed".into()),
        Form::Frames => {
            let copies = frame_copies(&row.frames, len)?;
            Block { copies, encoding: BlockEncoding::Frames(row.frames), ..Block::lines(bytes, 0, at_ns) }
        }
        Form::Packets => {
            let spans = spans(&row.packets, len)?;
            let copies = u32::try_from(spans.len()).map_err(|_| "it has over 4 Gi packets".to_owned())?;
            Block {
                copies,
                encoding: BlockEncoding::Packets(Arc::new(spans)),
                ..Block::lines(bytes, 0, at_ns)
            }
        }
    };
    Ok(Block { partition: row.partition.filter(|partition| *partition < PARTITIONS), ..block })
}

/// Copies of all frames, whose borders must fit a block of `len` bytes.
fn frame_copies(frames: &[(u32, u32)], len: u32) -> Result<u32, String> {
    let ascends = frames.is_sorted_by(|one, next| one.0 < next.0);
    if !ascends || frames.last().map(|last| last.0) != Some(len) {
        return Err(
            "`frames` must be [end, copies] of each, ends ascending, the last one that of `bytes`".into()
        );
    }
    // A copy takes a byte at least. The number itself cannot be checked, and counts as routed and queued.
    let begins = std::iter::once(0).chain(frames.iter().map(|frame| frame.0));
    let fits = frames.iter().zip(begins).all(|((end, copies), begin)| *copies <= end - begin);
    if !fits {
        return Err("`frames` has a frame with more copies than bytes".into());
    }
    Ok(frames.iter().map(|frame| frame.1).sum())
}

/// Packets, which must fit a block of `len` bytes.
fn spans(packets: &[(u32, u32)], len: u32) -> Result<Vec<Span>, String> {
    if packets.is_empty() {
        return Err("`packets` is missing or empty".into());
    }
    let mut end = 0;
    for (at, packet_len) in packets {
        let next = at.checked_add(*packet_len).filter(|next| *at >= end && *next <= len);
        end = next.ok_or("`packets` must be [offset, length] of each, ascending, within `bytes`")?;
    }
    Ok(packets.iter().map(|(at, len)| Span { at: *at, len: *len }).collect())
}

/// Lines that come in pieces, as blocks. Empty ones are left out; the last one needs no line feed.
#[derive(Debug, Default)]
pub struct LineBlocks {
    open: Vec<u8>,
}

impl LineBlocks {
    /// Takes one line, with or without its line feed. Gives a block when one is full.
    ///
    /// # Errors
    /// When the line is longer than [`LINE_BYTES_MAX`].
    pub fn push(&mut self, line: &[u8], at_ns: u64) -> Result<Option<Block>, String> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() >= LINE_BYTES_MAX {
            return Err(format!("it is longer than {LINE_BYTES_MAX} bytes"));
        }
        if line.iter().all(|byte| *byte == b'\r') {
            return Ok(None);
        }
        let full = self.open.len() + line.len() >= BLOCK_BYTES_MAX;
        let block = if full { self.take(at_ns) } else { None };
        self.open.extend_from_slice(line);
        self.open.push(b'\n');
        Ok(block)
    }

    /// What is left.
    pub fn take(&mut self, at_ns: u64) -> Option<Block> {
        if self.open.is_empty() {
            return None;
        }
        Some(lines(std::mem::take(&mut self.open), at_ns))
    }
}

/// A block of lines, each ended by LF.
fn lines(bytes: Vec<u8>, at_ns: u64) -> Block {
    let copies = memchr::memchr_iter(b'\n', &bytes).count();
    Block::lines(bytes, u32::try_from(copies).unwrap_or(u32::MAX), at_ns)
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use model::PacketBatch;

    use super::*;

    #[test]
    fn blocks_of_each_form_are_read_as_they_were_written() {
        let spans = [(0, 1), (2, 2), (5, 0)].map(|(at, len)| Span::new(at, len)).to_vec();
        let blocks = [
            (
                Block::lines(b"a 1 2\nb 3 4\n".to_vec(), 2, 5),
                r#""encoding":"lines","copies":2,"bytes":"a 1 2\nb 3 4\n"}"#,
            ),
            (
                Block { partition: Some(3), ..Block::lines(b"c 1 2\n".to_vec(), 1, 5) },
                r#""encoding":"lines","copies":1,"partition":3,"bytes":"c 1 2\n"}"#,
            ),
            (
                Block::frames(b"\x80\x02ab".to_vec(), vec![(2, 1), (4, 2)], 5),
                r#""encoding":"frames","copies":3,"frames":[[2,1],[4,2]],"bytes":{"hex":"80026162"}}"#,
            ),
            (
                Block::packets(PacketBatch { bytes: b"a\nbb\n".to_vec(), packets: spans }, 5),
                r#""encoding":"packets","copies":3,"packets":[[0,1],[2,2],[5,0]],"bytes":"a\nbb\n"}"#,
            ),
        ];
        let about = About { queue: Some("web".into()), block: Some(7), made_ms: Some(9), ..About::default() };
        for (block, want) in blocks {
            let line = to_json(&about, &block);
            let head = r#"{"queue":"web","block":7,"made_ms":9,"#;
            assert_eq!(String::from_utf8_lossy(&line), format!("{head}{want}\n"));
            assert_eq!(from_json(&line, 5).as_ref(), Ok(&block));
            let earlier = String::from_utf8_lossy(&line).replace(r#""encoding":"#, r#""form":"#);
            assert_eq!(from_json(earlier.as_bytes(), 5), Ok(block), "{earlier}");
        }
    }

    #[test]
    fn rows_that_no_sender_could_cut_are_refused() {
        for (row, why) in [
            (r#"{"encoding":"lines","copies":1,"bytes":"a"}"#, "line feed"),
            (r#"{"encoding":"lines","copies":1}"#, "bytes"),
            (r#"{"copies":1,"bytes":"a"}"#, "encoding"),
            (r#"{"encoding":"lines","form":"lines","copies":1,"bytes":"a\n"}"#, "duplicate"),
            (r#"{"encoding":"words","copies":1,"bytes":"a"}"#, "unknown variant"),
            (r#"{"encoding":"frames","copies":1,"bytes":"a"}"#, "[end, copies]"),
            (r#"{"encoding":"frames","copies":1,"frames":[[2,1]],"bytes":"a"}"#, "[end, copies]"),
            (r#"{"encoding":"frames","copies":1,"frames":[[1,1],[1,1]],"bytes":"a"}"#, "[end, copies]"),
            (
                r#"{"encoding":"frames","copies":1,"frames":[[1,4294967295],[2,1]],"bytes":"ab"}"#,
                "more copies than bytes",
            ),
            (
                r#"{"encoding":"frames","copies":3,"frames":[[1,1],[3,3]],"bytes":"abc"}"#,
                "more copies than bytes",
            ),
            (r#"{"encoding":"packets","copies":1,"bytes":"a"}"#, "missing"),
            (r#"{"encoding":"packets","copies":1,"packets":[[0,2]],"bytes":"a"}"#, "within `bytes`"),
            (r#"{"encoding":"packets","copies":1,"packets":[[1,1],[0,1]],"bytes":"ab"}"#, "ascending"),
            (
                r#"{"encoding":"packets","copies":1,"packets":[[4294967295,1]],"bytes":"ab"}"#,
                "within `bytes`",
            ),
            (r#"{"encoding":"lines","copies":1,"bytes":{"hex":"0"}}"#, "pairs"),
            (r#"{"encoding":"lines","copies":1,"bytes":{"hex":"+1"}}"#, "pairs"),
            ("a 1 2", "expected"),
        ] {
            let error = from_json(row.as_bytes(), 0).expect_err(row);
            assert!(error.contains(why), "{row}: {error}");
        }
    }

    #[test]
    fn lines_become_blocks_within_their_bounds() {
        let mut blocks = LineBlocks::default();
        for line in [&b"a\n"[..], b"\n", b"\r\n", b"b\r\n", b"c"] {
            assert_eq!(blocks.push(line, 3), Ok(None));
        }
        assert_eq!(blocks.take(3), Some(Block::lines(b"a\nb\r\nc\n".to_vec(), 3, 3)));
        assert_eq!(blocks.take(3), None);
        let longest = vec![b'x'; LINE_BYTES_MAX - 1];
        assert_eq!(blocks.push(&longest, 3), Ok(None));
        let long = blocks.push(b"y\n", 3).expect("within the bound").expect("the one before is full");
        assert_eq!((long.bytes.len(), long.copies), (LINE_BYTES_MAX, 1));
        assert!(blocks.push(&[b'x'; LINE_BYTES_MAX], 3).is_err());
        assert_eq!(blocks.take(3).map(|block| block.bytes.to_vec()), Some(b"y\n".to_vec()));
    }
}
