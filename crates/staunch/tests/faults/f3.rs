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
    let first = bench.seed.to_string();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seeds = SEEDS.to_string();
    let mut finding =
        Finding { done: format!("{SEEDS} storms, and as many of stores, simulated"), ..Finding::default() };
    for kind in [&[][..], &["--store"]] {
        let mut command = Command::new(env!("CARGO"));
        command.args(["xtask", "sim"]).args(kind).args(["--seeds", &seeds, "--first", &first]);
        bench.say(|| format!("{SEEDS} storms in the simulator"));
        let ran = command.current_dir(&root).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = match ran {
            Ok(output) => output,
            Err(error) => return End::Skipped(format!("cargo cannot be run: {error}")),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let last = |lines: usize| said.lines().rev().take(lines).collect::<Vec<_>>().join(" / ");
        finding.figure(last(if kind.is_empty() { 1 } else { 2 }));
        finding.promise(output.status.success(), || last(3));
    }
    End::Ran(finding)
}
