//! `cargo xtask instructions`: counts instructions per sample under callgrind, and compares them with the stored
//! counts.
//!
//! Time is noisy on a shared machine; the number of instructions is not. Each gate of `bench/instructions.toml` names
//! an example that processes as many samples as its last argument says. It runs with two numbers. The difference of
//! the two counts, divided by the difference of the numbers, is the cost of a sample: the cost of start, allocation
//! and warm-up is in both counts and cancels out.
//!
//! Not here: the examples. An example must do the same work for each sample, from fixed seeds, and print nothing
//! relevant.
//! Invariant: without a gate, or with an example that fails, the result is never "good". Without valgrind it is
//! `SKIPPED`, and `make test` shows that.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// The gates file, relative to the root of the repository.
const GATES: &str = "bench/instructions.toml";

/// A gate fails when the count is above the stored one by more than this share.
const GROWTH_MAX: f64 = 0.03;

/// One gate: an example and its stored cost of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    /// Name of its section.
    pub(crate) name: String,
    /// Crate of the example.
    pub(crate) package: String,
    /// The example.
    pub(crate) example: String,
    /// Its arguments, before the number of samples.
    pub(crate) args: Vec<String>,
    /// The two numbers of samples, the smaller first.
    pub(crate) samples: [u64; 2],
    /// Stored instructions per sample; `None` for a new gate.
    pub(crate) instructions: Option<f64>,
}

/// Result of comparing a count with the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No stored count yet.
    New,
    /// Within the share on both sides.
    Same,
    /// Below by more than the share: an improvement, which should be stored.
    Better,
    /// Above by more than the share.
    Worse,
}

/// Counts every gate of the repository at `root` and prints the results. With `update` the counts are stored in the
/// file, and no gate fails.
///
/// # Errors
/// When a count fails: no gates, an example that does not build or run.
pub(crate) fn run(root: &Path, update: bool) -> anyhow::Result<bool> {
    if !has_valgrind() {
        println!(
            "SKIPPED: valgrind, which counts instructions, is not installed (Debian: `apt install valgrind`)"
        );
        // Without valgrind the stored counts cannot be updated.
        return Ok(!update);
    }
    let path = root.join(GATES);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {GATES}"))?;
    let gates = parse(&text).with_context(|| format!("{GATES} is invalid"))?;
    let mut good = true;
    let mut counts = Vec::new();
    for gate in &gates {
        let count = count(root, gate).with_context(|| format!("cannot count `{}`", gate.name))?;
        let verdict = verdict(gate.instructions, count);
        println!("{}", sentence(gate, count, verdict));
        good &= matches!(verdict, Verdict::Same | Verdict::Better);
        counts.push((gate.name.as_str(), count));
    }
    if update {
        fs::write(&path, rewritten(&text, &counts)?).with_context(|| format!("cannot write {GATES}"))?;
    } else if !good {
        println!(
            "if the change is intended: cargo xtask instructions --update, with the reason in the commit message"
        );
    }
    Ok(good || update)
}

/// Whether valgrind is installed.
fn has_valgrind() -> bool {
    let ran = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

/// Instructions per sample of one gate: builds its example, runs it twice.
///
/// # Errors
/// When the example does not build or run, or valgrind is missing.
pub(crate) fn count(root: &Path, gate: &Gate) -> anyhow::Result<f64> {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--quiet", "--package", &gate.package, "--example", &gate.example])
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the example does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    per_sample(&target.join("release/examples").join(&gate.example), &gate.args, gate.samples)
}

/// Instructions per sample of the program `example`, by the difference of two runs.
///
/// # Errors
/// When it does not run under valgrind, or costs less for more samples.
pub(crate) fn per_sample(example: &Path, args: &[String], samples: [u64; 2]) -> anyhow::Result<f64> {
    let [few, many] = samples;
    ensure!(few < many, "the two numbers of samples must be ascending: {few}, {many}");
    let least = callgrind(example, args, few)?;
    let most = callgrind(example, args, many)?;
    ensure!(most > least, "{many} samples cost no more than {few}: is the last argument their number?");
    Ok((most - least) as f64 / (many - few) as f64)
}

/// Instructions of one run.
fn callgrind(example: &Path, args: &[String], samples: u64) -> anyhow::Result<u64> {
    let out = std::env::temp_dir().join(format!("callgrind-{}-{samples}.out", std::process::id()));
    let mut option = std::ffi::OsString::from("--callgrind-out-file=");
    option.push(&out);
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(option)
        .arg(example)
        .args(args)
        .arg(samples.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("cannot run valgrind: install the package `valgrind`")?;
    let profile = fs::read_to_string(&out).unwrap_or_default();
    // It may not exist when valgrind failed, which is reported below.
    let _none = fs::remove_file(&out);
    ensure!(ran.status.success(), "{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr).trim());
    total(&profile).context("callgrind wrote no total")
}

/// The number after `totals:` (or `summary:`) of a callgrind profile.
fn total(profile: &str) -> Option<u64> {
    let line = profile
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The gates of a file, sorted by name.
fn parse(text: &str) -> anyhow::Result<Vec<Gate>> {
    let table: toml::Table = text.parse()?;
    ensure!(!table.is_empty(), "it names no gate");
    table
        .iter()
        .map(|(name, section)| gate(name, section).with_context(|| format!("section [{name}]")))
        .collect()
}

fn gate(name: &str, section: &toml::Value) -> anyhow::Result<Gate> {
    const KEYS: [&str; 5] = ["package", "example", "args", "samples", "instructions"];
    let section = section.as_table().context("not a section")?;
    if let Some(unknown) = section.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!("unknown key `{unknown}`; there are: {}", KEYS.join(", "));
    }
    let word = |key: &str| {
        let value = section.get(key).and_then(toml::Value::as_str);
        value.map(str::to_owned).with_context(|| format!("`{key}` must be a text"))
    };
    let list = |key: &str| section.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let args = list("args").iter().map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let samples: Vec<u64> = list("samples")
        .iter()
        .filter_map(toml::Value::as_integer)
        .filter_map(|n| n.try_into().ok())
        .collect();
    let instructions = match section.get("instructions") {
        None => None,
        Some(toml::Value::Integer(whole)) => Some(*whole as f64),
        Some(value) => Some(value.as_float().context("`instructions` must be a number")?),
    };
    Ok(Gate {
        name: name.to_owned(),
        package: word("package")?,
        example: word("example")?,
        args: args.context("`args` must be texts")?,
        samples: samples.try_into().ok().context("`samples` must be two whole numbers")?,
        instructions,
    })
}

fn verdict(kept: Option<f64>, count: f64) -> Verdict {
    match kept {
        None => Verdict::New,
        Some(kept) if count > kept * (1.0 + GROWTH_MAX) => Verdict::Worse,
        Some(kept) if count < kept * (1.0 - GROWTH_MAX) => Verdict::Better,
        Some(_) => Verdict::Same,
    }
}

fn sentence(gate: &Gate, count: f64, verdict: Verdict) -> String {
    let mut text = format!("{:<24} {count:>8.1} instructions per sample", gate.name);
    let written = match (gate.instructions, verdict) {
        (Some(kept), Verdict::Same) => write!(text, ", kept {kept:.1}"),
        (Some(kept), Verdict::Better) => {
            write!(text, ", kept {kept:.1}: better; store it with --update")
        }
        (Some(kept), _) => {
            let growth = 100.0 * (count / kept - 1.0);
            write!(text, ", kept {kept:.1}: WORSE by {growth:.1} % (at most {:.0} %)", 100.0 * GROWTH_MAX)
        }
        (None, _) => write!(text, ": NEW; store it with --update"),
    };
    written.expect("writing to a string cannot fail");
    text
}

/// The file with new counts; comments and order are kept.
fn rewritten(text: &str, counts: &[(&str, f64)]) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut waiting: Option<f64> = None;
    let mut kept = 0;
    let put = |out: &mut String, count: f64| {
        writeln!(out, "instructions = {count:.1}").expect("writing to a string cannot fail");
    };
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if let Some(count) = waiting.take() {
                put(&mut out, count);
            }
            waiting = counts.iter().find(|(gate, _)| *gate == name).map(|(_, count)| *count);
            kept += usize::from(waiting.is_some());
        } else if line.split('=').next().is_some_and(|key| key.trim() == "instructions")
            && let Some(count) = waiting.take()
        {
            put(&mut out, count);
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    if let Some(count) = waiting {
        put(&mut out, count);
    }
    ensure!(kept == counts.len(), "a gate's section is not written as [name] on a line of its own");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# Why.\n[parse]\npackage = \"wire\"\nexample = \"parse_speed\"\nsamples = [10, 20]\n\
        instructions = 100.0\n\n[whole]\npackage = \"pipeline\"\nexample = \"whole\"\nargs = [\"a\", \"b\"]\nsamples = [1, 2]\n";

    #[test]
    fn gates_are_parsed_with_defaults_for_optional_keys() {
        let gates = parse(TWO).unwrap();
        assert_eq!(gates[0].instructions, Some(100.0));
        assert_eq!((gates[1].args.len(), gates[1].samples, gates[1].instructions), (2, [1, 2], None));
    }

    #[test]
    fn errors_name_the_invalid_gate() {
        for (text, want) in [
            ("", "names no gate"),
            ("[a]\nexample = \"e\"\nsamples = [1, 2]", "`package` must be a text"),
            ("[a]\npackage = \"p\"\nexample = \"e\"\nsamples = [1]", "two whole numbers"),
            ("[a]\npackage = \"p\"\nexample = \"e\"\nsamples = [1, -2]", "two whole numbers"),
            ("[a]\nexampel = \"e\"", "unknown key `exampel`"),
            ("a = 1", "not a section"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(want), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_gate_fails_above_three_percent() {
        for (kept, count, want) in [
            (None, 50.0, Verdict::New),
            (Some(100.0), 103.0, Verdict::Same),
            (Some(100.0), 103.1, Verdict::Worse),
            (Some(100.0), 97.0, Verdict::Same),
            (Some(100.0), 96.9, Verdict::Better),
        ] {
            assert_eq!(verdict(kept, count), want, "kept {kept:?}, counted {count}");
        }
        let gate = &parse(TWO).unwrap()[0];
        assert!(sentence(gate, 110.0, Verdict::Worse).ends_with("kept 100.0: WORSE by 10.0 % (at most 3 %)"));
    }

    #[test]
    fn totals_are_found_at_the_end_of_a_profile() {
        for (profile, want) in [
            ("version: 1\nsummary: 12\n\nfn=(1) main\n1 3\ntotals: 345\n", Some(345)),
            ("events: Ir\nsummary: 12 \n", Some(12)),
            ("events: Ir\n", None),
            ("totals: x\n", None),
        ] {
            assert_eq!(total(profile), want, "{profile:?}");
        }
    }

    #[test]
    fn an_update_changes_the_counts_and_nothing_else() {
        let text = rewritten(TWO, &[("parse", 90.04), ("whole", 7.0)]).unwrap();
        let want = TWO.replace("instructions = 100.0", "instructions = 90.0") + "instructions = 7.0\n";
        assert_eq!(text, want);
        assert_eq!(parse(&text).unwrap()[1].instructions, Some(7.0));
        assert!(rewritten("[ parse ]\n", &[("parse", 1.0)]).is_err(), "a missing section is an error");
    }
}
