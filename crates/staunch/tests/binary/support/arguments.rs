//! The command line of a bench: `--test faults`, `--test attacks`.

use std::path::PathBuf;

/// What it was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Cases by name; empty for all.
    pub(crate) cases: Vec<String>,
    /// The numbers of docs/reliability.md, not those of a test.
    pub(crate) full: bool,
    /// Everything random comes from it.
    pub(crate) seed: Option<u64>,
    /// How it answers.
    pub(crate) form: Form,
    /// The binary to be tested, where that is another than the one of this build.
    pub(crate) staunch: Option<PathBuf>,
}

/// How it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// A table.
    #[default]
    Text,
    /// A table for docs/reliability.md.
    Markdown,
    /// A JSON document.
    Json,
}

impl Arguments {
    /// Reads them. The error is a sentence for people.
    pub(crate) fn parse(words: impl Iterator<Item = String>, known: &[&str]) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--full" => arguments.full = true,
                "--json" => arguments.form = Form::Json,
                "--markdown" => arguments.form = Form::Markdown,
                "--seed" => {
                    let seed = words.next().and_then(|seed| seed.parse().ok());
                    arguments.seed = Some(seed.ok_or("--seed wants a whole number")?);
                }
                "--staunch" => {
                    let path = words.next().ok_or("--staunch wants the path of a binary")?;
                    // Daemons are started in folders of their own.
                    let whole = std::fs::canonicalize(&path).map_err(|error| format!("{path}: {error}"))?;
                    arguments.staunch = Some(whole);
                }
                // What cargo hands to every test; there is nothing to capture here.
                "--nocapture" | "--no-capture" => {}
                case if known.contains(&case) => arguments.cases.push(word),
                other => {
                    return Err(format!(
                        "`{other}` is neither a case nor an option; cases: {}",
                        known.join(" ")
                    ));
                }
            }
        }
        Ok(arguments)
    }
}
