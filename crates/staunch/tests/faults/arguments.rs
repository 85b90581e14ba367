//! The bench's command line.

/// What it was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Cases by name; empty for all.
    pub(crate) cases: Vec<String>,
    /// The numbers of docs/reliability.md.
    pub(crate) full: bool,
    /// Everything random comes from it.
    pub(crate) seed: Option<u64>,
    /// How it answers.
    pub(crate) form: Form,
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

/// For `--help`.
pub(crate) const HELP: &str = "\
Kills, starves and floods the daemon, and counts what was lost (docs/reliability.md).

usage: cargo test -p staunch --test faults -- [CASE…] [options]

  CASE          F1 to F15; all without one
  --full        the numbers of docs/reliability.md (an hour), not those of a test
  --seed N      everything random comes from N
  --json        one JSON document
  --markdown    the table for docs/reliability.md
exit: 0 all promises kept, 1 one was broken, 2 the command line is wrong";

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
