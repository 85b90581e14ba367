//! Facts about a build, for `staunch --version --verbose` and `staunch_info`: the commit, the target and the compiler.
//!
//! The commit is that of STAUNCH_COMMIT, which packagers set, or of git when this folder is a checkout of its own. Sources
//! without git give `unknown`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=STAUNCH_COMMIT");
    let commit =
        std::env::var("STAUNCH_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(commit_of_git);
    set("COMMIT", &commit.unwrap_or_else(|| "unknown".to_owned()));
    set("TARGET", &std::env::var("TARGET").unwrap_or_default());
    set("PROFILE", &std::env::var("PROFILE").unwrap_or_default());
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_unset| "rustc".to_owned());
    set("RUSTC", &answer(Command::new(rustc).arg("--version")).unwrap_or_default());
}

fn set(name: &str, value: &str) {
    println!("cargo:rustc-env=STAUNCH_BUILD_{name}={value}");
}

/// None where there is no git, and in a folder that is only a part of somebody else's repository.
fn commit_of_git() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    let top = answer(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = answer(Command::new("git").args(["rev-parse", "--git-path", file]))?;
        println!("cargo:rerun-if-changed={path}");
    }
    answer(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))
}

/// The first line that a command prints; none when it fails.
fn answer(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
