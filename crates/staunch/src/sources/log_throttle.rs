//! At most one log line a minute for each source, so that failures at one source do not hide those at others.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::admission::Refusals;

/// What was logged of each source, by its name: as many as configurations had.
#[derive(Debug, Default)]
pub(super) struct LogThrottle(RefCell<BTreeMap<String, Refusals>>);

impl LogThrottle {
    /// As [`Refusals::note`], of `source`.
    pub(super) fn note(&self, source: &str, now_ns: u64) -> Option<u64> {
        let mut of = self.0.borrow_mut();
        if !of.contains_key(source) {
            of.insert(source.to_owned(), Refusals::default());
        }
        of.get(source).and_then(|noted| noted.note(now_ns))
    }
}

#[test]
fn lines_of_one_source_do_not_hide_those_of_another() {
    let throttle = LogThrottle::default();
    let noted = ["a", "a", "b", "a", "b"].map(|source| throttle.note(source, 5));
    assert_eq!(noted, [Some(1), None, Some(1), None, None]);
    let later = u64::MAX;
    assert_eq!(["a", "b", "c"].map(|source| throttle.note(source, later)), [Some(3), Some(2), Some(1)]);
}
