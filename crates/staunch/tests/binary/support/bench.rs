//! What a case of a bench is given: `--test faults`, `--test attacks`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Random;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Shortest time between two lines of progress.
const SAY_EVERY: Duration = Duration::from_secs(2);

/// What a case is run with.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Numbers of the page docs/reliability.md; otherwise those of a test.
    pub(crate) full: bool,
    /// Everything random comes from it.
    pub(crate) seed: u64,
    case: &'static str,
    said: Cell<Instant>,
}

impl Bench {
    /// For one case.
    pub(crate) fn new(case: &'static str, full: bool, seed: u64) -> Bench {
        Bench { full, seed, case, said: Cell::new(Instant::now()) }
    }

    /// A number that differs between the two sizes.
    pub(crate) fn pick<T>(&self, small: T, full: T) -> T {
        if self.full { full } else { small }
    }

    /// A generator of its own.
    pub(crate) fn random(&self) -> Random {
        Random::new(self.seed | 1)
    }

    /// Progress for people: on stderr, now and then.
    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if self.said.get().elapsed() >= SAY_EVERY {
            self.said.set(Instant::now());
            eprintln!("  {}: {}", self.case, text());
        }
    }

    /// Looks until `see` gives something; None after `patience`.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        patience: Duration,
        mut see: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let since = Instant::now();
        loop {
            if let Some(seen) = see() {
                return Some(seen);
            }
            if since.elapsed() > patience {
                return None;
            }
            self.say(|| format!("waits for {what}"));
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
