//! Headers of a saved state and of its blocks; `checkpoint` documents the layout. Decoding never fails hard: any
//! bytes give a value or None.

use twox_hash::XxHash3_64;

use crate::aggregate::clock::OpenWindow;
use crate::aggregate::plan::FlushAlign;
use crate::bytes::Bytes;

const MAGIC: [u8; 8] = *b"STNAGG\r\n";
const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 96;
/// Start of a block. The first byte never occurs in UTF-8 text.
const MARKER: [u8; 4] = [0xf1, b'S', b'a', 0x1a];
pub(super) const BLOCK_HEADER_BYTES: usize = 32;
/// Encodes a missing label.
const NO_LABEL: u64 = u64::MAX;

/// The series had a sample in the open window. The other bits of the byte are the kind.
pub(super) const MARK_ACTIVE: u8 = 4;

/// Why nothing was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// The bytes do not begin as a saved state does.
    NotSavedState,
    /// The format version is unknown.
    Version,
    /// The header is damaged or truncated.
    Header,
}

impl NotRestored {
    /// The reason as text for logs.
    pub fn why(self) -> &'static str {
        match self {
            NotRestored::NotSavedState => "it does not begin as a checkpoint does",
            NotRestored::Version => "it was written in a format that this version does not know",
            NotRestored::Header => "its header is damaged or cut short",
        }
    }
}

/// Header of a saved state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) begun_wall_ns: u64,
    pub(super) window: OpenWindow,
}

impl Header {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        let window = &self.window;
        let grid = match window.align {
            FlushAlign::Wall => 0u64,
            FlushAlign::Start => 1,
            FlushAlign::Interval => 2,
        };
        let numbers = [
            self.id,
            self.number,
            self.begun_wall_ns,
            window.window_ns,
            grid,
            window.anchor_ns,
            window.ends_wall_ns,
            window.opened_wall_ns,
            window.labelled_s.unwrap_or(NO_LABEL),
        ];
        numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
        let checksum = XxHash3_64::oneshot(&to[start..]);
        to.extend_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(to.len() - start, HEADER_BYTES);
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Header, NotRestored> {
        let magic = bytes.first_chunk().is_some_and(|magic| *magic == MAGIC);
        if !magic {
            return Err(NotRestored::NotSavedState);
        }
        let mut from = Bytes::new(&bytes[MAGIC.len()..]);
        if from.u32().is_some_and(|version| version != VERSION) {
            return Err(NotRestored::Version);
        }
        Header::fields(bytes).ok_or(NotRestored::Header)
    }

    fn fields(bytes: &[u8]) -> Option<Header> {
        let whole = bytes.get(..HEADER_BYTES)?;
        let (before, checksum) = whole.split_at(HEADER_BYTES - 8);
        if Bytes::new(checksum).u64()? != XxHash3_64::oneshot(before) {
            return None;
        }
        let mut from = Bytes::new(&before[12..]);
        if from.u32()? as usize != HEADER_BYTES {
            return None;
        }
        let mut number = || from.u64();
        let (id, save, begun_wall_ns, window_ns) = (number()?, number()?, number()?, number()?);
        let align = match number()? {
            0 => FlushAlign::Wall,
            1 => FlushAlign::Start,
            2 => FlushAlign::Interval,
            _ => return None,
        };
        let window = OpenWindow {
            align,
            window_ns,
            anchor_ns: number()?,
            ends_wall_ns: number()?,
            opened_wall_ns: number()?,
            labelled_s: Some(number()?).filter(|label| *label != NO_LABEL),
        };
        Some(Header { id, number: save, begun_wall_ns, window })
    }

    /// The bytes after the header: the blocks.
    pub(super) fn blocks(bytes: &[u8]) -> &[u8] {
        bytes.get(HEADER_BYTES..).unwrap_or(&[])
    }
}

/// Content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Series,
    BusyNames,
    End,
}

/// Header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) kind: BlockKind,
    pub(super) count: u32,
    pub(super) body_bytes: usize,
    body_checksum: u64,
}

impl BlockHeader {
    /// Reserves space for a block header; the body follows it in `to`.
    pub(super) fn reserve(to: &mut Vec<u8>) -> usize {
        let start = to.len();
        to.resize(start + BLOCK_HEADER_BYTES, 0);
        start
    }

    /// Writes the header at `start`. The bytes after it in `to` are the body.
    pub(super) fn fill(kind: BlockKind, count: u32, id: u64, start: usize, to: &mut [u8]) {
        let (header, body) = to[start..].split_at_mut(BLOCK_HEADER_BYTES);
        debug_assert!(body.len() <= u32::MAX as usize, "a block is one slice, and a series is under 4 GiB");
        let kind: u32 = match kind {
            BlockKind::Series => 0,
            BlockKind::BusyNames => 1,
            BlockKind::End => 2,
        };
        header[..4].copy_from_slice(&MARKER);
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[8..12].copy_from_slice(&count.to_le_bytes());
        header[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[16..24].copy_from_slice(&XxHash3_64::oneshot_with_seed(id, body).to_le_bytes());
        let checksum = XxHash3_64::oneshot_with_seed(id, &header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Decodes the header at the start of `bytes`.
    fn decode(bytes: &[u8], id: u64) -> Option<BlockHeader> {
        let whole = bytes.get(..BLOCK_HEADER_BYTES)?;
        let (before, checksum) = whole.split_at(BLOCK_HEADER_BYTES - 8);
        if before[..4] != MARKER || Bytes::new(checksum).u64()? != XxHash3_64::oneshot_with_seed(id, before) {
            return None;
        }
        let mut from = Bytes::new(&before[4..]);
        let kind = match from.u32()? {
            0 => BlockKind::Series,
            1 => BlockKind::BusyNames,
            2 => BlockKind::End,
            _ => return None,
        };
        let (count, body_bytes) = (from.u32()?, from.u32()? as usize);
        Some(BlockHeader { kind, count, body_bytes, body_checksum: from.u64()? })
    }

    /// Finds the first header in `bytes`. Returns it with the bytes after it.
    pub(super) fn find(mut bytes: &[u8], id: u64) -> Option<(BlockHeader, &[u8])> {
        loop {
            if let Some(header) = BlockHeader::decode(bytes, id) {
                return Some((header, &bytes[BLOCK_HEADER_BYTES..]));
            }
            let next = memchr::memmem::find(bytes.get(1..)?, &MARKER)?;
            bytes = &bytes[1 + next..];
        }
    }

    /// True when `body` has the length and checksum that the header states.
    pub(super) fn is_of(&self, body: &[u8], id: u64) -> bool {
        XxHash3_64::oneshot_with_seed(id, body) == self.body_checksum
    }
}
