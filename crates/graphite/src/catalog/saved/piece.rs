//! One piece of a saved catalog: a header with a checksum of its own, and a body with another one.
//!
//! Header, 28 bytes: marker (4), version, kind, two zeros, length of the body (4), number of the piece in its file (4),
//! checksum of these 16 bytes (4), checksum of the body (8). Checksums are XXH3.

use twox_hash::XxHash3_64;

use crate::codec::Rest;

/// Version of the format.
pub const SAVED_VERSION: u8 = 1;
/// Longest body.
pub const PIECE_BYTES_MAX: usize = 128 * 1024;
/// A body is finished when it is this long: some 0.5 ms of work.
pub(super) const PIECE_BYTES: usize = 32 * 1024;
pub(super) const HEADER_BYTES: usize = 28;
/// Bytes of the header in front of its checksum.
const CHECKED_BYTES: usize = 16;
/// The first byte never occurs in UTF-8 text.
pub(super) const MARKER: [u8; 4] = [0xf5, b'S', b'c', 0x1a];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Begin = 1,
    Names = 2,
    Changes = 3,
    End = 4,
}

/// A header whose checksum is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u8,
    pub(super) kind: u8,
    pub(super) len: usize,
    pub(super) number: u32,
    checksum: u64,
}

impl Header {
    /// None when the checksum is wrong, or the body too long.
    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let (checked, _) = bytes.split_at(CHECKED_BYTES);
        let mut rest = Rest(bytes);
        let is_marked = rest.take(MARKER.len())? == MARKER;
        let (version, kind, _zeros) = (rest.byte()?, rest.byte()?, rest.take(2)?);
        let (len, number, own_checksum) = (rest.u32_le()? as usize, rest.u32_le()?, rest.u32_le()?);
        let header = Header { version, kind, len, number, checksum: rest.u64_le()? };
        let is_good = own_checksum == XxHash3_64::oneshot(checked) as u32;
        (is_marked && is_good && len <= PIECE_BYTES_MAX).then_some(header)
    }

    pub(super) fn fits(&self, body: &[u8]) -> bool {
        self.checksum == XxHash3_64::oneshot(body)
    }
}

/// Appends a piece.
pub(super) fn write(kind: Kind, number: u32, body: &[u8], out: &mut Vec<u8>) {
    assert!(body.len() <= PIECE_BYTES_MAX, "bodies are finished in time");
    let begin = out.len();
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&[SAVED_VERSION, kind as u8, 0, 0]);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    let checksum = XxHash3_64::oneshot(&out[begin..]) as u32;
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&XxHash3_64::oneshot(body).to_le_bytes());
    out.extend_from_slice(body);
}

#[test]
fn a_header_with_any_bit_changed_is_refused() {
    let mut bytes = Vec::new();
    write(Kind::Names, 7, b"body", &mut bytes);
    let header: [u8; HEADER_BYTES] = *bytes.first_chunk().expect("a header");
    let read = Header::read(&header).expect("a good header");
    assert_eq!((read.kind, read.len, read.number), (2, 4, 7));
    assert!(read.fits(b"body") && !read.fits(b"bodi"));
    for bit in 0..20 * 8 {
        let mut changed = header;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Header::read(&changed), None, "bit {bit}");
    }
}
