//! A file with the points that are not in it yet, as if they were written: writes stay in memory.
//!
//! Coarse values of a query have to be those that the file will have after its points are written. This file gives the same code that
//! writes points something to write to, so that both cannot differ.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use model::{DiskError, Reserved, TreeFile};

use crate::query::Stop;

/// Calls between two questions whether to go on: well under a millisecond of work.
const CALLS: u32 = 256;

/// An open file, or none, with writes in memory. A call looks only at the writes that it meets.
pub(super) struct Overlay<'f, F, G> {
    below: Option<&'f F>,
    runs: RefCell<Runs>,
    goes_on: RefCell<G>,
    calls: Cell<u32>,
    stopped: &'f Cell<Option<Stop>>,
}

impl<F, G> fmt::Debug for Overlay<'_, F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlay { runs, stopped, .. } = self;
        f.debug_struct("Overlay").field("runs", runs).field("stopped", stopped).finish_non_exhaustive()
    }
}

impl<'f, F: TreeFile, G: FnMut() -> Result<(), Stop>> Overlay<'f, F, G> {
    /// `goes_on` is asked once in a while. When it says no, all calls fail with [`DiskError::Away`], and `stopped` has the reason.
    pub(super) fn new(
        below: Option<&'f F>,
        goes_on: G,
        stopped: &'f Cell<Option<Stop>>,
    ) -> Overlay<'f, F, G> {
        Overlay {
            below,
            runs: RefCell::default(),
            goes_on: RefCell::new(goes_on),
            calls: Cell::new(0),
            stopped,
        }
    }

    fn go_on(&self) -> Result<(), DiskError> {
        self.calls.set(self.calls.get().wrapping_add(1));
        if self.stopped.get().is_none() && self.calls.get().is_multiple_of(CALLS) {
            self.stopped.set((self.goes_on.borrow_mut())().err());
        }
        match self.stopped.get() {
            Some(_) => Err(DiskError::Away),
            None => Ok(()),
        }
    }
}

/// Bytes that were written, by their offset. No two runs overlap.
#[derive(Debug, Default)]
struct Runs(BTreeMap<u64, Vec<u8>>);

impl Runs {
    /// The part of a file from `offset` on, below `end`, up to where it changes between written and not written; its run, if it is in one
    /// or at the end of one, with the place in it.
    fn next(&mut self, offset: u64, end: u64) -> (u64, Option<(&mut Vec<u8>, usize)>) {
        let behind = self.0.range(offset..).map(|(at, _)| *at).find(|at| *at > offset);
        let end = behind.map_or(end, |at| end.min(at));
        let before = self.0.range_mut(..=offset).next_back();
        let run = before.map(|(at, run)| ((offset - at) as usize, run));
        match run.filter(|(place, run)| *place <= run.len()) {
            Some((place, run)) if place < run.len() => {
                (end.min(offset + (run.len() - place) as u64), Some((run, place)))
            }
            Some((place, run)) => (end, Some((run, place))),
            None => (end, None),
        }
    }

    /// A write that follows one in the file makes its run longer.
    fn write(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (end, run) = self.next(offset, offset.saturating_add(bytes.len() as u64));
            let (part, rest) = bytes.split_at((end - offset) as usize);
            match run {
                Some((run, place)) if place < run.len() => {
                    run[place..place + part.len()].copy_from_slice(part);
                }
                Some((run, _)) => run.extend_from_slice(part),
                None => {
                    self.0.insert(offset, part.to_vec());
                }
            }
            (offset, bytes) = (end, rest);
        }
    }

    /// Puts what was written in place of what is in `bytes`.
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        let first = self.0.range(..offset).next_back().map_or(offset, |(at, _)| *at);
        for (at, run) in self.0.range(first..end) {
            let (from, to) = (offset.max(*at), end.min(at + run.len() as u64));
            if from < to {
                let part = &run[(from - at) as usize..(to - at) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
    }

    fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(at, run)| at + run.len() as u64)
    }
}

impl<F: TreeFile, G: FnMut() -> Result<(), Stop>> TreeFile for Overlay<'_, F, G> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.go_on()?;
        match self.below {
            Some(below) => below.read_at(offset, bytes)?,
            None => bytes.fill(0),
        }
        self.runs.borrow().read(offset, bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.go_on()?;
        self.runs.borrow_mut().write(offset, bytes);
        Ok(())
    }

    fn size(&self) -> Result<u64, DiskError> {
        let below = self.below.map_or(Ok(0), TreeFile::size)?;
        Ok(below.max(self.runs.borrow().end()))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory_tree::MemoryFile;

    fn overlay<G: FnMut() -> Result<(), Stop>>(
        goes_on: G,
        stopped: &Cell<Option<Stop>>,
    ) -> Overlay<'_, MemoryFile, G> {
        Overlay::new(None, goes_on, stopped)
    }

    proptest! {
        #[test]
        fn reads_give_what_was_written_last(
            writes in prop::collection::vec((0_u64..60, prop::collection::vec(1_u8.., 0..20)), 0..30)
        ) {
            let stopped = Cell::new(None);
            let (over, mut plain) = (overlay(|| Ok(()), &stopped), Vec::new());
            for (offset, bytes) in writes {
                over.write_at(offset, &bytes).expect("nothing stops it");
                let (from, to) = (offset as usize, offset as usize + bytes.len());
                if !bytes.is_empty() {
                    plain.resize(plain.len().max(to), 0);
                    plain[from..to].copy_from_slice(&bytes);
                }
                prop_assert_eq!(over.size(), Ok(plain.len() as u64));
                for start in 0..plain.len() {
                    let mut read = vec![9; (plain.len() - start).min(7)];
                    over.read_at(start as u64, &mut read).expect("nothing stops it");
                    prop_assert_eq!(&read[..], &plain[start..start + read.len()]);
                }
            }
            let runs: Vec<(u64, u64)> =
                over.runs.borrow().0.iter().map(|(at, run)| (*at, at + run.len() as u64)).collect();
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?}", runs);
        }
    }

    #[test]
    fn writes_that_follow_each_other_are_one_run() {
        let stopped = Cell::new(None);
        let over = overlay(|| Ok(()), &stopped);
        for at in 0..1000 {
            over.write_at(at * 12, &[1; 12]).expect("nothing stops it");
        }
        assert_eq!(over.runs.borrow().0.len(), 1);
    }

    #[test]
    fn a_call_does_not_look_at_all_writes() {
        let stopped = Cell::new(None);
        let over = overlay(|| Ok(()), &stopped);
        // With a look at all writes by each read, this would go on for an hour.
        for at in 0..400_000 {
            over.write_at(at * 360, &[1; 12]).expect("nothing stops it");
            let mut read = [9; 24];
            over.read_at((at * 360).saturating_sub(12), &mut read).expect("nothing stops it");
            assert!(at == 0 || read.ends_with(&[1]));
        }
        assert_eq!(over.runs.borrow().0.len(), 400_000);
    }

    #[test]
    fn calls_fail_soon_after_nobody_waits_any_more() {
        let stopped = Cell::new(None);
        let mut asked = 0;
        let goes_on = || {
            asked += 1;
            if asked < 3 { Ok(()) } else { Err(Stop::Cancelled) }
        };
        let over = overlay(goes_on, &stopped);
        let done = (0..10_000).take_while(|at| over.write_at(at * 100, b"a").is_ok()).count();
        assert_eq!((done as u32, stopped.get()), (3 * CALLS - 1, Some(Stop::Cancelled)));
        assert_eq!(over.read_at(0, &mut [0]), Err(DiskError::Away));
        drop(over);
        assert_eq!(asked, 3);
    }
}
