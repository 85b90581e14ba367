//! What a case finds.

use std::time::Duration;

use serde_json::{Value, json};

use crate::oracle::Count;
pub(crate) use crate::support::bench::Bench;
use crate::support::cases::{Column, Found};

/// How a case ended.
pub(crate) type End = crate::support::cases::End<Finding>;

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    /// What was done, in a few words.
    pub(crate) done: String,
    /// Records sent, or acknowledged where that is the promise.
    pub(crate) sent: u64,
    /// Different ones that arrived.
    pub(crate) arrived: u64,
    /// Those that did not and were counted under a reason, by the daemon.
    pub(crate) named: u64,
    /// Those that arrived once more.
    pub(crate) twice: u64,
    /// Measured figures.
    pub(crate) figures: Vec<String>,
    /// Promises that were broken.
    pub(crate) broken: Vec<String>,
}

impl Finding {
    /// Adds up what oracles counted; strangers and disorder break a promise of every case.
    pub(crate) fn add(&mut self, count: &Count) {
        self.arrived += count.arrived;
        self.twice += count.twice;
        self.promise(count.strangers == 0, || {
            format!("{} lines arrived that nobody sent: {:?}", count.strangers, count.strangers_shown)
        });
    }

    /// Sent, did not arrive, and nobody said why. Below 0: more than was sent.
    pub(crate) fn lost(&self) -> i128 {
        i128::from(self.sent) - i128::from(self.arrived) - i128::from(self.named)
    }

    /// A promise; `broken` says what became of it when it was not kept.
    pub(crate) fn promise(&mut self, kept: bool, broken: impl FnOnce() -> String) {
        if !kept {
            self.broken.push(broken());
        }
    }

    /// That nothing was lost without a name, and nothing came twice.
    pub(crate) fn promise_exact(&mut self) {
        let (lost, twice) = (self.lost(), self.twice);
        self.promise(lost == 0, || format!("{lost} records were lost and nothing says why"));
        self.promise(twice == 0, || format!("{twice} records arrived twice"));
    }

    /// A measured figure.
    pub(crate) fn figure(&mut self, text: impl Into<String>) {
        self.figures.push(text.into());
    }
}

const fn column(name: &'static str, width: usize) -> Column {
    Column { name, width, whole_name: name }
}

impl Found for Finding {
    const NUMBERS: &'static [Column] =
        &[column("sent", 8), column("arrived", 8), column("named", 8), column("lost", 4), column("twice", 6)];
    const DONE_WIDTH: usize = 26;

    fn done(&self) -> &str {
        &self.done
    }

    fn numbers(&self) -> Vec<String> {
        let Finding { sent, arrived, named, twice, .. } = self;
        vec![
            sent.to_string(),
            arrived.to_string(),
            named.to_string(),
            self.lost().to_string(),
            twice.to_string(),
        ]
    }

    fn figures(&self) -> &[String] {
        &self.figures
    }

    fn broken(&self) -> &[String] {
        &self.broken
    }

    fn panicked(&mut self, words: String) {
        self.broken.push(words);
    }

    fn members(&self) -> Value {
        json!({
            "sent": self.sent,
            "arrived": self.arrived,
            "named": self.named,
            "lost": self.lost() as i64,
            "twice": self.twice,
        })
    }
}

/// The middle one, or 0 of none.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    percentile(values, 50.0)
}

/// Time of a turn of `down` over that of one of `up`, which are made in pairs. None when a turn did not end.
pub(crate) fn pair_ratio<S>(
    number: usize,
    (up, down): (&mut S, &mut S),
    mut turn: impl FnMut(&mut S) -> Option<Duration>,
) -> Option<f64> {
    // Who goes first alternates: neither side always has the colder caches.
    let (with, without) = if number.is_multiple_of(2) {
        let with = turn(up);
        (with, turn(down))
    } else {
        let without = turn(down);
        (turn(up), without)
    };
    Some(without?.as_secs_f64() / with?.as_secs_f64())
}

/// The value that `percent` of them do not exceed, or 0 of none.
pub(crate) fn percentile(mut values: Vec<f64>, percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * percent / 100.0) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
