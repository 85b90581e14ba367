//! Evaluates each line of standard input by itself and prints the value, or `!` and the class of what was thrown.
//!
//! `compat/clojure.py` compares this with Clojure.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use streams::graph::Graph;
use streams::language::budget::Limits;
use streams::language::error::Reason;
use streams::language::evaluation::Evaluation;
use streams::language::host::Nowhere;
use streams::language::machine::Machine;

fn main() -> std::io::Result<()> {
    let mut to = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let evaluation =
            Evaluation::new(Arc::new(streams::language::clojure()), Box::new(Nowhere::default()));
        let mut graph = Graph::new(evaluation, 0);
        let mut machine = Machine::new(&mut graph, Limits::EVENT);
        let printed = match machine.load(&line, "line") {
            Ok(value) => match machine.realize(&value) {
                Ok(value) => streams::print::to_text(&value, true),
                Err(error) => failed(Some(error.reason()), &error.to_string()),
            },
            Err(error) => failed(error.error.as_ref().map(|error| error.reason()), &error.to_string()),
        };
        writeln!(to, "{}", printed.replace('\n', "\\n"))?;
    }
    Ok(())
}

fn failed(reason: Option<&Reason>, text: &str) -> String {
    match reason {
        Some(Reason::Thrown(exception)) => format!("!{}", exception.class.name),
        Some(Reason::TooManySteps | Reason::TooDeep | Reason::TooMuchMemory) | None => format!("!! {text}"),
    }
}
