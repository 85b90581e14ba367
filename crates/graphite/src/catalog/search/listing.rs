//! Lists all names: `index.json`, and all that looks at every series.

use super::found::{Budget, Found, Progress, SearchError, SearchLimits};
use crate::catalog::{Catalog, SeriesId};

/// A listing of all series by id. A name that exists from the first slice to the last is listed exactly once; one that
/// comes or goes in between may be listed or not.
#[derive(Debug)]
pub struct Listing {
    with_tagged: bool,
    budget: Budget,
    next: u32,
    name: Vec<u8>,
    found: Found,
}

impl Listing {
    /// A listing that has not begun; names with tags only `with_tagged`.
    pub fn new(with_tagged: bool, limits: SearchLimits) -> Listing {
        Listing {
            with_tagged,
            budget: Budget::new(limits),
            next: 0,
            name: Vec::new(),
            found: Found::default(),
        }
    }

    /// Takes about `steps` steps.
    ///
    /// # Errors
    /// [`SearchError`] when a limit is exceeded.
    pub fn step(&mut self, catalog: &Catalog, steps: u64) -> Result<Progress, SearchError> {
        self.budget.begin(steps);
        while self.next < catalog.ids_end() {
            if self.budget.slice_ends() {
                return Ok(Progress::More);
            }
            let id = SeriesId(self.next);
            self.next += 1;
            self.budget.spend(1)?;
            self.name.clear();
            if !catalog.name(id, &mut self.name) || !self.with_tagged && self.name.contains(&b';') {
                continue;
            }
            self.budget.spend(1)?;
            let at = match self.name.contains(&b';') {
                true => 0,
                false => self.name.iter().rposition(|byte| *byte == b'.').map_or(0, |at| at + 1),
            };
            let (prefix, last) = (&self.name[..at.saturating_sub(1)], &self.name[at..]);
            self.found.push(prefix, last, Some(id), false);
            self.budget.check_results(self.found.len())?;
        }
        Ok(Progress::Done)
    }

    /// The names, after [`Progress::Done`].
    pub fn finish(self) -> Found {
        self.found.finish()
    }
}
