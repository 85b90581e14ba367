//! Another name for a series: its file, its points in memory and its name in the catalog.

use std::sync::MutexGuard;

use model::{DiskError, FileTree};

use super::part::Part;
use super::{ChangeError, Store, locked};
use crate::catalog::{Refused, normal_name};
use crate::whisper::names::{Located, path_of};

impl Store {
    /// Gives a series another name. False when there is none of the old name. Both names are in their normal form.
    ///
    /// Blocks of the queue that are not settled yet have the old name: after a crash, their points come under it again.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing has changed then.
    pub fn rename<T: FileTree>(&self, tree: &T, from: &[u8], to: &[u8]) -> Result<bool, ChangeError> {
        if normal_name(to).ok().as_deref() != Some(to) {
            return Err(ChangeError::BadName);
        }
        let located = |name: &[u8]| path_of(name, self.options.names).map_err(|_| ChangeError::BadName);
        let (old, new) = (located(from)?, located(to)?);
        let _moving = locked(&self.moving);
        let mut parts = self.parts_of(from, to);
        if from == to || self.catalog().find(to).is_some() || parts.new_series().is_some() {
            return Err(ChangeError::Taken);
        }
        // What cannot be looked at may be there.
        if new.paths().any(|path| tree.exists(path) != Ok(false)) {
            return Err(ChangeError::Taken);
        }
        let is_known = self.catalog().find(from).is_some();
        if parts.is_writing() || self.is_migrating(from) {
            return Err(ChangeError::Busy);
        }
        match self.add_name(to) {
            Ok(_new) => {}
            Err(Refused::TooManyNames { .. } | Refused::TooManyBytes { .. }) => {
                return Err(ChangeError::Full);
            }
            Err(Refused::Name(_) | Refused::Exists(_) | Refused::Unknown) => {
                return Err(ChangeError::BadName);
            }
        }
        let Some(series) = parts.make_room(|name| self.part_of(name).1) else {
            self.remove_name(to, parts.new_part());
            return Err(ChangeError::Full);
        };
        let had_file = match move_file(tree, &old, &new.path) {
            Ok(had_file) => had_file,
            Err(error) => {
                parts.give_up();
                self.remove_name(to, parts.new_part());
                return Err(error.into());
            }
        };
        let had_points = parts.carry_over(series);
        self.remove_name(from, &parts.old);
        if !had_file && !had_points && !is_known {
            self.remove_name(to, parts.new_part());
            return Ok(false);
        }
        Ok(true)
    }

    /// The parts of two names, locked in the order in which every thread locks two of them.
    fn parts_of<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> TwoParts<'s> {
        let ((old, from_hash), (new, to_hash)) = (self.part_of(from), self.part_of(to));
        let (first, second) = if std::ptr::eq(old, new) {
            (locked(old), None)
        } else if std::ptr::from_ref(old) < std::ptr::from_ref(new) {
            let first = locked(old);
            (first, Some(locked(new)))
        } else {
            let second = locked(new);
            (locked(old), Some(second))
        };
        TwoParts { old: first, new: second, from: (from_hash, from), to: (to_hash, to) }
    }
}

/// The part of the old name, and that of the new one if it is another.
struct TwoParts<'s> {
    old: MutexGuard<'s, Part>,
    new: Option<MutexGuard<'s, Part>>,
    from: (u64, &'s [u8]),
    to: (u64, &'s [u8]),
}

impl TwoParts<'_> {
    fn new_part(&mut self) -> &mut Part {
        self.new.as_mut().unwrap_or(&mut self.old)
    }

    fn new_series(&mut self) -> Option<u32> {
        let (hash, name) = self.to;
        self.new_part().find(hash, name)
    }

    fn is_writing(&self) -> bool {
        self.old.find(self.from.0, self.from.1).is_some_and(|series| self.old.is_writing(series))
    }

    /// A place in memory for the new name, if the old one has one. None when there is no room.
    fn make_room(&mut self, rehash: impl Fn(&[u8]) -> u64) -> Option<Option<u32>> {
        if self.old.find(self.from.0, self.from.1).is_none() {
            return Some(None);
        }
        let (hash, name) = self.to;
        self.new_part().add(hash, name, rehash).map(Some)
    }

    /// The new name has no place in memory again.
    fn give_up(&mut self) {
        let (hash, name) = self.to;
        let _nothing_in_it = self.new_part().take_out(hash, name);
    }

    /// Gives the points in memory to the new name's place. True if it has one.
    fn carry_over(&mut self, to: Option<u32>) -> bool {
        let (Some(to), Some(from)) = (to, self.old.find(self.from.0, self.from.1)) else { return false };
        let due = self.old.due_of(from);
        let Some(taken) = self.old.take_out(self.from.0, self.from.1) else { return false };
        self.new_part().put_in(to, taken, due);
        true
    }
}

/// Renames the file of a series. False if it has none.
fn move_file<T: FileTree>(tree: &T, old: &Located, to: &str) -> Result<bool, DiskError> {
    for path in old.paths() {
        match tree.rename(path, to) {
            Ok(()) => return Ok(true),
            Err(DiskError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
