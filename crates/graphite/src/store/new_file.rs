//! A file that was just created: what was not written reads as zeros without a call.
//!
//! Reading a hole costs the system a page of memory and its time, and a new series has little but holes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use model::{DiskError, FileVersion, Reserved, TreeFile};

/// A file of the tree and, if nobody else writes to it, the parts that have been written.
#[derive(Debug)]
pub(super) struct MaybeNew<F> {
    file: F,
    written: Option<RefCell<Ranges>>,
}

/// Ranges of bytes: the end of each by its start. No two overlap or touch.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn add(&mut self, mut start: u64, mut end: u64) {
        // Each range that it meets becomes a part of it, and is never looked at again.
        while let Some((at, until)) = self.0.range(..=end).next_back().filter(|(_, until)| **until >= start) {
            let at = *at;
            (start, end) = (start.min(at), end.max(*until));
            self.0.remove(&at);
        }
        self.0.insert(start, end);
    }

    /// Whether a byte of `start..end` is in one.
    fn meets(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, until)| *until > start)
    }
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
        match &self.written {
            Some(written) if !written.borrow().meets(offset, end) => {
                bytes.fill(0);
                Ok(())
            }
            _ => self.file.read_at(offset, bytes),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if let Some(written) = &self.written {
            written.borrow_mut().add(offset, offset.saturating_add(bytes.len() as u64));
        }
        self.file.write_at(offset, bytes)
    }

    fn size(&self) -> Result<u64, DiskError> {
        self.file.size()
    }

    fn version(&self) -> Result<Option<FileVersion>, DiskError> {
        self.file.version()
    }

    fn opened_version(&self) -> Result<Option<FileVersion>, DiskError> {
        self.file.opened_version()
    }

    fn extend(&self, bytes: u64) -> Result<(), DiskError> {
        match &self.written {
            Some(written) if written.borrow().0.is_empty() => self.file.extend_new(bytes),
            _ => self.file.extend(bytes),
        }
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
fn ranges_that_touch_are_one_in_any_order() {
    let mut ranges = Ranges::default();
    for at in [5, 1, 3, 9, 2, 4] {
        ranges.add(at * 10, at * 10 + 10);
    }
    assert_eq!(ranges.0.clone().into_iter().collect::<Vec<_>>(), [(10, 60), (90, 100)]);
    let met = [(0, 10), (9, 11), (59, 60), (60, 90), (60, 91), (99, 200), (100, 200)];
    assert_eq!(
        met.map(|(start, end)| ranges.meets(start, end)),
        [false, true, true, false, true, true, false]
    );
}

#[test]
fn a_read_does_not_look_at_all_writes() {
    use model::FileTree as _;
    let file = MaybeNew::new(crate::memory_tree::MemoryTree::new().create("f").expect("no fault"));
    let written = file.written.as_ref().expect("it is new");
    // With a look at all writes by each read, this would go on for an hour.
    for at in 0..400_000 {
        written.borrow_mut().add(at * 360, at * 360 + 12);
        file.read_at(at * 360 + 12, &mut [9; 12]).expect("not in the file");
    }
    assert_eq!(written.borrow().0.len(), 400_000);
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
