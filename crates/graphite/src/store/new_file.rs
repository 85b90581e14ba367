//! A file that was just created: what was not written reads as zeros without a call.
//!
//! Reading a hole costs the system a page of memory and its time, and a new series has little but holes.

use std::cell::RefCell;
use std::ops::Range;

use model::{DiskError, Reserved, TreeFile};

/// A file of the tree and, if nobody else writes to it, the parts that have been written.
#[derive(Debug)]
pub(super) struct MaybeNew<F> {
    file: F,
    written: Option<RefCell<Vec<Range<u64>>>>,
}

impl<F> MaybeNew<F> {
    /// An empty file that was created for this caller.
    pub(super) fn new(file: F) -> MaybeNew<F> {
        MaybeNew { file, written: Some(RefCell::default()) }
    }

    /// Any other file.
    pub(super) fn known(file: F) -> MaybeNew<F> {
        MaybeNew { file, written: None }
    }
}

impl<F: TreeFile> TreeFile for MaybeNew<F> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(bytes.len() as u64);
        let meets = |part: &Range<u64>| part.start < end && offset < part.end;
        match &self.written {
            Some(written) if !written.borrow().iter().any(meets) => {
                bytes.fill(0);
                Ok(())
            }
            _ => self.file.read_at(offset, bytes),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if let Some(written) = &self.written {
            let (mut written, end) = (written.borrow_mut(), offset.saturating_add(bytes.len() as u64));
            match written.last_mut().filter(|last| last.end == offset) {
                Some(last) => last.end = end,
                None => written.push(offset..end),
            }
        }
        self.file.write_at(offset, bytes)
    }

    fn size(&self) -> Result<u64, DiskError> {
        self.file.size()
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        self.file.extend(bytes)
    }

    fn allocate(&self, bytes: u64) -> Result<Reserved, DiskError> {
        self.file.allocate(bytes)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn lock(&self) -> Result<(), DiskError> {
        self.file.lock()
    }

    fn unlock(&self) -> Result<(), DiskError> {
        self.file.unlock()
    }
}

#[test]
fn what_was_not_written_is_zero_and_not_read() {
    use model::FileTree as _;
    let tree = crate::memory_tree::MemoryTree::new();
    let file = MaybeNew::new(tree.create("f").expect("no fault"));
    file.extend(100).expect("no fault");
    file.write_at(10, b"ab").expect("no fault");
    file.write_at(12, b"c").expect("no fault");
    let read = |offset, length| {
        let mut bytes = vec![9; length];
        file.read_at(offset, &mut bytes).expect("no fault");
        bytes
    };
    assert_eq!((read(0, 10), read(13, 3)), (vec![0; 10], vec![0; 3]));
    assert_eq!(tree.take_calls().reads, 0);
    assert_eq!((read(9, 5), read(12, 1)), (b"\0abc\0".to_vec(), b"c".to_vec()));
    assert_eq!(tree.take_calls().reads, 2);
}
