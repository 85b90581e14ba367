//! One line a minute of each source, so that many at one source hide nothing of the others.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::admission::Refusals;

/// What was logged of each source, by its name: as many as configurations had.
#[derive(Debug, Default)]
pub(super) struct ToldOf(RefCell<BTreeMap<String, Refusals>>);

impl ToldOf {
    /// As [`Refusals::note`], of `source`.
    pub(super) fn note(&self, source: &str, now_ns: u64) -> Option<u64> {
        let mut of = self.0.borrow_mut();
        if !of.contains_key(source) {
            of.insert(source.to_owned(), Refusals::default());
        }
        of.get(source).and_then(|told| told.note(now_ns))
    }
}

#[test]
fn what_is_logged_of_one_source_hides_nothing_of_another() {
    let told = ToldOf::default();
    let noted = ["a", "a", "b", "a", "b"].map(|source| told.note(source, 5));
    assert_eq!(noted, [Some(1), None, Some(1), None, None]);
    let later = u64::MAX;
    assert_eq!(["a", "b", "c"].map(|source| told.note(source, later)), [Some(3), Some(2), Some(1)]);
}
