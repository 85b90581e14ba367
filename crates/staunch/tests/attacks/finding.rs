//! What a case finds.

use serde_json::{Value, json};

use crate::asker::Asked;
use crate::support::cases::{Column, Found};

/// How a case ended.
pub(crate) type End = crate::support::cases::End<Box<Finding>>;

/// Packets of the innocent sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    /// Sent.
    pub(crate) sent: u64,
    /// Lost to the kernel.
    pub(crate) lost: u64,
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    /// What was done, in a few words.
    pub(crate) done: String,
    /// Resident memory in bytes before the attack, at most, and when the attackers had gone.
    pub(crate) resident: [u64; 3],
    /// Questions to `/healthz` meanwhile.
    pub(crate) asked: Asked,
    /// The innocent sender beside the attack.
    pub(crate) innocent: Loss,
    /// The same attack on a bare loop; none when there is nothing to compare with.
    pub(crate) bare: Option<Loss>,
    /// Measured figures.
    pub(crate) figures: Vec<String>,
    /// Promises that were broken.
    pub(crate) broken: Vec<String>,
}

impl Finding {
    /// A promise; `broken` says what became of it when it was not kept.
    pub(crate) fn promise(&mut self, kept: bool, broken: impl FnOnce() -> String) {
        if !kept {
            self.broken.push(broken());
        }
    }

    /// A measured figure.
    pub(crate) fn figure(&mut self, text: impl Into<String>) {
        self.figures.push(text.into());
    }
}

const fn column(name: &'static str, width: usize, whole_name: &'static str) -> Column {
    Column { name, width, whole_name }
}

impl Found for Box<Finding> {
    const NUMBERS: &'static [Column] = &[
        column("RSS in MB", 12, "RSS in MB before/peak/after"),
        column("healthz", 9, "healthz answered in time"),
        column("slowest", 8, "slowest"),
        column("lost", 9, "lost beside/bare"),
    ];
    const DONE_WIDTH: usize = 28;

    fn done(&self) -> &str {
        &self.done
    }

    fn numbers(&self) -> Vec<String> {
        let [before, peak, after] = self.resident.map(|bytes| bytes / 1_000_000);
        let lost = self.innocent.lost;
        vec![
            format!("{before}/{peak}/{after}"),
            format!("{}/{}", self.asked.answered, self.asked.asked),
            format!("{} ms", self.asked.slowest.as_millis()),
            self.bare.map_or_else(|| format!("{lost}/-"), |bare| format!("{lost}/{}", bare.lost)),
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
        let [before, peak, after] = self.resident;
        json!({
            "resident_bytes": { "before": before, "peak": peak, "after": after },
            "asked": self.asked.asked,
            "answered": self.asked.answered,
            "slowest_ms": self.asked.slowest.as_millis() as u64,
            "innocent": { "sent": self.innocent.sent, "lost": self.innocent.lost },
            "bare": self.bare.map(|bare| json!({ "sent": bare.sent, "lost": bare.lost })),
        })
    }
}

/// What was found of two daemons as one row: the worse memory, and the sums of the rest.
pub(crate) fn worse(one: Box<Finding>, mut other: Box<Finding>) -> Box<Finding> {
    let grown = |finding: &Finding| finding.resident[1].saturating_sub(finding.resident[0]);
    if grown(&one) > grown(&other) {
        other.resident = one.resident;
    }
    other.asked = other.asked.and(one.asked);
    other.innocent.sent += one.innocent.sent;
    other.innocent.lost += one.innocent.lost;
    if let (Some(bare), Some(more)) = (&mut other.bare, one.bare) {
        bare.sent += more.sent;
        bare.lost += more.lost;
    }
    other.broken.splice(..0, one.broken);
    other.figures.splice(..0, one.figures);
    other
}
