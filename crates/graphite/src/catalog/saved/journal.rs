//! What came and went since a snapshot began, as pieces to append to a file.

use super::piece::{Kind, PIECE_BYTES, write};
use crate::catalog::{NAME_BYTES_MAX, SeriesId};
use crate::codec::write_varint;

pub(super) const PUT: u8 = 1;
pub(super) const GONE: u8 = 2;

/// A journal that is being written. The caller appends what [`Journal::take`] gives to one file.
#[derive(Debug)]
pub struct Journal {
    number: u32,
    body: Vec<u8>,
    /// Pieces that were not taken yet.
    pieces: Vec<u8>,
}

impl Journal {
    /// A new journal. `generation` is that of the snapshot which begins after it.
    pub fn new(generation: u64) -> Journal {
        let mut journal = Journal { number: 0, body: Vec::new(), pieces: Vec::new() };
        journal.body.push(super::reader::JOURNAL);
        journal.body.extend_from_slice(&generation.to_le_bytes());
        journal.finish(Kind::Begin);
        journal
    }

    /// A series came, or was renamed.
    pub fn put(&mut self, id: SeriesId, name: &[u8]) {
        debug_assert!(name.len() <= NAME_BYTES_MAX, "a name of the catalog");
        self.body.push(PUT);
        write_varint(id.0, &mut self.body);
        write_varint(name.len() as u32, &mut self.body);
        self.body.extend_from_slice(name);
        self.finish_if_long();
    }

    /// A series went.
    pub fn gone(&mut self, id: SeriesId) {
        self.body.push(GONE);
        write_varint(id.0, &mut self.body);
        self.finish_if_long();
    }

    /// Bytes that [`Journal::take`] would give, without a header.
    pub fn pending_bytes(&self) -> usize {
        self.body.len() + self.pieces.len()
    }

    /// Appends all changes since the last call, as complete pieces.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        if !self.body.is_empty() {
            self.finish(Kind::Changes);
        }
        out.append(&mut self.pieces);
    }

    fn finish_if_long(&mut self) {
        if self.body.len() >= PIECE_BYTES {
            self.finish(Kind::Changes);
        }
    }

    fn finish(&mut self, kind: Kind) {
        write(kind, self.number, &self.body, &mut self.pieces);
        self.number = self.number.wrapping_add(1);
        self.body.clear();
    }
}
