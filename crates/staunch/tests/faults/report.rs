//! Findings for people (80 columns), for docs/reliability.md, and for programs.

use serde_json::{Value, json};

use crate::finding::{End, Finding};

/// Widest line on a terminal.
const COLUMNS: usize = 80;

/// One case with its end.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) end: End,
}

impl Row {
    /// `kept`, `BROKEN`, `skipped` or `elsewhere`.
    fn verdict(&self) -> &'static str {
        match &self.end {
            End::Ran(finding) if finding.broken.is_empty() => "kept",
            End::Ran(_) => "BROKEN",
            End::Skipped(_) => "skipped",
            End::Elsewhere(_) => "elsewhere",
        }
    }

    /// A promise was broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.verdict() == "BROKEN"
    }
}

/// Heading of the table.
pub(crate) fn heading() -> String {
    line("case", "what was done", ["sent", "arrived", "named", "lost", "twice"].map(str::to_owned), "promise")
}

fn line(case: &str, done: &str, numbers: [String; 5], verdict: &str) -> String {
    let [sent, arrived, named, lost, twice] = numbers;
    format!("{case:<4} {done:<26} {sent:>8} {arrived:>8} {named:>8} {lost:>4} {twice:>6}  {verdict}")
}

fn numbers(finding: &Finding) -> [String; 5] {
    let whole = |number: u64| number.to_string();
    let Finding { sent, arrived, named, twice, .. } = finding;
    [whole(*sent), whole(*arrived), whole(*named), finding.lost().to_string(), whole(*twice)]
}

/// A row of the table, with what belongs to it below it.
pub(crate) fn text(row: &Row) -> String {
    let mut lines = Vec::new();
    match &row.end {
        End::Skipped(why) => {
            lines.push(format!("{:<4} not run", row.case));
            lines.extend(wrapped(why));
        }
        End::Elsewhere(place) => lines.push(format!("{:<4} {place}", row.case)),
        End::Ran(finding) => {
            lines.push(line(row.case, &finding.done, numbers(finding), row.verdict()));
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
pub(crate) fn markdown(rows: &[Row], command: &str) -> String {
    let mut text = format!(
        "Measured with `{command}`.\n\n\
         | case | what was done | sent | arrived | named | lost | twice | figures |\n\
         |---|---|---:|---:|---:|---:|---:|---|\n"
    );
    for row in rows {
        match &row.end {
            End::Skipped(why) => text += &format!("| {} | not run: {why} | | | | | | |\n", row.case),
            End::Elsewhere(place) => text += &format!("| {} | {place} | | | | | | |\n", row.case),
            End::Ran(finding) => {
                let mut said = finding.figures.clone();
                said.extend(finding.broken.iter().map(|broken| format!("**broken**: {broken}")));
                let cells = numbers(finding).join(" | ");
                text += &format!("| {} | {} | {cells} | {} |\n", row.case, finding.done, said.join("; "));
            }
        }
    }
    text
}

/// One document.
pub(crate) fn json(rows: &[Row], seed: u64, full: bool) -> Value {
    let cases: Vec<Value> = rows
        .iter()
        .map(|row| match &row.end {
            End::Skipped(why) | End::Elsewhere(why) => {
                json!({ "case": row.case, "verdict": row.verdict(), "why": why })
            }
            End::Ran(finding) => json!({
                "case": row.case,
                "verdict": row.verdict(),
                "done": finding.done,
                "sent": finding.sent,
                "arrived": finding.arrived,
                "named": finding.named,
                "lost": finding.lost() as i64,
                "twice": finding.twice,
                "figures": finding.figures,
                "broken": finding.broken,
            }),
        })
        .collect();
    json!({ "seed": seed, "full": full, "cases": cases })
}
