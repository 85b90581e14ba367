//! What a case finds, and its row of the table: for people, for docs/reliability.md, and for programs.

use serde_json::{Value, json};

use crate::asker::Asked;

/// Widest line on a terminal.
const COLUMNS: usize = 80;

/// How a case ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It ran.
    Ran(Box<Finding>),
    /// It cannot run here: why, and what it takes.
    Skipped(String),
}

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

    fn numbers(&self) -> [String; 4] {
        let [before, peak, after] = self.resident.map(|bytes| bytes / 1_000_000);
        let lost = self.innocent.lost;
        [
            format!("{before}/{peak}/{after}"),
            format!("{}/{}", self.asked.answered, self.asked.asked),
            format!("{} ms", self.asked.slowest.as_millis()),
            self.bare.map_or_else(|| format!("{lost}/-"), |bare| format!("{lost}/{}", bare.lost)),
        ]
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

/// One case with its end.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) end: End,
}

impl Row {
    /// `kept`, `BROKEN` or `skipped`.
    fn verdict(&self) -> &'static str {
        match &self.end {
            End::Ran(finding) if finding.broken.is_empty() => "kept",
            End::Ran(_) => "BROKEN",
            End::Skipped(_) => "skipped",
        }
    }

    /// A promise was broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.verdict() == "BROKEN"
    }
}

/// Heading of the table.
pub(crate) fn heading() -> String {
    let numbers = ["RSS in MB", "healthz", "slowest", "lost"].map(str::to_owned);
    line("case", "what was done", &numbers, "promise")
}

fn line(case: &str, done: &str, numbers: &[String; 4], verdict: &str) -> String {
    let [resident, asked, slowest, lost] = numbers;
    format!("{case:<4} {done:<28} {resident:>12} {asked:>9} {slowest:>8} {lost:>9}  {verdict}")
}

/// A row of the table, with what belongs to it below it.
pub(crate) fn text(row: &Row) -> String {
    let mut lines = Vec::new();
    match &row.end {
        End::Skipped(why) => {
            lines.push(format!("{:<4} not run", row.case));
            lines.extend(wrapped(why));
        }
        End::Ran(finding) => {
            lines.push(line(row.case, &finding.done, &finding.numbers(), row.verdict()));
            lines.extend(finding.figures.iter().flat_map(|figure| wrapped(figure)));
            lines.extend(finding.broken.iter().flat_map(|broken| wrapped(&format!("BROKEN: {broken}"))));
        }
    }
    lines.join("\n")
}

fn wrapped(text: &str) -> Vec<String> {
    const INDENT: &str = "     ";
    let mut lines = vec![String::from(INDENT)];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.len() > INDENT.len() && line.chars().count() + word.chars().count() >= COLUMNS {
            lines.push(format!("{INDENT}{word} "));
        } else {
            line.push_str(word);
            line.push(' ');
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The table of docs/reliability.md.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| case | what was done | RSS in MB before/peak/after | healthz within 1 s | slowest | lost beside/bare | figures | verdict |\n\
         |---|---|---:|---:|---:|---:|---|---|\n",
    );
    for row in rows {
        match &row.end {
            End::Skipped(why) => text += &format!("| {} | not run: {why} | | | | | | |\n", row.case),
            End::Ran(finding) => {
                let mut said = finding.figures.clone();
                said.extend(finding.broken.iter().map(|broken| format!("**broken**: {broken}")));
                let (cells, said) = (finding.numbers().join(" | "), said.join("; "));
                let verdict = row.verdict();
                text += &format!("| {} | {} | {cells} | {said} | {verdict} |\n", row.case, finding.done);
            }
        }
    }
    text
}

/// One document.
pub(crate) fn json(rows: &[Row], seed: u64, full: bool) -> Value {
    let cases: Vec<Value> = rows.iter().map(case).collect();
    json!({ "seed": seed, "full": full, "cases": cases })
}

fn case(row: &Row) -> Value {
    let (case, verdict) = (row.case, row.verdict());
    let finding = match &row.end {
        End::Skipped(why) => return json!({ "case": case, "verdict": verdict, "why": why }),
        End::Ran(finding) => finding,
    };
    let [before, peak, after] = finding.resident;
    json!({
        "case": case,
        "verdict": verdict,
        "done": finding.done,
        "resident_bytes": { "before": before, "peak": peak, "after": after },
        "asked": finding.asked.asked,
        "answered": finding.asked.answered,
        "slowest_ms": finding.asked.slowest.as_millis() as u64,
        "innocent": { "sent": finding.innocent.sent, "lost": finding.innocent.lost },
        "bare": finding.bare.map(|bare| json!({ "sent": bare.sent, "lost": bare.lost })),
        "figures": finding.figures,
        "broken": finding.broken,
    })
}
