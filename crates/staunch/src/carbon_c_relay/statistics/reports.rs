//! Reports of relays for the process after a hot restart: its counters continue, unreported counts are reported there,
//! and the next report is on schedule.
//!
//! Not here: counters of the relays themselves (`pipeline`), the transfer of figures (`daemon::hot_restart`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Figure;

/// The figures of the last report of each source, by its name.
#[derive(Debug)]
pub struct Reports {
    reported: Mutex<BTreeMap<String, Vec<Figure>>>,
    anew: bool,
}

impl Reports {
    /// Reports of another process; `anew` without one.
    pub fn of(reported: impl Iterator<Item = (String, Vec<Figure>)>, anew: bool) -> Reports {
        Reports { reported: Mutex::new(reported.collect()), anew }
    }

    /// True when there was no process before this one.
    pub(super) fn begin_anew(&self) -> bool {
        self.anew
    }

    /// Each source with its last report.
    pub fn all(&self) -> Vec<(String, Vec<Figure>)> {
        self.lock().iter().map(|(name, reported)| (name.clone(), reported.clone())).collect()
    }

    pub(super) fn of_source(&self, name: &str) -> Vec<Figure> {
        self.lock().get(name).cloned().unwrap_or_default()
    }

    pub(super) fn note(&self, name: &str, reported: Vec<Figure>) {
        self.lock().insert(name.to_owned(), reported);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Figure>>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
