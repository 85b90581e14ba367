//! The checkpoint of a Riemann config: a header, blocks of what `streams::riemann::state` writes, and an end.
//!
//! Numbers are little-endian. Checksums are XXH3-64, those of blocks with the id as seed, which is a random number, so that what a client
//! sent is never taken for a block. In version 1, no record referred to one before it; otherwise it was the same.
//!
//! | header | bytes | | block | bytes |
//! |---|---|---|---|---|
//! | magic `STNSTR\r\n` | 8 | | bytes of the body; all ones: the end | 4 |
//! | version 2 | 4 | | checksum of the body | 8 |
//! | 0 | 4 | | body: whole records | |
//! | id | 8 | | at the end: number of records | 8 |
//! | number of this checkpoint | 8 | | | |
//! | begun at, Unix ns | 8 | | | |
//! | checksum, seed 0 | 8 | | | |

use process::aggregate::checkpoint::{NotRestored, Peeked};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"STNSTR\r\n";
const VERSION: u32 = 2;
/// Versions that can be read.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=VERSION;
const HEADER_BYTES: usize = 48;
const BLOCK_HEADER_BYTES: usize = 12;
const END: u32 = u32::MAX;

/// Header of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// A number that is not known outside.
    pub(crate) id: u64,
    /// Number of the checkpoint.
    pub(crate) number: u64,
    /// When it began, Unix nanoseconds.
    pub(crate) begun_wall_ns: u64,
}

impl Header {
    /// Writes it.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&[0; 4]);
        for number in [self.id, self.number, self.begun_wall_ns] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = XxHash3_64::oneshot(&to[start..]);
        to.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, NotRestored> {
        if !bytes.starts_with(&MAGIC) {
            return Err(NotRestored::NotSavedState);
        }
        if number_at(bytes, 8).is_some_and(|version| !VERSIONS.contains(&(version as u32))) {
            return Err(NotRestored::Version);
        }
        let whole = bytes.get(..HEADER_BYTES).ok_or(NotRestored::Header)?;
        let checksum = XxHash3_64::oneshot(&whole[..HEADER_BYTES - 8]);
        match [16, 24, 32, 40].map(|at| number_at(whole, at)) {
            [Some(id), Some(number), Some(begun_wall_ns), Some(written)] if written == checksum => {
                Ok(Header { id, number, begun_wall_ns })
            }
            _ => Err(NotRestored::Header),
        }
    }

    /// What [`super::generations`] shows of it.
    pub(super) fn peeked(self) -> Peeked {
        Peeked { number: self.number, begun_wall_ns: self.begun_wall_ns }
    }
}

/// The eight bytes from there on, as a number.
fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// Writes a block whose body `write` writes; nothing for an empty body.
///
/// # Panics
/// If the body has 4 GiB: `streams` ends each part of a checkpoint far before that.
pub(crate) fn block<T>(id: u64, to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = to.len();
    to.resize(start + BLOCK_HEADER_BYTES, 0);
    let wrote = write(to);
    let body = start + BLOCK_HEADER_BYTES;
    if to.len() == body {
        to.truncate(start);
        return wrote;
    }
    let len = u32::try_from(to.len() - body).ok().filter(|len| *len < END);
    let len = len.expect("the bounds of a checkpoint's parts are far below 4 GiB");
    let checksum = XxHash3_64::oneshot_with_seed(id, &to[body..]);
    to[start..start + 4].copy_from_slice(&len.to_le_bytes());
    to[start + 4..body].copy_from_slice(&checksum.to_le_bytes());
    wrote
}

/// Writes the end.
pub(crate) fn end(id: u64, records: u64, to: &mut Vec<u8>) {
    let body = records.to_le_bytes();
    to.extend_from_slice(&END.to_le_bytes());
    to.extend_from_slice(&XxHash3_64::oneshot_with_seed(id, &body).to_le_bytes());
    to.extend_from_slice(&body);
}

/// Reads the bodies of the blocks, until the end or the first damaged one.
#[derive(Debug)]
pub(crate) struct Blocks<'b> {
    left: &'b [u8],
    id: u64,
    /// The number of records at the end, when that came.
    pub(crate) records: Option<u64>,
}

impl<'b> Blocks<'b> {
    /// The header and the blocks of a checkpoint.
    ///
    /// # Errors
    /// When the bytes do not begin with a valid header.
    pub(crate) fn of(bytes: &'b [u8]) -> Result<(Header, Blocks<'b>), NotRestored> {
        let header = Header::decode(bytes)?;
        let left = bytes.get(HEADER_BYTES..).unwrap_or_default();
        Ok((header, Blocks { left, id: header.id, records: None }))
    }
}

impl<'b> Iterator for Blocks<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let (len, left) = self.left.split_first_chunk()?;
        let (checksum, left) = left.split_first_chunk()?;
        let len = u32::from_le_bytes(*len);
        let bytes = if len == END { 8 } else { len as usize };
        let (body, left) = left.split_at_checked(bytes)?;
        if XxHash3_64::oneshot_with_seed(self.id, body) != u64::from_le_bytes(*checksum) {
            self.left = &[];
            return None;
        }
        if len == END {
            (self.left, self.records) = (&[], number_at(body, 0));
            return None;
        }
        self.left = left;
        Some(body)
    }
}

#[test]
fn blocks_come_back_until_one_is_damaged() {
    let header = Header { id: 7, number: 3, begun_wall_ns: 9 };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    assert_eq!(bytes.len(), HEADER_BYTES);
    for body in [&b"one"[..], b"", b"three"] {
        block(7, &mut bytes, |to| to.extend_from_slice(body));
    }
    end(7, 2, &mut bytes);
    let read = |bytes: &[u8]| {
        let (header, mut blocks) = Blocks::of(bytes)?;
        let bodies: Vec<Vec<u8>> = blocks.by_ref().map(<[u8]>::to_vec).collect();
        Ok::<_, NotRestored>((header, bodies, blocks.records == Some(2)))
    };
    let both = vec![b"one".to_vec(), b"three".to_vec()];
    assert_eq!(read(&bytes), Ok((header, both.clone(), true)));
    for at in 0..bytes.len() {
        let cut = read(&bytes[..at]);
        assert!(!matches!(&cut, Ok((.., true))), "cut at {at}: {cut:?}");
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        match read(&damaged) {
            Ok((_, bodies, is_whole)) => {
                assert!(!is_whole && both.starts_with(&bodies), "damaged at {at}");
            }
            // The four bytes after the version are not looked at, except by the checksum.
            Err(_) => assert!(at < HEADER_BYTES, "damaged at {at}"),
        }
    }
}

#[test]
fn files_of_the_version_before_are_read_and_later_ones_are_not() {
    for (version, want) in [(0, false), (1, true), (VERSION, true), (VERSION + 1, false)] {
        let mut bytes = Vec::new();
        Header { id: 7, number: 3, begun_wall_ns: 9 }.encode(&mut bytes);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..HEADER_BYTES - 8]);
        bytes[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Header::decode(&bytes).is_ok(), want, "{version}");
    }
}
