//! `cargo xtask fuzz`: runs each fuzz target under `fuzz/` for a short time, if the nightly toolchain is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Fuzzes each target for `seconds`. True when no target failed, also when fuzzing is not possible here: the crates'
/// own tests feed the same parsers with seeded random input on every run of `cargo test`.
pub(crate) fn run(root: &Path, seconds: u64) -> anyhow::Result<bool> {
    let manifest = root.join("fuzz/Cargo.toml");
    if !manifest.exists() {
        println!("SKIPPED: fuzz/Cargo.toml is missing");
        return Ok(true);
    }
    if !works(&["+nightly", "fuzz", "--version"]) {
        println!(
            "SKIPPED: it needs a nightly toolchain (rustup toolchain install nightly) and cargo-fuzz, which .ci/tools \
             installs; `cargo test` feeds the same parsers with seeded noise"
        );
        return Ok(true);
    }
    let text =
        std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let targets = targets(&text)?;
    let readme = root.join("fuzz/README.md");
    let readme =
        std::fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let mut failed = Vec::new();
    for target in &targets {
        let folders = folders(&readme, target)?;
        if let Some(own) = folders.first() {
            std::fs::create_dir_all(root.join(own)).with_context(|| format!("cannot make {own}"))?;
        }
        println!("fuzz: {target} for {seconds} s");
        let status = Command::new("cargo")
            .args(["+nightly", "fuzz", "run", target])
            .args(&folders)
            .arg("--")
            .args([format!("-max_total_time={seconds}"), "-seed=1".to_owned(), "-verbosity=0".to_owned()])
            .current_dir(root)
            .env_remove("RUSTUP_TOOLCHAIN")
            .status()
            .context("cannot start cargo fuzz")?;
        if !status.success() {
            failed.push(target.as_str());
        }
    }
    println!("fuzz: {} passed, {} failed", targets.len() - failed.len(), failed.len());
    for target in &failed {
        println!("fuzz: {target} failed; the input is in fuzz/artifacts/{target}");
    }
    Ok(failed.is_empty())
}

/// Names of the fuzz targets: each `[[bin]]` of the manifest.
fn targets(manifest: &str) -> anyhow::Result<Vec<String>> {
    let table: toml::Table = manifest.parse().context("fuzz/Cargo.toml")?;
    let Some(bins) = table.get("bin").and_then(|bins| bins.as_array()) else {
        bail!("fuzz/Cargo.toml has no [[bin]]");
    };
    Ok(bins.iter().filter_map(|bin| bin.get("name")?.as_str()).map(str::to_owned).collect())
}

/// The input folders of a target, from the command in `fuzz/README.md`: its own folder, then those with committed
/// inputs.
fn folders<'r>(readme: &'r str, target: &str) -> anyhow::Result<Vec<&'r str>> {
    let command = format!("cargo +nightly fuzz run {target} ");
    let line = readme.lines().find_map(|line| line.trim_start().strip_prefix(&command));
    let Some((folders, _)) = line.and_then(|line| line.split_once(" -- ")) else {
        bail!("fuzz/README.md has no `{command}FOLDER… -- …`");
    };
    Ok(folders.split_whitespace().collect())
}

/// Whether cargo supports the command.
fn works(args: &[&str]) -> bool {
    // RUSTUP_TOOLCHAIN of the cargo that started this process would override `+nightly`.
    let status = Command::new("cargo")
        .args(args)
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn each_bin_of_the_manifest_is_a_target() {
    let manifest = "[package]\nname = \"fuzz\"\n[[bin]]\nname = \"statsd\"\npath = \"a.rs\"\n[[bin]]\nname = \"frame\"\n";
    assert_eq!(targets(manifest).expect("a manifest"), ["statsd", "frame"]);
    assert!(targets("[package]\nname = \"fuzz\"\n").is_err());
}

#[test]
fn the_readme_has_the_input_folders_of_each_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("it is in the repository");
    let (manifest, readme) = (read("fuzz/Cargo.toml"), read("fuzz/README.md"));
    for target in targets(&manifest).expect("a manifest") {
        let folders = folders(&readme, &target).expect("each target has its command");
        assert_eq!(folders[0], format!("fuzz/corpus/{target}"), "new inputs are stored there");
        assert!(folders[1..].iter().all(|folder| root.join(folder).is_dir()), "{folders:?}");
    }
    assert!(folders(&readme, "nothing").is_err());
}
