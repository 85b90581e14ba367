//! What became of the tests of a config: as `clojure.test` prints it, and as JUnit's XML.

use std::fmt::{self, Display, Write};

use arcstr::ArcStr;

use super::recorded::{Failure, Test};
use crate::language::error::EvalError;
use crate::language::host::Level;

/// One test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its namespace.
    pub namespace: ArcStr,
    /// Its name.
    pub name: ArcStr,
    /// Its assertions.
    pub assertions: u64,
    /// What failed.
    pub failures: Vec<Failure>,
    /// What the config printed and logged.
    pub lines: Vec<(Level, String)>,
}

/// All tests.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the config.
    pub tests: Vec<Outcome>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        test: &Test,
        assertions: u64,
        mut failures: Vec<Failure>,
        thrown: Option<EvalError>,
        lines: Vec<(Level, String)>,
    ) {
        failures.extend(thrown.map(|error| Failure {
            at: if error.at().is_known() { error.at().clone() } else { test.at.clone() },
            message: Some("Uncaught exception, not in assertion.".to_owned()),
            expected: "nil".to_owned(),
            actual: error.to_string(),
            is_error: true,
        }));
        let (namespace, name) = (test.namespace.clone(), test.name.clone());
        self.tests.push(Outcome { namespace, name, assertions, failures, lines });
    }

    fn failures(&self, errors: bool) -> usize {
        self.tests.iter().flat_map(|test| &test.failures).filter(|failure| failure.is_error == errors).count()
    }

    /// Whether nothing failed.
    pub fn is_good(&self) -> bool {
        self.tests.iter().all(|test| test.failures.is_empty())
    }

    /// JUnit's XML.
    pub fn junit(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        let mut namespaces: Vec<&ArcStr> = self.tests.iter().map(|test| &test.namespace).collect();
        namespaces.dedup();
        for namespace in namespaces {
            let tests: Vec<&Outcome> =
                self.tests.iter().filter(|test| test.namespace == *namespace).collect();
            let count = |errors: bool| {
                tests
                    .iter()
                    .flat_map(|test| &test.failures)
                    .filter(|failure| failure.is_error == errors)
                    .count()
            };
            let head = format!(
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
                escaped(namespace),
                tests.len(),
                count(false),
                count(true)
            );
            out.push_str(&head);
            tests.iter().for_each(|test| test_case(test, &mut out));
            out.push_str("  </testsuite>\n");
        }
        out.push_str("</testsuites>\n");
        out
    }
}

fn test_case(test: &Outcome, out: &mut String) {
    let (name, namespace) = (escaped(&test.name), escaped(&test.namespace));
    let write =
        |out: &mut String, text: fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes any text");
    write(out, format_args!("    <testcase name=\"{name}\" classname=\"{namespace}\">\n"));
    for failure in &test.failures {
        let word = if failure.is_error { "error" } else { "failure" };
        let message = failure.message.as_ref().map(|message| format!("{message}\n")).unwrap_or_default();
        let text = format!(
            "{message}expected: {}\n  actual: {}\n      at: {}",
            failure.expected, failure.actual, failure.at
        );
        write(out, format_args!("      <{word}>{}</{word}>\n", escaped(&text)));
    }
    out.push_str("    </testcase>\n");
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write other control characters.
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// The report of `clojure.test`.
impl Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = None;
        for test in &self.tests {
            if last != Some(&test.namespace) {
                writeln!(to, "\nTesting {}", test.namespace)?;
                last = Some(&test.namespace);
            }
            for Failure { at, message, expected, actual, is_error } in &test.failures {
                let word = if *is_error { "ERROR" } else { "FAIL" };
                writeln!(to, "\n{word} in ({}) ({}:{})", test.name, at.file, at.line)?;
                message.iter().try_for_each(|message| writeln!(to, "{message}"))?;
                writeln!(to, "expected: {expected}\n  actual: {actual}")?;
            }
        }
        let assertions: u64 = self.tests.iter().map(|test| test.assertions).sum();
        writeln!(to, "\nRan {} tests containing {assertions} assertions.", self.tests.len())?;
        writeln!(to, "{} failures, {} errors.", self.failures(false), self.failures(true))
    }
}
