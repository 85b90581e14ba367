//! The frame of a bench of cases: `--test faults`, `--test attacks`. It reads the command line, runs the cases that were
//! asked for, and prints what they found for people (80 columns), for docs/reliability.md, and for programs.
//!
//! Not here: what the cases do, and what a finding consists of ([`Found`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::arguments::{Arguments, Form};
use super::bench::Bench;
use super::daemon::test_instead;

/// Widest line on a terminal.
const COLUMNS: usize = 80;

/// What stands below a row.
const INDENT: &str = "     ";

/// A number of each finding.
pub(crate) struct Column {
    /// On a terminal.
    pub(crate) name: &'static str,
    /// Its width there.
    pub(crate) width: usize,
    /// On the page.
    pub(crate) whole_name: &'static str,
}

/// What a case finds.
pub(crate) trait Found: Default {
    /// Its numbers.
    const NUMBERS: &'static [Column];
    /// Width of what was done, on a terminal.
    const DONE_WIDTH: usize;

    /// What was done, in a few words.
    fn done(&self) -> &str;
    /// One for each of [`Found::NUMBERS`].
    fn numbers(&self) -> Vec<String>;
    /// Measured figures.
    fn figures(&self) -> &[String];
    /// Promises that were broken.
    fn broken(&self) -> &[String];
    /// The case could not go on.
    fn panicked(&mut self, words: String);
    /// Its own members of a document.
    fn members(&self) -> Value;
}

/// How a case ended.
#[derive(Debug)]
pub(crate) enum End<F> {
    /// It ran.
    Ran(F),
    /// It cannot run here: why, and what it takes.
    Skipped(String),
    /// It is run by something else.
    Elsewhere(String),
}

/// One case with its end.
struct Row<F> {
    case: &'static str,
    end: End<F>,
}

impl<F: Found> Row<F> {
    fn verdict(&self) -> &'static str {
        match &self.end {
            End::Ran(found) if found.broken().is_empty() => "kept",
            End::Ran(_) => "BROKEN",
            End::Skipped(_) => "skipped",
            End::Elsewhere(_) => "elsewhere",
        }
    }
}

/// A bench.
pub(crate) struct Cases<'a, F> {
    /// `faults`.
    pub(crate) name: &'static str,
    /// Names of its cases, in order.
    pub(crate) names: Vec<&'static str>,
    /// Runs one of them.
    pub(crate) run: &'a dyn Fn(&Bench, &str) -> End<F>,
    /// For `--help`, and behind a mistake.
    pub(crate) help: &'static str,
    /// What is said of the surroundings, behind the seed.
    pub(crate) around: String,
}

impl<F: Found> Cases<'_, F> {
    /// Does what the command line asks for.
    pub(crate) fn main(self) -> ExitCode {
        let words: Vec<String> = std::env::args().skip(1).collect();
        if words.iter().any(|word| word == "--help" || word == "-h") {
            println!("{}", self.help);
            return ExitCode::SUCCESS;
        }
        let arguments = match Arguments::parse(words.into_iter(), &self.names) {
            Ok(arguments) => arguments,
            Err(mistake) => {
                eprintln!("{}: {mistake}\n\n{}", self.name, self.help);
                return ExitCode::from(2);
            }
        };
        if let Some(binary) = &arguments.staunch {
            test_instead(binary.clone());
        }
        let rows = self.run(&arguments);
        if rows.iter().any(|row| row.verdict() == "BROKEN") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn run(&self, arguments: &Arguments) -> Vec<Row<F>> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970");
        let seed = arguments.seed.unwrap_or(since_1970.as_nanos() as u64 % 1_000_000_000);
        let text = arguments.form == Form::Text;
        let size = if arguments.full { " --full" } else { "" };
        let begin = format!("{}{size} --seed {seed}{}", self.name, self.around);
        // On stderr where stdout is a document.
        if text {
            println!("{begin}\n{}", heading::<F>());
        } else {
            eprintln!("{begin}");
        }
        let mut rows = Vec::new();
        for &case in &self.names {
            if !arguments.cases.is_empty() && !arguments.cases.iter().any(|asked| asked == case) {
                continue;
            }
            let bench = Bench::new(case, arguments.full, seed);
            let end = catch_unwind(AssertUnwindSafe(|| (self.run)(&bench, case)));
            let row = Row { case, end: end.unwrap_or_else(|panic| panicked(&*panic)) };
            if text {
                println!("{}", row_text(&row));
            }
            rows.push(row);
        }
        match arguments.form {
            Form::Text => {
                // For the summary of `make test`.
                for row in &rows {
                    if let End::Skipped(why) = &row.end {
                        println!("SKIPPED {}: {why}", row.case);
                    }
                }
                let of = |verdict: &str| rows.iter().filter(|row| row.verdict() == verdict).count();
                println!("{} passed, {} failed", of("kept"), of("BROKEN"));
            }
            Form::Markdown => print!("{}", markdown(&rows, self.name)),
            Form::Json => println!("{:#}", document(&rows, seed, arguments.full)),
        }
        rows
    }
}

/// A case that could not go on has found something, too.
fn panicked<F: Found>(panic: &(dyn std::any::Any + Send)) -> End<F> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing");
    let mut found = F::default();
    found.panicked(format!("the case panicked: {text}"));
    End::Ran(found)
}

fn heading<F: Found>() -> String {
    let names: Vec<String> = F::NUMBERS.iter().map(|column| column.name.to_owned()).collect();
    line::<F>("case", "what was done", &names, "promise")
}

fn line<F: Found>(case: &str, done: &str, numbers: &[String], verdict: &str) -> String {
    let mut line = format!("{case:<4} {done:<width$}", width = F::DONE_WIDTH);
    for (column, number) in F::NUMBERS.iter().zip(numbers) {
        line += &format!(" {number:>width$}", width = column.width);
    }
    line + "  " + verdict
}

/// A row of the table, with what belongs to it below it.
fn row_text<F: Found>(row: &Row<F>) -> String {
    let mut lines = Vec::new();
    match &row.end {
        End::Skipped(why) => {
            lines.push(format!("{:<4} not run", row.case));
            lines.extend(wrapped(why));
        }
        End::Elsewhere(place) => lines.push(format!("{:<4} {place}", row.case)),
        End::Ran(found) => {
            lines.push(line::<F>(row.case, found.done(), &found.numbers(), row.verdict()));
            lines.extend(found.figures().iter().flat_map(|figure| wrapped(figure)));
            lines.extend(found.broken().iter().flat_map(|broken| wrapped(&format!("BROKEN: {broken}"))));
        }
    }
    lines.join("\n")
}

fn wrapped(text: &str) -> Vec<String> {
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
fn markdown<F: Found>(rows: &[Row<F>], name: &str) -> String {
    let mut text = format!("Measured with `make {name}`.\n\n| case | what was done |");
    F::NUMBERS.iter().for_each(|column| text += &format!(" {} |", column.whole_name));
    text += " figures |\n|---|---|";
    text += &"---:|".repeat(F::NUMBERS.len());
    text += "---|\n";
    let nothing = " |".repeat(F::NUMBERS.len() + 1);
    for row in rows {
        match &row.end {
            End::Skipped(why) => text += &format!("| {} | not run: {why} |{nothing}\n", row.case),
            End::Elsewhere(place) => text += &format!("| {} | {place} |{nothing}\n", row.case),
            End::Ran(found) => {
                let mut figures = found.figures().to_vec();
                figures.extend(found.broken().iter().map(|broken| format!("**broken**: {broken}")));
                let cells = found.numbers().join(" | ");
                text += &format!("| {} | {} | {cells} | {} |\n", row.case, found.done(), figures.join("; "));
            }
        }
    }
    text
}

fn document<F: Found>(rows: &[Row<F>], seed: u64, full: bool) -> Value {
    let cases: Vec<Value> = rows.iter().map(row_document).collect();
    json!({ "seed": seed, "full": full, "cases": cases })
}

fn row_document<F: Found>(row: &Row<F>) -> Value {
    let mut document = json!({ "case": row.case, "verdict": row.verdict() });
    match &row.end {
        End::Skipped(why) | End::Elsewhere(why) => document["why"] = json!(why),
        End::Ran(found) => {
            document["done"] = json!(found.done());
            document["figures"] = json!(found.figures());
            document["broken"] = json!(found.broken());
            let Value::Object(members) = found.members() else { return document };
            members.into_iter().for_each(|(name, value)| document[name] = value);
        }
    }
    document
}
