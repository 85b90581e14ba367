//! F3: the machine loses power. No process can be asked to forget what it did not sync: that is the simulator's work.
//!
//! In full the case runs it and passes on its verdict. Small, `make test` has it as a step of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::finding::{Bench, End, Finding};

const SEEDS: u64 = 300;

pub(crate) fn run(bench: &Bench) -> End {
    if !bench.full {
        return End::Elsewhere("in the simulator: cargo xtask sim".into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seeds = SEEDS.to_string();
    let mut command = Command::new(env!("CARGO"));
    command.args(["xtask", "sim", "--seeds", &seeds, "--first", &bench.seed.to_string()]);
    bench.say(|| format!("{SEEDS} storms in the simulator"));
    let ran = command.current_dir(root).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = match ran {
        Ok(output) => output,
        Err(error) => return End::Skipped(format!("cargo cannot be run: {error}")),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let mut finding = Finding { done: format!("{SEEDS} storms, simulated"), ..Finding::default() };
    finding.figure(said.lines().last().unwrap_or_default());
    finding.promise(output.status.success(), || said.lines().rev().take(3).collect::<Vec<_>>().join(" / "));
    End::Ran(finding)
}
