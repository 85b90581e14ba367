//! All names as pieces, a few thousand at a time.

use super::piece::{Kind, PIECE_BYTES, write};
use crate::catalog::{Catalog, NAME_BYTES_MAX, SeriesId};
use crate::codec::write_varint;

/// Most ids that one call looks at, in use or not.
const IDS_MAX: u32 = 8192;

const _: () = assert!(
    PIECE_BYTES + NAME_BYTES_MAX + 16 <= super::piece::PIECE_BYTES_MAX,
    "a body that is nearly full has room for one more name"
);

/// A snapshot that is being written. The catalog may change between the calls; a journal that began before the first one
/// records how.
#[derive(Debug)]
pub struct Snapshot {
    generation: u64,
    number: u32,
    next: u32,
    names: u32,
    ended: bool,
    body: Vec<u8>,
    name: Vec<u8>,
    before: Vec<u8>,
}

impl Snapshot {
    /// A snapshot of which nothing is written.
    pub fn new(generation: u64) -> Snapshot {
        Snapshot {
            generation,
            number: 0,
            next: 0,
            names: 0,
            ended: false,
            body: Vec::new(),
            name: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Appends the next piece to `out`, at most about 40 KiB. False when the snapshot is complete.
    pub fn next(&mut self, catalog: &Catalog, out: &mut Vec<u8>) -> bool {
        if self.ended {
            return false;
        }
        if self.number == 0 {
            self.body.push(super::reader::SNAPSHOT);
            self.body.extend_from_slice(&self.generation.to_le_bytes());
            // A reader makes room for them. Older readers ignore what follows the generation.
            catalog.sizes().into_iter().for_each(|size| write_varint(size, &mut self.body));
            self.finish(Kind::Begin, out);
            return true;
        }
        self.names(catalog);
        if !self.body.is_empty() {
            self.finish(Kind::Names, out);
        } else if self.next >= catalog.ids_end() {
            self.body.extend_from_slice(&self.names.to_le_bytes());
            self.finish(Kind::End, out);
            self.ended = true;
        }
        true
    }

    fn names(&mut self, catalog: &Catalog) {
        let last = catalog.ids_end().min(self.next.saturating_add(IDS_MAX));
        let mut id_before = 0;
        self.before.clear();
        while self.next < last && self.body.len() < PIECE_BYTES {
            let id = self.next;
            self.next += 1;
            self.name.clear();
            if !catalog.name(SeriesId(id), &mut self.name) {
                continue;
            }
            let pairs = self.name.iter().zip(&self.before).take(usize::from(u8::MAX));
            let shared = pairs.take_while(|(a, b)| a == b).count();
            write_varint(id - id_before, &mut self.body);
            self.body.push(shared as u8);
            write_varint((self.name.len() - shared) as u32, &mut self.body);
            self.body.extend_from_slice(&self.name[shared..]);
            std::mem::swap(&mut self.name, &mut self.before);
            id_before = id;
            self.names += 1;
        }
    }

    fn finish(&mut self, kind: Kind, out: &mut Vec<u8>) {
        write(kind, self.number, &self.body, out);
        self.number = self.number.wrapping_add(1);
        self.body.clear();
    }
}
