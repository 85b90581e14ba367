//! A file with the points that are not in it yet, as if they were written: writes stay in memory.
//!
//! Coarse values of a query have to be those that the file will have after its points are written. This file gives the same code that
//! writes points something to write to, so that both cannot differ.

use std::cell::RefCell;

use model::{DiskError, Reserved, TreeFile};

/// Bytes that were written: (offset, bytes), in the order of the calls.
type Writes = Vec<(u64, Vec<u8>)>;

/// An open file, or none, with writes in memory. Only for short lists of writes: each read looks at all of them.
#[derive(Debug)]
pub(super) struct Overlay<'f, F> {
    below: Option<&'f F>,
    writes: RefCell<Writes>,
}

impl<'f, F: TreeFile> Overlay<'f, F> {
    pub(super) fn new(below: Option<&'f F>) -> Overlay<'f, F> {
        Overlay { below, writes: RefCell::default() }
    }
}

impl<F: TreeFile> TreeFile for Overlay<'_, F> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        match self.below {
            Some(below) => below.read_at(offset, bytes)?,
            None => bytes.fill(0),
        }
        let end = offset.saturating_add(bytes.len() as u64);
        for (at, written) in self.writes.borrow().iter() {
            let (from, to) = (offset.max(*at), end.min(at + written.len() as u64));
            if from < to {
                let part = &written[(from - at) as usize..(to - at) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.writes.borrow_mut().push((offset, bytes.to_vec()));
        Ok(())
    }

    fn size(&self) -> Result<u64, DiskError> {
        let below = self.below.map_or(Ok(0), TreeFile::size)?;
        Ok(self.writes.borrow().iter().map(|(at, written)| at + written.len() as u64).fold(below, u64::max))
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        if self.size()? < bytes {
            self.write_at(bytes - 1, &[0])?;
        }
        Ok(())
    }

    fn allocate(&self, _bytes: u64) -> Result<Reserved, DiskError> {
        Ok(Reserved::FreeNow)
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn lock(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn unlock(&self) -> Result<(), DiskError> {
        Ok(())
    }
}
