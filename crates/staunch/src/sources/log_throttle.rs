//! At most one log line a minute for each source, so that failures at one source do not hide those at others. All readers
//! share one throttle.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::admission::Refusals;

/// What was logged of each source, by its name: as many as configurations had.
#[derive(Debug)]
pub(super) struct LogThrottle(Mutex<BTreeMap<String, Refusals>>);

impl LogThrottle {
    /// Nothing was logged.
    pub(super) const fn new() -> LogThrottle {
        LogThrottle(Mutex::new(BTreeMap::new()))
    }

    /// As [`Refusals::note`], of `source`.
    pub(super) fn note(&self, source: &str, now_ns: u64) -> Option<u64> {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !of.contains_key(source) {
            of.insert(source.to_owned(), Refusals::default());
        }
        of.get(source).and_then(|noted| noted.note(now_ns))
    }
}

#[test]
fn lines_of_one_source_do_not_hide_those_of_another() {
    let throttle = LogThrottle::new();
    let noted = ["a", "a", "b", "a", "b"].map(|source| throttle.note(source, 5));
    assert_eq!(noted, [Some(1), None, Some(1), None, None]);
    let later = u64::MAX;
    assert_eq!(["a", "b", "c"].map(|source| throttle.note(source, later)), [Some(3), Some(2), Some(1)]);
}
